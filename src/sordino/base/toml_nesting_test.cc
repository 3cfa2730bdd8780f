#include "sordino/base/toml_nesting.h"

#include <gtest/gtest.h>

#include <string>

#include "sordino/base/error.h"

namespace sordino {
namespace {

std::string Repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string RefusalOf(const std::string& text) {
  try {
    CheckTomlNesting(text, "deep.toml");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TomlNesting, RefusesDeepHeadersKeysAndValuesWithTheirLine) {
  for (const int depth : {101, 50000, 1000000}) {
    for (const std::string& text :
         {"[" + Repeated("a.", depth) + "a]\n", Repeated("a . ", depth) + "a = 1\n",
          "a = " + Repeated("[", depth), "a = " + Repeated("{a = ", depth),
          "a = " + Repeated("{a.a = ", depth / 2 + 1), "[" + Repeated("\"a\".", depth) + "a]\n",
          "b = '''"
          "\n"
          "''''' " +
              Repeated("a.", depth),
          "b = \"\\\"\"\n[" + Repeated("a.", depth)}) {
      EXPECT_EQ(RefusalOf("x = 1\n" + text).substr(0, 16), "deep.toml, line ")
          << text.substr(0, 40);
    }
  }
  EXPECT_EQ(RefusalOf("x = 1\n\n[" + Repeated("a.", 200) + "a]"),
            "deep.toml, line 3: keys and brackets are nested more than 100 levels deep; no file of "
            "this kind needs that.");
}

TEST(TomlNesting, CountsNothingInStringsCommentsAndListsOfNumbers) {
  for (const std::string& text :
       {"a = \"" + Repeated(".", 500) + "\"\n", "a = '" + Repeated("[", 500) + "'\n",
        "# " + Repeated(".", 500) + "\n", "a = \"\"\"\n" + Repeated(".\n", 500) + "\"\"\"\n",
        "a = [" + Repeated("1.5,\n", 500) + "2.5]\n", Repeated("[a.b]\nc.d = 1.5\n", 500),
        "a = [" + Repeated("{b.c = 1.5}, ", 500) + "]\n",
        "a = \"\\\\\" # \"" + Repeated(".", 500)}) {
    EXPECT_EQ(RefusalOf(text), "") << text.substr(0, 40);
  }
}

}  // namespace
}  // namespace sordino
