#include "sordino/correlation/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/quantity.h"
#include "sordino/correlation/toeplitz.h"

namespace sordino {
namespace {

// Pairs of steps that a dynamic programme may look at.
constexpr double kMaxPairs = 1e8;

std::size_t Size(std::int64_t number) { return static_cast<std::size_t>(number); }

// The square root of a sum of `terms` numbers >= 0, whose own relative error is below as many
// units.
double RootRoundedUp(double square, double terms) {
  return std::sqrt(square) * (1 + (terms + 8) * std::numeric_limits<double>::epsilon());
}

void CheckFinite(std::span<const double> values) {
  for (const double value : values) {
    if (!std::isfinite(value)) {
      throw Error("a matrix of correlated noise holds a number that is not finite.");
    }
  }
}

// The best pattern where only neighbours overlap: best[i] is that of so many participations whose
// last one is step i. overlap(j, i) for i - separation >= j >= i - reach is G_ij, 0 beyond.
double BestChain(std::span<const double> norms, std::int64_t reach,
                 const std::function<double(std::size_t, std::size_t)>& overlap,
                 const Participation& participation) {
  const std::size_t steps = norms.size();
  const std::size_t separation = Size(participation.separation);
  std::vector<double> best(norms.begin(), norms.end());
  double result = *std::max_element(best.begin(), best.end());
  for (std::int64_t taken = 2; taken <= participation.Fitting(); ++taken) {
    std::vector<double> next(steps, -kInfinity);
    double far = -kInfinity;  // the best of those that step i does not overlap
    for (std::size_t i = separation; i < steps; ++i) {
      const std::size_t first = i >= Size(reach) ? i - Size(reach) + 1 : 0;
      if (i >= Size(reach)) far = std::max(far, best[i - Size(reach)]);
      double before = far;
      for (std::size_t j = first; j + separation <= i; ++j) {
        before = std::max(before, best[j] + 2 * overlap(j, i));
      }
      next[i] = norms[i] + before;
    }
    best = std::move(next);
    result = std::max(result, *std::max_element(best.begin(), best.end()));
  }
  return result;
}

// Steps 0, b, 2b, ... of a Toeplitz matrix.
double EvenlySpaced(std::span<const double> column, const Participation& participation) {
  const std::size_t steps = Size(participation.steps);
  const std::size_t separation = Size(participation.separation);
  const std::size_t span = separation * Size(participation.Fitting());
  const auto at = [&](std::size_t t) { return t < column.size() ? column[t] : 0.0; };
  // Row t has the coefficients t, t - b, ..., one for each participation up to t: those of row
  // t - b and one more, without one that is now more than count participations ago. Differences
  // would lose digits, so rows beyond that are added up.
  std::vector<double> sums(steps);
  double square = 0;
  for (std::size_t t = 0; t < steps; ++t) {
    if (t < separation) {
      sums[t] = at(t);
    } else if (t < span) {
      sums[t] = sums[t - separation] + at(t);
    } else {
      for (std::size_t s = t - span + separation; s <= t; s += separation) sums[t] += at(s);
    }
    square += sums[t] * sums[t];
  }
  return square;
}

std::vector<double> ColumnNorms(std::span<const double> column, std::size_t steps) {
  std::vector<double> norms(steps);
  double sum = 0;
  for (std::size_t rows = 1; rows <= steps; ++rows) {
    if (rows <= column.size()) sum += column[rows - 1] * column[rows - 1];
    norms[steps - rows] = sum;
  }
  return norms;
}

// Neighbours overlap, and no others.
std::optional<double> ToeplitzChain(std::span<const double> column,
                                    const Participation& participation) {
  const std::size_t steps = Size(participation.steps);
  const std::size_t bands = column.size();
  const std::size_t separation = Size(participation.separation);
  if (bands > 2 * separation) return std::nullopt;
  const double pairs = static_cast<double>(steps) * static_cast<double>(bands - separation);
  if (pairs * static_cast<double>(participation.Fitting()) > kMaxPairs) return std::nullopt;
  // gram[d - separation][rows]: the sum of c_s c_{s+d} over the rows that columns j and j + d
  // share.
  std::vector<std::vector<double>> gram;
  for (std::size_t d = separation; d < bands; ++d) {
    std::vector<double> sums(bands - d + 1, 0.0);
    for (std::size_t s = 0; s + d < bands; ++s) sums[s + 1] = sums[s] + column[s] * column[s + d];
    gram.push_back(std::move(sums));
  }
  const auto overlap = [&](std::size_t j, std::size_t i) {
    const std::vector<double>& sums = gram[i - j - separation];
    return std::abs(sums[std::min(sums.size() - 1, steps - i)]);
  };
  return BestChain(ColumnNorms(column, steps), static_cast<std::int64_t>(bands), overlap,
                   participation);
}

bool FallsFrom(std::span<const double> column) {
  double before = kInfinity;
  for (const double value : column) {
    if (value < 0 || value > before) return false;
    before = value;
  }
  return true;
}

std::vector<double> Majorant(std::span<const double> column) {
  std::vector<double> result(column.begin(), column.end());
  double largest = 0;
  for (std::size_t t = result.size(); t-- > 0;) {
    largest = std::max(largest, std::abs(result[t]));
    result[t] = largest;
  }
  return result;
}

// How far apart columns still overlap, plus 1.
std::int64_t GramReach(const std::vector<std::vector<double>>& gram) {
  std::size_t reach = 1;
  for (std::size_t i = 0; i < gram.size(); ++i) {
    for (std::size_t j = 0; j + reach <= i; ++j) {
      if (gram[i][j] != 0) reach = i - j + 1;
    }
  }
  return static_cast<std::int64_t>(reach);
}

}  // namespace

double BestPattern(std::span<const double> values, const Participation& participation) {
  SORDINO_CHECK(values.size() == Size(participation.steps), "values of other steps");
  const std::size_t steps = values.size();
  const std::size_t separation = Size(participation.separation);
  // best[t]: the best of at most so many participations in steps t, t + 1, ...
  std::vector<double> best(steps + 1, 0.0);
  for (std::int64_t taken = 0; taken < participation.Fitting(); ++taken) {
    std::vector<double> next(steps + 1, 0.0);
    for (std::size_t t = steps; t-- > 0;) {
      const double later = t + separation < steps ? best[t + separation] : 0;
      next[t] = std::max(next[t + 1], values[t] + later);
    }
    best = std::move(next);
  }
  return best[0];
}

SensitivityBound ToeplitzSensitivity(std::span<const double> column,
                                     const Participation& participation) {
  participation.Check();
  CheckFinite(column);
  const auto steps = Size(participation.steps);
  column = column.first(std::min({column.size(), steps, Size(BandsOf(column))}));
  const auto bands = static_cast<std::int64_t>(column.size());
  // Sums over rows, over participations in a row, and the recursion that made the coefficients.
  const double terms = static_cast<double>(participation.steps) * 2 +
                       static_cast<double>(participation.Fitting()) * 4;
  if (participation.Fitting() == 1 || bands <= participation.separation) {
    const std::vector<double> norms = ColumnNorms(column, steps);
    double square = 0;
    for (std::int64_t i = 0; i < participation.Fitting(); ++i) {
      square += norms[Size(i * participation.separation)];
    }
    return {RootRoundedUp(square, terms), true};
  }
  if (FallsFrom(column)) return {RootRoundedUp(EvenlySpaced(column, participation), terms), true};
  if (const std::optional<double> chain = ToeplitzChain(column, participation)) {
    return {RootRoundedUp(*chain, terms), true};
  }
  const auto count = static_cast<double>(participation.Fitting());
  const double square = std::min(EvenlySpaced(Majorant(column), participation),
                                 count * count * ColumnNorms(column, steps)[0]);
  return {RootRoundedUp(square, terms), false};
}

SensitivityBound GramSensitivity(const std::vector<std::vector<double>>& gram,
                                 const Participation& participation) {
  const std::size_t steps = gram.size();
  // Inner products of numbers of both signs: their errors add up to steps * count units of the sum.
  const double terms =
      static_cast<double>(steps) * static_cast<double>(participation.Fitting() + 4);
  std::vector<double> norms;
  for (std::size_t i = 0; i < steps; ++i) norms.push_back(gram[i][i]);
  const std::int64_t reach = GramReach(gram);
  if (participation.Fitting() == 1 || reach <= participation.separation) {
    return {RootRoundedUp(BestPattern(norms, participation), terms), true};
  }
  if (reach <= 2 * participation.separation) {
    const auto overlap = [&gram](std::size_t j, std::size_t i) { return gram[i][j]; };
    return {RootRoundedUp(BestChain(norms, reach, overlap, participation), terms), true};
  }
  std::vector<double> largest;
  for (const std::vector<double>& row : gram) largest.push_back(BestPattern(row, participation));
  return {RootRoundedUp(BestPattern(largest, participation), terms), false};
}

SensitivityBound MatrixSensitivity(const std::vector<std::vector<double>>& rows,
                                   const Participation& participation) {
  participation.Check();
  if (participation.steps > kMaxMatrixSteps) {
    throw Error(fmt::format(
        "a matrix of {} steps; the sensitivity of a matrix that is not Toeplitz is computed for at "
        "most {}.",
        participation.steps, kMaxMatrixSteps));
  }
  const std::size_t steps = Size(participation.steps);
  std::vector<std::vector<double>> gram(steps, std::vector<double>(steps, 0.0));
  for (const std::vector<double>& row : rows) {
    if (row.size() != steps) {
      throw Error(fmt::format("a matrix has a row of {} numbers for {} steps; give as many.",
                              row.size(), steps));
    }
    CheckFinite(row);
    for (std::size_t i = 0; i < steps; ++i) {
      if (row[i] == 0) continue;
      for (std::size_t j = 0; j < steps; ++j) gram[i][j] += row[i] * row[j];
    }
  }
  for (std::vector<double>& row : gram) {
    for (double& value : row) value = std::abs(value);
  }
  return GramSensitivity(gram, participation);
}

}  // namespace sordino
