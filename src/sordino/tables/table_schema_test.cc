#include "sordino/tables/table_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"

namespace sordino {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kCensus = R"(
[table]
header = false
delimiter = "tab"
missing = ["?", ""]
rows-per-user = 3

[[column]]
name = "age"
kind = "numeric"
low = 17
high = 90.5

[[column]]
name = "fnlwgt"
kind = "ignored"

[[column]]
name = "income"
kind = "label"
values = [" <=50K", ">50K", "a, \"b\""]

[[column]]
name = "who"
kind = "user"
)";

std::string Complaint(const std::string& text) {
  try {
    ParseSchema(text, "schema.toml");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ParseSchema, AListInsideValuesGivesTheSpellingsOfOneValue) {
  const TableSchema schema = ParseSchema(
      "[[column]]\nname = 'income'\nkind = 'label'\nvalues = [['<=50K', '<=50K.'], '>50K']\n"
      "[[column]]\nname = 'cost'\nkind = 'ignored'\n",
      "census.toml");
  const TableColumn* const income = schema.Find("income");
  ASSERT_NE(income, nullptr);
  EXPECT_EQ(income->values.size(), 2U);
  EXPECT_EQ(income->ValueOf("<=50K."), 0U);
  EXPECT_EQ(income->ValueOf(">50K"), 1U);
  const TableSchema target =
      ParseSchema("[[column]]\nname = 'cost'\nkind = 'target'\nlow = 0\nhigh = 10\n", "cost.toml");
  EXPECT_EQ(target.Find("cost")->role, ColumnRole::kTarget);
}

TEST(TableSchema, DeclaresLayoutAndColumns) {
  const TableSchema schema = ParseSchema(kCensus, "schema.toml");
  EXPECT_EQ(schema.header, false);
  EXPECT_EQ(schema.delimiter, '\t');
  EXPECT_THAT(schema.missing, ElementsAre("?", ""));
  EXPECT_EQ(schema.rows_per_user, 3);
  ASSERT_EQ(schema.columns.size(), 3U);
  EXPECT_EQ(schema.columns[0].low, 17);
  EXPECT_EQ(schema.columns[0].high, 90.5);
  EXPECT_THAT(schema.columns[1].values, ElementsAre("<=50K", ">50K", "a, \"b\""));
  EXPECT_EQ(schema.Find("who")->role, ColumnRole::kUser);
  EXPECT_EQ(schema.Find("fnlwgt"), nullptr);
  const TableSchema bare = ParseSchema("[[column]]\nname = 'a'\nkind = 'user'\n", "bare");
  EXPECT_FALSE(bare.header || bare.delimiter || bare.rows_per_user != 0);
}

TEST(TableSchema, MistakesNameTheFileTheLineAndWhatIsAllowed) {
  const auto column = [](const std::string& rest) {
    return Complaint("[[column]]\nname = 'age'\n" + rest);
  };
  EXPECT_THAT(column("kind = 'numerc'"),
              AllOf(HasSubstr("schema.toml, line 3"), HasSubstr("did you mean 'numeric'"),
                    HasSubstr("ignored")));
  EXPECT_THAT(column("kind = 'numeric'\nlow = 0"), HasSubstr("needs low and high"));
  EXPECT_THAT(column("kind = 'numeric'\nlow = 2\nhigh = 1"), HasSubstr("needs two bounds"));
  EXPECT_THAT(column("kind = 'numeric'\nlow = 2\nhigh = inf"), HasSubstr("finite number"));
  EXPECT_THAT(column("kind = 'label'"), HasSubstr("needs values"));
  EXPECT_THAT(column("kind = 'label'\nvalues = [['a'], []]"), HasSubstr("is empty"));
  EXPECT_THAT(column("kind = 'target'"), HasSubstr("needs low and high"));
  EXPECT_THAT(column("kind = 'label'\nvalues = 'a'"), HasSubstr("list of texts"));
  EXPECT_THAT(column("kind = 'label'\nvalues = ['a', 1]"), HasSubstr("text in quotes"));
  EXPECT_THAT(column("kind = 'label'\nvalues = ['a', ' a']"), HasSubstr("two different values"));
  EXPECT_THAT(column("kind = 'user'\nlow = 1"), HasSubstr("neither"));
  EXPECT_THAT(column("kinds = 'user'"), HasSubstr("did you mean 'kind'"));
  EXPECT_THAT(column(""), HasSubstr("needs a name and a kind"));
  EXPECT_THAT(column("kind = 'user'\n[[column]]\nname = 'age'\nkind = 'user'"),
              HasSubstr("declared twice"));
  EXPECT_THAT(Complaint(""), HasSubstr("no columns"));
  EXPECT_THAT(Complaint("column = 3"), HasSubstr("no columns"));
  EXPECT_THAT(Complaint("tabel = 3"), HasSubstr("did you mean 'table'"));
  EXPECT_THAT(Complaint("table = 3"), HasSubstr("[table]"));
  EXPECT_THAT(Complaint("[table]\nheader = 1"), HasSubstr("true or false"));
  EXPECT_THAT(Complaint("[table]\ndelimiter = 'ab'"), HasSubstr("one character"));
  EXPECT_THAT(Complaint("[table]\nencoding = 'utf8'"), HasSubstr("did you mean 'utf-8'?"));
  EXPECT_THAT(Complaint("[table]\nrows-per-user = 0"), HasSubstr("from 1"));
  EXPECT_THAT(Complaint("[table\n"), HasSubstr("not TOML"));
  // A table for each of a million names would overflow the stack when they are freed.
  std::string deep = "[";
  for (int i = 0; i < 1'000'000; ++i) deep += "a.";
  EXPECT_THAT(Complaint(deep + "a]\n"),
              HasSubstr("schema.toml, line 1: keys and brackets are nested"));
  const TestFolder folder;
  EXPECT_THROW(ReadSchema(folder / "none.toml"), Error);
}

TEST(SchemaTemplate, HoldsTheNamesAndIsASchemaThatDeclaresNothing) {
  const std::vector<std::string> names = {"age", "a \"b\"", "with\nbreak", "Größe"};
  const std::string text = SchemaTemplate(names, {.delimiter = '\t'});
  const TableSchema schema = ParseSchema(text, "template");
  EXPECT_TRUE(schema.columns.empty());
  EXPECT_EQ(schema.delimiter, '\t');
  EXPECT_EQ(schema.header, true);
  EXPECT_EQ(schema.encoding, Encoding::kUtf8);
  std::string filled = text;
  const std::string ignored = "kind = \"ignored\"";
  for (std::size_t i = 0; i < names.size(); ++i) {
    filled.replace(filled.find(ignored), ignored.size(), "kind='numeric'\nlow=0\nhigh=1");
  }
  const TableSchema full = ParseSchema(filled, "filled");
  ASSERT_EQ(full.columns.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(full.columns[i].name, names[i]);
}

TEST(SchemaTemplate, RefusesAFirstLineThatIsARecord) {
  for (const std::vector<std::string>& cells :
       {std::vector<std::string>{"ann", "30"}, {"a", ""}, {"a", "a"}, {"a", "\xFF"}, {"nan"}}) {
    try {
      SchemaTemplate(cells, {});
      FAIL() << cells.back();
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("ann"), std::string::npos);
      EXPECT_EQ(std::string(error.what()).find("30"), std::string::npos);
    }
  }
  EXPECT_THAT(SchemaTemplate(std::vector<std::string>{"1", "2"}, {.header = false}),
              AllOf(HasSubstr("header = false"), HasSubstr("name = \"2\"")));
}

TEST(TableSchema, TextHasBuckets) {
  const TableSchema schema =
      ParseSchema("[[column]]\nname = \"note\"\nkind = \"text\"\nbuckets = 64\n", "s.toml");
  EXPECT_EQ(ColumnText(schema.columns[0]), "note:text:64");
  EXPECT_THROW(ParseSchema("[[column]]\nname = \"note\"\nkind = \"text\"\n", "s.toml"), Error);
  EXPECT_THROW(ParseSchema("[[column]]\nname = \"id\"\nkind = \"user\"\nbuckets = 64\n", "s.toml"),
               Error);
}

}  // namespace
}  // namespace sordino
