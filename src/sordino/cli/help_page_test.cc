#include "sordino/cli/help_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "sordino/base/known_meaning.h"
#include "sordino/cli/command_test_support.h"
#include "sordino/tables/table_columns.h"

namespace sordino {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

Json Program() { return Json::parse(RunProgram({"help", "--json"}).out)["program"]; }

const Json* Below(const Json& node, const std::string& name) {
  for (const Json& child : node["commands"]) {
    if (child["name"] == name) return &child;
  }
  return nullptr;
}

std::set<std::string> NamesOf(const Json& node) {
  std::set<std::string> names;
  for (const Json& option : node["options"]) {
    for (const Json& name : option["names"]) names.insert(name.get<std::string>());
  }
  return names;
}

// Whether the commands of sordino-torch are there: a build without libtorch has their names only.
bool HasTorch(const Json& program) { return NamesOf(*Below(program, "train")).size() > 3; }

TEST(HelpPage, CommandsStandInTheOrderInWhichPeopleNeedThem) {
  const std::string help = RunProgram({"--help"}).out;
  EXPECT_LT(help.find("\n  train "), help.find("\n  fit "));
  for (const char* later : {"predict", "release", "ledger", "account", "report", "bench", "help"}) {
    const std::size_t place = help.find("\n  " + std::string(later) + ' ');
    ASSERT_NE(place, std::string::npos) << later;
    EXPECT_LT(help.find("\n  fit "), place) << later;
  }
  EXPECT_EQ(Program()["commands"][0]["name"], "train");
  EXPECT_EQ(Program()["commands"][1]["name"], "fit");
}

TEST(HelpPage, EveryCommandHasAPlaceInTheList) {
  for (const Json& command : Program()["commands"]) {
    EXPECT_LT(PlaceOfCommand(command["name"].get<std::string>()), PlaceOfCommand(""))
        << command["name"];
  }
  EXPECT_THAT(RunProgram({"--help"}).out, Not(HasSubstr("Others:")));
}

TEST(HelpPage, FlagsOfThePagesExist) {
  const Json program = Program();
  if (!HasTorch(program)) GTEST_SKIP() << "built without libtorch";
  for (const auto& [command, flag] : FlagsOfHelpPages()) {
    const std::string name(command);
    const std::size_t blank = name.find(' ');
    const Json* node = Below(program, name.substr(0, blank));
    if (blank != std::string::npos) node = Below(*node, name.substr(blank + 1));
    ASSERT_NE(node, nullptr) << name;
    EXPECT_THAT(NamesOf(*node), Contains(std::string(flag))) << name;
  }
}

TEST(HelpPage, APageIsShortAndHelpAllHasEveryFlag) {
  const Json program = Program();
  if (!HasTorch(program)) GTEST_SKIP() << "built without libtorch";
  for (const std::string command : {"train", "fit", "predict", "data"}) {
    const std::string page = RunProgram({command, "--help"}).out;
    const std::string all = RunProgram({command, "--help-all"}).out;
    EXPECT_LT(std::count(page.begin(), page.end(), '\n'), 70) << command;
    EXPECT_LT(page.size(), all.size()) << command;
    EXPECT_THAT(page, HasSubstr("more flags: sordino " + command + " --help-all\n"));
    EXPECT_THAT(page, HasSubstr("xample"));
    EXPECT_THAT(all, Not(HasSubstr("more flags:")));
    for (const std::string& name : NamesOf(*Below(program, command))) {
      EXPECT_THAT(all, HasSubstr(name)) << command;
    }
    EXPECT_LT(page.find("\nData:\n"), page.find("\nOptions:\n")) << command;
  }
  const std::string all = RunProgram({"train", "--help-all"}).out;
  std::size_t last = 0;
  for (const char* heading : {"Data", "Privacy", "Model", "Training", "Run", "Options"}) {
    const std::size_t place = all.find("\n" + std::string(heading) + ":\n");
    ASSERT_NE(place, std::string::npos) << heading;
    EXPECT_LT(last, place) << heading;
    last = place;
  }
}

TEST(HelpPage, WhatIsSuggestedByMeaningExists) {
  const Json program = Program();
  if (!HasTorch(program)) GTEST_SKIP() << "built without libtorch";
  std::set<std::string> known;
  const auto collect = [&](const auto& self, const Json& node) -> void {
    known.insert(node["name"].get<std::string>());
    for (const std::string& name : NamesOf(node)) {
      known.insert(name.substr(std::min(name.find_first_not_of('-'), name.size())));
    }
    for (const Json& option : node["options"]) {
      for (const Json& choice : option["choices"]) known.insert(choice.get<std::string>());
    }
    for (const Json& child : node["commands"]) self(self, child);
  };
  collect(collect, program);
  for (const std::string_view kind : ColumnKindNames()) known.insert(std::string(kind));
  for (const std::string_view name : NamesOfMeanings()) {
    EXPECT_THAT(known, Contains(std::string(name)));
  }
}

TEST(HelpPage, MistypedNamesAreFoundByTheirMeaning) {
  const auto told = [](const std::vector<std::string>& words) {
    const CommandOutcome outcome = RunProgram(words);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_THAT(told({"release", "x.csv", "--count", "--eps", "1"}),
              HasSubstr("'--eps' is not a flag of 'sordino release'; did you mean '--epsilon'?"));
  EXPECT_THAT(told({"account", "--sigma", "2"}), HasSubstr("did you mean '--noise'?"));
  EXPECT_THAT(told({"account", "--iterations=3"}), HasSubstr("did you mean '--steps'?"));
  EXPECT_THAT(told({"evaluate"}), HasSubstr("did you mean 'predict'?"));
  EXPECT_THAT(told({"budget"}), HasSubstr("did you mean 'ledger'?"));
}

}  // namespace
}  // namespace sordino
