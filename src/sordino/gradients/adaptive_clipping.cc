#include "sordino/gradients/adaptive_clipping.h"

#include <ATen/ops/le.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

std::vector<double> Below(const std::vector<double>& bounds) {
  std::vector<double> below(bounds.size());
  std::transform(bounds.begin(), bounds.end(), below.begin(), BelowBound);
  return below;
}

}  // namespace

NoiseMultiplier GradientNoiseMultiplier(NoiseMultiplier total, L2Sensitivity count_sensitivity,
                                        double count_noise) {
  CheckRange("the standard deviation of the noise on the counts", count_noise, 0, true, kInfinity,
             true);
  // The share of 1/z that the counts take. As a product of differences 1 - share^2 keeps its
  // accuracy: to 1e-12 for a share up to 0.999.
  const double share = count_sensitivity.value() / count_noise * total.value();
  if (!(share <= 0.999)) {
    const double least = count_sensitivity.value() * total.value();
    throw Error("noise of standard deviation " + FormatNumbers(count_noise) +
                " on the counts leaves nothing of a total noise multiplier of " +
                FormatNumbers(total.value()) + " for the gradients; it must be well above " +
                FormatNumbers(least) + ", and " + FormatNumbers(10 * least) +
                " costs the gradients 0.5%.");
  }
  const double rest = std::sqrt((1 - share) * (1 + share));
  return NoiseMultiplier(total.value() / rest * (1 + 1e-11));
}

AdaptiveClipping::AdaptiveClipping(ClipNorm initial, AdaptiveClippingOptions options)
    : AdaptiveClipping(ClippingGroups::Flat(), {initial}, options) {}

AdaptiveClipping::AdaptiveClipping(const std::vector<NamedParameter>& parameters,
                                   const std::vector<ClipNorm>& initial,
                                   AdaptiveClippingOptions options)
    : AdaptiveClipping(ClippingGroups::ByLayer(parameters), initial, options) {}

AdaptiveClipping::AdaptiveClipping(ClippingGroups groups, const std::vector<ClipNorm>& initial,
                                   AdaptiveClippingOptions options)
    : groups_(std::move(groups)),
      options_(options),
      bounds_(Values(initial)),
      below_(ValuesBelow(initial)) {
  groups_.CheckOneForEach("initial clipping norms", initial.size());
  CheckRange("the expected batch size", options.expected_batch, 0, true, kInfinity, true);
  CheckRange("the standard deviation of the noise on the counts", options.count_noise, 0, true,
             kInfinity, true);
  CheckRange("the target quantile", options.target_quantile, 0, false, 1, false);
  CheckRange("the learning rate of the clipping norm", options.learning_rate, 0, true, 10, false);
  for (const ClipNorm bound : initial) {
    CheckRange("an initial clipping norm", bound.value(), options.smallest.value(), false,
               options.largest.value(), false);
  }
}

std::vector<std::int64_t> AdaptiveClipping::Groups(
    const std::vector<NamedParameter>& parameters) const {
  return groups_.Assign(parameters);
}

at::Tensor AdaptiveClipping::Factors(const at::Tensor& norms) const {
  return FactorsToBound(below_, norms);
}

std::vector<double> AdaptiveClipping::Bounds() const { return bounds_.values(); }

at::Tensor AdaptiveClipping::Counts(const at::Tensor& norms) const {
  return at::le(norms, bounds_.OnDeviceOf(norms)).to(at::kDouble).sub_(0.5).sum(1);
}

double AdaptiveClipping::CountBound() const {
  return std::sqrt(static_cast<double>(groups_.size())) / 2;
}

std::string AdaptiveClipping::Description() const {
  return "adaptive clipping at " + FormatNumbers(Bounds()) + ", following the quantile " +
         FormatNumbers(options_.target_quantile) + " with noise " +
         FormatNumbers(options_.count_noise) + " on each count";
}

void AdaptiveClipping::Update(const NoisedCounts& counts) {
  SORDINO_CHECK(counts.standard_deviation() >= options_.count_noise,
                "a count carries less noise than was charged for");
  SORDINO_CHECK(counts.value().size() == groups_.size(), "one count for each clipping group");
  std::vector<double> bounds = bounds_.values();
  for (std::size_t group = 0; group < bounds.size(); ++group) {
    SORDINO_CHECK(std::isfinite(counts.value()[group]), "a noised count is finite");
    const double fraction = counts.value()[group] / options_.expected_batch + 0.5;
    const double moved =
        bounds[group] * std::exp(-options_.learning_rate * (fraction - options_.target_quantile));
    bounds[group] = std::clamp(moved, options_.smallest.value(), options_.largest.value());
  }
  Set(std::move(bounds));
}

void AdaptiveClipping::Restore(const std::vector<double>& bounds) {
  groups_.CheckOneForEach("saved clipping norms", bounds.size());
  for (const double bound : bounds) {
    CheckRange("a saved clipping norm", bound, options_.smallest.value(), false,
               options_.largest.value(), false);
  }
  Set(bounds);
}

void AdaptiveClipping::Set(std::vector<double> bounds) {
  below_ = GroupColumn(Below(bounds));
  bounds_ = GroupColumn(std::move(bounds));
}

}  // namespace sordino
