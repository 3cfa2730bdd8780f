#include "sordino/data/table_reader.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/tables/testing/reader_test_support.h"

namespace sordino {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

const std::vector<std::string> kColumns = {"age:numeric:0:120", "city:categorical:Bern|Basel",
                                           "sick:label:no|yes"};

Dataset TableOf(std::string_view text, const std::vector<std::string>& columns = kColumns,
                TableOptions options = {}) {
  options.columns = ParseColumns(columns);
  DatasetDeclaration declaration;
  declaration.name = "table";
  DeclareColumns(options.columns, declaration);
  if (declaration.Outputs() == 0) declaration.classes = 2;
  return ParseTable(text, "table.csv", declaration, options);
}

std::string TableComplaint(std::string_view text,
                           const std::vector<std::string>& columns = kColumns,
                           const TableOptions& options = {}) {
  try {
    TableOf(text, columns, options);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), EndsWith("."));
    return WithDetail(error);
  }
  return "";
}

std::vector<float> Row(const Dataset& data, std::int64_t row) {
  const at::Tensor values = data.inputs[row].contiguous();
  return {values.const_data_ptr<float>(), values.const_data_ptr<float>() + values.numel()};
}

std::vector<std::int64_t> Labels(const Dataset& data) {
  return {data.labels.const_data_ptr<std::int64_t>(),
          data.labels.const_data_ptr<std::int64_t>() + data.labels.numel()};
}

TEST(TableReader, ScalesNumbersAndSpreadsCategories) {
  const Dataset data = TableOf("city,ignored,sick,age\nBern,x,no,30\nBasel,y,yes,120\n");
  EXPECT_THAT(Row(data, 0), ElementsAre(0.25F, 1, 0));
  EXPECT_THAT(Row(data, 1), ElementsAre(1, 0, 1));
  EXPECT_THAT(Labels(data), ElementsAre(0, 1));
  EXPECT_THAT(data.declaration.class_names, ElementsAre("no", "yes"));
  EXPECT_THAT(data.declaration.shape, ElementsAre(3));
}

TEST(TableReader, ClampsNumbersToTheirBounds) {
  const Dataset data = TableOf("age,city,sick\n-5,Bern,no\n1e300,Bern,no\n +12 ,Bern,no\n");
  EXPECT_EQ(Row(data, 0)[0], 0);
  EXPECT_EQ(Row(data, 1)[0], 1);
  EXPECT_FLOAT_EQ(Row(data, 2)[0], 0.1F);
}

TEST(TableReader, ReadsQuotedCellsAndTabs) {
  const Dataset data =
      TableOf("age,city,sick\r\n\"60\",\"a, \"\"b\"\"\",yes\r\n",
              {"age:numeric:0:120", "city:categorical:a, \"b\"|c", "sick:label:no|yes"});
  EXPECT_THAT(Row(data, 0), ElementsAre(0.5F, 1, 0));
  TableOptions tabs;
  tabs.layout.delimiter = '\t';
  EXPECT_THAT(Row(TableOf("age\tcity\tsick\n60\tBasel\tno\n", kColumns, tabs), 0),
              ElementsAre(0.5F, 0, 1));
}

TEST(TableReader, ADeclaredRestTakesUnknownAndMissingCategories) {
  const std::vector<std::string> columns = {"city:categorical:Bern|*", "sick:label:no|yes"};
  const Dataset data = TableOf("city,sick\nBern,no\nGenf,no\n,yes\n", columns);
  EXPECT_THAT(Row(data, 0), ElementsAre(1, 0));
  EXPECT_THAT(Row(data, 1), ElementsAre(0, 1));
  EXPECT_THAT(Row(data, 2), ElementsAre(0, 1));
}

TEST(TableReader, KeepsTheFirstRowsOfEachUserWhateverOthersDo) {
  const std::vector<std::string> columns = {"x:numeric:0:100", "y:label:a|b", "id:user"};
  TableOptions capped;
  capped.rows_per_user = 2;
  const std::string ann[] = {"ann,1,a\n", "ann,2,b\n", "ann,3,a\n"};
  const std::string bob[] = {"bob,4,a\n", "bob,5,a\n", "bob,6,b\n"};
  const Dataset both =
      TableOf("id,x,y\n" + ann[0] + bob[0] + bob[1] + ann[1] + bob[2] + ann[2], columns, capped);
  ASSERT_EQ(both.size(), 4);
  const Dataset alone = TableOf("id,x,y\n" + ann[0] + ann[1] + ann[2], columns, capped);
  ASSERT_EQ(alone.size(), 2);
  EXPECT_TRUE(at::equal(both.inputs[0], alone.inputs[0]));
  EXPECT_TRUE(at::equal(both.inputs[3], alone.inputs[1]));
  // A row that is dropped is not looked at either.
  EXPECT_EQ(TableOf("id,x,y\nann,1,a\nann,2,a\nann,broken,a\n", columns, capped).size(), 2);
  EXPECT_THAT(TableComplaint("id,x,y\n,1,a\n", columns, capped), HasSubstr("(it is line 2)"));
}

TEST(TableReader, LabelsMayBeMissingWhereOnlyPredictionsAreWanted) {
  TableOptions unlabelled;
  unlabelled.labelled = false;
  const Dataset data = TableOf("age,city\n60,Bern\n", kColumns, unlabelled);
  EXPECT_FALSE(data.labels.defined());
  EXPECT_EQ(data.inputs.size(0), 1);
  EXPECT_TRUE(TableOf("age,city,sick\n60,Bern,no\n", kColumns, unlabelled).labels.defined());
}

TEST(TableReader, MalformedRowsGetOneSentenceWithTheirLine) {
  const std::string header = "age,city,sick\n1,Bern,no\n";
  EXPECT_THAT(TableComplaint(header + "2,Genf,no\n"),
              AllOf(HasSubstr("(line 3 has"), HasSubstr("'Genf'"), HasSubstr("|*")));
  EXPECT_THAT(TableComplaint(header + "2,Bern,maybe\n"),
              AllOf(HasSubstr("line 3"), HasSubstr("'maybe'"), HasSubstr("no|yes")));
  EXPECT_THAT(TableComplaint(header + "2,Bern,\n"),
              AllOf(HasSubstr("line 3"), HasSubstr("nothing")));
  EXPECT_THAT(TableComplaint(header + ",Bern,no\n"),
              AllOf(HasSubstr("line 3"), HasSubstr("nothing")));
  for (const char* bad : {"nan", "inf", "-inf", "1e999", "12x", "0x10", "1;2", "+-3"}) {
    EXPECT_THAT(TableComplaint(header + bad + ",Bern,no\n"),
                AllOf(HasSubstr("line 3"), HasSubstr(bad), HasSubstr("'age'")))
        << bad;
  }
  EXPECT_THAT(TableComplaint(header + "2,Bern\n"),
              AllOf(HasSubstr("line 3"), HasSubstr("2 fields")));
  EXPECT_THAT(TableComplaint(header + "2,\"Bern,no\n"),
              AllOf(HasSubstr("line 3"), HasSubstr("quotes")));
  EXPECT_THAT(TableComplaint(""), HasSubstr("is empty"));
}

TEST(TableReader, AllKindsOfBadCellsAreToldAtOnceWhateverThereIsOfThem) {
  const std::string header = "age,city,sick\n1,Bern,no\n";
  const std::string rows = "x,Genf,no\n2,Bern\n,Bern,\ny,Bern,no\n";
  const std::string said = TableComplaint(header + rows);
  EXPECT_THAT(said,
              HasSubstr("'table.csv' does not keep to what was declared: a row has another "
                        "number of fields than its first line; a row has nothing in the column "
                        "'age'; a row has no finite number in the column 'age'; a row has a "
                        "value that is not declared in the column 'city', which was declared "
                        "as Bern|Basel; a row has nothing in the column 'sick', which was "
                        "declared as no|yes. Correct"));
  EXPECT_THAT(said, HasSubstr("in the column 'age': line 3 has 'x';"));
  const auto sentence = [](const std::string& text) { return text.substr(0, text.find(" (")); };
  const std::string other = TableComplaint(header + "y,Basel,no\n,Bern,no\n3,Bern,no,a\n" +
                                           "1,Zug,\n1,Bern,\nz,Genf,yes\n");
  EXPECT_EQ(sentence(other), sentence(said));
}

TEST(TableReader, CellsAreReadByTheRulesOfTheirColumn) {
  TableOptions options;
  options.layout.delimiter = ';';
  options.layout.quote = '\'';
  options.layout.missing = {"?"};
  const std::vector<std::string> columns = {"weight:numeric:0:200:decimal=,:unit=kg:unit=g*0.001",
                                            "crp:numeric:0:10:censored=half",
                                            "born:date:2000-01-01:2000-01-11:format=DD.MM.YYYY",
                                            "smoker:boolean:nein|ja",
                                            "lab:numeric:0:4:not-a-number=missing",
                                            "cost:target:0:100:thousands='"};
  const Dataset data = TableOf(
      "weight;crp;born;smoker;lab;cost\n50,5 kg;<5;6.1.2000;ja;n/a;'0'\n"
      "100000 g;>10;01.01.2000;nein;1;75\n?;1;31.12.2024;?;;100\n",
      columns, options);
  EXPECT_THAT(Row(data, 0), ElementsAre(0.2525F, 0.25F, 0.5F, 1, 0.5F));
  EXPECT_THAT(Row(data, 1), ElementsAre(0.5F, 1, 0, 0, 0.25F));
  EXPECT_THAT(Row(data, 2), ElementsAre(0.5F, 0.1F, 1, 0.5F, 0.5F));
  EXPECT_EQ(data.labels[1].item<float>(), 0.5F);
  const std::string said = TableComplaint(
      "weight;crp;born;smoker;lab;cost\n50.5;<x;2000-01-01;yes;1;x\n", columns, options);
  EXPECT_THAT(said, AllOf(HasSubstr("no finite number in the column 'weight'"),
                          HasSubstr("no finite number in the column 'crp'"),
                          HasSubstr("no date in the declared format in the column 'born'"),
                          HasSubstr("neither yes nor no in the column 'smoker'"),
                          HasSubstr("no finite number in the column 'cost'")));
  EXPECT_THAT(said, ::testing::Not(HasSubstr("'lab'")));
}

TEST(TableReader, ColumnsThatTheFileDoesNotHaveAreNamed) {
  EXPECT_THAT(TableComplaint("agee,city,sick\n1,Bern,no\n"),
              AllOf(HasSubstr("no column 'age'"), HasSubstr("is it 'agee'?")));
  EXPECT_THAT(TableComplaint("age,city,sick,age\n1,Bern,no,2\n"), HasSubstr("'age' twice"));
  EXPECT_THAT(TableComplaint("age,city\n1,Bern\n"), HasSubstr("no column 'sick'"));
}

TEST(TableReader, ReadsCompressedFiles) {
  const TestFolder folder;
  const std::string path = (folder / "table.csv.gz").string();
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_GT(gzputs(file, "age,city,sick\n60,Bern,yes\n"), 0);
  gzclose(file);
  TableOptions options;
  options.columns = ParseColumns(kColumns);
  DatasetDeclaration declaration;
  DeclareColumns(options.columns, declaration);
  EXPECT_THAT(Row(ReadTable(path, declaration, options), 0), ElementsAre(0.5F, 1, 0));
}

TEST(TableReader, ATargetIsScaledFromItsBounds) {
  const Dataset data =
      TableOf("age,cost\n30,0\n60,75\n0,100\n0,1e9\n", {"age:numeric:0:120", "cost:target:0:100"});
  ASSERT_TRUE(data.declaration.target.has_value());
  EXPECT_EQ(data.declaration.target->name, "cost");
  EXPECT_EQ(data.declaration.classes, 0);
  EXPECT_EQ(data.declaration.Outputs(), 1);
  EXPECT_EQ(data.inputs.size(1), 1);
  const auto* targets = data.labels.const_data_ptr<float>();
  EXPECT_THAT(std::vector<float>(targets, targets + 4), ElementsAre(-1, 0.5F, 1, 1));
  EXPECT_EQ(data.declaration.target->Unscaled(0.5), 75);
}

TEST(TableReader, ATargetWithoutAValueIsNotTheMiddleOfItsBounds) {
  TableOptions options;
  options.layout.missing = {"?"};
  EXPECT_THAT(
      TableComplaint("age,cost\n30,?\n", {"age:numeric:0:120", "cost:target:0:100"}, options),
      HasSubstr("no finite number in the column 'cost'"));
}

TEST(TableReader, SpellingsOfALabelAreOneClass) {
  const Dataset data = TableOf("age,sick\n1,n\n2,yes\n3,no\n4, y \n",
                               {"age:numeric:0:120", "sick:label:no~n|yes~y"});
  EXPECT_THAT(Labels(data), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(data.declaration.class_names, ElementsAre("no", "yes"));
}

TEST(TableReader, RowsThatDoNotKeepToTheDeclarationMayBeCountedInsteadOfRefused) {
  TableOptions options;
  options.malformed = MalformedRows::kSkip;
  options.layout.missing = {"?"};
  const Dataset data = TableOf("age,sick\n1,no\n2,maybe\n3,\n4,yes\n5,?\n",
                               {"age:numeric:0:120", "sick:label:no|yes"}, options);
  EXPECT_THAT(Labels(data), ElementsAre(0, 1));
  EXPECT_EQ(data.inputs.size(0), 2);
  EXPECT_EQ(data.malformed, 3);
  const Dataset numbers = TableOf("age,cost\n1,5\n2,x\n3,?\n4,nan\n",
                                  {"age:numeric:0:120", "cost:target:0:100"}, options);
  EXPECT_EQ(numbers.inputs.size(0), 1);
  EXPECT_EQ(numbers.malformed, 3);
}

// A row may break off behind some of its features; nothing of it stays, whatever the order.
TEST(TableReader, NothingStaysOfARowThatIsLeftOut) {
  TableOptions options;
  options.malformed = MalformedRows::kSkip;
  const Dataset data =
      TableOf("city,sick,age\na,no,12\nb,yes,old\nc,no,1\nb,perhaps,1\nb,yes,60\n",
              {"city:categorical:a|b", "sick:label:no|yes", "age:numeric:0:120"}, options);
  EXPECT_EQ(data.malformed, 3);
  EXPECT_THAT(Labels(data), ElementsAre(0, 1));
  const float* const rows = data.inputs.const_data_ptr<float>();
  EXPECT_THAT(std::vector<float>(rows, rows + 6), ElementsAre(1, 0, 0.1F, 0, 1, 0.5F));
}

TEST(TableReader, ALeftOutRowMayBeTheFirstOfABlock) {
  TableOptions options;
  options.malformed = MalformedRows::kSkip;
  // 2^20 numbers of a block are 2^20 rows of one feature.
  std::string text = "age,sick\n";
  for (int i = 0; i < 1 << 20; ++i) text += "12,no\n";
  const Dataset data = TableOf(text + "old,no\n60,maybe\n60,yes\n",
                               {"age:numeric:0:120", "sick:label:no|yes"}, options);
  EXPECT_EQ(data.malformed, 2);
  ASSERT_EQ(data.inputs.size(0), (1 << 20) + 1);
  EXPECT_EQ(data.inputs[1 << 20][0].item<float>(), 0.5F);
}

// The unit stays a user: one with many such rows is counted as often as others.
TEST(TableReader, AUserHasNoMoreLeftOutRowsThanRowsThatCount) {
  TableOptions options;
  options.malformed = MalformedRows::kSkip;
  options.rows_per_user = 1;
  const std::vector<std::string> columns = {"age:numeric:0:120", "sick:label:no|yes", "who:user"};
  const Dataset data =
      TableOf("age,sick,who\n1,maybe,u\n2,maybe,u\n3,no,u\n4,yes,v\n", columns, options);
  EXPECT_EQ(data.malformed, 1);
  EXPECT_EQ(data.inputs.size(0), 1);
  EXPECT_THAT(TableComplaint("age,sick,who\n1,no,\n", columns, options),
              HasSubstr("names no user"));
}

TEST(TableReader, KeepsEveryRowOfATableOfManyBlocks) {
  // Blocks hold 2^20 numbers: 300,000 rows of 5 features are two of them.
  constexpr std::int64_t kRows = 300'000;
  std::string text = "sick,age,city\n";
  for (std::int64_t i = 0; i < kRows; ++i) {
    text += std::to_string(i % 2) + ',' + std::to_string(i % 121) + ',' + "abcd"[i % 4] + '\n';
  }
  const Dataset data =
      TableOf(text, {"age:numeric:0:120", "city:categorical:a|b|c|d", "sick:label:0|1"});
  ASSERT_EQ(data.inputs.sizes(), (std::vector<std::int64_t>{kRows, 5}));
  for (std::int64_t i = 0; i < kRows; ++i) {
    const float* const row = data.inputs.const_data_ptr<float>() + 5 * i;
    ASSERT_EQ(row[0], static_cast<float>(static_cast<double>(i % 121) / 120)) << i;
    for (std::int64_t k = 0; k < 4; ++k) ASSERT_EQ(row[1 + k], k == i % 4 ? 1 : 0) << i;
    ASSERT_EQ(data.labels.const_data_ptr<std::int64_t>()[i], i % 2);
  }
}

TEST(DeclareColumns, NeedsAFeature) {
  EXPECT_THAT(TableComplaint("y\na\n", {"y:label:a|b"}), HasSubstr("no features"));
}

TEST(TableReader, MissingCellsAreTheMiddleOfTheBoundsOrACategory) {
  TableOptions options;
  options.layout.missing = {"?", ""};
  const std::vector<std::string> columns = {"age:numeric:0:120", "city:categorical:Bern|?",
                                            "work:categorical:farm|*", "home:categorical:a|b",
                                            "sick:label:no|yes"};
  const std::string header = "age,city,work,home,sick\n";
  const Dataset data = TableOf(header + " ? , ?,?,?,no\n,Bern,,,yes\n", columns, options);
  EXPECT_THAT(Row(data, 0), ElementsAre(0.5F, 0, 1, 0, 1, 0, 0));
  EXPECT_THAT(Row(data, 1), ElementsAre(0.5F, 1, 0, 0, 1, 0, 0));
  EXPECT_THAT(TableComplaint(header + "1,Bern,farm,a,?\n", columns, options), HasSubstr("'sick'"));
  EXPECT_THAT(TableComplaint(header + "1,Bern,farm,c,no\n", columns, options), HasSubstr("'home'"));
  EXPECT_THAT(TableComplaint(header + "?,Bern,farm,a,no\n", columns), HasSubstr("--missing"));
}

TEST(TableReader, WithoutAHeaderColumnsAreCalledByTheirNumber) {
  TableOptions options;
  options.layout.header = false;
  options.layout.delimiter = ';';
  const std::vector<std::string> columns = {"2:numeric:0:120", "1:label:no|yes"};
  const Dataset data = TableOf("no;30\nyes;60\n", columns, options);
  EXPECT_THAT(Row(data, 0), ElementsAre(0.25F));
  EXPECT_THAT(Labels(data), ElementsAre(0, 1));
  EXPECT_THAT(TableComplaint("no;30\n", {"3:numeric:0:1"}, options), HasSubstr("called 1, 2, 3"));
  // No record, as of a table with a header and nothing after it.
  EXPECT_EQ(TableOf("", columns, options).size(), 0);
}

TEST(TableReader, KeepsTheColumnThatNamesTheRecords) {
  TableOptions options;
  options.id = "who";
  const Dataset data =
      TableOf("who,age,city,sick\n\"a, b\",1,Bern,no\nc,2,Bern,no\n", kColumns, options);
  EXPECT_THAT(data.ids, ElementsAre("a, b", "c"));
  options.id = "whom";
  EXPECT_THAT(TableComplaint("who,age,city,sick\n", kColumns, options),
              HasSubstr("no column 'whom'"));
}

TEST(TableReader, DeclaredValuesAndCellsAreComparedWithoutBlanksAtTheirEnds) {
  const Dataset data = TableOf("income\n <=50K\n\">50K \"\n", {"income:categorical: <=50K |>50K"});
  EXPECT_THAT(Row(data, 0), ElementsAre(1, 0));
  EXPECT_THAT(Row(data, 1), ElementsAre(0, 1));
}

}  // namespace
}  // namespace sordino
