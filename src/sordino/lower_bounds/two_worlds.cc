#include "sordino/lower_bounds/two_worlds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "sordino/accounting/gaussian.h"
#include "sordino/base/error.h"
#include "sordino/lower_bounds/binomial.h"
#include "sordino/lower_bounds/internal/equal_scores.h"

namespace sordino {
namespace {

void CheckScores(std::string_view who, const std::vector<double>& scores) {
  if (scores.empty()) {
    throw Error(fmt::format("there are no scores of {}; give at least one.", who));
  }
  if (std::any_of(scores.begin(), scores.end(), [](double score) { return std::isnan(score); })) {
    throw Error(fmt::format("a score of {} is not a number; leave such records out.", who));
  }
}

// What one threshold shows: a set that has at least `more` under one world and at most `less` under
// the other.
struct Odds {
  double more;
  double less;
};

double EpsilonOf(const Odds& odds, double delta) {
  if (!(odds.more - delta > odds.less)) return 0;
  return std::log((odds.more - delta) / odds.less);
}

double MuOf(const Odds& odds) {
  if (!(odds.more > odds.less)) return 0;
  if (odds.more >= 1 || odds.less <= 0) return kInfinity;
  return UpperQuantile(odds.less) - UpperQuantile(odds.more);
}

// The share of the orders of equal scores in which a bound must hold.
constexpr double kOrders = 0.9;

// Of the significance of a bound, what its planned threshold gets; and of that, what the chance of
// members gets: others are fewer above a threshold, and their chance is known less well.
constexpr double kPlannedShare = 0.8;
constexpr double kMemberShare = 0.4;

Odds PlannedOdds(std::int64_t members, std::int64_t above, std::int64_t others, std::int64_t rank,
                 double significance) {
  const double planned = kOrders * kPlannedShare * significance;
  return {ClopperPearsonLower(members, above, kMemberShare * planned),
          ClopperPearsonUpper(others, rank - 1, (1 - kMemberShare) * planned)};
}

double EpsilonOfMu(double mu, Delta delta) {
  if (mu <= 0) return 0;
  if (delta.value() == 0) return kInfinity;
  return std::max(0.0, GaussianEpsilon(mu, std::log(delta.value())));
}

std::vector<std::int64_t> UsualRanks(std::int64_t others) {
  std::set<std::int64_t> ranks;
  for (std::int64_t rank = 1; rank <= others; rank *= 2) {
    ranks.insert(rank);
    ranks.insert(others + 1 - rank);
  }
  return {ranks.begin(), ranks.end()};
}

// Rates of an approximation that divides by counts.
double AtLeastHalf(std::int64_t count) { return std::max(0.5, static_cast<double>(count)); }

}  // namespace

double KatzRatioLower(std::int64_t a, std::int64_t n, std::int64_t b, std::int64_t m,
                      double alpha) {
  const double hits = AtLeastHalf(a);
  const double misses = AtLeastHalf(b);
  const double variance =
      1 / hits - 1 / static_cast<double>(n) + 1 / misses - 1 / static_cast<double>(m);
  const double ratio = hits / static_cast<double>(n) / (misses / static_cast<double>(m));
  return ratio * std::exp(-UpperQuantile(alpha) * std::sqrt(std::max(0.0, variance)));
}

double BaileyRatioLower(std::int64_t a, std::int64_t n, std::int64_t b, std::int64_t m,
                        double alpha) {
  const double x = AtLeastHalf(a);
  const double y = AtLeastHalf(b);
  const double p = x / static_cast<double>(n);
  const double q = y / static_cast<double>(m);
  const double z = UpperQuantile(alpha);
  const double divisor = 1 - z * z * (1 - q) / (9 * y);
  const double inside = (1 - p) / x + (1 - q) / y - z * z * (1 - p) * (1 - q) / (9 * x * y);
  if (!(divisor > 0)) return 0;
  const double root = (1 - z * std::sqrt(std::max(0.0, inside)) / 3) / divisor;
  return root <= 0 ? 0 : p / q * root * root * root;
}

TwoWorlds::TwoWorlds(std::vector<double> members, std::vector<double> others)
    : members_(std::move(members)), others_(std::move(others)) {
  CheckScores("members", members_);
  CheckScores("others", others_);
  std::sort(members_.begin(), members_.end());
  std::sort(others_.begin(), others_.end());
}

std::int64_t TwoWorlds::MembersAbove(double threshold) const {
  return members_.end() - std::upper_bound(members_.begin(), members_.end(), threshold);
}

std::int64_t TwoWorlds::MembersFrom(double threshold) const {
  return members_.end() - std::lower_bound(members_.begin(), members_.end(), threshold);
}

double TwoWorlds::OtherFromTop(std::int64_t rank) const {
  return others_[others_.size() - static_cast<std::size_t>(rank)];
}

std::int64_t TwoWorlds::MembersAboveRank(std::int64_t rank) const {
  const double threshold = OtherFromTop(rank);
  const std::int64_t above = MembersAbove(threshold);
  const std::int64_t equal_members = MembersFrom(threshold) - above;
  if (equal_members == 0) return above;
  const auto [low, high] = std::equal_range(others_.begin(), others_.end(), threshold);
  const std::int64_t equal_others = high - low;
  const std::int64_t place = rank - (others_.end() - high);
  return above + internal::AboveInMostOrders(equal_members, equal_others, place, kOrders);
}

TwoWorlds::Bounds TwoWorlds::LowerBounds(
    Delta delta, double significance, const std::optional<std::vector<std::int64_t>>& ranks) const {
  CheckRange("the significance", significance, 0, true, 1, true);
  const auto members = std::ssize(members_);
  const auto others = std::ssize(others_);
  const std::vector<std::int64_t> looked_at = ranks ? *ranks : UsualRanks(others);
  // Two chances and two directions at each threshold; a ratio is one interval for a direction.
  const double each = kOrders * significance / (4 * static_cast<double>(looked_at.size()));
  Bounds best;
  const auto take = [&](const Odds& odds) {
    best.epsilon = std::max(best.epsilon, EpsilonOf(odds, delta.value()));
    best.mu = std::max(best.mu, MuOf(odds));
  };
  for (const std::int64_t rank : looked_at) {
    CheckRange("the rank of a threshold", static_cast<double>(rank), 1, false,
               static_cast<double>(others), false);
    const std::int64_t above = MembersAboveRank(rank);
    take({ClopperPearsonLower(members, above, each), ClopperPearsonUpper(others, rank - 1, each)});
    const std::int64_t below = members - MembersAboveRank(others + 1 - rank);
    take({ClopperPearsonLower(others, rank, each), ClopperPearsonUpper(members, below, each)});
    for (const auto& [ratio, bound] :
         {std::pair{&KatzRatioLower, &best.katz}, std::pair{&BaileyRatioLower, &best.bailey}}) {
      const double lower = std::max(ratio(above, members, rank, others, 2 * each),
                                    ratio(rank, others, below, members, 2 * each));
      *bound = std::max(*bound, lower > 0 ? std::log(lower) : 0.0);
    }
  }
  best.mu_epsilon = EpsilonOfMu(best.mu, delta);
  return best;
}

PlannedRanks PlanRanks(std::span<const PrivacyLine> claim, std::int64_t members,
                       std::int64_t others, Delta delta, double significance) {
  constexpr double kStep = 1.05;
  PlannedRanks planned;
  double epsilon = 0;
  double mu = 0;
  for (double place = 1; place <= static_cast<double>(others); place *= kStep) {
    const auto rank = static_cast<std::int64_t>(place);
    const double rate = static_cast<double>(rank) / static_cast<double>(others);
    const auto above = static_cast<std::int64_t>((1 - ProfileTradeoff(claim, rate)) *
                                                 static_cast<double>(members));
    const Odds odds = PlannedOdds(members, above, others, rank, significance);
    if (const double here = EpsilonOf(odds, delta.value()); here > epsilon) {
      epsilon = here;
      planned.epsilon = rank;
    }
    if (const double here = MuOf(odds); here > mu) {
      mu = here;
      planned.mu = rank;
    }
  }
  return planned;
}

TwoWorlds::Bounds TwoWorlds::PlannedBounds(Delta delta, double significance,
                                           const PlannedRanks& planned) const {
  Bounds best = LowerBounds(delta, (1 - kPlannedShare) * significance);
  const auto odds = [&](std::int64_t rank) {
    CheckRange("the rank of a threshold", static_cast<double>(rank), 1, false,
               static_cast<double>(others()), false);
    return PlannedOdds(members(), MembersAboveRank(rank), others(), rank, significance);
  };
  best.epsilon = std::max(best.epsilon, EpsilonOf(odds(planned.epsilon), delta.value()));
  best.mu = std::max(best.mu, MuOf(odds(planned.mu)));
  best.mu_epsilon = EpsilonOfMu(best.mu, delta);
  const std::int64_t above = MembersAboveRank(planned.epsilon);
  for (const auto& [ratio, bound] :
       {std::pair{&KatzRatioLower, &best.katz}, std::pair{&BaileyRatioLower, &best.bailey}}) {
    const double lower =
        ratio(above, members(), planned.epsilon, others(), kPlannedShare * significance);
    *bound = std::max(*bound, lower > 0 ? std::log(lower) : 0.0);
  }
  return best;
}

Estimate TwoWorlds::Area(double significance) const {
  CheckRange("the significance", significance, 0, true, 1, true);
  const auto pairs = static_cast<double>(members_.size()) * static_cast<double>(others_.size());
  double wins = 0;
  for (const double score : others_) {
    wins +=
        0.5 * (static_cast<double>(MembersAbove(score)) + static_cast<double>(MembersFrom(score)));
  }
  const double fewer = static_cast<double>(std::min(members_.size(), others_.size()));
  const double reach = std::sqrt(std::log(2 / significance) / (2 * fewer));
  const double area = wins / pairs;
  return {area, std::max(0.0, area - reach), std::min(1.0, area + reach)};
}

std::vector<std::pair<double, double>> TwoWorlds::Curve() const {
  std::vector<std::pair<double, double>> curve = {{0, 0}};
  const auto members = static_cast<double>(members_.size());
  const auto others = static_cast<double>(others_.size());
  auto member = members_.rbegin();
  auto other = others_.rbegin();
  while (member != members_.rend() || other != others_.rend()) {
    const double top = std::max(member != members_.rend() ? *member : -kInfinity,
                                other != others_.rend() ? *other : -kInfinity);
    while (member != members_.rend() && *member == top) ++member;
    while (other != others_.rend() && *other == top) ++other;
    curve.emplace_back(static_cast<double>(other - others_.rbegin()) / others,
                       static_cast<double>(member - members_.rbegin()) / members);
  }
  return curve;
}

double TwoWorlds::HullArea() const {
  std::vector<std::pair<double, double>> hull;
  for (const auto& point : Curve()) {
    const auto turns_left = [&] {
      const auto& a = hull[hull.size() - 2];
      const auto& b = hull.back();
      return (b.first - a.first) * (point.second - a.second) >=
             (b.second - a.second) * (point.first - a.first);
    };
    while (hull.size() >= 2 && turns_left()) hull.pop_back();
    hull.push_back(point);
  }
  double area = 0;
  for (std::size_t i = 1; i < hull.size(); ++i) {
    area += 0.5 * (hull[i].first - hull[i - 1].first) * (hull[i].second + hull[i - 1].second);
  }
  return area;
}

Estimate TwoWorlds::TruePositiveRate(double rate, double significance) const {
  CheckRange("the false positive rate", rate, 0, false, 1, false);
  CheckRange("the significance", significance, 0, true, 1, true);
  const auto members = std::ssize(members_);
  const auto others = std::ssize(others_);
  const double each = significance / 4;
  Estimate estimate;
  const auto allowed = static_cast<std::int64_t>(std::floor(rate * static_cast<double>(others)));
  estimate.value = allowed >= others
                       ? 1
                       : static_cast<double>(MembersAbove(OtherFromTop(allowed + 1))) /
                             static_cast<double>(members);
  // Ranks whose chance is surely below (above) the rate; bounds grow with the rank.
  std::int64_t below = 0;
  std::int64_t above = others + 1;
  for (std::int64_t low = 1, high = others; low <= high;) {
    const std::int64_t middle = low + (high - low) / 2;
    if (ClopperPearsonUpper(others, middle - 1, each) <= rate) {
      below = middle;
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  for (std::int64_t low = 1, high = others; low <= high;) {
    const std::int64_t middle = low + (high - low) / 2;
    if (ClopperPearsonLower(others, middle, each) >= rate) {
      above = middle;
      high = middle - 1;
    } else {
      low = middle + 1;
    }
  }
  if (below > 0) {
    estimate.lower = ClopperPearsonLower(members, MembersAbove(OtherFromTop(below)), each);
  }
  if (above <= others) {
    estimate.upper = ClopperPearsonUpper(members, MembersFrom(OtherFromTop(above)), each);
  }
  return estimate;
}

}  // namespace sordino
