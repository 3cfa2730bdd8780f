# sordino_quick_build(TARGET MODULE): what the preset `user` does to compile the program sooner.
#
# libtorch's headers are read once for all modules that need them (a precompiled header). Modules that
# call others and compute little are compiled with -O1, which takes a third less time, and those that
# parse and print alone without optimisation, which takes half of that.
set(quick_modules audit clipping device distributed ledger lower_bounds mechanisms models optimizers schedules
  theory training)
set(command_modules cli experiments report runs torch_cli)

if(SORDINO_QUICK_BUILD AND SORDINO_TORCH)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cc CONTENT "// Holds a precompiled header.\n")
  add_library(sordino_precompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled.cc)
  set_target_properties(sordino_precompiled PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(sordino_precompiled PRIVATE sordino_flags sordino_libtorch)
  target_precompile_headers(sordino_precompiled PRIVATE
    <ATen/ATen.h> <torch/csrc/autograd/autograd.h>
    <algorithm> <filesystem> <fstream> <functional> <map> <memory> <optional> <span> <sstream>
    <string> <vector>)
endif()

function(sordino_quick_build TARGET MODULE)
  if(NOT SORDINO_QUICK_BUILD)
    return()
  endif()
  if(MODULE IN_LIST quick_modules)
    target_compile_options(${TARGET} PRIVATE -O1)
  elseif(MODULE IN_LIST command_modules)
    target_compile_options(${TARGET} PRIVATE -O0)
  endif()
  if(MODULE IN_LIST map_torch_modules)
    target_precompile_headers(${TARGET} REUSE_FROM sordino_precompiled)
  endif()
endfunction()
