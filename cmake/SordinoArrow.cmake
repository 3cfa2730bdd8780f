# Apache Arrow with Parquet, which the program sordino-arrow reads Parquet and Arrow files with: the
# interface library sordino_arrow_library, where one is found. It may be absent: everything else is built
# without it.
#
# Looked for in the folder SORDINO_ARROW, in .deps/arrow (tools/setup --parquet: the C++ half of the
# pyarrow wheel), then as the CMake packages Arrow and Parquet.
set(SORDINO_ARROW "" CACHE PATH "Folder with include/arrow and the libraries of Arrow and Parquet")
foreach(folder "${SORDINO_ARROW}" "${PROJECT_SOURCE_DIR}/.deps/arrow/pyarrow")
  file(GLOB arrow_library ${folder}/libarrow.so* ${folder}/lib/libarrow.so*)
  file(GLOB parquet_library ${folder}/libparquet.so* ${folder}/lib/libparquet.so*)
  if(folder AND arrow_library AND parquet_library AND EXISTS ${folder}/include/arrow/api.h)
    list(GET arrow_library 0 arrow_library)
    list(GET parquet_library 0 parquet_library)
    add_library(sordino_arrow_library INTERFACE)
    target_include_directories(sordino_arrow_library SYSTEM INTERFACE ${folder}/include)
    target_link_libraries(sordino_arrow_library INTERFACE ${parquet_library} ${arrow_library})
    cmake_path(GET arrow_library PARENT_PATH arrow_folder)
    break()
  endif()
endforeach()
if(NOT TARGET sordino_arrow_library)
  find_package(Arrow CONFIG QUIET)
  find_package(Parquet CONFIG QUIET)
  if(Arrow_FOUND AND Parquet_FOUND)
    add_library(sordino_arrow_library INTERFACE)
    target_link_libraries(sordino_arrow_library INTERFACE Parquet::parquet_shared Arrow::arrow_shared)
  endif()
endif()
if(NOT TARGET sordino_arrow_library)
  message(STATUS "Apache Arrow was not found: Parquet files are not read (tools/setup --parquet)")
endif()
