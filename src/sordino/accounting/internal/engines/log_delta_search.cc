// Which engine answers a composition: delta.
#include <algorithm>
#include <cmath>
#include <optional>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/internal/atoms/atom_composition.h"
#include "sordino/accounting/internal/engines/contradiction.h"
#include "sordino/accounting/internal/engines/engine_choice.h"
#include "sordino/accounting/internal/engines/engines.h"
#include "sordino/accounting/internal/engines/enumerated.h"
#include "sordino/accounting/internal/engines/exact_release.h"
#include "sordino/accounting/internal/grid/grid.h"
#include "sordino/accounting/internal/grid/tail_split.h"

namespace sordino {
namespace {

// Of many pairs, what takes long is good enough earlier.
constexpr double kNarrowLogDelta = 0.03;

// The engines asked one after the other for a log delta, until the interval is narrow.
class LogDeltaSearch {
 public:
  LogDeltaSearch(const std::vector<CountedPair>& pairs, double epsilon, const Question& question)
      : pairs_(pairs),
        epsilon_(epsilon),
        question_(question),
        narrow_(SharesLists(pairs) ? kNarrowLogDelta : kNarrow) {}

  Answer Run(double mu2) {
    if (FitsContour(pairs_)) {
      answer_.value = ContourLogDelta(pairs_, epsilon_).value_or(Interval{-kInfinity, 0});
    }
    const bool lattice = Wide() && HasLattice(pairs_);
    if (Wide()) {
      if (const std::optional<TailSplit> split = TailSplit::At(pairs_, epsilon_)) {
        Use(SmoothedLogDelta(*split, epsilon_, wanted(), question_.effort), "split");
      }
    }
    if (lattice) AskGrid(true);
    if (Wide()) Use(SmoothedLogDelta(pairs_, epsilon_, wanted(), question_.effort), "smoothed");
    if (!lattice && IsShort(pairs_) && (Wide() || Width() > kShortNarrow)) AskGrid(false);
    if (wanted().lower && !(Width() < 0.5)) RaiseLowerByParts(mu2);
    return answer_;
  }

 private:
  const WantedEnds& wanted() const { return question_.wanted; }
  double Width() const { return answer_.value.upper - answer_.value.lower; }
  bool Wide() const {
    if (!wanted().lower) return answer_.value.upper == 0;
    if (!wanted().upper) return std::isinf(answer_.value.lower);
    return !(Width() <= narrow_);
  }

  void Use(Interval found, const char* engine) {
    Intersect(answer_.value, answer_.engine, found, engine, ConsistentLogLower);
  }

  void AskGrid(bool lattice) {
    const auto at = [&](Bound bound) {
      return GridLogDelta(pairs_, epsilon_, bound, question_.effort);
    };
    if (wanted().upper) Use({-kInfinity, at(Bound::kUpper)}, "grid");
    if (wanted().lower) Use({at(Bound::kLower), 0}, "grid");
    if (wanted().lower && lattice && HasLongLattice(pairs_)) Use({at(Bound::kSpread), 0}, "grid");
  }

  // Some releases alone lose no more than all of them.
  void RaiseLowerByParts(double mu2) {
    const auto at_least = [&](double log_delta) {
      answer_.value.lower = std::max(answer_.value.lower, log_delta);
    };
    if (mu2 > 0) {
      const double mu = std::sqrt(mu2);
      at_least(GaussianLogDelta(mu, epsilon_) - GaussianLogDeltaError(mu, epsilon_) -
               kClosedFormError);
    }
    for (std::size_t i = 0; i < std::min(pairs_.size(), kMaxParts); ++i) {
      if (pairs_[i].pair.gaussian_mu > 0) continue;
      at_least(ExactLogDelta(pairs_[i].pair, epsilon_) - kExactReleaseError);
    }
  }

  const std::vector<CountedPair>& pairs_;
  double epsilon_;
  const Question& question_;
  double narrow_;
  Answer answer_{{-kInfinity, 0}, "contour"};
};

// Gaussian mechanisms alone, besides mass at infinity.
Answer GaussianAnswer(const PairShape& shape, double epsilon) {
  const double infinite = -std::expm1(shape.log_survival);
  const double mu = std::sqrt(shape.mu2);
  const double finite = mu > 0 ? GaussianLogDelta(mu, epsilon) : -kInfinity;
  const double error = kClosedFormError + (mu > 0 ? GaussianLogDeltaError(mu, epsilon) : 0);
  if (infinite == 0) return {{finite - error, finite + error}, "closed form"};
  const double sum = infinite + (1 - infinite) * std::exp(finite);
  return {{std::log(sum) - error, std::log(sum) + error}, "closed form"};
}

}  // namespace

Answer ComposedLogDelta(const std::vector<CountedPair>& pairs, double epsilon,
                        const Question& question) {
  const PairShape shape = ShapeOf(pairs);
  if (shape.only_gaussian) return GaussianAnswer(shape, epsilon);
  if (shape.single) {
    const double log_delta = ExactLogDelta(pairs[0].pair, epsilon);
    return {{log_delta - kExactReleaseError, log_delta + kExactReleaseError}, "exact"};
  }
  if (epsilon >= shape.largest_loss * (1 + kClosedFormError)) {
    return {{-kInfinity, -kInfinity}, "exact"};
  }
  if (const auto few = Enumerated::Of(pairs)) return {few->LogDelta(epsilon), "exact"};
  if (question.known_lower > -kInfinity) {
    const double quick = ChernoffLogDelta(pairs, epsilon);
    if (quick <= question.known_lower) return {{-kInfinity, quick}, "quick"};
  }
  return LogDeltaSearch(pairs, epsilon, question).Run(shape.mu2);
}

}  // namespace sordino
