#include "sordino/experiments/reproduction_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sordino/experiments/testing/script_program.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Experiment Titled(const std::string& title, const std::string& document) {
  return ParseExperiment("title = \"" + title + "\"\ndocument = \"" + document +
                             "\"\ndiffers = \"noise <b>\"\n[[part]]\ncommand = \"account\"\n"
                             "[[part.axis]]\nname = \"noise\"\nvalues = [1, 2]\n"
                             "[[part.measure]]\nname = \"m\"\npath = \"m\"\n"
                             "[[picture]]\nname = \"p\"\nx = \"noise\"\ny = \"m\"\n",
                         title, false);
}

TEST(ReproductionPage, HasWhatIsSaidMeasuredAndExplainedInTheGivenOrder) {
  std::vector<ReproducedExperiment> all;
  for (const char* title : {"second", "first"}) {
    const Experiment experiment = Titled(title, std::string(title) + " is said");
    std::vector<CellResult> results;
    for (const Cell& cell : MakeCells(experiment, ScriptCommands, "")) {
      results.push_back({.cell = cell, .failure = "", .finished = {2, 30}, .values = {{}}});
      results.back().values[0].number = 41.5;
    }
    all.push_back({experiment, results, "sordino experiment x", ""});
  }
  all.push_back({Titled("third", "t"), {}, "", "needs libtorch & a GPU."});
  const std::string page = ReproductionPage(all);
  EXPECT_TRUE(page.starts_with(kReproductionFile.beginning));
  EXPECT_LT(page.find("second is said"), page.find("first is said"));
  EXPECT_THAT(page, HasSubstr("<td>41.5</td>"));
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(page, HasSubstr("noise &lt;b&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_THAT(page, HasSubstr("needs libtorch &amp; a GPU."));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

}  // namespace
}  // namespace sordino
