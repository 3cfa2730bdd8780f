// `sordino release` on tables as they are found: values that need quotes, other delimiters, no
// header, compressed files, missing values, schema files, and errors that tell nothing of the rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"
#include "sordino/cli/release_command.h"

namespace sordino {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// So little noise that a count is what it is, give or take less than a half.
constexpr const char* kHardlyAnyNoise = "1e6";

class ReleaseTables : public ::testing::Test {
 protected:
  static CommandOutcome Call(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "release");
    arguments.insert(arguments.end(), {"--epsilon", kHardlyAnyNoise});
    return CallCommand(&AddReleaseCommand, std::move(arguments));
  }

  // The values of all releases, rounded.
  static std::vector<long> Values(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const CommandOutcome outcome = Call(std::move(arguments));
    EXPECT_EQ(outcome.error, "");
    std::vector<long> values;
    if (!outcome.error.empty()) return values;
    const auto json = nlohmann::json::parse(outcome.out);
    for (const auto& release : json["releases"]) {
      if (release["value"].is_array()) {
        for (const auto& value : release["value"])
          values.push_back(std::lround(value.get<double>()));
      } else {
        values.push_back(std::lround(release["value"].get<double>()));
      }
    }
    return values;
  }

  std::string Write(const std::string& name, std::string_view content) const {
    return folder_.Write(name, content).string();
  }

  // As in the census data: a blank after every comma.
  std::string Census() const {
    return Write("census.csv",
                 "age, work, income\n39, State-gov, <=50K\n50, ?, <=50K\n?, Private, >50K\n"
                 "28,\"Biel, Bienne\", >50K\n");
  }

  const TestFolder folder_;
};

TEST_F(ReleaseTables, TakeValuesWithCommasQuotesBlanksAndEqualsSigns) {
  const std::string file = Census();
  EXPECT_EQ(Values({file, "--histogram", "income", "--categories", "income=<=50K,>50K"}),
            (std::vector<long>{2, 2}));
  EXPECT_EQ(Values({file, "--histogram", "income", "--categories", " \"<=50K\" , >50K"}),
            (std::vector<long>{2, 2}));
  EXPECT_EQ(Values({file, "--histogram", "work", "--categories", "\"Biel, Bienne\", State-gov,*"}),
            (std::vector<long>{1, 1, 2}));
  EXPECT_EQ(Values({file, "--count", "--group-by", "income=\"<=50K\",>50K"}),
            (std::vector<long>{2, 2}));
  const std::string odd = Write("odd.csv", "\"a=b\"\nx\n\"5\"\" pipe\"\n\n\"\"\n");
  EXPECT_EQ(Values({odd, "--histogram", "a=b", "--categories", "\"a=b\"=x,\"5\"\" pipe\",\"\""}),
            (std::vector<long>{1, 1, 2}));  // a blank line is an empty cell
  for (const char* const list : {"income=<=50K,,>50K", "income=\"<=50K", "<=50K,>50K"}) {
    EXPECT_THAT(Call({file, "--histogram", "income", "--categories", list}).error, Not(IsEmpty()))
        << list;
  }
}

TEST_F(ReleaseTables, HaveAnyDelimiterAndNeedNoHeader) {
  const std::string file = Write("bare.txt", "ann;30\nbob;40\n");
  EXPECT_EQ(Values({file, "--no-header", "--delimiter", ";", "--sum", "2", "--bounds", "0,120"}),
            (std::vector<long>{70}));
  const std::string tabs = Write("tabs.tsv", "name\tage\nann\t30\n");
  EXPECT_EQ(Values({tabs, "--sum", "age", "--bounds", "0,120"}), (std::vector<long>{30}));
  EXPECT_THAT(Call({file, "--count", "--delimiter", ";;"}).error, HasSubstr("one character"));
}

TEST_F(ReleaseTables, MayBeCompressed) {
  const std::string path = (folder_ / "visits.csv.gz").string();
  gzFile file = gzopen(path.c_str(), "wb");
  std::string rows = "age\n";
  for (int i = 0; i < 50000; ++i) rows += "30\n";
  ASSERT_EQ(gzwrite(file, rows.data(), static_cast<unsigned>(rows.size())),
            static_cast<int>(rows.size()));
  gzclose(file);
  EXPECT_EQ(Values({path, "--count"}), (std::vector<long>{50000}));
  const std::string cut = Write("cut.csv.gz", ReadTestFile(path).substr(0, 60));
  EXPECT_THAT(Call({cut, "--count"}).error, HasSubstr("ends in the middle of its gzip data"));
}

TEST_F(ReleaseTables, InOtherEncodingsAreToldInOneSentence) {
  using std::string_literals::operator""s;
  const std::string wide = Write("wide.csv", "\xFF\xFE"s + "a\0g\0e\0\n\0"s);
  EXPECT_THAT(Call({wide, "--count"}).error, AllOf(HasSubstr("utf-16"), HasSubstr("wide.csv")));
  const std::string mac = Write("mac.csv", "age\r30\r40\r");
  EXPECT_THAT(Call({mac, "--count"}).error, HasSubstr("carriage returns"));
}

TEST_F(ReleaseTables, AreReadInTheirDeclaredEncoding) {
  const std::string rows = "\nZ\xFCrich\nBern\nZ\xFCrich\n";
  const std::string file = Write("cities.csv",
                                 "Stra\xDF"
                                 "e" +
                                     rows);
  const std::vector<std::string> call = {file, "--histogram", "Straße", "--categories",
                                         "Zürich,Bern"};
  EXPECT_THAT(Call(call).error, AllOf(HasSubstr("is not valid utf-8"), Not(HasSubstr("rich"))));
  for (const std::string encoding : {"latin-1", "windows-1252"}) {
    std::vector<std::string> declared = call;
    declared.insert(declared.end(), {"--encoding", encoding});
    EXPECT_EQ(Values(declared), (std::vector<long>{2, 1}));
    const std::string schema = Write("schema.toml", "[table]\nencoding = \"" + encoding +
                                                        "\"\n[[column]]\nname = \"Straße\"\n"
                                                        "kind = \"ignored\"\n");
    std::vector<std::string> by_schema = call;
    by_schema.insert(by_schema.end(), {"--schema", schema});
    EXPECT_EQ(Values(by_schema), (std::vector<long>{2, 1}));
  }
  const std::string marked = Write("marked.csv",
                                   "\xEF\xBB\xBF"
                                   "city\nZürich\n");
  EXPECT_EQ(Values({marked, "--histogram", "city", "--categories", "Zürich,Bern"}),
            (std::vector<long>{1, 0}));
  EXPECT_THAT(Call({file, "--count", "--encoding", "latin1"}).error,
              HasSubstr("did you mean 'latin-1'?"));
}

TEST_F(ReleaseTables, LeaveDeclaredMissingCellsOut) {
  const std::string file = Census();
  EXPECT_EQ(Values({file, "--count", "--sum", "age", "--bounds", "0,120", "--missing", "?,\"\""}),
            (std::vector<long>{4, 117}));
  EXPECT_THAT(Call({file, "--sum", "age", "--bounds", "0,120"}).error, HasSubstr("--missing"));
}

TEST_F(ReleaseTables, AreGroupedByTwoColumns) {
  const std::string file = Write("people.csv", "city,sex\nrome,f\nrome,m\nrome,f\noslo,m\n");
  const std::vector<std::string> call = {file,         "--count", "--group-by", "city=rome,oslo",
                                         "--group-by", "sex=f,m"};
  EXPECT_EQ(Values(call), (std::vector<long>{2, 1, 0, 1}));
  EXPECT_THAT(Call(call).out, HasSubstr("count [city=rome, sex=m]"));
  std::vector<std::string> json = call;
  json.emplace_back("--json");
  const auto releases = nlohmann::json::parse(Call(json).out)["releases"];
  EXPECT_EQ(releases[3]["groups"], nlohmann::json({{"city", "oslo"}, {"sex", "m"}}));
}

TEST_F(ReleaseTables, TakeBoundsValuesUserAndLayoutFromASchema) {
  const std::string file = Write("visits.csv", "ann;30;rome\nann;50;oslo\nbob;?;rome\n");
  const std::string schema = Write("schema.toml", R"([table]
header = false
delimiter = ";"
missing = ["?"]
rows-per-user = 1
[[column]]
name = "1"
kind = "user"
[[column]]
name = "2"
kind = "numeric"
low = 0
high = 120
[[column]]
name = "3"
kind = "categorical"
values = ["rome", "oslo", "*"]
)");
  EXPECT_EQ(Values({file, "--schema", schema, "--count", "--sum", "2", "--histogram", "3"}),
            (std::vector<long>{2, 30, 2, 0, 0}));
  EXPECT_EQ(Values({file, "--schema", schema, "--count", "--group-by", "3"}),
            (std::vector<long>{2, 0, 0}));
  // Flags win.
  EXPECT_EQ(
      Values({file, "--schema", schema, "--sum", "2", "--bounds", "0,10", "--rows-per-user", "2"}),
      (std::vector<long>{20}));
  EXPECT_THAT(Call({file, "--schema", schema, "--count"}).out, HasSubstr("one user"));
  EXPECT_THAT(Call({file, "--schema", schema + "x", "--count"}).error, HasSubstr("schema.tomlx"));
}

TEST_F(ReleaseTables, ReadCellsByTheRulesOfASchema) {
  const std::string schema = Write("rules.toml", R"(
[table]
delimiter = ";"
decimal = ","
quote = "'"

[[column]]
names = "lab_*"
kind = "numeric"
low = 0
high = 500
censored = "half"
not-a-number = "missing"

[[column]]
name = "weight"
kind = "numeric"
low = 0
high = 300
unit = { kg = 1, g = 0.001 }

[[column]]
name = "born"
kind = "date"
low = 1970-01-01
high = 1980-01-01
format = "DD.MM.YYYY"

[[column]]
name = "smoker"
kind = "boolean"
)");
  const std::string table = Write("rules.csv",
                                  "lab_1;lab_2;weight;born;smoker;city\n"
                                  "<8;1,4;80,5 kg;11.1.1970;yes;'Biel; Bienne'\n"
                                  "n/a;>100;9500 g;01.01.1960;NO;Bern\n");
  const std::vector<std::string> all = {table,   "--schema", schema,  "--sum",  "lab_1",
                                        "--sum", "lab_2",    "--sum", "weight", "--sum",
                                        "born",  "--sum",    "smoker"};
  EXPECT_EQ(Values(all), (std::vector<long>{4, 101, 90, 10, 1}));
  const std::string wrong = Write("wrong.csv",
                                  "lab_1;lab_2;weight;born;smoker;city\n"
                                  "1;2;80.5 kg;1970-01-11;maybe;Bern\n");
  std::vector<std::string> same = all;
  same[0] = wrong;
  EXPECT_THAT(Call(same).error,
              AllOf(HasSubstr("its field 'weight' is not a number"),
                    HasSubstr("its field 'born' is not a date in the declared format"),
                    HasSubstr("its field 'smoker' is neither yes nor no"), Not(HasSubstr("80.5"))));
}

// A norm stands in the place of declared bounds, not of what a cell means: 1.000 is a thousand
// here.
TEST_F(ReleaseTables, ReadTheCellsOfMeansWithANormByTheRulesOfASchema) {
  const std::string schema = Write("rules.toml", R"(
[table]
delimiter = ";"
decimal = ","
thousands = "."
not-a-number = "missing"

[[column]]
names = ["a", "b"]
kind = "numeric"
low = 0
high = 5000
)");
  const std::string table =
      Write("norms.csv", "a;b\n1.000;2.000,5\n3.000;3.999,5\nunknown;3.000\n");
  EXPECT_EQ(Values({table, "--schema", schema, "--vector-mean", "a,b", "--clip-norm", "1e4"}),
            (std::vector<long>{2000, 3000}));
  // Clipped at 10 sqrt(1e6) / 2.
  EXPECT_EQ(Values({table, "--schema", schema, "--mean", "a", "--second-moment", "10",
                    "--expected-records", "1"}),
            (std::vector<long>{2000}));
}

TEST_F(ReleaseTables, RefuseValuesThatAreNotDeclared) {
  const std::string file = Write("wards.csv", "ward\nsurgery\nSECRET-WARD\nsurgery\n");
  for (const std::vector<std::string>& call : std::vector<std::vector<std::string>>{
           {file, "--count", "--group-by", "ward=surgery,eyes"},
           {file, "--histogram", "ward", "--categories", "surgery,eyes"}}) {
    const CommandOutcome outcome = Call(call);
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("'ward' holds a value that is not declared"),
                                     HasSubstr("--on-error skip"), Not(HasSubstr("SECRET"))));
    EXPECT_EQ(outcome.out + outcome.err, "");
    std::vector<std::string> skipping = call;
    skipping.insert(skipping.end(), {"--on-error", "skip"});
    EXPECT_EQ(Values(skipping), (std::vector<long>{2, 0}));
  }
  EXPECT_EQ(Values({file, "--count", "--group-by", "ward=surgery,eyes,*"}),
            (std::vector<long>{2, 0, 1}));
}

// No sentence holds a cell, a line or a count; a name in the first line may be a cell.
TEST_F(ReleaseTables, TellNothingOfTheirRows) {
  const std::string marked = "PRIVATE-7391";
  for (const std::string& row : std::vector<std::string>{
           "7391,a,b\n", marked + ",a\n", "1e999," + marked + "\n", "\"7391\"x,a\n", "7391\n"}) {
    const std::string file = Write("rows.csv", "age,city\n1,a\n2,b\n" + row);
    const CommandOutcome outcome = Call({file, "--sum", "age", "--bounds", "0,9"});
    std::string sentence = outcome.error;
    if (const std::size_t at = sentence.find(file); at != std::string::npos) {
      sentence.erase(at, file.size());
    }
    EXPECT_THAT(sentence,
                AllOf(Not(IsEmpty()), Not(HasSubstr("7391")), Not(testing::ContainsRegex("[0-9]"))))
        << row;
    EXPECT_EQ(outcome.err, "");
  }
  const std::string bare = Write("bare.csv", marked + ",30\nx,31\n");
  const CommandOutcome outcome = Call({bare, "--sum", "PRIVATE-739", "--bounds", "0,9"});
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("--no-header"), Not(HasSubstr("7391"))));
}

}  // namespace
}  // namespace sordino
