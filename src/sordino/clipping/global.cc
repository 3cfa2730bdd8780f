// Global clipping: gradients within a threshold are scaled alike, others are dropped
// (gradients/global_clipping.h). The threshold follows the schedule of the clipping norm, so that
// the factor stays the same.
#include <fmt/format.h>

#include <cmath>

#include "sordino/base/error.h"
#include "sordino/clipping/internal/fixed_policy.h"
#include "sordino/gradients/global_clipping.h"

namespace sordino {
namespace {

constexpr OptionSpec kThreshold{.key = "clip-threshold",
                                .flag = "--clip-threshold",
                                .value_name = "X",
                                .help = "Gradients of a larger norm are dropped",
                                .what = "the clipping threshold",
                                .fallback = 0.0};
constexpr const OptionSpec* kGlobalOptions[] = {&kThreshold};

class Global : public ClippingComponent {
 public:
  Global()
      : ClippingComponent({.name = "global",
                           .help = "C/Z for n ≤ Z, else 0; Z is the threshold",
                           .options = kGlobalOptions}) {}

  void CheckTerms(const ClippingTerms& terms, const OptionValues& options) const override {
    const double threshold = options.Number(kThreshold);
    if (threshold >= terms.clip.value() && std::isfinite(threshold)) return;
    throw Error(fmt::format(
        "global clipping needs a threshold of at least the clipping norm {}, and it is {}.",
        terms.clip.value(), threshold));
  }

  std::unique_ptr<ClippingState> Start(
      const ClippingTerms& terms, const OptionValues& options,
      const std::vector<NamedParameter>& /*parameters*/) const override {
    const double threshold = options.Number(kThreshold);
    return MakeFixedPolicy<GlobalClipping>([threshold, first = terms.clip](ClipNorm clip) {
      const double scheduled = clip.value() / first.value();
      return GlobalClipping(GlobalBound{clip, ClipNorm(threshold * scheduled)});
    });
  }
};

}  // namespace

const ClippingComponent& GlobalClippingPolicy() {
  static const Global component;
  return component;
}

}  // namespace sordino
