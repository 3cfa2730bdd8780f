# Installs the build into an empty folder, builds tests/install against it with
# find_package(Sordino) and runs what comes out, then runs the installed program.
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
run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/install -B ${work}/build -G Ninja
  -DCMAKE_PREFIX_PATH=${work}/prefix -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer ${work}/ledger.db)
if(NOT output MATCHES "^[-+.e0-9]+ [0-9a-f]+\n$")
  message(FATAL_ERROR "The program against the installed package printed: ${output}")
endif()
run(${work}/prefix/bin/sordino --version)
if(NOT output MATCHES "^sordino [0-9.]+\n$")
  message(FATAL_ERROR "The installed sordino printed: ${output}")
endif()
if(EXISTS ${work}/prefix/bin/sordino-torch)
  run(${work}/prefix/bin/sordino bench step --help)
  if(NOT output MATCHES "sordino bench step --models")
    message(FATAL_ERROR "The installed sordino bench printed: ${output}")
  endif()
endif()
