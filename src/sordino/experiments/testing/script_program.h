// A program of a test: a shell script that stands in for sordino.
#ifndef SORDINO_EXPERIMENTS_TESTING_SCRIPT_PROGRAM_H_
#define SORDINO_EXPERIMENTS_TESTING_SCRIPT_PROGRAM_H_

#include <filesystem>
#include <optional>
#include <string>

#include "sordino/base/testing/test_folder.h"
#include "sordino/experiments/grid.h"

namespace sordino {

// `--noise N` of the words is $noise in the script, `--file F` is $file.
inline std::filesystem::path ScriptProgram(const TestFolder& folder, const std::string& script) {
  std::filesystem::path file = folder.Write("program",
                                            "#!/bin/sh\nnoise=0\nfile=\nwhile [ $# -gt 0 ]; do\n"
                                            "  [ \"$1\" = --noise ] && noise=$2\n"
                                            "  [ \"$1\" = --file ] && file=$2\n  shift\ndone\n" +
                                                script + "\n");
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  return file;
}

inline std::optional<CommandFlags> ScriptCommands(const std::string&) {
  return CommandFlags{{{"json", true, false}, {"noise", false, false}, {"file", false, false}}};
}

}  // namespace sordino

#endif  // SORDINO_EXPERIMENTS_TESTING_SCRIPT_PROGRAM_H_
