# Writes the suites of a GoogleTest program as tests of CTest: cmake -D PROGRAM= -D LABEL= -D OUTPUT= -P this
# A program that was linked a moment ago may still be busy.
foreach(try RANGE 4)
  execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE result)
  if(NOT result MATCHES "busy")
    break()
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -E sleep 1)
endforeach()
if(NOT result STREQUAL "0")
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests: ${result}")
endif()
# Skipped is a suite whose output ends with the list of its skipped tests, after none that passed: one that also has a test
# that failed ends with that, and CTest takes this text before the exit status.
# "Suite." or "Suite.  # TypeParam = T" at the beginning of a line; tests are indented.
string(REGEX MATCHALL "(^|\n)[A-Za-z_][A-Za-z0-9_/]*\\." suites "${listed}")
set(text)
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "[\n.]" "" suite "${suite}")
  string(APPEND text "add_test([==[${suite}]==] [==[${PROGRAM}]==] [==[--gtest_filter=${suite}.*]==])\n"
    "set_tests_properties([==[${suite}]==] PROPERTIES LABELS ${LABEL} TIMEOUT 600"
    " SKIP_REGULAR_EXPRESSION [==[PASSED  \\] 0 tests\\.\n\\[  SKIPPED \\] [0-9]+ tests?, listed below:\n"
    "(\\[  SKIPPED \\] [^\n]*\n*)+$]==])\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
