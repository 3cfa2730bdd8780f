#include "sordino/correlation/toeplitz.h"

#include <algorithm>
#include <cstddef>

#include "sordino/base/check.h"

namespace sordino {
namespace {

// Four sums at once: the recursions below wait for one addition after another otherwise.
double ReversedDot(const double* forward, const double* last, std::size_t count) {
  double a = 0;
  double b = 0;
  double c = 0;
  double d = 0;
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    a += forward[i] * *(last - i);
    b += forward[i + 1] * *(last - i - 1);
    c += forward[i + 2] * *(last - i - 2);
    d += forward[i + 3] * *(last - i - 3);
  }
  for (; i < count; ++i) a += forward[i] * *(last - i);
  return (a + b) + (c + d);
}

double ForwardDot(const double* x, const double* y, std::size_t count) {
  double a = 0;
  double b = 0;
  double c = 0;
  double d = 0;
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    a += x[i] * y[i];
    b += x[i + 1] * y[i + 1];
    c += x[i + 2] * y[i + 2];
    d += x[i + 3] * y[i + 3];
  }
  for (; i < count; ++i) a += x[i] * y[i];
  return (a + b) + (c + d);
}

}  // namespace

std::int64_t BandsOf(std::span<const double> column) {
  std::size_t bands = column.size();
  while (bands > 1 && column[bands - 1] == 0) --bands;
  return static_cast<std::int64_t>(std::max<std::size_t>(bands, 1));
}

std::vector<double> Divided(std::span<const double> series, std::span<const double> column,
                            std::int64_t steps) {
  SORDINO_CHECK(!column.empty() && column[0] == 1, "a column that does not begin with 1");
  const auto size = static_cast<std::size_t>(steps);
  const auto bands = static_cast<std::size_t>(BandsOf(column));
  std::vector<double> result(size);
  for (std::size_t t = 0; t < size; ++t) {
    const std::size_t earlier = std::min(t, bands - 1);
    const double given = t < series.size() ? series[t] : 0;
    result[t] = earlier == 0
                    ? given
                    : given - ReversedDot(column.data() + 1, result.data() + t - 1, earlier);
  }
  return result;
}

std::vector<double> InverseColumn(std::span<const double> column, std::int64_t steps) {
  const double one = 1;
  return Divided({&one, 1}, column, steps);
}

std::vector<double> DividedBack(std::span<const double> y, std::span<const double> column) {
  SORDINO_CHECK(!column.empty() && column[0] == 1, "a column that does not begin with 1");
  const std::size_t size = y.size();
  const auto bands = static_cast<std::size_t>(BandsOf(column));
  std::vector<double> result(size);
  for (std::size_t t = size; t-- > 0;) {
    const std::size_t later = std::min(size - 1 - t, bands - 1);
    result[t] =
        later == 0 ? y[t] : y[t] - ForwardDot(column.data() + 1, result.data() + t + 1, later);
  }
  return result;
}

std::vector<double> PrefixSums(std::vector<double> column) {
  double sum = 0;
  for (double& value : column) {
    sum += value;
    value = sum;
  }
  return column;
}

std::vector<double> RowNorms(std::span<const double> column) {
  std::vector<double> norms;
  norms.reserve(column.size());
  double sum = 0;
  for (const double value : column) {
    sum += value * value;
    norms.push_back(sum);
  }
  return norms;
}

std::vector<double> BinomialSeries(double power, std::int64_t steps) {
  std::vector<double> series(static_cast<std::size_t>(steps));
  double value = 1;
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (i > 0) value *= (static_cast<double>(i) - 1 - power) / static_cast<double>(i);
    series[i] = value;
  }
  return series;
}

}  // namespace sordino
