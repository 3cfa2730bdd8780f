#include "sordino/accounting/allocation.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/internal/allocation/allocation_band.h"
#include "sordino/accounting/internal/allocation/allocation_knots.h"
#include "sordino/accounting/internal/allocation/geometric_sum.h"
#include "sordino/accounting/internal/rounding.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

using Direction = AllocationDirection;

// What the ranges leave out of one allocation: e^-kAllocationMargin of delta / count.
constexpr double kAllocationMargin = 12;
// The caps of neighbouring bands. Below e^kLogTinyDelta the errors of the widest band matter at
// delta itself, and the next ones follow closely.
constexpr double kBandRatio = 16;
constexpr double kCloseRatio = 2;
constexpr std::size_t kCloseBands = 3;
constexpr double kLogTinyDelta = -18;
constexpr std::size_t kMaxBands = 7;
constexpr std::size_t kMaxBandsQuick = 3;
// Points of a band's lattice.
constexpr std::size_t kSize = std::size_t{1} << 16;
constexpr std::size_t kQuickSize = std::size_t{1} << 11;
// A band whose spacing is this share of the deviation of a ratio resolves the bulk: for one
// allocation, and where the errors of many add up.
constexpr double kResolvedOnce = 0.1;
constexpr double kResolvedOften = 0.02;
// Below this noise a lattice of doubles does not hold the ratio of a step.
constexpr double kMinLatticeNoise = 0.38;
// Points at equal ratios (geometric_sum.h) help where 1 / sigma is above this, and where less than
// e^kLogFarTail counts.
constexpr double kHeavyTail = 1.25;
constexpr double kLogFarTail = -50;
// Mass at the small end of the losses that is moved to the first knot.
constexpr double kEndMass = 1e-10;
// Rounding of a value of S, relative, and so of a loss; means of runs included.
constexpr double kLossError = 1e-12;
// Rounding of a potential (a sum of products over the knots), relative.
constexpr double kPotentialError = 1e-11;

class Allocation {
 public:
  Allocation(std::uint64_t batches, double sigma, const AllocationUse& use)
      : t_(static_cast<double>(batches)),
        s_(1 / sigma),
        use_(use),
        log_lost_(std::max(
            -600.0, use.log_delta - std::log(static_cast<double>(use.count)) - kAllocationMargin)),
        low_u_(-std::max(8.0, std::sqrt(2 * (std::log(t_) - log_lost_)))),
        on_lattice_(sigma >= kMinLatticeNoise) {
    const bool heavy = s_ > kHeavyTail || log_lost_ < kLogFarTail;
    if (!on_lattice_ || heavy)
      points_ = SumOnPoints(batches, {s_, low_u_, RemoveCap()}, use.effort);
  }

  void Remove(AllocationPairs& pairs) const;
  void Add(AllocationPairs& pairs) const;

 private:
  // A law of S from above, and the mass under the first law that it leaves out.
  struct Above {
    std::vector<ValueMass> values;
    double lost = 0;
  };
  AllocationBand Band(Direction direction, double cap_u) const {
    const double exponent =
        std::clamp(-0.3 * use_.log_delta / std::sqrt(static_cast<double>(use_.count)), 2.0, 60.0);
    const std::size_t size = use_.effort == Effort::kQuick ? kQuickSize : kSize;
    return AllocationBand({t_, s_, direction, low_u_, cap_u, exponent, size});
  }
  LossPair RemoveUpper(const Knots& knots, const std::vector<Above>& above) const;
  // Of a law from below, on points whose losses are equally spaced.
  LossPair LowerOn(const Knots& knots, std::span<const ValueMass> values,
                   Direction direction) const;
  LossPair RemoveLower(const Knots& knots, const std::vector<AllocationBand>& bands) const;
  double RemoveCap() const;
  double AddCap() const;
  std::vector<AllocationBand> RemoveBands() const;

  double t_;
  double s_;
  AllocationUse use_;
  double log_lost_;
  double low_u_;
  bool on_lattice_;
  std::optional<GeometricSums> points_;  // where a lattice alone is not enough
};

// u with log(lost(u)) = log_goal, for a decreasing function.
template <typename Lost>
double SolveCap(double s, double log_goal, Lost lost) {
  double low = s;
  double high = s + 45;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    const double value = lost(middle);
    (value > 0 && std::log(value) > log_goal ? low : high) = middle;
  }
  return high;
}

double Allocation::RemoveCap() const {
  return SolveCap(s_, log_lost_,
                  [&](double u) { return UpperTail(u - s_) + (t_ - 1) * UpperTail(u); });
}

// E[(X - u)_+] <= Pr[X' > u], X' tilted, is what the cap takes from the mean of a ratio; it is to
// be small against the variance of S/t, the scale of the loss.
double Allocation::AddCap() const {
  const double variance = std::min(1.0, std::expm1(std::min(s_ * s_, 50.0)) / t_);
  return SolveCap(s_, std::log(1e-6 * variance), [&](double u) { return UpperTail(u - s_); });
}

std::vector<AllocationBand> Allocation::RemoveBands() const {
  const double deviation = std::sqrt(std::expm1(std::min(s_ * s_, 50.0)));
  const double goal = (use_.count == 1 ? kResolvedOnce : kResolvedOften) * deviation;
  const double typical =
      std::max(std::min(t_, 12 * std::sqrt(t_) * deviation), std::exp(s_ * (0.5 * s_ - 2)));
  std::vector<AllocationBand> bands;
  double cap_u = RemoveCap();
  const std::size_t most = use_.effort == Effort::kQuick ? kMaxBandsQuick : kMaxBands;
  while (bands.size() < most) {
    AllocationBand band = Band(Direction::kRemove, cap_u);
    const bool close = use_.log_delta < kLogTinyDelta && bands.size() + 1 < kCloseBands;
    // What a band loses is charged: one that loses everything bounds nothing.
    if (!bands.empty() && (band.spacing() > 0.9 * bands.back().spacing() || band.LostMass() >= 1)) {
      break;
    }
    bands.push_back(std::move(band));
    if (!close && (bands.back().spacing() <= goal || bands.back().cap() < typical)) break;
    cap_u -= std::log(close ? kCloseRatio : kBandRatio) / s_;
    if (cap_u < s_ + 1) break;  // what is left would not hold the record's own ratio
  }
  return bands;
}

// U at a knot is the best of the laws; U(0) = t.
LossPair Allocation::RemoveUpper(const Knots& knots, const std::vector<Above>& above) const {
  std::vector<PotentialPoint> points = {{0, t_, 0}};
  for (std::size_t j = 0; j < knots.size(); ++j) points.push_back({knots.values[j], t_, j});
  for (const Above& one : above) {
    const KnotLaw law = SplitBetween(knots, one.values, Direction::kRemove);
    const std::vector<double> potential =
        CallPotential(knots, law.mass, t_ * (law.beyond + one.lost));
    for (std::size_t j = 0; j < knots.size(); ++j) {
      double& value = points[j + 1].value;
      value = std::min(value, potential[j] * (1 + kPotentialError));
    }
  }
  double unused = 0;
  LossPair upper =
      PairOf(knots, MassesOfHull(knots, points, 0, &unused), Direction::kRemove, kLossError);
  upper.infinite_mass = std::min(1.0, points.back().value / t_ * (1 + 1e-9));
  return upper;
}

LossPair Allocation::LowerOn(const Knots& knots, std::span<const ValueMass> values,
                             Direction direction) const {
  std::vector<double> mass(knots.size(), 0.0);
  MergeIntoRuns(
      values, [&](std::size_t i) { return knots.values[i]; },
      direction == Direction::kRemove ? Rounding::kDown : Rounding::kUp, mass);
  return PairOf(knots, mass, direction, -kLossError);
}

// U from below as a law on the knots, with kinks between them where two bands cross.
struct CrossedLaw {
  std::vector<double> mass;
  std::vector<ValueMass> between;
};

// The larger of two potentials: that of the narrow law below their last crossing, that of the wide
// one above it.
void TakeLarger(const Knots& knots, CrossedLaw& narrow, std::vector<double> wide) {
  const std::vector<double> narrow_potential = CallPotential(knots, narrow.mass, 0);
  const std::vector<double> wide_potential = CallPotential(knots, wide, 0);
  std::size_t j = knots.size();
  while (j > 0 && narrow_potential[j - 1] <= wide_potential[j - 1]) --j;
  if (j == 0) {
    narrow = {std::move(wide), {}};
    return;
  }
  // Earlier kinks below the crossing stay on top of both; those above it are dropped.
  std::erase_if(narrow.between, [&](const ValueMass& v) { return v.value >= knots.values[j - 1]; });
  double kink = 0;
  for (std::size_t i = j; i < knots.size(); ++i) kink += narrow.mass[i] - wide[i];
  if (j < knots.size() && kink > 0) {
    const double k = knots.values[j - 1] + (narrow_potential[j - 1] - wide_potential[j - 1]) / kink;
    if (k < knots.values[j]) narrow.between.push_back({k, kink * (1 - 1e-9)});
  }
  std::copy(wide.begin() + static_cast<std::ptrdiff_t>(j), wide.end(),
            narrow.mass.begin() + static_cast<std::ptrdiff_t>(j));
}

LossPair Allocation::RemoveLower(const Knots& knots,
                                 const std::vector<AllocationBand>& bands) const {
  CrossedLaw best;
  for (std::size_t b = bands.size(); b-- > 0;) {
    std::vector<double> mass(knots.size(), 0.0);
    MergeIntoRuns(
        std::span<const ValueMass>(bands[b].Lower()),
        [&](std::size_t i) { return knots.values[i]; }, Rounding::kDown, mass);
    if (best.mass.empty()) {
      best.mass = std::move(mass);
    } else {
      TakeLarger(knots, best, std::move(mass));
    }
  }
  LossPair lower = PairOf(knots, best.mass, Direction::kRemove, -kLossError);
  for (const ValueMass& v : best.between) {
    lower.atoms.push_back({std::log(v.value / t_) - kLossError, v.mass * (v.value / t_)});
  }
  return lower;
}

// Where masses leave the range of doubles, as at an enormous reach of the loss, nothing is
// promised; the lower pair stays empty.
LossPair Unbounded() {
  LossPair pair;
  pair.infinite_mass = 1;
  return pair;
}

void Allocation::Remove(AllocationPairs& pairs) const {
  std::vector<AllocationBand> bands;
  if (on_lattice_) bands = RemoveBands();
  std::vector<Above> above;
  for (const AllocationBand& band : bands) {
    AllocationBand::UpperLaw law = band.Upper();
    above.push_back({std::move(law.values), law.beyond + band.LostMass()});
  }
  if (points_) {
    const double cap_u = RemoveCap();
    const double lost =
        UpperTail(cap_u - s_) + (t_ - 1) * UpperTail(cap_u) + t_ * UpperTail(-low_u_);
    // Widest first, as the bands are.
    above.insert(above.begin(), {points_->upper, lost * (1 + 1e-9)});
  }
  const double lost = 0.1 * std::exp(log_lost_);
  const Spread bulk = SpreadOf(above.back().values, t_, Direction::kRemove, kEndMass, 0);
  const Spread tail = SpreadOf(above.front().values, t_, Direction::kRemove, 0, lost);
  if (!std::isfinite(bulk.deviation)) {
    pairs.remove_upper = Unbounded();
    return;
  }
  const Knots knots(t_, bulk.low_loss, tail.high_loss, bulk.deviation, use_.effort);
  pairs.remove_upper = RemoveUpper(knots, above);
  if (!bands.empty()) pairs.remove_lower = RemoveLower(knots, bands);
  if (points_) pairs.remove_lower_points = LowerOn(knots, points_->lower, Direction::kRemove);
}

void Allocation::Add(AllocationPairs& pairs) const {
  std::optional<AllocationBand> band;
  if (on_lattice_) band.emplace(Band(Direction::kAdd, AddCap()));
  std::vector<Above> above;
  if (points_) {
    const double lost = t_ * (UpperTail(-low_u_) + UpperTail(RemoveCap()));
    above.push_back({points_->upper, lost * (1 + 1e-9)});
  }
  if (band) {
    AllocationBand::UpperLaw law = band->Upper();
    above.push_back({std::move(law.values), law.beyond + band->LostMass()});
  }
  const double lost = 0.1 * std::exp(log_lost_);
  Spread spread = SpreadOf(above.back().values, t_, Direction::kAdd, lost, kEndMass);
  if (!std::isfinite(spread.deviation)) {
    pairs.add_upper = Unbounded();
    return;
  }
  // log Pr[S <= k] <= log Phi((log(k/t) + s^2/2) sqrt(t) / s), the geometric mean.
  const auto geometric = [&](double k) {
    return UpperTail(-(std::log(k / t_) + 0.5 * s_ * s_) * std::sqrt(t_) / s_);
  };
  const double reach = -0.5 * s_ * s_ - std::sqrt(-2 * std::log(lost)) * s_ / std::sqrt(t_);
  if (points_) {
    spread.low_loss = SpreadOf(above.front().values, t_, Direction::kAdd, lost, kEndMass).low_loss;
  } else if (spread.low_loss <= std::log(band->spacing() / t_)) {
    spread.low_loss = reach;
  }
  spread.low_loss = std::max(reach, spread.low_loss);
  const Knots knots(t_, spread.low_loss, std::max(spread.high_loss, spread.low_loss),
                    spread.deviation, use_.effort);
  std::vector<double> potential(knots.size(), kInfinity);
  for (const Above& one : above) {
    const std::vector<double> found =
        PutPotential(knots, SplitBetween(knots, one.values, Direction::kAdd));
    for (std::size_t j = 0; j < knots.size(); ++j) {
      const double value = found[j] * (1 + kPotentialError) + one.lost * knots.values[j];
      potential[j] = std::min(potential[j], value);
    }
  }
  std::vector<PotentialPoint> points = {{0, 0, 0}};
  for (std::size_t j = 0; j < knots.size(); ++j) {
    const double k = knots.values[j];
    const double value = std::min(potential[j], k * geometric(k) * (1 + 1e-9));
    // A put's slope is a probability, at most 1.
    points.push_back({k, std::min(value, points.back().value + (k - points.back().k)), j});
  }
  double infinite = 0;
  LossPair& upper = pairs.add_upper;
  upper = PairOf(knots, MassesOfHull(knots, points, 1, &infinite), Direction::kAdd, kLossError);
  upper.infinite_mass = std::min(1.0, infinite * (1 + 1e-9));
  if (band) pairs.add_lower = LowerOn(knots, band->Lower(), Direction::kAdd);
  if (points_) pairs.add_lower_points = LowerOn(knots, points_->lower, Direction::kAdd);
}

// Masses that were rounded or dropped do not sum to one: what is missing is told.
void CountMasses(LossPair& pair) {
  CarefulSum p;
  CarefulSum q;
  p.Add(1);
  q.Add(1);
  p.Add(-pair.infinite_mass);
  for (const LossAtom& atom : pair.atoms) {
    p.Add(-atom.mass);
    q.Add(-atom.mass * std::exp(-atom.loss));
  }
  pair.missing_p = p.Total();
  pair.absent_q = q.Total();
  pair.q_rounding = 0x1p-50;  // each term is rounded by 2^-52 of itself at most
}

}  // namespace

AllocationPairs PairsOfAllocation(std::uint64_t batches, double sigma, const AllocationUse& use) {
  const Allocation allocation(batches, sigma, use);
  AllocationPairs pairs;
  allocation.Remove(pairs);
  allocation.Add(pairs);
  for (LossPair* pair : {&pairs.remove_upper, &pairs.remove_lower, &pairs.remove_lower_points,
                         &pairs.add_upper, &pairs.add_lower, &pairs.add_lower_points}) {
    CountMasses(*pair);
  }
  return pairs;
}

}  // namespace sordino
