# The map of modules, read from the table in ARCHITECTURE.md: which modules there are, which of
# them need libtorch, and what each may include. It is written nowhere else; tests/include_map_test.py
# reads the same rows and checks that both read the same.
#
# sordino_read_map(FILE) sets for the caller
#   map_modules        the modules that have code, in the order of the table
#   map_torch_modules  those of them that need libtorch
#   map_deps_MODULE    the modules with code that MODULE may include
# A row is `| tier | module | what lives there | may include |`; the tier is `torch` or `no torch`,
# and a module in italics has no code yet.
cmake_policy(VERSION 3.25)
function(sordino_read_map FILE)
  set(row "^\\| (no torch|torch) \\| ([^|]*)`([a-z_]+)`[^|]* \\| [^|]* \\| ([^|]*) \\|$")
  file(STRINGS ${FILE} lines ENCODING UTF-8 REGEX "${row}")
  set(modules)
  set(torch_modules)
  set(planned)
  foreach(line IN LISTS lines)
    string(REGEX MATCH "${row}" matched "${line}")
    set(tier ${CMAKE_MATCH_1})
    set(mark "${CMAKE_MATCH_2}")
    set(module ${CMAKE_MATCH_3})
    string(REGEX MATCHALL "[a-z_]+" allowed "${CMAKE_MATCH_4}")
    if(module IN_LIST modules OR module IN_LIST planned)
      message(FATAL_ERROR "${FILE} has two rows for the module ${module}.")
    endif()
    set(deps)
    foreach(dep IN LISTS allowed)
      if(dep IN_LIST modules)
        if(tier STREQUAL "no torch" AND dep IN_LIST torch_modules)
          message(FATAL_ERROR "${FILE}: ${module} needs no libtorch but may include ${dep}.")
        endif()
        list(APPEND deps ${dep})
      elseif(NOT dep IN_LIST planned)
        message(FATAL_ERROR "${FILE}: ${module} may include ${dep}, which has no row above it.")
      endif()
    endforeach()
    if(mark MATCHES "^\\*")
      list(APPEND planned ${module})
    else()
      list(APPEND modules ${module})
      if(tier STREQUAL "torch")
        list(APPEND torch_modules ${module})
      endif()
      set(map_deps_${module} ${deps} PARENT_SCOPE)
    endif()
  endforeach()
  set(map_modules ${modules} PARENT_SCOPE)
  set(map_torch_modules ${torch_modules} PARENT_SCOPE)
endfunction()

# cmake -DMAP=FILE -P SordinoMap.cmake prints what was read, for the test.
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  sordino_read_map(${MAP})
  foreach(module IN LISTS map_modules)
    set(tier "no torch")
    if(module IN_LIST map_torch_modules)
      set(tier "torch")
    endif()
    list(JOIN map_deps_${module} " " deps)
    message(STATUS "${tier}|${module}|${deps}")
  endforeach()
endif()
