#include "sordino/experiments/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/experiments/testing/experiment_text.h"

namespace sordino {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::optional<CommandFlags> Known(const std::string& command) {
  CommandFlags flags;
  if (command == "mute") return flags;
  flags.flags = {{"json", true, false},    {"noise", false, false}, {"steps", false, false},
                 {"flip", true, false},    {"out", false, false},   {"ledger", false, false},
                 {"seed", false, false},   {"file", false, true},   {"data", false, false},
                 {"picture", false, false}};
  if (command == "train") flags.flags.push_back({"device", false, false});
  if (command == "account" || command == "train" || command == "bench step") return flags;
  return std::nullopt;
}

std::vector<Cell> CellsOf(const std::string& text, const std::string& device = "") {
  return MakeCells(ParseExperiment(text, "mine", false), Known, device);
}

std::string GridRefusalOf(const std::string& text) {
  return RefusalBy([&] { CellsOf(text); });
}

constexpr const char* kGrid = R"(
repeats = 2
[[part]]
command = "account"
[part.settings]
seed = "{repeat}0"
file = "x-{steps}.csv"
[[part.axis]]
name = "noise"
values = [1, 2]
[[part.axis]]
name = "steps"
values = [10, 20, 30]
)";

constexpr const char* kNoiseAxis = "[[part.axis]]\nname = \"noise\"\nvalues = [1, 2]\n";

TEST(Grid, HasEveryCombinationOnce) {
  const std::vector<Cell> cells = CellsOf(kGrid);
  ASSERT_EQ(cells.size(), 12U);
  EXPECT_THAT(cells[0].words, ElementsAre("account", "x-10.csv", "--seed", "10", "--noise", "1",
                                          "--steps", "10", "--json"));
  EXPECT_THAT(cells[11].words, ElementsAre("account", "x-30.csv", "--seed", "20", "--noise", "2",
                                           "--steps", "30", "--json"));
  std::set<std::vector<std::string>> labels;
  std::set<std::string> ids;
  for (const Cell& cell : cells) {
    labels.insert(cell.labels);
    ids.insert(cell.id);
  }
  EXPECT_EQ(labels.size(), 6U);
  EXPECT_EQ(ids.size(), 12U);
}

TEST(Grid, FilesThatACommandWritesLieInTheFolderOfTheirCell) {
  const std::string part = PartOf("account") + "[part.settings]\npicture = ";
  const std::vector<Cell> cells = CellsOf(part + "\"{noise}-curve.svg\"\n" + kNoiseAxis);
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_THAT(PlacedWords(cells[1], {.run = "/out/cells/7/run", .tables = {}, .data = ""}),
              Contains("/out/cells/7/2-curve.svg"));
  for (const char* const outside :
       {"../x.svg", "/x.svg", "a/x.svg", "..", ".x.svg", "{run}/../../../x.svg", "x y.svg"}) {
    const std::string refusal = GridRefusalOf(part + '"' + outside + "\"\n" + kNoiseAxis);
    EXPECT_THAT(refusal, HasSubstr("the setting 'picture'")) << outside;
    EXPECT_THAT(refusal, HasSubstr("writes into its own folder only"));
  }
  // Also where an axis completes the name.
  EXPECT_THAT(GridRefusalOf(PartOf("account") +
                            "[[part.axis]]\nname = \"picture\"\nvalues = [\"../x.svg\"]\n"),
              HasSubstr("writes into its own folder only"));
}

TEST(Grid, AxisTakesBackASettingOfThePartAndOfAnEarlierAxis) {
  const std::vector<Cell> cells = CellsOf(
      PartOf("account") +
      "[part.settings]\nseed = 3\n"
      "[[part.axis]]\nname = \"noise\"\nvalues = [1]\n"
      "[[part.axis]]\nname = \"way\"\nflag = false\n"
      "values = [{label = \"a\"}, {label = \"b\", noise = false, seed = false, flip = true}]\n");
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_THAT(cells[0].words, ElementsAre("account", "--seed", "3", "--noise", "1", "--json"));
  EXPECT_THAT(cells[1].words, ElementsAre("account", "--flip", "--json"));
}

TEST(Grid, NamesCellsByWhatTheyRun) {
  const std::vector<Cell> cells = CellsOf(kGrid);
  const std::vector<Cell> again =
      CellsOf(std::string(kGrid) + "[[part.measure]]\nname=\"a\"\npath=\"a\"");
  EXPECT_EQ(cells[3].id, again[3].id);
  std::string changed = kGrid;
  changed.replace(changed.find("30]"), 3, "30, 40]");
  const std::vector<Cell> more = CellsOf(changed);
  EXPECT_EQ(more[0].id, cells[0].id);
  changed.replace(changed.find("x-"), 2, "y-");
  EXPECT_NE(CellsOf(changed)[0].id, cells[0].id);
}

// An axis that changes no command asks for the command again; one whose flag another axis takes
// back does not.
TEST(Grid, RunsACommandAgainForEachValueOfAnAxisThatIsNoFlag) {
  const std::string draws = "[[part.axis]]\nname = \"draw\"\nflag = false\nvalues = [1, 2, 3]\n";
  const auto ids = [](const std::string& text) {
    std::set<std::string> found;
    for (const Cell& cell : CellsOf(text)) found.insert(cell.id);
    return found.size();
  };
  EXPECT_EQ(ids(PartOf("account") + draws), 3U);
  EXPECT_EQ(ids(PartOf("account") + "[part.settings]\nseed = \"{draw}\"\n" + draws), 3U);
  EXPECT_EQ(ids(PartOf("account") +
                "[[part.axis]]\nname = \"noise\"\nvalues = [1, 2]\n"
                "[[part.axis]]\nname = \"way\"\nflag = false\n"
                "values = [{label = \"a\", steps = 1}, {label = \"b\", noise = false}]\n"),
            3U);
}

TEST(Grid, GivesTheDeviceToCommandsThatHaveOne) {
  const std::string train = "public-data = true\n" + PartOf("train");
  EXPECT_THAT(CellsOf(train, "cuda")[0].words, Contains("cuda"));
  EXPECT_NE(CellsOf(train, "cuda")[0].id, CellsOf(train)[0].id);
  EXPECT_THAT(CellsOf(PartOf("account"), "cuda")[0].words, Not(Contains("cuda")));
}

TEST(Grid, RefusesWhatCommandsDoNotTake) {
  EXPECT_THAT(GridRefusalOf(PartOf("acount")), HasSubstr("'acount' is not a command"));
  EXPECT_THAT(GridRefusalOf(PartOf("mute")), HasSubstr("'mute' is not a command"));
  const std::string part = PartOf("account") + "[part.settings]\n";
  EXPECT_THAT(GridRefusalOf(part + "nois = 1"),
              HasSubstr("'nois' is not a setting of 'sordino account'"));
  EXPECT_THAT(GridRefusalOf(part + "nois = 1"), HasSubstr("did you mean 'noise'"));
  EXPECT_THAT(GridRefusalOf(part + "noise = true"), HasSubstr("needs a value"));
  EXPECT_THAT(GridRefusalOf(part + "flip = 3"), HasSubstr("is a switch"));
  EXPECT_THAT(GridRefusalOf(part + "json = true"), HasSubstr("given by the experiment"));
  EXPECT_THAT(GridRefusalOf(part + "out = \"x\""), HasSubstr("given by the experiment"));
  EXPECT_THAT(GridRefusalOf(PartOf("account") + "[[part.axis]]\nname = \"nois\"\nvalues = [1]\n"),
              HasSubstr("'nois' is not a setting"));
}

TEST(Grid, RefusesToTakeBackWhatIsNotASetting) {
  EXPECT_THAT(GridRefusalOf(PartOf("account") + "[[part.axis]]\nname = \"way\"\nflag = false\n"
                                                "values = [{label = \"a\", nois = false}]\n"),
              HasSubstr("'nois' is not a setting"));
}

// Each cell spends, and nobody would count it.
TEST(Grid, RefusesDataThatMayBePrivateWithoutALedger) {
  const std::string part = PartOf("train") + "[part.settings]\ndata = \"visits.csv\"\n";
  EXPECT_THAT(GridRefusalOf(part), HasSubstr("no ledger counts it"));
  EXPECT_EQ(GridRefusalOf("public-data = true\n" + part), kNothingRefused);
  EXPECT_EQ(GridRefusalOf(part + "ledger = \"visits.db\""), kNothingRefused);
  EXPECT_EQ(GridRefusalOf(PartOf("account")), kNothingRefused);
  // One value of an axis has a ledger, the other has not.
  EXPECT_THAT(
      GridRefusalOf(part + "[[part.axis]]\nname = \"which\"\nflag = false\n"
                           "values = [{label = \"a\", ledger = \"a.db\"}, {label = \"b\"}]\n"),
      HasSubstr("no ledger counts it"));
}

TEST(Grid, PutsPlacesIntoTheWords) {
  const std::string text = "public-data = true\n" + PartOf("train") +
                           "[part.settings]\ndata = \"{table}\"\nfile = \"{data}/w\"\n"
                           "[part.table]\nrecords = \"{n}\"\ncolumns = 2\ntest = 5\n"
                           "[[part.axis]]\nname = \"n\"\nflag = false\nvalues = [10, 20]\n";
  const std::vector<Cell> cells = CellsOf(text);
  ASSERT_EQ(cells.size(), 2U);
  ASSERT_TRUE(cells[1].table.has_value());
  EXPECT_EQ(cells[1].table->records, 20);
  EXPECT_EQ(cells[1].table->columns, 2);
  EXPECT_NE(cells[0].id, cells[1].id);
  EXPECT_THAT(PlacedWords(cells[1], {.run = "R", .tables = "T", .data = "D"}),
              ElementsAre("train", "D/w", "--data", "T/drawn-20x2-1.csv", "--out", "R", "--json"));
  EXPECT_THROW(PlacedWords(cells[1], {.run = "R", .tables = "T", .data = ""}), Error);
}

TEST(Grid, RefusesTablesBeyondTheLimits) {
  const std::string head = "public-data = true\n" + PartOf("train") + "[part.table]\ncolumns = 2\n";
  EXPECT_THAT(GridRefusalOf(head + "records = 0\n"), HasSubstr("is not drawn"));
  EXPECT_THAT(GridRefusalOf(head + "records = 1e12\n"), HasSubstr("is not drawn"));
  EXPECT_THAT(GridRefusalOf(head + "records = 1.5\n"), HasSubstr("whole number"));
  EXPECT_THAT(GridRefusalOf(head + "records = \"{n}\"\n"), HasSubstr("whole number"));
}

constexpr const char* kTwoParts = R"(
repeats = 2
[[part]]
name = "made"
command = "train"
[[part.axis]]
name = "noise"
values = [1, 2]
[[part]]
name = "used"
command = "account"
[part.settings]
file = "{made.run}"
data = "{made.cell}/x.csv"
[[part.axis]]
name = "noise"
flag = false
values = ["2", "1"]
[[part.axis]]
name = "steps"
values = [10, 20]
[[part]]
name = "read"
reads = "made"
[[part.axis]]
name = "noise"
values = [1, 2]
[[part.axis]]
name = "key"
flag = false
values = ["a", "b"]
[[part.measure]]
name = "m"
path = "all.{key}.{noise}"
)";

TEST(Grid, PutsTheFoldersOfEarlierCellsIntoSettings) {
  const std::vector<Cell> cells = CellsOf(std::string("public-data = true\n") + kTwoParts);
  ASSERT_EQ(cells.size(), 4U + 8U + 8U);
  // used, noise 2, steps 10, the second repeat: made with noise 2 in the second repeat.
  const Cell& used = cells[5];
  ASSERT_EQ(used.repeat, 2);
  EXPECT_THAT(used.needs, ElementsAre(3U, 3U));
  EXPECT_EQ(used.words[1], "{cells}/" + cells[3].id + "/run");
  const std::vector<std::string> placed =
      PlacedWords(used, {.run = "out/cells/" + used.id + "/run", .tables = "t", .data = ""});
  EXPECT_EQ(placed[1], "out/cells/" + cells[3].id + "/run");
  EXPECT_THAT(placed, Contains("out/cells/" + cells[3].id + "/x.csv"));
}

TEST(Grid, ReadingPartsRunNothingAndPutLabelsIntoPaths) {
  const Experiment experiment =
      ParseExperiment(std::string("public-data = true\n") + kTwoParts, "mine", false);
  const std::vector<Cell> cells = MakeCells(experiment, Known, "");
  const Cell& read = cells.back();  // noise 2, key b, the second repeat
  EXPECT_TRUE(read.words.empty());
  ASSERT_TRUE(read.reads.has_value());
  EXPECT_EQ(*read.reads, 3U);
  EXPECT_EQ(MeasuredPart(experiment.parts[2], read).measures[0].path, "all.b.2");
}

TEST(Grid, RefusesEarlierCellsThatAreNotThere) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = std::string("public-data = true\n") + kTwoParts;
    text.replace(text.find(from), from.size(), to);
    return GridRefusalOf(text);
  };
  EXPECT_THAT(with("{made.run}", "{mad.run}"), HasSubstr("does not come before it"));
  EXPECT_THAT(with("values = [\"2\", \"1\"]", "values = [\"3\"]"), HasSubstr("other values"));
  EXPECT_THAT(with("name = \"noise\"\nflag = false", "name = \"loud\"\nflag = false"),
              HasSubstr("has the axis 'noise'"));
  EXPECT_THAT(with("reads = \"made\"", "reads = \"read\""), HasSubstr("not an earlier part"));
  EXPECT_THAT(with("reads = \"made\"", "reads = \"made\"\ncommand = \"account\""),
              HasSubstr("give one of the keys"));
}

}  // namespace
}  // namespace sordino
