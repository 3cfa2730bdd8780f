# sordino_components(FILE REGISTRY OUTPUT): the sources of the components that a list file names.
#
# A list file is the registry of one kind of component, a line for each:
#
#   SORDINO_COMPONENT(AdamOptimizer, adam)
#
# The first word is the function that returns the component, the second the file that defines it,
# adam.cc beside the list. The C++ file of the registry includes the list, and CMake reads the
# sources from it, so a new component is its file and its line. The registry is never joined with other
# files: a program with more components links its own before the library (tests/components).
function(sordino_components FILE REGISTRY OUTPUT)
  set_source_files_properties(${REGISTRY} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${FILE})
  cmake_path(GET FILE PARENT_PATH folder)
  set(line "^SORDINO_COMPONENT\\(([A-Za-z]+), ([a-z_]+)\\)$")
  file(STRINGS ${FILE} lines REGEX "^SORDINO_COMPONENT")
  set(sources)
  foreach(text IN LISTS lines)
    if(NOT text MATCHES "${line}")
      message(FATAL_ERROR "${FILE} has the line '${text}'; write SORDINO_COMPONENT(Function, file).")
    endif()
    list(APPEND sources ${folder}/${CMAKE_MATCH_2}.cc)
  endforeach()
  # A file may hold two components that are alike.
  list(REMOVE_DUPLICATES sources)
  set(${OUTPUT} ${sources} PARENT_SCOPE)
endfunction()
