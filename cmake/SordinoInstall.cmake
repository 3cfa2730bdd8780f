# find_package(Sordino) gives sordino::<module> for every module that was built. The tier without
# torch and the tier with it are two sets of targets, so that the first can be used where there is
# no libtorch.
include(CMakePackageConfigHelpers)
get_property(modules GLOBAL PROPERTY SORDINO_MODULES)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Sordino)
set(package_torch_modules)

foreach(module IN LISTS modules)
  set(set_of_targets SordinoTargets)
  if(module IN_LIST map_torch_modules)
    set(set_of_targets SordinoTorchTargets)
    list(APPEND package_torch_modules ${module})
  endif()
  install(TARGETS sordino_${module} EXPORT ${set_of_targets}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  # The public headers of a module lie in its folder itself; what lies in internal/ and testing/
  # below it stays here (tests/include_map_test.py).
  install(DIRECTORY src/sordino/${module} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sordino
    FILES_MATCHING PATTERN "*.h" PATTERN "internal" EXCLUDE PATTERN "testing" EXCLUDE
    PATTERN "testdata" EXCLUDE)
endforeach()
# The headers for programs, which name the public headers of modules that were built.
set(program_headers account.h ledger.h release.h)
if(SORDINO_TORCH)
  list(APPEND program_headers train.h)
endif()
list(TRANSFORM program_headers PREPEND src/sordino/)
install(FILES ${program_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sordino)
install(TARGETS sordino RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(CODE "set(SORDINO_PROGRAM \"$<TARGET_FILE:sordino>\")
set(SORDINO_DATAROOTDIR \"${CMAKE_INSTALL_DATAROOTDIR}\")
include(\"${CMAKE_CURRENT_SOURCE_DIR}/cmake/SordinoInstallHelp.cmake\")" COMPONENT program)
install(EXPORT SordinoTargets NAMESPACE sordino:: DESTINATION ${package_dir})
if(package_torch_modules)
  install(TARGETS sordino_libtorch_symbols EXPORT SordinoTorchTargets
    OBJECTS DESTINATION ${CMAKE_INSTALL_LIBDIR}/sordino)
  install(EXPORT SordinoTorchTargets NAMESPACE sordino:: DESTINATION ${package_dir})
  cmake_path(GET SORDINO_TORCH_INCLUDE PARENT_PATH package_libtorch)
endif()

configure_package_config_file(cmake/SordinoConfig.cmake.in
  ${PROJECT_BINARY_DIR}/SordinoConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/SordinoConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/SordinoConfig.cmake
  ${PROJECT_BINARY_DIR}/SordinoConfigVersion.cmake cmake/SordinoFindLibtorch.cmake
  DESTINATION ${package_dir})
