#include "sordino/accounting/internal/pairs/attained_pairs.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/internal/event_kind.h"
#include "sordino/accounting/internal/pairs/outcomes.h"
#include "sordino/accounting/renyi.h"

namespace sordino {
namespace {

// Cells of a standard deviation, and how many of those the cells reach beyond the outermost centre.
constexpr double kCellsOfPlane = 12;
constexpr double kCellsOfLine = 25;
constexpr double kTailReach = 12;
// Cells of the plane that share a loss, about.
constexpr std::size_t kCellsOfAtom = 24;
// Less noise takes too many cells.
constexpr double kMinTriangleNoise = 0.1;
// Numbers of others in a batch that are told apart, and what is left out at either end.
constexpr double kMaxSizes = 4096;
constexpr double kLeftOutChance = 1e-18;

// Masses of a cell under P and Q and their difference, which is formed on its own.
struct CellMass {
  double p = 0;
  double q = 0;
  double more = 0;

  double Loss() const { return std::log1p(more / q); }
};

// A Q-mass that underflows is not zero; a loss that is too small is a lower bound still.
void AddCell(const CellMass& cell, LossPair& pair) {
  constexpr double kLeast = std::numeric_limits<double>::min();
  if (cell.p < kLeast) {
    pair.missing_p += cell.p;
    pair.absent_q += cell.q;
  } else if (cell.q < kLeast) {
    pair.atoms.push_back({std::log(cell.p) - std::log(kLeast), cell.p});
  } else {
    pair.atoms.push_back({cell.Loss(), cell.p});
  }
}

LossPair PairOfCells(const std::vector<CellMass>& cells) {
  LossPair pair;
  pair.q_rounding = 0x1p-46;
  for (const CellMass& cell : cells) AddCell(cell, pair);
  return pair;
}

// Neighbours in the order of their loss together.
std::vector<CellMass> Merged(std::vector<CellMass> cells, std::size_t together) {
  std::vector<std::pair<double, std::size_t>> order;
  order.reserve(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool known = cells[i].q > 0 && cells[i].p > 0;
    order.emplace_back(known ? cells[i].Loss() : cells[i].p > 0 ? 1e300 : -1e300, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<CellMass> merged;
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (k % together == 0) merged.emplace_back();
    const CellMass& cell = cells[order[k].second];
    merged.back().p += cell.p;
    merged.back().q += cell.q;
    merged.back().more += cell.more;
  }
  return merged;
}

// The mass of noise around zero between a and b; `above` is its upper tail.
template <typename Tail>
double NoiseBetween(Tail above, double a, double b) {
  if (a >= 0) return above(a) - above(b);
  if (b <= 0) return above(-b) - above(-a);
  return 1 - above(b) - above(-a);
}

// Masses of the cells of a line, the outermost of which are endless, around a centre.
template <typename Tail>
std::vector<double> LineMasses(Tail above, double reach, double step, double centre) {
  const auto half = static_cast<int>(std::ceil(reach / step));
  std::vector<double> masses;
  for (int i = -half; i <= half; ++i) {
    const double a = i == -half ? -kInfinity : (i - 0.5) * step;
    const double b = i == half ? kInfinity : (i + 0.5) * step;
    masses.push_back(NoiseBetween(above, a - centre, b - centre));
  }
  return masses;
}

// Noise in the plane whose two coordinates are independent: y = 0, x = (side, 1/2) and x' = (side,
// -1/2).
template <typename Tail>
LossPair TriangleInPlane(Tail above, double deviation, double reach, double side, double q) {
  const double step = deviation / kCellsOfPlane;
  const std::vector<double> across = LineMasses(above, reach, step, 0);
  const std::vector<double> across_moved = LineMasses(above, reach, step, side);
  const std::vector<double> up = LineMasses(above, reach, step, 0.5);
  const std::vector<double> down = LineMasses(above, reach, step, -0.5);
  std::vector<CellMass> cells;
  cells.reserve(across.size() * across.size());
  for (std::size_t i = 0; i < across.size(); ++i) {
    for (std::size_t j = 0; j < across.size(); ++j) {
      const double stay = (1 - q) * across[i] * across[j];
      const double x = q * across_moved[i] * up[j];
      const double other = q * across_moved[i] * down[j];
      cells.push_back({stay + x, stay + other, x - other});
    }
  }
  return PairOfCells(Merged(std::move(cells), kCellsOfAtom));
}

// Weights of P and of Q at whole numbers from `first` on.
struct CentreWeights {
  double first = 0;
  std::vector<double> p;
  std::vector<double> q;

  void AddBoth(double centre, double weight) {
    p[At(centre)] += weight;
    q[At(centre)] += weight;
  }
  void AddP(double centre, double weight) { p[At(centre)] += weight; }
  void AddQ(double centre, double weight) { q[At(centre)] += weight; }

 private:
  std::size_t At(double centre) const { return static_cast<std::size_t>(centre - first); }
};

std::optional<CentreWeights> WeightsOf(double others, double rate, double cap,
                                       const FullBatch& batch, Adjacency adjacency) {
  const boost::math::binomial_distribution<> sizes(others, rate);
  double least = std::min(cap, others + 1);
  while (least > 0 && least > cap - kMaxSizes - 1) {
    // The mass function rises up to the mean.
    if (least - 1 < others * rate && boost::math::pdf(sizes, least - 1) < kLeftOutChance) break;
    --least;
  }
  if (least <= cap - kMaxSizes - 1) return std::nullopt;
  CentreWeights weights;
  weights.first = -cap - 1;
  weights.p.assign(static_cast<std::size_t>(cap - least) + 4, 0.0);
  weights.q = weights.p;
  const bool replace = adjacency == Adjacency::kReplaceOne;
  for (double k = least; k < cap && k <= others; ++k) {
    const double weight = boost::math::pdf(sizes, k);
    weights.AddBoth(-k, weight * (1 - rate));
    weights.AddP(-k + 1, weight * rate);
    weights.AddQ(replace ? -k - 1 : -k, weight * rate);
  }
  const double enter = batch.enter * (1 - 2e-9);
  weights.AddBoth(-cap, batch.full * (1 - enter));
  weights.AddP(-cap + 2, batch.full * enter);
  weights.AddQ(adjacency == Adjacency::kZeroOut ? -cap + 1 : -cap, batch.full * enter);
  return weights;
}

}  // namespace

LossPair TriangleOfLaplace(double scale, double rate) {
  // Beyond the centres nothing changes.
  const auto above = [&](double x) { return 0.5 * std::exp(-x / scale); };
  return TriangleInPlane(above, std::clamp(scale, 0.1, 0.5), 1, 0.5, rate);
}

LossPair TriangleOfResponses(double epsilon, double rate) {
  // B reports the third value, A the first and A' the second.
  const double low = 1 / (std::exp(epsilon) + 2);
  const double high = low * std::exp(epsilon);
  const double moved = rate * low * std::expm1(epsilon);
  const double stay = (1 - rate) * low + rate * low;
  const double third = (1 - rate) * high + rate * low;
  return PairOfCells(
      {{stay + moved, stay, moved}, {stay, stay + moved, -moved}, {third, third, 0}});
}

std::optional<LossPair> TriangleOfFixedBatch(const Event& child, double rate) {
  if (const std::optional<double> sigma = EquivalentGaussian(child)) {
    if (*sigma < kMinTriangleNoise) return std::nullopt;
    return TriangleInPlane([&](double x) { return UpperTail(x / *sigma); }, *sigma,
                           kTailReach * *sigma + 1, 0.5 * std::numbers::sqrt3, rate);
  }
  return child.kind().Triangle(child, rate);
}

std::optional<TwoPairs> PushedOutPair(double others, double rate, double cap, double sigma,
                                      const FullBatch& batch, Adjacency adjacency) {
  const auto weights = WeightsOf(others, rate, cap, batch, adjacency);
  if (!weights) return std::nullopt;
  // Centres are whole numbers, and so many cells lie between two of them.
  const double per_unit = std::ceil(kCellsOfLine / sigma * std::max(1.0, 0.5 / sigma));
  const double step = 1 / per_unit;
  constexpr double kMaxCells = 400000;
  if (!(kTailReach * sigma * per_unit < kMaxCells)) return std::nullopt;
  const auto margin = static_cast<std::ptrdiff_t>(std::ceil(kTailReach * sigma * per_unit));
  const auto unit = static_cast<std::ptrdiff_t>(per_unit);
  const auto centres = std::ssize(weights->p);
  const std::ptrdiff_t count = (centres - 1) * unit + 2 * margin;
  if (static_cast<double>(count) > kMaxCells) return std::nullopt;
  // Masses of a cell by how far its lower end is from the centre; beyond the table there are none.
  const std::ptrdiff_t table = std::min(count, 3 * margin + 2 * unit);
  const auto tail = [&](double x) { return UpperTail(x / sigma); };
  std::vector<double> masses;
  for (std::ptrdiff_t i = -table; i < table; ++i) {
    const double low = static_cast<double>(i) * step;
    masses.push_back(NoiseBetween(tail, low, low + step));
  }
  std::vector<CellMass> cells(static_cast<std::size_t>(count));
  double left_p = 1;
  double left_q = 1;
  for (std::ptrdiff_t cell = 0; cell < count; ++cell) {
    CellMass& sum = cells[static_cast<std::size_t>(cell)];
    const std::ptrdiff_t low = (cell - margin - table) / unit;
    for (std::ptrdiff_t c = std::max<std::ptrdiff_t>(0, low); c < centres; ++c) {
      const std::ptrdiff_t offset = cell - margin - c * unit;
      if (offset >= table) continue;
      if (offset < -table) break;
      const double mass = masses[static_cast<std::size_t>(offset + table)];
      const double p = weights->p[static_cast<std::size_t>(c)];
      const double q = weights->q[static_cast<std::size_t>(c)];
      sum.p += p * mass;
      sum.q += q * mass;
      sum.more += (p - q) * mass;
    }
    left_p -= sum.p;
    left_q -= sum.q;
  }
  std::vector<CellMass> swapped = cells;
  for (CellMass& cell : swapped) {
    std::swap(cell.p, cell.q);
    cell.more = -cell.more;
  }
  TwoPairs pairs{PairOfCells(cells), PairOfCells(swapped)};
  // What lies beyond the cells, and the others that were left out.
  pairs.first.missing_p += std::max(0.0, left_p);
  pairs.first.absent_q += std::max(0.0, left_q);
  pairs.second.missing_p += std::max(0.0, left_q);
  pairs.second.absent_q += std::max(0.0, left_p);
  return pairs;
}

}  // namespace sordino
