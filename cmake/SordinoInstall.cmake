# find_package(Sordino) gives sordino::<module> for every module that was built.
include(CMakePackageConfigHelpers)
get_property(modules GLOBAL PROPERTY SORDINO_MODULES)
list(TRANSFORM modules PREPEND sordino_ OUTPUT_VARIABLE module_targets)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Sordino)

install(TARGETS ${module_targets} EXPORT SordinoTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS sordino RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY src/sordino DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "cli" EXCLUDE PATTERN "torch_cli" EXCLUDE
  PATTERN "*test_support.h" EXCLUDE)
install(EXPORT SordinoTargets NAMESPACE sordino:: DESTINATION ${package_dir})
configure_package_config_file(cmake/SordinoConfig.cmake.in
  ${PROJECT_BINARY_DIR}/SordinoConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/SordinoConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/SordinoConfig.cmake
  ${PROJECT_BINARY_DIR}/SordinoConfigVersion.cmake DESTINATION ${package_dir})
