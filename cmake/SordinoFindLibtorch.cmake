# sordino_find_libtorch(TARGET FOLDERS...): the libtorch 2.x of the first folder that has one, as the
# interface library TARGET. Used by the build and by the installed package (SordinoConfig.cmake).
# Sets SORDINO_TORCH_INCLUDE, SORDINO_TORCH_CPU and SORDINO_TORCH_VERSION (as 2.7), or leaves
# sordino_libtorch_problem with a sentence and makes no target.
#
# The wheel's find_package(Torch) asks for a whole CUDA toolkit even where only the CPU half is
# used, so the shared libraries are named directly: two for the CPU, and two for CUDA where the
# libtorch has them.
macro(sordino_find_libtorch TARGET)
  set(sordino_libtorch_problem)
  set(_sordino_torch_hints ${ARGN})
  string(REPLACE ":" ";" _sordino_torch_hints "${_sordino_torch_hints}")
  list(TRANSFORM _sordino_torch_hints REPLACE "/share/cmake/?.*$" "")
  list(REMOVE_DUPLICATES _sordino_torch_hints)
  find_path(SORDINO_TORCH_INCLUDE torch/csrc/api/include/torch/torch.h
    PATHS ${_sordino_torch_hints} PATH_SUFFIXES include NO_DEFAULT_PATH)
  foreach(_library CPU:torch_cpu C10:c10 CUDA:torch_cuda C10_CUDA:c10_cuda)
    string(REPLACE ":" ";" _library ${_library})
    list(GET _library 0 _name)
    list(GET _library 1 _file)
    find_library(SORDINO_TORCH_${_name} ${_file}
      PATHS ${_sordino_torch_hints} PATH_SUFFIXES lib NO_DEFAULT_PATH)
  endforeach()
  set(SORDINO_TORCH_VERSION)
  # The header moved between 2.x releases.
  foreach(_header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT SORDINO_TORCH_VERSION AND EXISTS ${SORDINO_TORCH_INCLUDE}/${_header})
      file(READ ${SORDINO_TORCH_INCLUDE}/${_header} _version)
      if(_version MATCHES "TORCH_VERSION_MAJOR +([0-9]+).*TORCH_VERSION_MINOR +([0-9]+)")
        set(SORDINO_TORCH_VERSION ${CMAKE_MATCH_1}.${CMAKE_MATCH_2})
      endif()
    endif()
  endforeach()
  if(NOT SORDINO_TORCH_INCLUDE OR NOT SORDINO_TORCH_CPU OR NOT SORDINO_TORCH_C10)
    set(sordino_libtorch_problem "libtorch was not found in: ${_sordino_torch_hints}.")
  elseif(NOT SORDINO_TORCH_VERSION MATCHES "^2\\.")
    set(sordino_libtorch_problem "The libtorch in ${SORDINO_TORCH_INCLUDE} is not version 2.x.")
  elseif(NOT TARGET ${TARGET})
    # Include narrowly: <torch/torch.h> costs 16 s a file, <torch/types.h> 9 s, <ATen/ops/....h>
    # with <torch/csrc/autograd/variable.h> 5 s. A precompiled <torch/torch.h> is 790 MB and saves
    # less.
    add_library(${TARGET} INTERFACE IMPORTED)
    target_include_directories(${TARGET} SYSTEM INTERFACE
      ${SORDINO_TORCH_INCLUDE} ${SORDINO_TORCH_INCLUDE}/torch/csrc/api/include)
    target_link_libraries(${TARGET} INTERFACE ${SORDINO_TORCH_CPU} ${SORDINO_TORCH_C10})
    # libtorch carries an fmt of its own, whose headers stand before the system's on the path, without
    # the library. We compile version 12 ourselves (libtorch_fmt.cc); others are left to their headers.
    set(SORDINO_TORCH_FMT "")
    if(EXISTS ${SORDINO_TORCH_INCLUDE}/fmt/base.h)
      file(STRINGS ${SORDINO_TORCH_INCLUDE}/fmt/base.h SORDINO_TORCH_FMT
        REGEX "define FMT_VERSION 12[0-9][0-9][0-9][0-9]$")
    endif()
    if(SORDINO_TORCH_FMT)
      # As the system's fmt tells its users: files with and without it share a precompiled header.
      target_compile_definitions(${TARGET} INTERFACE FMT_SHARED)
    else()
      target_compile_definitions(${TARGET} INTERFACE FMT_HEADER_ONLY)
    endif()
    # libtorch is built with NDEBUG, and without it some of its classes have members that the library
    # does not know of.
    target_compile_definitions(${TARGET} INTERFACE $<$<NOT:$<CONFIG:Release>>:NDEBUG>)
    # Nothing calls into the CUDA half by name; loading it is what makes CUDA known to libtorch.
    if(SORDINO_TORCH_CUDA AND SORDINO_TORCH_C10_CUDA)
      target_link_libraries(${TARGET} INTERFACE
        "-Wl,--push-state,--no-as-needed,${SORDINO_TORCH_CUDA},${SORDINO_TORCH_C10_CUDA},--pop-state")
    endif()
  endif()
endmacro()
