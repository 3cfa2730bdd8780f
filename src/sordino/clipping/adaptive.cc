#include "sordino/clipping/adaptive.h"

#include <ATen/ops/le.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/clipping/clipping_component.h"
#include "sordino/gradients/saved_tensors.h"
#include "sordino/noise/gradient_noise.h"

namespace sordino {

NoiseMultiplier GradientNoiseMultiplier(NoiseMultiplier total, L2Sensitivity count_sensitivity,
                                        double count_noise) {
  CheckRange("the standard deviation of the noise on the counts", count_noise, 0, true, kInfinity,
             true);
  // The share of 1/z that the counts take. As a product of differences 1 - share^2 keeps its
  // accuracy: to 1e-12 for a share up to 0.999.
  const double share = count_sensitivity.value() / count_noise * total.value();
  if (!(share <= 0.999)) {
    const double least = count_sensitivity.value() * total.value();
    throw Error(fmt::format(
        "noise of standard deviation {:g} on the counts leaves nothing of a total noise multiplier "
        "of {:g} for the gradients; it must be well above {:g}, and {:g} costs the gradients 0.5%.",
        count_noise, total.value(), least, 10 * least));
  }
  const double rest = std::sqrt((1 - share) * (1 + share));
  return NoiseMultiplier(total.value() / rest * (1 + 1e-11));
}

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
  bounds_ = GroupColumn(bounds);
  std::transform(bounds.begin(), bounds.end(), bounds.begin(), BelowBound);
  below_ = GroupColumn(std::move(bounds));
}

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

// With one clipping group or one for each layer.
class AdaptiveQuantile : public ClippingComponent {
 public:
  AdaptiveQuantile(std::string_view name, std::string_view help, bool by_layer)
      : ClippingComponent({.name = name, .help = help, .options = kQuantileOptions}),
        by_layer_(by_layer) {}

  void CheckTerms(const ClippingTerms& terms, const OptionValues& /*options*/) const override {
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

  // z_g of adaptive.h, in the unit of the event.
  NoiseMultiplier GradientNoise(NoiseMultiplier total, const ClippingTerms& terms,
                                const OptionValues& options, std::int64_t groups) const override {
    const double unit = CountSensitivity(terms, groups) * terms.unit_share;
    return GradientNoiseMultiplier(total, L2Sensitivity(unit), CountNoise(terms, options, groups));
  }

  // How far the counts of neighbours are apart: a record adds 1/2 to the count of each group, and
  // under replace-one they differ twice as much.
  double CountSensitivity(const ClippingTerms& terms, std::int64_t groups) const {
    const double records = terms.adjacency == Adjacency::kReplaceOne ? 2 : 1;
    // As much more as a BoundedSum rounds its own upwards.
    return std::sqrt(static_cast<double>(groups)) / 2 * records * (1 + 1e-12);
  }

  std::unique_ptr<ClippingState> Start(
      const ClippingTerms& terms, const OptionValues& options,
      const std::vector<NamedParameter>& parameters) const override;

 private:
  bool by_layer_;
};

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

std::unique_ptr<ClippingState> AdaptiveQuantile::Start(
    const ClippingTerms& terms, const OptionValues& options,
    const std::vector<NamedParameter>& parameters) const {
  ClippingGroups groups = by_layer_ ? ClippingGroups::ByLayer(parameters) : ClippingGroups::Flat();
  const std::vector<ClipNorm> initial = EqualBounds(groups, terms.clip);
  AdaptiveClippingOptions policy_options{
      .expected_batch = terms.batch,
      .count_noise = CountNoise(terms, options, static_cast<std::int64_t>(groups.size())),
      .target_quantile = options.Number(kQuantile),
      .learning_rate = options.Number(kRate)};
  policy_options.smallest = ClipNorm(kMinShare * initial.front().value());
  policy_options.largest =
      ClipNorm(std::max(policy_options.largest.value(), initial.front().value()));
  return std::make_unique<AdaptiveQuantileState>(
      *this, terms, options, AdaptiveClipping(std::move(groups), initial, policy_options));
}

}  // namespace

const ClippingComponent& AdaptiveClippingPolicy() {
  static const AdaptiveQuantile component(
      "adaptive", "min(1, C/n), C follows a quantile of the norms", /*by_layer=*/false);
  return component;
}

const ClippingComponent& AdaptiveLayerwiseClippingPolicy() {
  static const AdaptiveQuantile component(
      "adaptive-layerwise", "min(1, C_l/n_l) for each layer, each C_l follows a quantile",
      /*by_layer=*/true);
  return component;
}

}  // namespace sordino
