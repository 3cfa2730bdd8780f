# Gloo, the CPU half of libtorch's process groups (c10d). The library is inside libtorch, but the wheel
# ships none of Gloo's headers, which ProcessGroupGloo.hpp includes. It only needs names from them: no
# object of Gloo is made, sized or copied by code that includes it, all of that is inside libtorch. So
# cmake/gloo_declarations declares these names, and no version of Gloo has to be matched or fetched.
#
# Sets SORDINO_GLOO to whether this libtorch has Gloo and its header includes no more than what is
# declared. Where not, Sordino trains in one process.
set(gloo_declarations ${PROJECT_SOURCE_DIR}/cmake/gloo_declarations)

function(sordino_find_gloo)
  set(SORDINO_GLOO OFF PARENT_SCOPE)
  set(header ${SORDINO_TORCH_INCLUDE}/torch/csrc/distributed/c10d/ProcessGroupGloo.hpp)
  if(NOT EXISTS ${header})
    return()
  endif()
  file(STRINGS ${header} includes REGEX "^#include <gloo/")
  foreach(line IN LISTS includes)
    string(REGEX REPLACE "^#include <(.*)>.*" "\\1" name "${line}")
    if(NOT EXISTS ${gloo_declarations}/${name})
      return()
    endif()
  endforeach()
  # c10d::ProcessGroupGloo::Options::create_default(std::chrono::milliseconds); compiling with the
  # header itself would take ten times longer.
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LIBRARIES ${SORDINO_TORCH_CPU}
    -Wl,--unresolved-symbols=ignore-in-shared-libs)
  check_cxx_source_compiles("
    extern \"C\" void
    _ZN4c10d16ProcessGroupGloo7Options14create_defaultENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE();
    int main() {
      _ZN4c10d16ProcessGroupGloo7Options14create_defaultENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE();
    }" SORDINO_LIBTORCH_HAS_GLOO)
  if(SORDINO_LIBTORCH_HAS_GLOO)
    set(SORDINO_GLOO ON PARENT_SCOPE)
  endif()
endfunction()

sordino_find_gloo()
if(NOT SORDINO_GLOO)
  message(STATUS "This libtorch has no process groups: Sordino will train in one process only.")
endif()
