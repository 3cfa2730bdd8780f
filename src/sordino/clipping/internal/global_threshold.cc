#include "sordino/clipping/internal/global_threshold.h"

#include <fmt/format.h>

#include <cmath>

#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr OptionSpec kThreshold{.key = "clip-threshold",
                                .flag = "--clip-threshold",
                                .value_name = "X",
                                .help = "Gradients of a larger norm are dropped",
                                .what = "the clipping threshold",
                                .fallback = 0.0};
constexpr const OptionSpec* kGlobalOptions[] = {&kThreshold};

}  // namespace

GlobalThreshold::GlobalThreshold(std::string_view name, std::string_view help)
    : ClippingComponent({.name = name, .help = help, .options = kGlobalOptions}) {}

void GlobalThreshold::CheckTerms(const ClippingTerms& terms, const OptionValues& options) const {
  const double threshold = options.Number(kThreshold);
  if (threshold >= terms.clip.value() && std::isfinite(threshold)) return;
  throw Error(fmt::format(
      "global clipping needs a threshold of at least the clipping norm {}, and it is {}.",
      terms.clip.value(), threshold));
}

double GlobalThreshold::Ratio(const ClippingTerms& terms, const OptionValues& options) {
  return options.Number(kThreshold) / terms.clip.value();
}

}  // namespace sordino
