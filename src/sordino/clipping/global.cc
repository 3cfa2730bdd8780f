// Global clipping (Bu, Wang, Dai, Su, arXiv 2106.07830): examples within a threshold Z are all
// scaled by the same factor, examples beyond it are dropped.
//
//     factor = C / Z if ||g|| <= Z, else 0,   bound C.
//
// The direction of the summed gradient is then not bent towards small gradients as by local
// clipping. By layer: C / sqrt(L) and Z / sqrt(L) for each of L layers; a layer of an example
// beyond its threshold is dropped, and the others stay. Choose Z large enough that few examples are
// beyond it; the factor makes up for it, so a larger C with the same C / Z changes nothing but the
// noise. Z follows the schedule of the clipping norm, so that the factor stays the same.
#include <ATen/ops/le.h>
#include <ATen/ops/mul.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/clipping/internal/fixed_policy.h"
#include "sordino/gradients/clipping_groups.h"

namespace sordino {
namespace {

constexpr OptionSpec kThreshold{.key = "clip-threshold",
                                .flag = "--clip-threshold",
                                .value_name = "X",
                                .help = "Gradients of a larger norm are dropped",
                                .what = "the clipping threshold",
                                .fallback = 0.0};
constexpr const OptionSpec* kGlobalOptions[] = {&kThreshold};

// Z of each group, for its C.
std::vector<double> Thresholds(const std::vector<double>& bounds, double ratio) {
  std::vector<double> values;
  for (const double bound : bounds) values.push_back(ClipNorm(bound * ratio).value());
  return values;
}

std::vector<double> CommonFactors(const std::vector<double>& bounds,
                                  const std::vector<double>& thresholds) {
  std::vector<double> values;
  for (std::size_t group = 0; group < bounds.size(); ++group) {
    const double factor = BelowBound(bounds[group]) / thresholds[group];
    if (!(factor >= std::numeric_limits<double>::min() && factor < kInfinity)) {
      throw Error(fmt::format(
          "the clipping norm {:g} over the threshold {:g} is not a normal number; bring the two "
          "nearer to each other.",
          bounds[group], thresholds[group]));
    }
    values.push_back(factor);
  }
  return values;
}

class GlobalClipping : public ClippingPolicy {
 public:
  // `ratio` is Z / C.
  GlobalClipping(ClippingGroups groups, ClipNorm clip, double ratio)
      : groups_(std::move(groups)),
        bounds_(Values(EqualBounds(groups_, clip))),
        thresholds_(Thresholds(bounds_, ratio)),
        factors_(CommonFactors(bounds_, thresholds_.values())) {}

  std::vector<std::int64_t> Groups(const std::vector<NamedParameter>& parameters) const override {
    return groups_.Assign(parameters);
  }
  at::Tensor Factors(const at::Tensor& norms) const override {
    return at::mul(factors_.OnDeviceOf(norms), at::le(norms, thresholds_.OnDeviceOf(norms)));
  }
  std::vector<double> Bounds() const override { return bounds_; }
  std::vector<double> Numbers() const override {
    std::vector<double> numbers = factors_.values();
    const std::vector<double>& thresholds = thresholds_.values();
    numbers.insert(numbers.end(), thresholds.begin(), thresholds.end());
    return numbers;
  }

 private:
  ClippingGroups groups_;
  std::vector<double> bounds_;
  GroupColumn thresholds_;
  GroupColumn factors_;
};

class Global : public ClippingComponent {
 public:
  Global(std::string_view name, std::string_view help, bool by_layer)
      : ClippingComponent({.name = name, .help = help, .options = kGlobalOptions}),
        by_layer_(by_layer) {}

  void CheckTerms(const ClippingTerms& terms, const OptionValues& options) const override {
    const double threshold = options.Number(kThreshold);
    if (threshold >= terms.clip.value() && std::isfinite(threshold)) return;
    throw Error(fmt::format(
        "global clipping needs a threshold of at least the clipping norm {}, and it is {}.",
        terms.clip.value(), threshold));
  }

  std::unique_ptr<ClippingState> Start(
      const ClippingTerms& terms, const OptionValues& options,
      const std::vector<NamedParameter>& parameters) const override {
    return MakeFixedPolicy<GlobalClipping>(
        [groups = by_layer_ ? ClippingGroups::ByLayer(parameters) : ClippingGroups::Flat(),
         ratio = options.Number(kThreshold) / terms.clip.value()](ClipNorm clip) {
          return GlobalClipping(groups, clip, ratio);
        });
  }

 private:
  bool by_layer_;
};

}  // namespace

const ClippingComponent& GlobalClippingPolicy() {
  static const Global component("global", "C/Z for n ≤ Z, else 0; Z is the threshold",
                                /*by_layer=*/false);
  return component;
}

const ClippingComponent& GlobalLayerwiseClippingPolicy() {
  static const Global component("global-layerwise",
                                "C/Z for each of L layers with n_l ≤ Z_l, else 0; Z_l = Z/√L",
                                /*by_layer=*/true);
  return component;
}

}  // namespace sordino
