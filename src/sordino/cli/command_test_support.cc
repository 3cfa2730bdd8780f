#include "sordino/cli/command_test_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "sordino/base/testing/test_folder.h"

namespace sordino {
namespace {

std::string Quoted(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

CommandOutcome CallCommand(void (*add)(CLI::App&), std::vector<std::string> arguments) {
  CLI::App app("test", "sordino");
  add(app);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  std::ostringstream out;
  std::ostringstream err;
  std::streambuf* const old_out = std::cout.rdbuf(out.rdbuf());
  std::streambuf* const old_err = std::cerr.rdbuf(err.rdbuf());
  CommandOutcome outcome;
  try {
    app.parse(arguments);
  } catch (const std::exception& error) {
    outcome.error = error.what();
  }
  std::cout.rdbuf(old_out);
  std::cerr.rdbuf(old_err);
  outcome.out = out.str();
  outcome.err = err.str();
  return outcome;
}

std::ostream& operator<<(std::ostream& out, const Mistake& mistake) { return out << mistake.line; }

void ExpectMistake(const Mistake& mistake) {
  const CommandOutcome outcome = RunProgram(Words(mistake.line));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, ::testing::MatchesRegex("sordino: [^\n]+\n"));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr(mistake.part));
}

CommandOutcome RunProgram(const std::vector<std::string>& arguments) {
  const TestFolder folder;
  const std::string out = (folder / "stdout").string();
  const std::string err = (folder / "stderr").string();
  std::string line = Quoted(SORDINO_PROGRAM);
  for (const std::string& word : arguments) line += " " + Quoted(word);
  line += " >" + Quoted(out) + " 2>" + Quoted(err) + " </dev/null";
  const int status = std::system(line.c_str());
  CommandOutcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.out = ReadTestFile(out);
  outcome.err = ReadTestFile(err);
  return outcome;
}

std::string WriteTestFile(const std::string& name, const std::string& content) {
  static const TestFolder folder;  // removed when the process of the tests ends
  return folder.Write(name, content).string();
}

std::string ReadTestFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

std::vector<std::string> Words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace sordino
