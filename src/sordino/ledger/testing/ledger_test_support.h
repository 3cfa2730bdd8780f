// Ledgers in a folder of their own, for tests.
#ifndef SORDINO_LEDGER_TESTING_LEDGER_TEST_SUPPORT_H_
#define SORDINO_LEDGER_TESTING_LEDGER_TEST_SUPPORT_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "sordino/ledger/ledger.h"

namespace sordino {

// A fresh folder for each test, with a witness folder in it.
class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest() {
    const ::testing::TestInfo* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("ledger-") + test->test_suite_name() + "-" + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    file_ = folder_ / "ledger.db";
  }
  ~LedgerTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  LedgerOptions Options() const {
    LedgerOptions options;
    options.witness_folder = folder_ / "witness";
    return options;
  }
  Ledger Create(double epsilon, double delta) const {
    return Ledger::Create(file_, {.epsilon = Epsilon(epsilon), .delta = Delta(delta)}, Options());
  }
  Ledger Open() const { return Ledger::Open(file_, Options()); }
  std::string Bytes() const {
    std::ifstream in(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  std::filesystem::path folder_;
  std::filesystem::path file_;
};

}  // namespace sordino

#endif  // SORDINO_LEDGER_TESTING_LEDGER_TEST_SUPPORT_H_
