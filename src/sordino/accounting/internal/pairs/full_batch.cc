#include "sordino/accounting/internal/pairs/full_batch.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/internal/pairs/profile_pair.h"

namespace sordino {
namespace {

// Points of a standard deviation, and how far they reach at least.
constexpr double kPointsOfNoise = 100;
constexpr double kQuickPointsOfNoise = 20;
constexpr double kLeastReach = 14;
// What is added to closed forms that are exact to about 1e-14 of their terms.
constexpr double kTermError = 1e-13;

// A Gaussian of weight constant - growth * falls in P - uQ, u = 1 + growth.
struct Term {
  double centre;
  double constant;
  double falls;
};
using Terms = std::vector<Term>;

struct Grid {
  double reach;  // in standard deviations
  double per_noise;
};

// The threshold at which the growth is zero: w = e^{t / sigma^2} is the positive root of
// up e^-kappa w^2 + middle w + down e^-kappa, kappa = 1 / (2 sigma^2).
double StartOf(const Terms& terms, double sigma) {
  double up = 0;
  double middle = 0;
  double down = 0;
  for (const Term& term : terms) {
    (term.centre > 0 ? up : term.centre < 0 ? down : middle) += term.constant;
  }
  const double kappa = 1 / (2 * sigma * sigma);
  const double root = std::sqrt(middle * middle - 4 * up * down * std::exp(-2 * kappa));
  const double log_w = middle > 0 ? std::log(-2 * down / (middle + root)) - kappa
                                  : std::log((root - middle) / (2 * up)) + kappa;
  return log_w * sigma * sigma;
}

// The points of the profile whose growth is at least `from`.
void AddPoints(const Terms& terms, double sigma, Grid grid, double from,
               std::vector<ProfilePoint>& points) {
  const auto [reach, per_noise] = grid;
  const double start = StartOf(terms, sigma);
  const auto count = static_cast<int>(reach * per_noise);
  for (int i = 0; i <= count; ++i) {
    const double t = start + reach * sigma * i / count;
    double rises = 0;
    double falls = 0;
    for (const Term& term : terms) {
      // The density at t over that of noise around zero.
      const double ratio = std::exp(term.centre * (2 * t - term.centre) / (2 * sigma * sigma));
      rises += term.constant * ratio;
      falls += term.falls * ratio;
    }
    const double growth = i == 0 && from == 0 ? 0 : rises / falls;
    if (!(growth >= from) || !std::isfinite(growth)) continue;
    double delta = 0;
    double error = 0;
    for (const Term& term : terms) {
      const double above = UpperTail((t - term.centre) / sigma);
      delta += (term.constant - growth * term.falls) * above;
      error += (std::abs(term.constant) + growth * term.falls) * above;
    }
    points.push_back({growth, std::max(0.0, delta) + kTermError * error});
  }
}

// The positive losses, from P to Q where P has the record (or not).
LossPair PositiveLosses(const NearlyFull& batch, double sigma, Adjacency adjacency,
                        bool with_record, Grid grid) {
  const double b = batch.short_by_one;
  const double tau = batch.full;
  const double out = b * (1 - batch.rate);
  const double stays = tau * (1 - batch.enter);
  const double in = b * batch.rate;
  const double pushed = tau * batch.enter;
  const double c = in + pushed;
  std::vector<ProfilePoint> points;
  const auto add = [&](const Terms& terms) { AddPoints(terms, sigma, grid, 0, points); };
  if (adjacency == Adjacency::kReplaceOne) {
    add({{1, c, 0}, {0, 0, out}, {-1, -c, c + stays}});
  } else if (adjacency == Adjacency::kZeroOut) {
    if (with_record) {
      add({{1, c, 0}, {0, -c, c + out}, {-1, 0, stays}});
    } else {
      add({{0, c, out}, {-1, -c, c + stays}});
      // Above this growth nothing is left.
      if (out > 0) points.push_back({c / out * (1 + kTermError), 0});
    }
  } else if (with_record) {
    add({{1, c, 0}, {0, -in, b}, {-1, -pushed, tau}});
  } else {
    const double turn = batch.enter / (1 - batch.enter);
    const double last = batch.rate / (1 - batch.rate);
    add({{1, pushed, stays}, {0, in, out}, {-1, -c, c}});
    points.erase(std::remove_if(points.begin(), points.end(),
                                [&](const ProfilePoint& point) { return point.growth > turn; }),
                 points.end());
    if (b > 0 && last > turn) {
      const Terms same_side = {{0, in, out}, {-1, pushed - c, stays + c}};
      AddPoints(same_side, sigma, grid, turn, points);
    }
    const double end = b > 0 ? std::max(last, turn) : turn;
    if (std::isfinite(end)) points.push_back({end * (1 + kTermError), 0});
  }
  return LossesOf(std::move(points));
}

}  // namespace

LossPair NearlyFullLosses(const NearlyFull& batch, double sigma, Adjacency adjacency, bool remove,
                          double log_lost, Effort effort) {
  const Grid grid{std::max(kLeastReach, std::sqrt(2 * std::max(0.0, -log_lost)) + 1) + 2 / sigma,
                  effort == Effort::kFull ? kPointsOfNoise : kQuickPointsOfNoise};
  LossPair pair = PositiveLosses(batch, sigma, adjacency, remove, grid);
  const LossPair other = adjacency == Adjacency::kReplaceOne
                             ? pair
                             : PositiveLosses(batch, sigma, adjacency, !remove, grid);
  double rest = batch.short_by_one + batch.full - pair.infinite_mass;
  for (const LossAtom& atom : pair.atoms) rest -= atom.mass;
  pair.absent_q = other.infinite_mass;
  for (const LossAtom& atom : other.atoms) {
    pair.atoms.push_back({-atom.loss, atom.mass * std::exp(-atom.loss)});
    rest -= pair.atoms.back().mass;
  }
  pair.atoms.push_back({0.0, std::max(0.0, rest)});
  // The two sides agree at zero to the margins of their closed forms.
  pair.q_rounding = 1e-11 * (batch.short_by_one * batch.rate + batch.full * batch.enter);
  return pair;
}

}  // namespace sordino
