# sordino_discover_suites(PROGRAM LABEL): one test of CTest for each suite of a program that loads libtorch.
#
# Loading libtorch takes 0.3 s of processor time, so 1,800 processes of one test each would take nine minutes.
# A suite of which every test skips itself is skipped; one that skips some of its tests names them in its output.
function(sordino_discover_suites PROGRAM LABEL)
  set(suites ${CMAKE_CURRENT_BINARY_DIR}/${PROGRAM}_suites.cmake)
  add_custom_command(TARGET ${PROGRAM} POST_BUILD BYPRODUCTS ${suites} VERBATIM
    COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:${PROGRAM}> -D LABEL=${LABEL} -D OUTPUT=${suites}
      -P ${PROJECT_SOURCE_DIR}/cmake/WriteSuites.cmake)
  set(include ${CMAKE_CURRENT_BINARY_DIR}/${PROGRAM}_include.cmake)
  file(CONFIGURE OUTPUT ${include} @ONLY CONTENT [[
if(EXISTS "@suites@")
  include("@suites@")
else()
  add_test(@PROGRAM@_NOT_BUILT @PROGRAM@_NOT_BUILT)
endif()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()
