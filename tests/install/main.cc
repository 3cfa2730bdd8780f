// A release of another project: planned, charged to a ledger, and made.
#include <filesystem>
#include <iostream>
#include <vector>

#include "sordino/account.h"
#include "sordino/ledger.h"
#include "sordino/release.h"

// consumer LEDGER
int main(int count, char** words) {
  if (count != 2) return 2;
  const std::vector<double> ages = {31, 47, 52};
  const sordino::Epsilon epsilon(1);
  std::filesystem::remove(words[1]);
  const auto adjacency = sordino::Adjacency::kReplaceOne;  // the number of ages is public
  auto ledger = sordino::Ledger::Create(
      words[1], {.epsilon = epsilon, .delta = sordino::Delta(0), .adjacency = adjacency},
      {.witness = sordino::WitnessUse::kNone});
  const sordino::Event cost = sordino::Event::Pure(epsilon, adjacency);
  if (sordino::Account(cost, sordino::Delta(0)).value.upper > epsilon.value()) return 1;
  const auto begun = ledger.BeginRun({.what = "mean of ages", .plan = cost}, {.event = cost});
  if (!begun.verdict.admitted) return 1;
  sordino::SecureGenerator generator;
  const auto mean = sordino::PrivateBoundedMean(ages, {0, 120}, epsilon, generator);
  std::cout << mean.value() << ' ' << mean.event.Hash() << '\n';
}
