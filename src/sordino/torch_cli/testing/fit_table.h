// Tables through `sordino fit`, which replaces itself by sordino-torch.
#ifndef SORDINO_TORCH_CLI_TESTING_FIT_TABLE_H_
#define SORDINO_TORCH_CLI_TESTING_FIT_TABLE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"

namespace sordino {

inline const std::vector<std::string> kPoints = {"x:numeric:0:1", "y:numeric:0:1",
                                                 "above:label:no|yes"};

class FitTable : public ::testing::Test {
 protected:
  FitTable() { setenv("SORDINO_STATE", (folder_ / "state").c_str(), 1); }
  ~FitTable() override { unsetenv("SORDINO_STATE"); }

  std::string Place(const std::string& name) const { return (folder_ / name).string(); }

  // Fits `table` into the folder `run`.
  CommandOutcome Fit(const std::string& table, const std::string& more,
                     const std::vector<std::string>& columns = kPoints,
                     const std::string& run = "run") const {
    std::vector<std::string> words = {"fit", folder_.Write("table.csv", table).string(),
                                      "--columns"};
    words.insert(words.end(), columns.begin(), columns.end());
    words.insert(words.end(), {"--out", Place(run)});
    for (const std::string& word : Words(more)) words.push_back(word);
    if (more.find("--delta") == std::string::npos &&
        more.find("--non-private") == std::string::npos) {
      words.insert(words.end(), {"--delta", "1e-5"});
    }
    return RunProgram(words);
  }

  TestFolder folder_;
};

inline void ExpectRefusal(const CommandOutcome& outcome, const std::string& part) {
  EXPECT_EQ(outcome.exit_code, 2) << part;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, ::testing::MatchesRegex("(sordino: the number of records[^\n]+\n)?"
                                                   "sordino: [^\n]+\n"));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr(part));
}

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_TESTING_FIT_TABLE_H_
