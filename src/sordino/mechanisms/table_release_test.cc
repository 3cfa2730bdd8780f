#include "sordino/mechanisms/table_release.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/tables/testing/reader_test_support.h"

namespace sordino {
namespace {

TableRequest MeanRequest() {
  TableRequest request;
  request.statistics = {{TableStatistic::kMean, "age", 0.5, {}}};
  request.bounds.emplace("age", Bounds(0, 120));
  request.epsilon = 0.5;
  return request;
}

TableResult ReleaseText(const TableRequest& request, std::string_view text,
                        std::uint64_t seed = 1) {
  TableRelease release(request);
  CsvReader reader(FromText(text));
  InsecureSeededGenerator generator(seed);
  return ReleaseCsv(reader, release, generator, [](std::uint64_t) { return true; });
}

std::string ErrorOf(const TableRequest& request, std::string_view text) {
  try {
    ReleaseText(request, text);
  } catch (const Error& error) {
    return WithDetail(error);
  }
  return "";
}

TEST(TableRelease, ReleasesAMean) {
  std::string text = "id,age\n";
  for (int i = 0; i < 5000; ++i) text += std::to_string(i) + "," + std::to_string(i % 81) + "\n";
  const TableResult result = ReleaseText(MeanRequest(), text);
  ASSERT_EQ(result.releases.size(), 1U);
  EXPECT_EQ(result.releases[0].statistic, "mean");
  EXPECT_EQ(result.releases[0].column, "age");
  EXPECT_NEAR(result.releases[0].release.value(), 40, 1);
  EXPECT_EQ(result.epsilon, Epsilon(0.5));
  EXPECT_EQ(result.delta, Delta(0));
  EXPECT_FALSE(result.is_private);
  // w / (n epsilon) times the length of (1 - m, m) at m = 1/3.
  EXPECT_NEAR(result.releases[0].release.noise_scale,
              120 / (5000 * 0.5) * std::hypot(2.0 / 3, 1.0 / 3), 1e-3);
}

TEST(TableRelease, SplitsTheBudgetEvenlyOverWhatClaimsNone) {
  TableRequest request = MeanRequest();
  request.epsilon = 1;
  request.statistics.push_back({TableStatistic::kCount, "", 0.5, 0.4});
  request.statistics.push_back({TableStatistic::kSum, "age", 0.5, {}});
  const TableResult result = ReleaseText(request, "age\n1\n2\n");
  EXPECT_NEAR(result.releases[0].release.epsilon.value(), 0.3, 1e-12);
  EXPECT_EQ(result.releases[1].release.epsilon, Epsilon(0.4));
  EXPECT_NEAR(result.releases[2].release.epsilon.value(), 0.3, 1e-12);
  EXPECT_EQ(result.epsilon, Epsilon(1));
  double spent = 0;
  for (const auto& named : result.releases) spent += named.release.epsilon.value();
  EXPECT_LE(spent, 1);
}

TEST(TableRelease, RefusesClaimsAboveTheTotal) {
  TableRequest request = MeanRequest();
  request.statistics[0].epsilon = 0.6;
  EXPECT_THROW(TableRelease{request}, Error);
  request.statistics[0].epsilon = 0.5;
  request.statistics.push_back({TableStatistic::kCount, "", 0.5, {}});
  EXPECT_THROW(TableRelease{request}, Error);
}

TEST(TableRelease, ChecksTheRequestBeforeAnythingIsRead) {
  const auto refused = [](auto change) {
    TableRequest request = MeanRequest();
    change(request);
    EXPECT_THROW(TableRelease{request}, Error);
  };
  refused([](TableRequest& r) { r.statistics.clear(); });
  refused([](TableRequest& r) { r.epsilon.reset(); });
  for (const double epsilon : {0.0, -1.0, kInfinity, std::nan("")}) {
    refused([epsilon](TableRequest& r) { r.epsilon = epsilon; });
  }
  refused([](TableRequest& r) { r.bounds.clear(); });
  refused([](TableRequest& r) { r.delta = 1e-6; });
  refused([](TableRequest& r) { r.noise = NoiseKind::kGaussian; });
  refused([](TableRequest& r) { r.confidence = 1; });
  refused([](TableRequest& r) { r.adjacency = Adjacency::kZeroOut; });
  refused([](TableRequest& r) { r.group_by = {{"city", {}}}; });
  refused([](TableRequest& r) { r.group_by = {{"city", {"a", "a"}}}; });
  refused([](TableRequest& r) { r.group_by = {{"city", {"a"}}, {"city", {"b"}}}; });
  refused([](TableRequest& r) {
    const std::vector<std::string> many = [] {
      std::vector<std::string> names;
      names.reserve(100);
      for (int i = 0; i < 100; ++i) names.push_back(std::to_string(i));
      return names;
    }();
    r.group_by = {{"city", many}, {"street", many}};
  });
  refused([](TableRequest& r) { r.statistics = {{TableStatistic::kHistogram, "age", 0.5, {}}}; });
  refused([](TableRequest& r) { r.statistics[0].column = ""; });
  refused([](TableRequest& r) {
    r.user_column = "user";
    r.rows_per_user = 0;
  });
}

TEST(TableRelease, NamesAMissingColumnAndTheOneThatWasMeant) {
  const std::string error = ErrorOf(MeanRequest(), "id,ages\n1,2\n");
  EXPECT_NE(error.find("'age'"), std::string::npos);
  EXPECT_EQ(error.find("ages"), error.find("(is it 'ages'?)") + 8);
  EXPECT_NE(ErrorOf(MeanRequest(), "age,age\n1,2\n").find("more than once"), std::string::npos);
  EXPECT_NE(ErrorOf(MeanRequest(), "").find("is empty"), std::string::npos);
}

TEST(TableRelease, TellsTheLineOfAMalformedRowInTheDetailOnly) {
  for (const char* row : {"1", "1,2,3", "1,x", "1,", "1,nan", "1,inf", "1,1e999", "1,-inf",
                          "1,0x10", "1,1 2", "1,\"2\"x", "1,--2", "1,+-2"}) {
    const std::string text = std::string("id,age\n1,30\n") + row + "\n1,30\n";
    const std::string error = ErrorOf(MeanRequest(), text);
    const std::size_t detail = error.find(". (it is line 3");
    ASSERT_NE(detail, std::string::npos) << row << ": " << error;
    EXPECT_EQ(error.substr(0, detail).find_first_of("0123456789"), std::string::npos) << error;
  }
}

TEST(TableRelease, SkipsMalformedRowsWhenAskedTo) {
  TableRequest request = MeanRequest();
  request.malformed = MalformedRows::kSkip;
  const TableResult result = ReleaseText(request, "id,age\n1,30\n2\n3,x\n4, 40 \n5,+3e1\n");
  EXPECT_EQ(result.skipped_rows, 2U);
  EXPECT_EQ(result.first_skipped_line, 3U);
}

TEST(TableRelease, SkippingMakesTheNumberOfRowsPrivate) {
  TableRequest request = MeanRequest();
  request.adjacency = Adjacency::kReplaceOne;
  request.statistics = {{TableStatistic::kCount, "", 0.5, {}}};
  EXPECT_THROW(TableRelease{request}, Error);
  request.malformed = MalformedRows::kSkip;
  const TableResult result = ReleaseText(request, "age\n1\n");
  EXPECT_NEAR(result.releases[0].release.noise_scale, 2 / 0.5, 1e-9);
}

TEST(TableRelease, CapsTheRowsOfEachUser) {
  TableRequest request;
  request.statistics = {{TableStatistic::kCount, "", 0.5, {}}};
  request.epsilon = 1e3;  // hardly any noise
  request.user_column = "user";
  request.rows_per_user = 2;
  const TableResult result = ReleaseText(request, "user\na\na\na\na\nb\n");
  EXPECT_NEAR(result.releases[0].release.value(), 3, 0.5);
}

TEST(TableRelease, CountsDeclaredGroups) {
  TableRequest request;
  request.statistics = {{TableStatistic::kCount, "", 0.5, {}}};
  request.epsilon = 1e3;
  request.group_by = {{"city", {"rome", "oslo", "nowhere"}}};
  const TableResult result = ReleaseText(request, "city\nrome\noslo\nrome\n\"rome\"\n");
  ASSERT_EQ(result.releases.size(), 3U);
  EXPECT_NEAR(result.releases[0].release.value(), 3, 0.5);
  EXPECT_NEAR(result.releases[1].release.value(), 1, 0.5);
  EXPECT_NEAR(result.releases[2].release.value(), 0, 0.5);
  EXPECT_EQ(result.releases[2].group, std::vector<std::string>{"nowhere"});
  EXPECT_EQ(result.epsilon, Epsilon(1e3));
}

// As `fit`, `train` and `data` do.
TEST(TableRelease, RefusesAValueThatIsNotDeclared) {
  TableRequest groups;
  groups.statistics = {{TableStatistic::kCount, "", 0.5, {}}};
  groups.epsilon = 1e3;
  groups.group_by = {{"city", {"rome", "oslo"}}};
  TableRequest histogram = groups;
  histogram.group_by.clear();
  histogram.statistics[0] = {TableStatistic::kHistogram, "city", 0.5, {}};
  histogram.bins["city"].categories = {"rome", "oslo"};
  const std::string text = "city,x\nrome,1\nparis,1\n";
  for (TableRequest request : {groups, histogram}) {
    const std::string error = ErrorOf(request, text);
    EXPECT_NE(error.find("its field 'city' holds a value that is not declared"), std::string::npos);
    EXPECT_EQ(error.find("paris"), std::string::npos);
    EXPECT_NE(ErrorOf(request, "city,x\n,1\n").find("its field 'city' is empty"),
              std::string::npos);
    request.layout.missing = {""};
    EXPECT_EQ(ErrorOf(request, "city,x\n,1\nrome,2\n"), "");
    EXPECT_NE(ErrorOf(request, text), "");
    request.malformed = MalformedRows::kSkip;
    EXPECT_EQ(ReleaseText(request, text).skipped_rows, 1U);
  }
}

TEST(TableRelease, CountsWhatIsNotNamedWhereAStarIsDeclared) {
  TableRequest request;
  request.statistics = {{TableStatistic::kHistogram, "city", 0.5, {}}};
  request.bins["city"].categories = {"rome", "*"};
  request.group_by = {{"sex", {"*", "f"}}};
  request.epsilon = 1e4;
  const TableResult result =
      ReleaseText(request, "city,sex\nrome,f\nparis,m\noslo,x\n*,f\n,m\nrome,f\nrome,\n");
  const std::vector<std::vector<double>> counts = {{1, 3}, {2, 1}};  // the rest first, then f
  ASSERT_EQ(result.releases.size(), 2U);
  for (std::size_t group = 0; group < 2; ++group) {
    for (std::size_t bin = 0; bin < 2; ++bin) {
      EXPECT_NEAR(result.releases[group].release.values[bin], counts[group][bin], 0.5)
          << group << bin;
    }
  }
  EXPECT_EQ(result.releases[0].bins, (std::vector<std::string>{"rome", "*"}));
}

TEST(TableRelease, LeavesRowsWithoutAGroupOutOfAllGroups) {
  TableRequest request;
  request.statistics = {{TableStatistic::kCount, "", 0.5, {}}};
  request.epsilon = 1e3;
  request.group_by = {{"city", {"rome", "oslo"}}, {"sex", {"f", "m"}}};
  request.layout.missing = {"?"};
  const TableResult result = ReleaseText(request, "city,sex\nrome,f\n?,f\nrome,?\n?,?\n");
  EXPECT_NEAR(result.releases[0].release.value(), 1, 0.5);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_NEAR(result.releases[i].release.value(), 0, 0.5);
  EXPECT_NE(ErrorOf(request, "city,sex\n?,x\n").find("'sex'"), std::string::npos);
}

TEST(TableRelease, CombinesTheGroupsOfTwoColumns) {
  TableRequest request;
  request.statistics = {{TableStatistic::kCount, "", 0.5, {}}};
  request.epsilon = 1e3;
  request.group_by = {{"city", {"rome", "oslo"}}, {"sex", {"f", "m"}}};
  const TableResult result = ReleaseText(request, "sex,city\nf,rome\nf,rome\nm,oslo\nm, rome\n");
  ASSERT_EQ(result.releases.size(), 4U);
  const std::vector<std::vector<std::string>> groups = {
      {"rome", "f"}, {"rome", "m"}, {"oslo", "f"}, {"oslo", "m"}};
  const std::vector<double> counts = {2, 1, 0, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(result.releases[i].group, groups[i]);
    EXPECT_NEAR(result.releases[i].release.value(), counts[i], 0.5);
  }
  EXPECT_EQ(result.epsilon, Epsilon(1e3));
}

TEST(TableRelease, LeavesMissingCellsOutOfTheStatisticsOfTheirColumn) {
  TableRequest request;
  request.statistics = {{TableStatistic::kCount, "", 0.5, {}},
                        {TableStatistic::kSum, "age", 0.5, {}},
                        {TableStatistic::kHistogram, "city", 0.5, {}}};
  request.bounds.emplace("age", Bounds(10, 120));
  request.bins["city"].categories = {"rome", "?"};
  request.epsilon = 1e6;
  const std::string table = "age,city\n30,rome\n?,?\n,rome\n";
  EXPECT_NE(ErrorOf(request, table).find("is not a number"), std::string::npos);
  request.layout.missing = {"?", ""};
  const TableResult result = ReleaseText(request, table);
  EXPECT_NEAR(result.releases[0].release.value(), 3, 0.5);
  EXPECT_NEAR(result.releases[1].release.value(), 30, 0.5);
  EXPECT_NEAR(result.releases[2].release.values[0], 2, 0.5);
  EXPECT_NEAR(result.releases[2].release.values[1], 1, 0.5);
}

// Whether a row counts in a column's statistics is private, so the number of those that do is.
TEST(TableRelease, MissingCellsMakeTheNumberOfRowsPrivate) {
  TableRequest request = MeanRequest();
  request.adjacency = Adjacency::kReplaceOne;
  const double known = ReleaseText(request, "age\n60\n").releases[0].release.noise_scale;
  request.layout.missing = {"?"};
  EXPECT_GT(ReleaseText(request, "age\n60\n").releases[0].release.noise_scale, known);
}

TEST(TableRelease, TextThatIsMissingMakesTheNumberOfRowsPrivate) {
  TableRequest request = MeanRequest();
  request.adjacency = Adjacency::kReplaceOne;
  const double known = ReleaseText(request, "age\n60\n").releases[0].release.noise_scale;
  request.cells["age"].decimal = ',';
  EXPECT_EQ(ReleaseText(request, "age\n60\n").releases[0].release.noise_scale, known);
  request.cells["age"].text_is_missing = true;
  EXPECT_GT(ReleaseText(request, "age\n60\n").releases[0].release.noise_scale, known);
}

TEST(TableRelease, ReadsCellsByTheRulesOfTheirColumn) {
  TableRequest request = MeanRequest();
  request.statistics = {{TableStatistic::kSum, "age", 0.5, {}},
                        {TableStatistic::kCount, "", 0.5, {}}};
  request.epsilon = 1e6;
  CellRules& rules = request.cells["age"];
  for (const auto& [name, value] : {std::pair("decimal", ","), std::pair("unit", "years"),
                                    std::pair("not-a-number", "missing")}) {
    SetCellRule(rules, name, value);
  }
  const TableResult result =
      ReleaseText(request, "id,age\n1,\"30,5\"\n2,40 years\n3,refused\n4,\n");
  EXPECT_NEAR(result.releases[0].release.value(), 70.5, 0.1);
  EXPECT_NEAR(result.releases[1].release.value(), 4, 0.1);
}

TEST(TableRelease, TellsAllKindsOfMalformedRowsAtOnceBeforeTheCharge) {
  TableRequest request = MeanRequest();
  request.group_by = {{"ward", {"a", "b"}}};
  const std::string error = ErrorOf(request, "ward,age\nc,x\n,1\na\nb,\nc,y\n");
  EXPECT_NE(
      error.find("'the table' does not keep to what was declared: a row is malformed: it has "
                 "another number of fields than the first line; a row is malformed: its field "
                 "'ward' is empty; a row is malformed: its field 'ward' holds a value"),
      std::string::npos)
      << error;
  EXPECT_NE(
      error.find("its field 'age' is empty; a row is malformed: its field 'age' is not a number. "),
      std::string::npos)
      << error;
  TableRelease release(request);
  release.SetHeader({"ward", "age"});
  release.AddRow({"c", "1"}, 2);
  EXPECT_THROW(release.RefuseMalformed(), DataError);
  InsecureSeededGenerator generator(1);
  EXPECT_THROW(release.Finish(generator), DataError);
}

TEST(TableRelease, ReadsATableWithoutAHeader) {
  TableRequest request = MeanRequest();
  request.statistics = {{TableStatistic::kSum, "2", 0.5, {}}};
  request.bounds.emplace("2", Bounds(0, 120));
  request.epsilon = 1e6;
  request.layout.header = false;
  EXPECT_NEAR(ReleaseText(request, "ann,30\nbob,40\n").releases[0].release.value(), 70, 0.5);
  request.statistics = {{TableStatistic::kSum, "age", 0.5, {}}};
  EXPECT_NE(ErrorOf(request, "ann,30\n").find("called 1, 2, 3"), std::string::npos);
}

TEST(TableRelease, FillsNumericBinsAndCategories) {
  TableRequest request;
  request.statistics = {{TableStatistic::kHistogram, "age", 0.5, {}},
                        {TableStatistic::kHistogram, "city", 0.5, {}}};
  request.bins["age"].edges = {0, 18, 65, 120};
  request.bins["city"].categories = {"rome", "oslo"};
  request.epsilon = 1e3;
  const TableResult result = ReleaseText(
      request, "age,city\n0,rome\n17.9,oslo\n18,oslo\n65,oslo\n120,rome\n121,rome\n-1,rome\n");
  const std::vector<double>& ages = result.releases[0].release.values;
  EXPECT_NEAR(ages[0], 2, 0.5);
  EXPECT_NEAR(ages[1], 1, 0.5);
  EXPECT_NEAR(ages[2], 2, 0.5);
  EXPECT_EQ(result.releases[0].bins, (std::vector<std::string>{"[0,18)", "[18,65)", "[65,120]"}));
  EXPECT_NEAR(result.releases[1].release.values[0], 4, 0.5);
  EXPECT_NEAR(result.releases[1].release.values[1], 3, 0.5);
}

TEST(TableRelease, SharesDeltaOverTheGaussianStatisticsOnly) {
  TableRequest request = MeanRequest();
  request.noise = NoiseKind::kGaussian;
  request.delta = 1e-6;
  request.statistics.push_back({TableStatistic::kSum, "age", 0.5, {}});
  request.statistics.push_back({TableStatistic::kQuantile, "age", 0.5, {}});
  const TableResult result = ReleaseText(request, "age\n1\n");
  EXPECT_NEAR(result.releases[0].release.delta.value(), 5e-7, 1e-15);
  EXPECT_NEAR(result.releases[1].release.delta.value(), 5e-7, 1e-15);
  EXPECT_EQ(result.releases[2].release.delta, Delta(0));
  EXPECT_EQ(result.delta, Delta(1e-6));
}

// The composed event is the charge: its simple sum of epsilons never exceeds the total.
TEST(TableRelease, ComposesTheEventsOfItsStatistics) {
  TableRequest request = MeanRequest();
  request.statistics.push_back({TableStatistic::kCount, "", 0.5, {}});
  const TableResult result = ReleaseText(request, "age\n1\n");
  EXPECT_TRUE(result.event.IsComposition());
  EXPECT_EQ(result.event.TotalCount(), 2U);
}

std::vector<TableRequest> RequestsOfEveryKind() {
  TableRequest request = MeanRequest();
  request.statistics.push_back({TableStatistic::kCount, "", 0.5, {}});
  request.statistics.push_back({TableStatistic::kVariance, "age", 0.5, {}});
  request.statistics.push_back({TableStatistic::kHistogram, "age", 0.5, {}});
  request.statistics.push_back({TableStatistic::kQuantile, "age", 0.5, {}});
  request.bins["age"] = {.edges = {0, 18, 65, 120}, .categories = {}};
  std::vector<TableRequest> requests = {request};
  request.noise = NoiseKind::kGaussian;
  request.delta = 1e-6;
  requests.push_back(request);
  request.group_by = {{"city", {"rome", "oslo"}}};
  requests.push_back(request);
  request.user_column = "user";
  request.rows_per_user = 3;
  requests.push_back(request);
  request.adjacency = Adjacency::kReplaceOne;
  requests.push_back(request);
  return requests;
}

TEST(TableRelease, KnowsWhatItWillCostBeforeItReadsAnything) {
  for (const TableRequest& request : RequestsOfEveryKind()) {
    const TableRelease release(request);
    const TableResult result = ReleaseText(request, "age,city,user\n1,rome,a\n2,oslo,b\n");
    EXPECT_EQ(release.event(), result.event) << release.event().ToString();
    EXPECT_EQ(release.event().adjacency(), request.adjacency);
  }
}

TEST(TableRelease, OnlyGaussianNoiseCanFailAndMoreOfItMoreLikely) {
  const std::vector<TableRequest> requests = RequestsOfEveryKind();
  EXPECT_EQ(TableRelease(requests[0]).failure(), 0);
  const double one = TableRelease(requests[1]).failure();
  // Mean, count, variance and three bins; the quantile is exact.
  EXPECT_EQ(one, (2 + 1 + 3 + 3) * 0x1p-70);
  EXPECT_EQ(TableRelease(requests[2]).failure(), 2 * one);
}

TEST(ReleaseCsv, AsksForTheChargeBehindTheLastRowAndBeforeAnyNoise) {
  TableRelease release(MeanRequest());
  CsvReader reader(FromText("age\n1\n2\n"));
  InsecureSeededGenerator generator(3);
  int calls = 0;
  const auto charge = [&](const Event& event) {
    ++calls;
    EXPECT_EQ(event, release.event());
    EXPECT_FALSE(reader.Next());
    throw Error("refused");
  };
  EXPECT_THROW(ReleaseCsv(
                   reader, release, generator, [](std::uint64_t) { return true; }, charge),
               Error);
  EXPECT_EQ(calls, 1);
  // Nothing was drawn.
  InsecureSeededGenerator untouched(3);
  EXPECT_EQ(generator.Next64(), untouched.Next64());
}

TEST(ReleaseCsv, DoesNotAskForAChargeWhereARowIsMalformed) {
  TableRelease release(MeanRequest());
  CsvReader reader(FromText("age\n1\nx\n"));
  InsecureSeededGenerator generator(3);
  bool charged = false;
  EXPECT_THROW(ReleaseCsv(
                   reader, release, generator, [](std::uint64_t) { return true; },
                   [&](const Event&) { charged = true; }),
               Error);
  EXPECT_FALSE(charged);
}

TEST(TableRelease, StopsWithoutReleasingWhenAskedTo) {
  std::string text = "age\n";
  for (int i = 0; i < 20'000; ++i) text += "1\n";
  TableRelease release(MeanRequest());
  CsvReader reader(FromText(text));
  InsecureSeededGenerator generator(1);
  EXPECT_THROW(ReleaseCsv(reader, release, generator, [](std::uint64_t) { return false; }),
               std::runtime_error);
}

// Without a header the first record is the one that others would be compared with.
TEST(TableRelease, SkipsNothingWithoutAHeader) {
  TableRequest request = MeanRequest();
  request.layout.header = false;
  request.malformed = MalformedRows::kSkip;
  EXPECT_THROW(TableRelease{request}, Error);
}

TEST(TableRelease, EveryRowNamesAUserAndBlanksAreNoNames) {
  TableRequest request;
  request.statistics = {{TableStatistic::kCount, "", 0.5, {}}};
  request.epsilon = 1e4;
  request.user_column = "user";
  request.rows_per_user = 1;
  EXPECT_NEAR(ReleaseText(request, "user,x\nann,1\n ann,2\n\"ann \",3\nbob,4\n")
                  .releases[0]
                  .release.value(),
              2, 0.1);
  for (const char* text : {"user,x\nann,1\n,2\n", "user,x\nann,1\n  ,2\n"}) {
    EXPECT_NE(ErrorOf(request, text).find("names no user"), std::string::npos) << text;
  }
  request.malformed = MalformedRows::kSkip;
  EXPECT_NEAR(ReleaseText(request, "user,x\nann,1\n,2\n,3\n").releases[0].release.value(), 1, 0.1);
}

}  // namespace
}  // namespace sordino
