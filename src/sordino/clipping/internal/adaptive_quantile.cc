#include "sordino/clipping/internal/adaptive_quantile.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/gradients/adaptive_clipping.h"
#include "sordino/gradients/layerwise_clipping.h"
#include "sordino/gradients/saved_tensors.h"
#include "sordino/noise/gradient_noise.h"

namespace sordino {
namespace {

constexpr OptionSpec kQuantile{.key = "quantile",
                               .flag = "--quantile",
                               .value_name = "Q",
                               .help = "Share of the examples that the norm is to cover",
                               .what = "the quantile of adaptive clipping",
                               .fallback = 0.5,
                               .high = 1,
                               .high_open = false};
constexpr OptionSpec kRate{.key = "clip-rate",
                           .flag = "--clip-rate",
                           .value_name = "X",
                           .help = "How fast the norm follows the quantile",
                           .what = "the rate of adaptive clipping",
                           .fallback = 0.2,
                           .low_open = true,
                           .high = 10,
                           .high_open = false};
constexpr OptionSpec kCountNoise{
    .key = "count-noise",
    .flag = "--count-noise",
    .value_name = "X",
    .help =
        "Noise on the count of each clipping group, in examples; 0 is batch / 20 times the root "
        "of the number of groups",
    .what = "the noise on the counts of adaptive clipping",
    .fallback = 0.0};
constexpr const OptionSpec* kQuantileOptions[] = {&kQuantile, &kRate, &kCountNoise};

constexpr const char* kBounds = "clip.bounds";  // in a checkpoint

// No bound falls below this share of what it began with. Without a floor the bounds of a model that
// fits its data fall until float32 cannot round well enough for them.
constexpr double kMinShare = 1e-3;

double CountNoise(const ClippingTerms& terms, const OptionValues& options, std::int64_t groups) {
  const double given = options.Number(kCountNoise);
  return given > 0 ? given : terms.batch / 20 * std::sqrt(static_cast<double>(groups));
}

class AdaptiveQuantileState : public ClippingState {
 public:
  AdaptiveQuantileState(const AdaptiveQuantile& component, ClippingTerms terms,
                        OptionValues options, AdaptiveClipping policy)
      : component_(component),
        terms_(terms),
        options_(std::move(options)),
        policy_(std::move(policy)) {}

  const ClippingPolicy& StepPolicy(ClipNorm /*clip*/) override { return policy_; }

  const ClippingPolicy& TightestPolicy(ClipNorm /*clip*/) override {
    tightest_.emplace(policy_).Restore(
        std::vector<double>(policy_.Bounds().size(), policy_.options().smallest.value()));
    return *tightest_;
  }

  NoiseMultiplier GradientNoise(NoiseMultiplier total) const override {
    return component_.GradientNoise(total, terms_, options_, Groups());
  }

  NoisedGradients AfterNoise(NoisedGradients mean, const BoundedSum& sum, std::int64_t step,
                             RandomSource& random) override {
    SORDINO_CHECK(sum.count_sensitivity.value() <= component_.CountSensitivity(terms_, Groups()),
                  "a record can change the counts by more than was charged for");
    policy_.Update(AddCountNoise(sum, policy_.options().count_noise, step, random));
    return mean;
  }

  NamedTensors Save() const override {
    return {{kBounds, at::tensor(policy_.Bounds(), at::kDouble)}};
  }

  void Restore(SavedTensors& saved) override {
    const at::Tensor bounds = saved.Take(kBounds, {Groups()}, at::kDouble).contiguous();
    const double* const data = bounds.const_data_ptr<double>();
    policy_.Restore(std::vector<double>(data, data + Groups()));
  }

 private:
  std::int64_t Groups() const { return static_cast<std::int64_t>(policy_.Bounds().size()); }

  const AdaptiveQuantile& component_;  // lives as long as the program
  ClippingTerms terms_;
  OptionValues options_;
  AdaptiveClipping policy_;
  std::optional<AdaptiveClipping> tightest_;
};

}  // namespace

AdaptiveQuantile::AdaptiveQuantile(std::string_view name, std::string_view help)
    : ClippingComponent({.name = name, .help = help, .options = kQuantileOptions}) {}

void AdaptiveQuantile::CheckTerms(const ClippingTerms& terms,
                                  const OptionValues& /*options*/) const {
  if (terms.clip_is_scheduled) {
    throw Error(
        "adaptive clipping chooses its own norm; leave out the schedule of the clipping norm.");
  }
  if (!terms.noise_is_gaussian) {
    throw Error(
        "adaptive clipping shares its noise between gradients and counts, which needs Gaussian "
        "noise.");
  }
  if (terms.rows_per_user > 1 || terms.micro_batch != 1) {
    throw Error(
        "adaptive clipping counts records; use it without rows per user and micro-batches.");
  }
}

NoiseMultiplier AdaptiveQuantile::GradientNoise(NoiseMultiplier total, const ClippingTerms& terms,
                                                const OptionValues& options,
                                                std::int64_t groups) const {
  const double unit = CountSensitivity(terms, groups) * terms.unit_share;
  return GradientNoiseMultiplier(total, L2Sensitivity(unit), CountNoise(terms, options, groups));
}

double AdaptiveQuantile::CountSensitivity(const ClippingTerms& terms, std::int64_t groups) const {
  const double records = terms.adjacency == Adjacency::kReplaceOne ? 2 : 1;
  // As much more as a BoundedSum rounds its own upwards.
  return std::sqrt(static_cast<double>(groups)) / 2 * records * (1 + 1e-12);
}

std::unique_ptr<ClippingState> AdaptiveQuantile::StartWith(
    const ClippingTerms& terms, const OptionValues& options,
    const std::vector<NamedParameter>& parameters, const ClippingGroups& groups) const {
  const std::vector<ClipNorm> initial = EqualBounds(groups, terms.clip);
  AdaptiveClippingOptions policy_options{
      .expected_batch = terms.batch,
      .count_noise = CountNoise(terms, options, static_cast<std::int64_t>(groups.size())),
      .target_quantile = options.Number(kQuantile),
      .learning_rate = options.Number(kRate)};
  policy_options.smallest = ClipNorm(kMinShare * initial.front().value());
  policy_options.largest =
      ClipNorm(std::max(policy_options.largest.value(), initial.front().value()));
  AdaptiveClipping policy = groups.layers().empty()
                                ? AdaptiveClipping(terms.clip, policy_options)
                                : AdaptiveClipping(parameters, initial, policy_options);
  return std::make_unique<AdaptiveQuantileState>(*this, terms, options, std::move(policy));
}

}  // namespace sordino
