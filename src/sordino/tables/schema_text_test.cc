#include "sordino/tables/schema_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sordino/base/error.h"
#include "sordino/tables/table_schema.h"

namespace sordino {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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

}  // namespace
}  // namespace sordino
