#include "sordino/gradients/measured_rates.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "sordino/base/testing/test_folder.h"
#include "sordino/gradients/internal/terms/norm_cost.h"

namespace sordino {
namespace {

std::string ContentOf(const std::filesystem::path& file) {
  std::ostringstream content;
  content << std::ifstream(file).rdbuf();
  return content.str();
}

Term OuterTerm(std::int64_t rows) {
  constexpr std::int64_t kExamples = 2;
  return {.kind = TermKind::kOuter,
          .a = at::zeros({kExamples * rows, 64}),
          .b = at::zeros({kExamples * rows, 64}),
          .layout = {1, kExamples, rows},
          .sizes = {64, 64}};
}

// Tests of one process share its rates.
class MeasuredRates : public testing::Test {
 protected:
  ~MeasuredRates() override { SetCpuRates({125, 90, 15, 37}); }

  const TestFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "cache" / "norm_rates.txt";
};

TEST_F(MeasuredRates, DecideBetweenFormsOfNorms) {
  const Term term = OuterTerm(32);
  SetCpuRates({.products = 100, .gram_products = 1e9, .memory = 1e-3, .cache = 1e9});
  EXPECT_EQ(CheapestForm(term), NormForm::kGram);
  SetCpuRates({.products = 100, .gram_products = 1e-9, .memory = 1e9, .cache = 1e9});
  EXPECT_EQ(CheapestForm(term), NormForm::kKeep);
  SetCpuRates({.products = 100, .gram_products = 1e-9, .memory = 1e-9, .cache = 1e9});
  EXPECT_EQ(CheapestForm(term), NormForm::kDiscard);
}

TEST_F(MeasuredRates, AreKeptInAFileAndReadFromIt) {
  UseMeasuredRates(file_);
  const std::string kept = ContentOf(file_);
  EXPECT_THAT(kept, testing::StartsWith("sordino norm rates 1, "));
  // Rates under which nothing but Gram matrices pays, of the same machine.
  const std::string machine = kept.substr(0, kept.find('\n'));
  const std::string changed = machine + "\n100 1e9 0.001 1e9\n";
  std::ofstream(file_) << changed;
  UseMeasuredRates(file_);
  EXPECT_EQ(CheapestForm(OuterTerm(32)), NormForm::kGram);
  EXPECT_EQ(ContentOf(file_), changed);
}

TEST_F(MeasuredRates, AFileThatIsBrokenOrOfAnotherMachineIsReplaced) {
  UseMeasuredRates(file_);
  const std::string kept = ContentOf(file_);
  const std::string machine = kept.substr(0, kept.find('\n'));
  for (const std::string& content :
       {std::string(), std::string("\n"), machine, machine + "\n1 2 3\n", machine + "\n1 2 3 x\n",
        machine + "\n0 1 1 1\n", machine + "\n1 -1 1 1\n", machine + "\nnan 1 1 1\n",
        "another machine\n" + kept.substr(machine.size() + 1)}) {
    std::ofstream(file_) << content;
    UseMeasuredRates(file_);
    EXPECT_THAT(ContentOf(file_), testing::StartsWith(machine + "\n")) << content;
    EXPECT_NE(ContentOf(file_), content);
  }
}

TEST_F(MeasuredRates, AFileThatCannotBeWrittenIsNoError) {
  UseMeasuredRates("");
  UseMeasuredRates("/proc/sordino/norm_rates.txt");
}

}  // namespace
}  // namespace sordino
