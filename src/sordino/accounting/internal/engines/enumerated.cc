#include "sordino/accounting/internal/engines/enumerated.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sordino/accounting/internal/engines/exact_release.h"

namespace sordino {
namespace {

constexpr double kMaxOutcomes = 8192;

struct LogAtom {
  double loss;
  double log_mass;
};

// The outcomes of `left` copies of the atoms from `first` on, joined to `taken`.
void Spread(const std::vector<LossAtom>& atoms, std::size_t first, double left, LogAtom taken,
            std::vector<LogAtom>& out) {
  const auto with = [&](double times) -> LogAtom {
    return {taken.loss + times * atoms[first].loss,
            taken.log_mass + times * std::log(atoms[first].mass) - std::lgamma(times + 1)};
  };
  if (first + 1 == atoms.size()) {
    out.push_back(with(left));
    return;
  }
  for (double times = 0; times <= left; ++times) {
    Spread(atoms, first + 1, left - times, with(times), out);
  }
}

// C(n + k - 1, k - 1), or more than the limit.
double OutcomesOfCopies(double n, std::size_t k) {
  double ways = 1;
  for (std::size_t i = 1; i < k && ways <= kMaxOutcomes; ++i) {
    ways *= (n + static_cast<double>(i)) / static_cast<double>(i);
  }
  return ways;
}

}  // namespace

std::optional<Enumerated> Enumerated::Of(const std::vector<CountedPair>& pairs) {
  double total = 1;
  for (const CountedPair& p : pairs) {
    const LossPair& pair = p.pair;
    if (pair.atoms.empty() || !pair.pieces.empty() || pair.gaussian_mu > 0 || pair.missing_p != 0) {
      return std::nullopt;
    }
    total *= OutcomesOfCopies(static_cast<double>(p.count), pair.atoms.size());
    if (!(total <= kMaxOutcomes)) return std::nullopt;
  }
  Enumerated result;
  constexpr double kUlp = 0x1p-52;
  double log_survival = 0;
  std::vector<LogAtom> atoms = {{0, 0}};
  for (const CountedPair& p : pairs) {
    const auto n = static_cast<double>(p.count);
    log_survival += n * std::log1p(-p.pair.infinite_mass);
    double largest = 0;
    double farthest = 0;
    for (const LossAtom& atom : p.pair.atoms) {
      if (!(atom.mass > 0)) return std::nullopt;
      largest = std::max(largest, std::abs(std::log(atom.mass)));
      farthest = std::max(farthest, std::abs(atom.loss));
    }
    // Each mass and each loss is good to a few units; so are lgamma and what is summed.
    result.mass_error_ += 8 * kUlp * (n * (4 + largest) + 2 * std::lgamma(n + 1) + 4);
    result.loss_error_ += 8 * kUlp * n * farthest;
    std::vector<LogAtom> grown;
    for (const LogAtom& atom : atoms) {
      Spread(p.pair.atoms, 0, n, {atom.loss, atom.log_mass + std::lgamma(n + 1)}, grown);
    }
    atoms = std::move(grown);
  }
  result.whole_.infinite_mass = -std::expm1(log_survival);
  for (const LogAtom& atom : atoms) {
    result.whole_.atoms.push_back({atom.loss, std::exp(atom.log_mass)});
  }
  result.mass_error_ += kExactReleaseError;
  return result;
}

Interval Enumerated::LogDelta(double epsilon) const {
  return {ExactLogDelta(whole_, epsilon + loss_error_) - mass_error_,
          ExactLogDelta(whole_, epsilon - loss_error_) + mass_error_};
}

Interval Enumerated::Epsilon(double log_delta) const {
  if (LogDelta(0).upper <= log_delta) return {0, 0};
  return {
      std::max(0.0, ExactEpsilon(whole_, log_delta + mass_error_) * (1 - 0x1p-49) - loss_error_),
      ExactEpsilon(whole_, log_delta - mass_error_) * (1 + 0x1p-49) + loss_error_};
}

}  // namespace sordino
