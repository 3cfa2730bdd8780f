#include "sordino/accounting/internal/allocation/geometric_sum.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "sordino/accounting/internal/contour/gauss_legendre.h"

namespace sordino {
namespace {

constexpr std::size_t kPoints = 2000;
constexpr std::size_t kQuickPoints = 500;
// Relative, of a mass of one copy; errors of products and sums add up over the copies.
constexpr double kCopyError = 2e-12;

// Masses at the points, or masses and first moments of what belongs to them.
struct PointLaw {
  std::vector<double> mass;
  std::vector<double> moment;  // empty in a law from above
};

class PointSums {
 public:
  PointSums(double log_low, double log_top, std::size_t points)
      : log_low_(log_low),
        step_((log_top - log_low) / static_cast<double>(points - 1)),
        points_(points) {
    for (std::size_t d = 0; d < points; ++d) {
      const double ratio = std::exp(-step_ * static_cast<double>(d));
      const double shift = std::floor(std::log1p(ratio) / step_);
      shift_.push_back(static_cast<std::size_t>(shift));
      // The sum g (1 + ratio) between g e^{kh} and g e^{(k+1)h}.
      up_.push_back(std::clamp(
          (ratio - std::expm1(shift * step_)) / (std::exp(shift * step_) * std::expm1(step_)), 0.0,
          1.0));
    }
  }

  double Value(std::size_t j) const { return std::exp(log_low_ + step_ * static_cast<double>(j)); }

  // The ratio of one step, u standard normal: between two points its mass is split, or merged.
  PointLaw OneCopy(const GeometricRange& range, bool above) const {
    PointLaw law{std::vector<double>(points_, 0.0), {}};
    if (!above) law.moment.assign(points_, 0.0);
    const double width = step_ / range.s;
    for (std::size_t j = 0; j + 1 < points_; ++j) {
      const double u = range.low_u + width * static_cast<double>(j);
      if (!(u < range.cap_u)) break;
      const double end = std::min(width, range.cap_u - u);
      for (std::size_t k = 0; k < kLegendreNodesOfEight.size(); ++k) {
        for (const int side : {-1, 1}) {
          const double x = 0.5 * end * (1 + side * kLegendreNodesOfEight[k]);
          const double density =
              std::exp(-0.5 * (u + x) * (u + x)) / std::sqrt(2 * std::numbers::pi);
          const double mass = 0.5 * end * kLegendreWeightsOfEight[k] * density;
          const double rise = std::expm1(range.s * x);  // over the point j
          if (above) {
            const double share = std::min(1.0, rise / std::expm1(step_));
            law.mass[j] += mass * (1 - share);
            law.mass[j + 1] += mass * share;
          } else {
            law.mass[j] += mass;
            law.moment[j] += mass * (1 + rise) * Value(j);
          }
        }
      }
    }
    return law;
  }

  PointLaw Sum(const PointLaw& a, const PointLaw& b) const {
    const bool above = a.moment.empty();
    PointLaw sum{std::vector<double>(points_, 0.0), {}};
    if (!above) sum.moment.assign(points_, 0.0);
    const auto [a_low, a_high] = Support(a);
    const auto [b_low, b_high] = Support(b);
    for (std::size_t d = 0; d < points_; ++d) {
      const std::size_t low = std::min(a_low, b_low) + d;
      const std::size_t high = std::min(std::max(a_high, b_high), points_ - shift_[d] - 1);
      if (low >= high) continue;
      const double twin = d == 0 ? 0 : 1;  // a point with itself counts once
      if (above) {
        Split(a.mass.data(), b.mass.data(), {d, low, high}, twin, sum.mass.data() + shift_[d]);
      } else {
        Merge(a, b, {d, low, high}, twin, sum);
      }
    }
    return sum;
  }

  PointLaw SumOfCopies(PointLaw one, std::uint64_t count) const {
    std::vector<bool> bits;
    for (; count > 1; count /= 2) bits.push_back(count % 2 == 1);
    PointLaw sum = one;
    for (auto bit = bits.rbegin(); bit != bits.rend(); ++bit) {
      sum = Sum(sum, sum);
      if (*bit) sum = Sum(sum, one);
    }
    return sum;
  }

 private:
  struct Stretch {
    std::size_t distance;  // of the two points
    std::size_t low;       // of the larger one
    std::size_t high;
  };

  static std::pair<std::size_t, std::size_t> Support(const PointLaw& law) {
    std::size_t low = 0;
    std::size_t high = law.mass.size();
    while (low < high && law.mass[low] == 0) ++low;
    while (high > low && law.mass[high - 1] == 0) --high;
    return {low, high};
  }

  // The last point takes what is split beyond it.
  void Split(const double* a, const double* b, const Stretch& at, double twin, double* out) const {
    const double up = up_[at.distance];
    const double down = 1 - up;
    double carry = 0;
    for (std::size_t i = at.low; i < at.high; ++i) {
      const std::size_t j = i - at.distance;
      const double mass = a[i] * b[j] + twin * (a[j] * b[i]);
      out[i] += mass * down + carry;
      carry = mass * up;
    }
    out[at.high] += carry;
  }

  void Merge(const PointLaw& a, const PointLaw& b, const Stretch& at, double twin,
             PointLaw& sum) const {
    const std::size_t shift = shift_[at.distance];
    for (std::size_t i = at.low; i < at.high; ++i) {
      const std::size_t j = i - at.distance;
      sum.mass[i + shift] += a.mass[i] * b.mass[j] + twin * (a.mass[j] * b.mass[i]);
      sum.moment[i + shift] += a.moment[i] * b.mass[j] + a.mass[i] * b.moment[j] +
                               twin * (a.moment[j] * b.mass[i] + a.mass[j] * b.moment[i]);
    }
  }

  double log_low_;
  double step_;
  std::size_t points_;
  std::vector<std::size_t> shift_;
  std::vector<double> up_;
};

}  // namespace

GeometricSums SumOnPoints(std::uint64_t batches, const GeometricRange& range, Effort effort) {
  const auto t = static_cast<double>(batches);
  const double drift = 0.5 * range.s * range.s;
  const std::size_t points = effort == Effort::kQuick ? kQuickPoints : kPoints;
  const double low = range.s * range.low_u - drift;
  // Each of at most 2 log2(t) additions may move the largest sum to the next point.
  const double spare = 2 * std::log2(t) + 8;
  const double top = (range.s * range.cap_u - drift + std::log(t) - low) /
                         (1 - spare / static_cast<double>(points)) +
                     low;
  const PointSums sums(low, top, points);
  const double error = kCopyError * t;
  GeometricSums result;
  const PointLaw above = sums.SumOfCopies(sums.OneCopy(range, true), batches);
  for (std::size_t j = 0; j < points; ++j) {
    if (above.mass[j] > 0) result.upper.push_back({sums.Value(j), above.mass[j] * (1 + error)});
  }
  const PointLaw below = sums.SumOfCopies(sums.OneCopy(range, false), batches);
  for (std::size_t j = 0; j < points; ++j) {
    if (!(below.mass[j] > 0)) continue;
    result.lower.push_back({below.moment[j] / below.mass[j], below.mass[j] * (1 - error)});
  }
  std::sort(result.lower.begin(), result.lower.end(),
            [](const ValueMass& a, const ValueMass& b) { return a.value < b.value; });
  return result;
}

}  // namespace sordino
