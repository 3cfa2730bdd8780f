# libtorch as an imported target of our own, sordino_libtorch.
#
# The wheel's find_package(Torch) asks for a whole CUDA toolkit even where only the CPU half is
# used, so the shared libraries are named directly: two for the CPU, and two for CUDA where the
# libtorch has them. Searched, in this order:
# SORDINO_LIBTORCH (a folder with include/ and lib/), every entry of CMAKE_PREFIX_PATH, and the
# folder that tools/setup fills.
set(SORDINO_LIBTORCH "" CACHE PATH "Folder of a libtorch 2.x (with include/ and lib/)")
set(_sordino_torch_hints
  ${SORDINO_LIBTORCH} $ENV{SORDINO_LIBTORCH} ${CMAKE_PREFIX_PATH} $ENV{CMAKE_PREFIX_PATH}
  ${PROJECT_SOURCE_DIR}/.deps/libtorch/torch)
string(REPLACE ":" ";" _sordino_torch_hints "${_sordino_torch_hints}")
list(TRANSFORM _sordino_torch_hints REPLACE "/share/cmake/?.*$" "")

find_path(SORDINO_TORCH_INCLUDE torch/csrc/api/include/torch/torch.h
  PATHS ${_sordino_torch_hints} PATH_SUFFIXES include NO_DEFAULT_PATH)
find_library(SORDINO_TORCH_CPU torch_cpu
  PATHS ${_sordino_torch_hints} PATH_SUFFIXES lib NO_DEFAULT_PATH)
find_library(SORDINO_TORCH_C10 c10
  PATHS ${_sordino_torch_hints} PATH_SUFFIXES lib NO_DEFAULT_PATH)
if(NOT SORDINO_TORCH_INCLUDE OR NOT SORDINO_TORCH_CPU OR NOT SORDINO_TORCH_C10)
  message(FATAL_ERROR "libtorch was not found in: ${_sordino_torch_hints}. Run tools/setup to "
    "fetch it, name a folder with -DSORDINO_LIBTORCH=..., or leave it out with "
    "-DSORDINO_TORCH=OFF.")
endif()

# The header moved between 2.x releases.
set(_sordino_torch_version)
foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
  if(EXISTS ${SORDINO_TORCH_INCLUDE}/${header})
    file(STRINGS ${SORDINO_TORCH_INCLUDE}/${header} _sordino_torch_version
      REGEX "define TORCH_VERSION_MAJOR +[0-9]+")
    break()
  endif()
endforeach()
if(NOT _sordino_torch_version MATCHES "MAJOR +2")
  message(FATAL_ERROR "The libtorch in ${SORDINO_TORCH_INCLUDE} is not version 2.x; name another "
    "one with -DSORDINO_LIBTORCH=..., or run tools/setup, which fetches one.")
endif()

# Include narrowly: <torch/torch.h> costs 16 s a file, <torch/types.h> 9 s, <ATen/ops/....h> with
# <torch/csrc/autograd/variable.h> 5 s. A precompiled <torch/torch.h> is 790 MB and saves less.
add_library(sordino_libtorch INTERFACE)
target_include_directories(sordino_libtorch SYSTEM INTERFACE
  $<BUILD_INTERFACE:${SORDINO_TORCH_INCLUDE}>
  $<BUILD_INTERFACE:${SORDINO_TORCH_INCLUDE}/torch/csrc/api/include>)
target_link_libraries(sordino_libtorch INTERFACE
  $<BUILD_INTERFACE:${SORDINO_TORCH_CPU}> $<BUILD_INTERFACE:${SORDINO_TORCH_C10}>)
# libtorch carries an fmt of its own, whose headers stand before the system's on the path: only
# without the system's libfmt do they link.
target_compile_definitions(sordino_libtorch INTERFACE $<BUILD_INTERFACE:FMT_HEADER_ONLY>)

# Nothing calls into the CUDA half by name; loading it is what makes CUDA known to libtorch.
find_library(SORDINO_TORCH_CUDA torch_cuda
  PATHS ${_sordino_torch_hints} PATH_SUFFIXES lib NO_DEFAULT_PATH)
find_library(SORDINO_TORCH_C10_CUDA c10_cuda
  PATHS ${_sordino_torch_hints} PATH_SUFFIXES lib NO_DEFAULT_PATH)
if(SORDINO_TORCH_CUDA AND SORDINO_TORCH_C10_CUDA)
  target_link_libraries(sordino_libtorch INTERFACE
    "$<BUILD_INTERFACE:-Wl,--push-state,--no-as-needed,${SORDINO_TORCH_CUDA},${SORDINO_TORCH_C10_CUDA},--pop-state>")
endif()

# Objects, not a library: nothing refers to these symbols by name, and a library would leave them
# out.
add_library(sordino_libtorch_symbols OBJECT ${PROJECT_SOURCE_DIR}/cmake/libtorch_weak_symbols.cc)
target_include_directories(sordino_libtorch_symbols SYSTEM PRIVATE ${SORDINO_TORCH_INCLUDE})
target_compile_features(sordino_libtorch_symbols PRIVATE cxx_std_20)
set_target_properties(sordino_libtorch_symbols PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(sordino_libtorch INTERFACE
  $<BUILD_INTERFACE:$<TARGET_OBJECTS:sordino_libtorch_symbols>>)
