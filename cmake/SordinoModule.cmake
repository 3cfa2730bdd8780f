# sordino_module(NAME SOURCES ... [PRIVATE_DEPS ...] [TESTS ...] [TEST_DEPS ...] [BENCHMARKS ...]
#                [BENCHMARK_DEPS ...])
#
# One module is one folder and one target sordino::NAME. Source lists are explicit. The modules that
# it links, and whether it links libtorch, come from the map in ARCHITECTURE.md (SordinoMap.cmake);
# PRIVATE_DEPS are outside libraries that appear in its .cc files only. The tests of a module form one program NAME_test; each benchmark
# file X_benchmark.cc is a program of its own and lands in bin/ beside sordino; the target
# `benchmarks` builds them all.
add_custom_target(benchmarks)

# sordino_module_links(NAME OUTPUT): the targets of everything that a module may include.
function(sordino_module_links NAME OUTPUT)
  list(TRANSFORM map_deps_${NAME} PREPEND "sordino::" OUTPUT_VARIABLE links)
  if(NAME IN_LIST map_torch_modules)
    # libtorch's headers are part of the module's interface.
    list(APPEND links
      $<BUILD_INTERFACE:sordino_libtorch> $<INSTALL_INTERFACE:sordino::libtorch>)
  endif()
  set(${OUTPUT} ${links} PARENT_SCOPE)
endfunction()

# sordino_join_tests(TARGET): what SORDINO_JOIN_TESTS does to a test program. libtorch's headers are read
# once for sixteen files. A name of one may shadow a name of another, which says nothing about either.
function(sordino_join_tests TARGET)
  if(SORDINO_JOIN_TESTS)
    set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16
      UNITY_BUILD_CODE_BEFORE_INCLUDE "#pragma GCC diagnostic ignored \"-Wshadow\"")
    target_compile_options(${TARGET} PRIVATE -O1)
  endif()
endfunction()

function(sordino_module NAME)
  cmake_parse_arguments(ARG "" ""
    "SOURCES;PRIVATE_DEPS;TESTS;TEST_DEPS;BENCHMARKS;BENCHMARK_DEPS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "sordino_module(${NAME}) does not know: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  set(target sordino_${NAME})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(sordino::${NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${NAME})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  sordino_module_links(${NAME} module_deps)
  # Header-only libraries are compiled in: an installed Sordino does not ask for them again.
  set(private_deps ${ARG_PRIVATE_DEPS})
  list(TRANSFORM private_deps REPLACE "^(sordino_.*)$" "$<BUILD_INTERFACE:\\1>")
  target_link_libraries(${target} PUBLIC ${module_deps}
    PRIVATE $<BUILD_INTERFACE:sordino_flags> ${private_deps})
  sordino_quick_build(${target} ${NAME})
  set_property(GLOBAL APPEND PROPERTY SORDINO_MODULES ${NAME})

  if(SORDINO_TESTS AND ARG_TESTS)
    add_executable(${NAME}_test ${ARG_TESTS})
    target_link_libraries(${NAME}_test PRIVATE sordino::${NAME} sordino_flags
      ${ARG_PRIVATE_DEPS} ${ARG_TEST_DEPS} GTest::gmock GTest::gtest GTest::gtest_main)
    sordino_join_tests(${NAME}_test)
    if(NAME IN_LIST map_torch_modules)
      sordino_discover_suites(${NAME}_test ${NAME})
    else()
      gtest_discover_tests(${NAME}_test DISCOVERY_TIMEOUT 60 PROPERTIES LABELS ${NAME} TIMEOUT 600)
    endif()
  endif()
  if(SORDINO_BENCHMARKS)
    foreach(file ${ARG_BENCHMARKS})
      cmake_path(GET file STEM stem)
      add_executable(${stem} ${file})
      add_dependencies(benchmarks ${stem})
      target_link_libraries(${stem} PRIVATE sordino::${NAME} sordino_flags
        ${ARG_PRIVATE_DEPS} ${ARG_BENCHMARK_DEPS} benchmark::benchmark benchmark::benchmark_main)
    endforeach()
  endif()
endfunction()
