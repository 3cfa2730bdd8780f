// Asks the accountants about random events until a time is up, and reports every contradiction
// between two sound bounds, every other exception and every question that took long.
//
//   contradiction_hunt [--seconds 3600] [--seed 1]
//
// Each question has its own seed, which is printed with what was found. Exit code 1 when a
// contradiction was found. CONTRIBUTING.md says when to run it.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/internal/engines/contradiction.h"
#include "sordino/accounting/testing/random_event.h"

namespace sordino {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int Hunt(double seconds, std::uint64_t seed) {
  const Clock::time_point start = Clock::now();
  std::uint64_t asked = 0;
  std::uint64_t found = 0;
  double slowest = 0;
  for (; SecondsSince(start) < seconds; ++asked) {
    std::mt19937_64 random(seed + asked);
    const Event event = testing::RandomEvent(random);
    const double delta = testing::RandomDelta(random);
    const Clock::time_point began = Clock::now();
    try {
      const Interval full = Account(event, Delta(delta)).value;
      const Interval quick = Account(event, Delta(delta), Effort::kQuick).value;
      ConsistentLower({full.lower, quick.upper}, {"full", "quick"}, event.ToString());
      ConsistentLower({quick.lower, full.upper}, {"quick", "full"}, event.ToString());
      if (std::isfinite(full.upper)) AccountDelta(event, Epsilon(full.upper * 0.7));
    } catch (const std::exception& error) {
      ++found;
      std::printf("seed %llu, delta %g: %s\n", static_cast<unsigned long long>(seed) + asked, delta,
                  error.what());
      std::fflush(stdout);
    }
    const double took = SecondsSince(began);
    if (took > 2 && took > slowest) {
      std::printf("seed %llu, delta %g: %.1f s for %s\n",
                  static_cast<unsigned long long>(seed) + asked, delta, took,
                  event.ToString().substr(0, 300).c_str());
      std::fflush(stdout);
    }
    slowest = std::max(slowest, took);
  }
  std::printf("%llu events asked, %llu failures, slowest %.2f s\n",
              static_cast<unsigned long long>(asked), static_cast<unsigned long long>(found),
              slowest);
  return found == 0 ? 0 : 1;
}

}  // namespace
}  // namespace sordino

int main(int argc, char** argv) {
  double seconds = 3600;
  std::uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--seconds") seconds = std::atof(argv[i + 1]);
    if (flag == "--seed") seed = std::strtoull(argv[i + 1], nullptr, 10);
  }
  return sordino::Hunt(seconds, seed);
}
