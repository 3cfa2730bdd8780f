# libtorch as an imported target of our own, sordino_libtorch. Searched, in this order:
# SORDINO_LIBTORCH (a folder with include/ and lib/), every entry of CMAKE_PREFIX_PATH, and the
# folder that tools/setup fills.
set(SORDINO_LIBTORCH "" CACHE PATH "Folder of a libtorch 2.x (with include/ and lib/)")
include(SordinoFindLibtorch)
sordino_find_libtorch(sordino_libtorch
  ${SORDINO_LIBTORCH} $ENV{SORDINO_LIBTORCH} ${CMAKE_PREFIX_PATH} $ENV{CMAKE_PREFIX_PATH}
  ${PROJECT_SOURCE_DIR}/.deps/libtorch/torch)
if(sordino_libtorch_problem)
  message(FATAL_ERROR "${sordino_libtorch_problem} Run tools/setup to fetch libtorch, name its folder "
    "with -DSORDINO_LIBTORCH=..., or leave it out with -DSORDINO_TORCH=OFF.")
endif()

# Objects, not a library: nothing refers to the weak symbols by name, and a library would leave them
# out.
add_library(sordino_libtorch_symbols OBJECT ${PROJECT_SOURCE_DIR}/cmake/libtorch_weak_symbols.cc)
if(SORDINO_TORCH_FMT)
  target_sources(sordino_libtorch_symbols PRIVATE ${PROJECT_SOURCE_DIR}/cmake/libtorch_fmt.cc)
endif()
target_include_directories(sordino_libtorch_symbols SYSTEM PRIVATE ${SORDINO_TORCH_INCLUDE})
target_compile_features(sordino_libtorch_symbols PRIVATE cxx_std_20)
# Not in a unity build: from CMake 4 on, its object is named otherwise than $<TARGET_OBJECTS> says.
set_target_properties(sordino_libtorch_symbols PROPERTIES POSITION_INDEPENDENT_CODE ON
  UNITY_BUILD OFF EXPORT_NAME libtorch_symbols)
target_link_libraries(sordino_libtorch INTERFACE $<TARGET_OBJECTS:sordino_libtorch_symbols>)
