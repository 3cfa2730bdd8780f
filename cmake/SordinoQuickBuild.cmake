# sordino_quick_build(TARGET MODULE): what the preset `user` does to compile the program sooner.
#
# libtorch's headers are read once for all modules that need them (a precompiled header). Modules that
# call others and compute little are compiled with -O1, which takes a third less time, and those that
# parse, print or put together what libtorch computes without optimisation, which takes half of that.
# These have a precompiled header of their own: one that was made with optimisation is not taken.
set(quick_modules audit base clipping convex device distributed ledger lower_bounds mechanisms
  models schedules tables theory training)
set(unoptimised_modules cli experiments optimizers report runs torch_cli)

function(sordino_precompile TARGET)
  set(holder ${PROJECT_BINARY_DIR}/${TARGET}.cc)
  file(CONFIGURE OUTPUT ${holder} CONTENT "// Holds a precompiled header.\n")
  add_library(${TARGET} OBJECT ${holder})
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD OFF)
  target_compile_options(${TARGET} PRIVATE ${ARGN})
  target_link_libraries(${TARGET} PRIVATE sordino_flags sordino_libtorch)
  target_precompile_headers(${TARGET} PRIVATE
    <ATen/ATen.h> <torch/csrc/autograd/autograd.h> <fmt/format.h> <fmt/ranges.h>
    <algorithm> <filesystem> <fstream> <functional> <map> <memory> <optional> <span> <sstream>
    <string> <vector>)
endfunction()

if(SORDINO_QUICK_BUILD AND SORDINO_TORCH)
  sordino_precompile(sordino_precompiled)
  sordino_precompile(sordino_precompiled_unoptimised -O0)
endif()

function(sordino_quick_build TARGET MODULE)
  if(NOT SORDINO_QUICK_BUILD)
    return()
  endif()
  set(precompiled sordino_precompiled)
  if(MODULE IN_LIST quick_modules)
    target_compile_options(${TARGET} PRIVATE -O1)
  elseif(MODULE IN_LIST unoptimised_modules)
    target_compile_options(${TARGET} PRIVATE -O0)
    set(precompiled sordino_precompiled_unoptimised)
  endif()
  if(MODULE IN_LIST map_torch_modules)
    # As the modules do: what was compiled with -fPIE does not take a header that was made with -fPIC.
    target_compile_options(${TARGET} PRIVATE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-fPIC>)
    target_precompile_headers(${TARGET} REUSE_FROM ${precompiled})
  endif()
endfunction()
