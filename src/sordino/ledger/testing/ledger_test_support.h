// Ledgers in a folder of their own, for tests.
#ifndef SORDINO_LEDGER_TESTING_LEDGER_TEST_SUPPORT_H_
#define SORDINO_LEDGER_TESTING_LEDGER_TEST_SUPPORT_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "sordino/base/testing/test_folder.h"
#include "sordino/ledger/ledger.h"

namespace sordino {

// A fresh folder for each test, with a witness folder in it.
class LedgerTest : public ::testing::Test {
 protected:
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

  const TestFolder folder_;
  const std::filesystem::path file_ = folder_ / "ledger.db";
};

}  // namespace sordino

#endif  // SORDINO_LEDGER_TESTING_LEDGER_TEST_SUPPORT_H_
