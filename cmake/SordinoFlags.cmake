# Every flag that the project's own code is compiled with lives in this one target.
# No -ffast-math anywhere: the privacy core depends on IEEE rounding.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(SORDINO_CCACHE ccache)
if(SORDINO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Clones in other folders share what was compiled: paths below the source tree are relative.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
    CCACHE_NOHASHDIR=1 ${SORDINO_CCACHE})
endif()

add_library(sordino_flags INTERFACE)
target_compile_features(sordino_flags INTERFACE cxx_std_20)
# -ffp-contract=off: a fused multiply-add is more precise but makes results differ between
# machines, and the certified bounds are derived for one rounding an operation.
target_compile_options(sordino_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-align -Wunused
  -Woverloaded-virtual -Wnull-dereference -Wdouble-promotion -Wformat=2
  -fno-math-errno -ffp-contract=off)
if(SORDINO_WERROR)
  target_compile_options(sordino_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False positives of GCC 12 inside optimised standard-library code.
  target_compile_options(sordino_flags INTERFACE
    -Wno-null-dereference -Wno-maybe-uninitialized -Wno-restrict -Wno-array-bounds
    -Wno-stringop-overflow -Wno-stringop-overread)
  # Notes about a calling convention that changed in GCC 10, from the insides of Boost.
  target_compile_options(sordino_flags INTERFACE -Wno-psabi)
endif()
if(SORDINO_SANITIZE)
  # Checks of virtual calls need the type information of classes whose information libtorch hides.
  target_compile_options(sordino_flags INTERFACE
    -fsanitize=${SORDINO_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(sordino_flags INTERFACE -fsanitize=${SORDINO_SANITIZE})
endif()
