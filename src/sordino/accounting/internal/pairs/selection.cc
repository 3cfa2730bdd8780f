#include "sordino/accounting/internal/pairs/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/internal/engines/short_profile.h"
#include "sordino/accounting/internal/pairs/profile_pair.h"
#include "sordino/accounting/renyi.h"

namespace sordino {
namespace {

// Points of a profile: of a run with a closed form, of another one, and of the selection.
constexpr int kGaussianPoints = 2000;
constexpr int kRunPoints = 250;
constexpr int kQuickRunPoints = 80;
constexpr int kSelectionPoints = 1000;
constexpr int kQuickSelectionPoints = 250;
// The cuts of [0, 1] are a geometric sequence: the first, and their number for each factor of e.
constexpr double kFirstCut = 1e-12;
constexpr double kCutsPerE = 8000;
// What values of a few roundings are raised by, relative.
constexpr double kSelectionRounding = 1e-12;
// e^epsilon stays in the range of a double.
constexpr double kMaxSelectionEpsilon = 600;
// What is left out of a profile, beside the delta that is asked about.
constexpr double kLogMargin = 12;
// Cells of a standard deviation from below, and their reach.
constexpr double kCellsPerDeviation = 200;
constexpr double kCellReach = 20;

// g(u) of selection.h, asked at rising u.
class BestTest {
 public:
  explicit BestTest(const LossPair& run) : chance_(run.absent_q) {
    for (const LossAtom& atom : run.atoms) atoms_.push_back(atom);
    std::sort(atoms_.begin(), atoms_.end(),
              [](const LossAtom& a, const LossAtom& b) { return a.loss < b.loss; });
  }

  double At(double u) {
    u = std::min(1.0, u * (1 + kSelectionRounding));
    while (next_ < atoms_.size() && below_ + atoms_[next_].mass <= u) {
      below_ += atoms_[next_].mass;
      chance_ += atoms_[next_].mass * std::exp(-atoms_[next_].loss);
      ++next_;
    }
    const double part = next_ < atoms_.size() ? (u - below_) * std::exp(-atoms_[next_].loss) : 0;
    return std::min(1.0, (chance_ + std::max(0.0, part)) * (1 + kSelectionRounding));
  }

 private:
  std::vector<LossAtom> atoms_;
  std::size_t next_ = 0;
  double below_ = 0;
  double chance_;
};

// What is certified about a run, as a function.
class RunProfile {
 public:
  // Pairs that depend on their use take long to make, hundreds of times.
  RunProfile(const Event& run, Effort effort)
      : run_(run),
        effort_(ReasonOfUse(run).empty() ? effort : Effort::kQuick),
        sigma_(EquivalentGaussian(run)) {
    if (!sigma_) composed_ = ShortProfile::Of(run_, effort_);
  }

  bool closed() const { return sigma_.has_value(); }

  double Epsilon(double log_delta) {
    if (sigma_) return GaussianEpsilon(1 / *sigma_, log_delta);
    const double certified = CertifiedEpsilon(run_, log_delta, effort_).value.upper;
    if (std::isfinite(certified) || log_delta == -kInfinity) return certified;
    return Curve().ToEpsilon(log_delta).epsilon;
  }

  double Delta(double epsilon) {
    if (sigma_) {
      const double mu = 1 / *sigma_;
      return std::exp(GaussianLogDelta(mu, epsilon) + GaussianLogDeltaError(mu, epsilon));
    }
    double log_delta = composed_ ? composed_->LogDelta(epsilon) : 0;
    if (!(log_delta < 0)) log_delta = CertifiedLogDelta(run_, epsilon, effort_).value.upper;
    if (!(log_delta < 0)) log_delta = Curve().ToDelta(epsilon).log_delta;
    return std::min(1.0, std::exp(log_delta) * (1 + kSelectionRounding));
  }

 private:
  RenyiCurve& Curve() {
    if (!curve_) curve_.emplace(run_);
    return *curve_;
  }

  const Event& run_;
  Effort effort_;
  std::optional<double> sigma_;
  std::optional<ShortProfile> composed_;
  std::optional<RenyiCurve> curve_;
};

// The points of a profile from epsilon 0 to `last`.
template <typename DeltaAt>
std::vector<ProfilePoint> PointsOf(double last, int count, DeltaAt delta_at) {
  std::vector<ProfilePoint> points;
  for (int i = 0; i <= count; ++i) {
    const double epsilon = last * i / count;
    points.push_back({std::expm1(epsilon), std::min(1.0, delta_at(epsilon))});
    if (last == 0) break;
  }
  return points;
}

// A pair for both directions of a run; nothing where no finite epsilon is known. Losses above the
// epsilon of log_lost count as infinite, or of a larger delta where the run has none there.
std::optional<LossPair> PairOfRun(const Event& run, double log_lost, Effort effort) {
  RunProfile profile(run, effort);
  double last = profile.Epsilon(log_lost);
  while (!(last <= kMaxSelectionEpsilon) && log_lost > -kInfinity && log_lost < -1) {
    log_lost = std::max(log_lost / 1.25, log_lost + 2);
    last = profile.Epsilon(log_lost);
  }
  if (!(last <= kMaxSelectionEpsilon)) return std::nullopt;
  const int count = profile.closed()           ? kGaussianPoints
                    : effort == Effort::kQuick ? kQuickRunPoints
                                               : kRunPoints;
  const bool pure = log_lost == -kInfinity;
  return SymmetricPair(PointsOf(last, count, [&](double epsilon) {
    return pure && epsilon == last ? 0.0 : profile.Delta(epsilon);
  }));
}

// The mass of N(0, 1) between a and b.
double NormalMass(double a, double b) {
  return a > 0 ? UpperTail(a) - UpperTail(b) : UpperTail(-b) - UpperTail(-a);
}

// The best of runs of N(first, 1) against that of runs of N(second, 1), from below.
LossPair GaussianSelection(const RunCount& runs, double first, double second) {
  LossPair pair;
  pair.q_rounding = 0x1p-46;
  const double low = std::min(first, second) - kCellReach;
  const double high = std::max(first, second) + kCellReach;
  const auto cells = static_cast<int>(std::min(1e5, (high - low) * kCellsPerDeviation));
  const double none = runs.None();
  if (none > 0) pair.atoms.push_back({0.0, none});
  double p_total = none;
  double q_total = none;
  for (int i = 0; i < cells; ++i) {
    const double a = low + (high - low) * i / cells;
    const double b = low + (high - low) * (i + 1) / cells;
    const double p = runs.Mass(UpperTail(b - first), NormalMass(a - first, b - first));
    const double q = runs.Mass(UpperTail(b - second), NormalMass(a - second, b - second));
    if (!(p >= std::numeric_limits<double>::min() && q >= std::numeric_limits<double>::min())) {
      continue;
    }
    pair.atoms.push_back({std::log(p / q), p});
    p_total += p;
    q_total += q;
  }
  pair.missing_p = std::max(0.0, 1 - p_total);
  pair.absent_q = std::max(0.0, 1 - q_total);
  return pair;
}

}  // namespace

SelectionProfile::SelectionProfile(const RunCount& runs, const LossPair& run) : run_(run) {
  BestTest test(run);
  const double ratio = std::exp(1 / kCutsPerE);
  for (double u = 0; u < 1;) {
    const double next = std::min(1.0, u == 0 ? kFirstCut : u * ratio);
    AddLine({runs.Slope(u) * (1 + kSelectionRounding),
             runs.Slope(test.At(next)) * (1 - kSelectionRounding)});
    u = next;
  }
  std::sort(run_.atoms.begin(), run_.atoms.end(),
            [](const LossAtom& a, const LossAtom& b) { return a.loss > b.loss; });
  // H(c) is 0 from the largest of these ratios on.
  double largest_ratio = 0;
  for (const Line& line : lines_) largest_ratio = std::max(largest_ratio, line.at_zero / line.fall);
  // There H is 0 but for a rounding, which more than this covers.
  constexpr double kBeyond = 1e-9;
  if (!run_.atoms.empty()) largest_loss_ = run_.atoms.front().loss;
  largest_loss_ += std::log(largest_ratio) + kBeyond;
}

// Lines come with at_zero and fall that do not rise.
void SelectionProfile::AddLine(Line line) {
  while (!lines_.empty()) {
    const Line& last = lines_.back();
    if (line.fall >= last.fall) return;  // nowhere above it
    line.from = (last.at_zero - line.at_zero) / (last.fall - line.fall);
    if (line.from > last.from) break;
    lines_.pop_back();
  }
  if (lines_.empty()) line.from = 0;
  lines_.push_back(line);
}

double SelectionProfile::Largest(double c) const {
  const auto after = std::upper_bound(lines_.begin(), lines_.end(), c,
                                      [](double at, const Line& line) { return at < line.from; });
  const Line& line = after == lines_.begin() ? lines_.front() : *std::prev(after);
  return std::max(0.0, line.at_zero - c * line.fall);
}

double SelectionProfile::Delta(double epsilon) const {
  double delta = run_.infinite_mass * Largest(0);
  for (const LossAtom& atom : run_.atoms) {
    const double more = Largest(std::exp(epsilon - atom.loss));
    if (more == 0) break;  // smaller losses have less
    delta += atom.mass * more;
  }
  return std::min(1.0, delta * (1 + kSelectionRounding));
}

DominatingPairs SelectionPairs(const RunCount& runs, const Event& run, const PairUse& use) {
  DominatingPairs pairs;
  const double mean = runs.Mean();
  const double log_asked = use.log_delta - std::log(static_cast<double>(use.count)) - kLogMargin;
  const double log_lost = log_asked - std::max(0.0, std::log(mean));
  const std::optional<LossPair> pair = PairOfRun(run, log_lost, use.effort);
  if (!pair) {
    pairs.reason = "no finite epsilon of a single run is known";
  } else {
    const SelectionProfile profile(runs, *pair);
    double last = std::min(profile.LargestLoss(), kMaxSelectionEpsilon);
    if (use.log_delta > -kInfinity) {
      // Beyond what is asked about, the profile need not be known.
      const double floor = std::exp(log_asked) + pair->infinite_mass * mean;
      double low = 0;
      for (int i = 0; i < 40; ++i) {
        const double middle = low + (last - low) / 2;
        (profile.Delta(middle) > floor ? low : last) = middle;
      }
    }
    const int count = use.effort == Effort::kQuick ? kQuickSelectionPoints : kSelectionPoints;
    pairs.upper = {SymmetricPair(
        PointsOf(last, count, [&](double epsilon) { return profile.Delta(epsilon); }))};
  }
  if (const std::optional<double> sigma = EquivalentGaussian(run); sigma && *sigma >= kMinSigma) {
    pairs.lower = {GaussianSelection(runs, 1 / *sigma, 0), GaussianSelection(runs, 0, 1 / *sigma)};
  }
  return pairs;
}

}  // namespace sordino
