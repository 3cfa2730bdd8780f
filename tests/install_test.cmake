# Installs the build into an empty folder, builds tests/install and tests/install_torch against it
# with find_package(Sordino) and runs what comes out, then runs the installed program.
#
#   cmake -DBUILD_DIR=... -DSOURCE_DIR=... -DCOMPILER=... -DFLAGS=... -P install_test.cmake
set(work ${BUILD_DIR}/install_test)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${result}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${work}/prefix)
file(READ ${work}/prefix/${LIBDIR}/cmake/Sordino/SordinoTargets.cmake exported)
if(exported MATCHES "${SOURCE_DIR}/src")
  message(FATAL_ERROR "The installed package names the source tree.")
endif()

# What is installed is public, and needs nothing that is not installed.
file(GLOB_RECURSE headers RELATIVE ${work}/prefix/include ${work}/prefix/include/*.h)
list(LENGTH headers count)
if(count LESS 40)
  message(FATAL_ERROR "Only ${count} headers were installed.")
endif()
foreach(header IN LISTS headers)
  if(header MATCHES "/(internal|testing|cli|torch_cli)/|test_support|_test\\.h")
    message(FATAL_ERROR "${header} was installed, and is not public.")
  endif()
  file(STRINGS ${work}/prefix/include/${header} includes REGEX "^#include \"sordino/")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^#include \"([^\"]+)\".*$" "\\1" include "${include}")
    if(NOT EXISTS ${work}/prefix/include/${include})
      message(FATAL_ERROR "${header} was installed and includes ${include}, which was not.")
    endif()
  endforeach()
endforeach()

set(project_flags -G Ninja -DCMAKE_PREFIX_PATH=${work}/prefix -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/install -B ${work}/build ${project_flags})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer ${work}/ledger.db)
if(NOT output MATCHES "^[-+.e0-9]+ [0-9a-f]+\n$")
  message(FATAL_ERROR "The program against the installed package printed: ${output}")
endif()
run(${work}/prefix/bin/sordino --version)
if(NOT output MATCHES "^sordino [0-9.]+\n$")
  message(FATAL_ERROR "The installed sordino printed: ${output}")
endif()
foreach(file man/man1/sordino.1 man/man1/sordino-ledger-init.1 man/man1/sordino-train.1
    bash-completion/completions/sordino zsh/site-functions/_sordino
    fish/vendor_completions.d/sordino.fish)
  if(NOT EXISTS ${work}/prefix/share/${file})
    message(FATAL_ERROR "${file} was not installed.")
  endif()
endforeach()
if(EXISTS ${work}/prefix/bin/sordino-torch)
  run(${work}/prefix/bin/sordino bench step --help)
  if(NOT output MATCHES "sordino bench step --models")
    message(FATAL_ERROR "The installed sordino bench printed: ${output}")
  endif()

  # A model of somebody else's, trained with the installed package.
  run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/install_torch -B ${work}/torch_build ${project_flags})
  run(${CMAKE_COMMAND} --build ${work}/torch_build)
  run(${work}/torch_build/ring_classifier)
  if(NOT output MATCHES "^epsilon ([0-9.]+) accuracy ([0-9.]+)\n$")
    message(FATAL_ERROR "The program that trains printed: ${output}")
  endif()
  if(CMAKE_MATCH_1 GREATER 4 OR CMAKE_MATCH_1 LESS 3.9 OR CMAKE_MATCH_2 LESS 0.8)
    message(FATAL_ERROR "The program that trains spent or learned something else: ${output}")
  endif()

  # Without libtorch the other modules are given, and what lacks is said.
  set(no_libtorch ${project_flags} -DSORDINO_LIBTORCH=${work}/nothing)
  run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/install -B ${work}/no_libtorch ${no_libtorch})
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/install_torch
    -B ${work}/no_libtorch_training ${no_libtorch}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(result EQUAL 0 OR NOT output MATCHES "libtorch was not found in: [^ ]*/nothing\\. .*Name a folder")
    message(FATAL_ERROR "Without libtorch, find_package(Sordino) said: ${output}")
  endif()
endif()
