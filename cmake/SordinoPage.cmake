# cmake -DOUTPUT=FILE -DCHART=FILE -DSCRIPTS=FILE,FILE -DSTYLE=FILE -P SordinoPage.cmake
#
# Writes the C++ source that holds the files of a page (report/internal/page_assets.h).
function(literal name)
  set(text "")
  foreach(file ${ARGN})
    file(READ ${file} part)
    string(APPEND text "${part}\n")
  endforeach()
  # </script> in a script would end it on the page.
  string(TOLOWER "${text}" lower)
  string(FIND "${lower}" "</script" found)
  if(NOT found EQUAL -1)
    message(FATAL_ERROR "${ARGN} contains '</script'.")
  endif()
  file(APPEND ${OUTPUT} "std::string_view ${name}() {\n  return R\"asset(${text})asset\";\n}\n")
endfunction()

string(REPLACE "," ";" SCRIPTS "${SCRIPTS}")
file(WRITE ${OUTPUT}
  "#include \"sordino/report/internal/page_assets.h\"\n\nnamespace sordino::internal {\n\n")
literal(ChartLibrary ${CHART})
literal(PageScript ${SCRIPTS})
literal(PageStyle ${STYLE})
file(APPEND ${OUTPUT} "\n}  // namespace sordino::internal\n")
