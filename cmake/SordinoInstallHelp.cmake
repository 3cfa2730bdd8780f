# Manual pages and completions, which the program makes itself: run by `cmake --install` with
# SORDINO_PROGRAM (the built program) and SORDINO_DATAROOTDIR set.
set(share "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${SORDINO_DATAROOTDIR}")

function(sordino_install_output file)
  execute_process(COMMAND ${SORDINO_PROGRAM} ${ARGN} OUTPUT_VARIABLE text
    COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "Installing: ${share}/${file}")
  file(WRITE "${share}/${file}" "${text}")
endfunction()

execute_process(COMMAND ${SORDINO_PROGRAM} manual OUTPUT_VARIABLE pages
  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" pages "${pages}")
foreach(page IN LISTS pages)
  sordino_install_output(man/man1/${page}.1 manual ${page})
endforeach()
sordino_install_output(bash-completion/completions/sordino completion bash)
sordino_install_output(zsh/site-functions/_sordino completion zsh)
sordino_install_output(fish/vendor_completions.d/sordino.fish completion fish)
