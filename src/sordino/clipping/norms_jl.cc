// Norms that are estimated from random projections (DP-SGD-JL, gradients/jl_clipping.h).
//
// In each step the sensitivity of the sum holds but for the probability beta = jl-failure, which
// the plan pays for (accounting/failures.h): the mechanism of a pair of neighbours is within beta a
// step in total variation of one whose estimates never fail for the record in which they differ.
// The directions are draws of a discrete Gaussian of 2^40 steps from a stream of the run's random
// source that serves nothing else; their distance from Gaussian ones is counted as that of the
// noise is (gradient_noise.h), and rounding to the grid is within what jl_clipping.h allows for
// derivatives.
#include "sordino/gradients/jl_clipping.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/clipping/norms_component.h"
#include "sordino/noise/noise_component.h"
#include "sordino/random/discrete_gaussian.h"

namespace sordino {
namespace {

constexpr std::int64_t kMaxDirections = 4096;

constexpr OptionSpec kDirections{.key = "jl-directions",
                                 .flag = "--jl-directions",
                                 .value_name = "N",
                                 .help = "Projections of a gradient, a forward pass each",
                                 .what = "the number of directions of estimated norms",
                                 .type = OptionType::kWhole,
                                 .fallback = std::int64_t{64},
                                 .low = 1,
                                 .high = static_cast<double>(kMaxDirections),
                                 .high_open = false};
constexpr OptionSpec kFailure{
    .key = "jl-failure",
    .flag = "--jl-failure",
    .value_name = "X",
    .help = "Probability in a step that an estimate is too small, which is taken out of delta",
    .what = "the failure probability of estimated norms",
    .fallback = 1e-15,
    .low_open = true,
    .high = 0.5,
    .high_open = false};
constexpr const OptionSpec* kJlOptions[] = {&kDirections, &kFailure};

// A generator of the operating system never gives a stream twice, so the streams of a step are
// those of a secret that is drawn for it: a direction that is asked for again is the same.
class SecretDirections : public JlDirections {
 public:
  SecretDirections(RandomSource& random, std::int64_t step) {
    const auto stream = random.Stream(
        {.step = static_cast<std::uint64_t>(step), .rank = 0, .tensor = kDirectionStream});
    std::array<std::byte, SharedSecret::kBytes> bytes{};
    stream->Fill(bytes);
    secret_.emplace(bytes);
  }

  at::Tensor Draw(std::int64_t number, std::int64_t coordinates) const override {
    SORDINO_CHECK(number >= 0 && number < kMaxDirectionStreams,
                  "a step has more directions than streams");
    const auto kept = kept_.find(number);
    if (kept != kept_.end()) return kept->second;
    at::Tensor direction = Drawn(number, coordinates);
    if (kept_coordinates_ + coordinates <= kMostKept) {
      kept_.emplace(number, direction);
      kept_coordinates_ += coordinates;
    }
    return direction;
  }

 private:
  at::Tensor Drawn(std::int64_t number, std::int64_t coordinates) const {
    constexpr std::int64_t kBlock = 1 << 12;
    RandomSource source(*secret_);
    const auto stream = source.Stream(
        {.step = 0, .rank = 0, .tensor = kDirectionStream + static_cast<std::uint32_t>(number)});
    at::Tensor direction = at::empty({coordinates}, at::kDouble);
    double* const out = direction.mutable_data_ptr<double>();
    std::vector<std::int64_t> draws(kBlock);
    for (std::int64_t begin = 0; begin < coordinates; begin += kBlock) {
      const std::int64_t count = std::min(kBlock, coordinates - begin);
      gaussian_.Fill(*stream, std::span(draws).first(static_cast<std::size_t>(count)));
      for (std::int64_t i = 0; i < count; ++i) {
        out[begin + i] = static_cast<double>(draws[static_cast<std::size_t>(i)]) / kSigma;
      }
    }
    return direction;
  }

  static constexpr double kSigma = 0x1p40;
  // Coordinates in memory, 128 MiB; directions after them are drawn again for each part of a
  // batch.
  static constexpr std::int64_t kMostKept = std::int64_t{1} << 24;
  std::optional<SharedSecret> secret_;
  DiscreteGaussian gaussian_{kSigma};
  mutable std::unordered_map<std::int64_t, at::Tensor> kept_;
  mutable std::int64_t kept_coordinates_ = 0;
};

class JlStepClipper : public StepClipper {
 public:
  JlStepClipper(std::vector<NamedParameter> parameters, JlOptions options)
      : parameters_(TrainedParameters(std::move(parameters))), options_(options) {}

  BoundedSum Sum(const LossFunction& loss, const Batch& batch, const ClippingPolicy& policy,
                 std::int64_t step, RandomSource& random) override {
    const bool is_first = options_.compare && (Examples(batch) > 0 || !options_.made_up.empty());
    JlResult result =
        JlClippedSum(loss, batch, parameters_, policy, options_, SecretDirections(random, step));
    if (is_first) options_.compare = false;
    return std::move(result.sum);
  }
  const std::vector<NamedParameter>& parameters() const override { return parameters_; }
  bool LearnsFromBatches() const override { return false; }

 private:
  std::vector<NamedParameter> parameters_;
  JlOptions options_;
};

class JlStepChunks : public StepChunks {
 public:
  using StepChunks::StepChunks;

  FixedPointSum Sum(const LossFunction& loss, std::int64_t examples,
                    const std::function<std::optional<Batch>()>& next, const ClippingPolicy& policy,
                    std::int64_t step, RandomSource& random) override {
    const SecretDirections directions(random, step);
    return clipper().Sum(loss, examples, next, policy, &directions);
  }
};

class Jl : public NormsComponent {
 public:
  Jl()
      : NormsComponent({.name = "jl",
                        .help = "estimated from random projections; needs no rule for any layer",
                        .options = kJlOptions}) {}

  bool AreExact() const override { return false; }
  double Failure(double steps, double rows, double parameters,
                 const OptionValues& options) const override {
    const double draws = steps * static_cast<double>(options.Whole(kDirections)) * parameters;
    return steps * rows * options.Number(kFailure) + GaussianNoise().Distance(draws);
  }
  void Check(const OptionValues& options) const override {
    // Refuses a probability that so few directions cannot meet.
    static_cast<void>(JlSensitivityFactor(options.Whole(kDirections), options.Number(kFailure)));
  }
  void CheckMicroBatch(std::int64_t micro_batch) const override {
    if (micro_batch == 1) return;
    throw Error(fmt::format(
        "norms are estimated for single examples, and micro-batches have {}; use exact norms "
        "(--norms automatic), or no micro-batches.",
        micro_batch));
  }

  std::unique_ptr<StepClipper> Start(std::vector<NamedParameter> parameters,
                                     const GradientOptions& gradients, const SumOptions& sum,
                                     const OptionValues& options) const override {
    return std::make_unique<JlStepClipper>(std::move(parameters),
                                           JlOptionsOf(gradients, sum, options));
  }

  std::unique_ptr<StepChunks> StartChunks(const std::vector<NamedParameter>& parameters,
                                          const GradientOptions& gradients, const SumOptions& sum,
                                          const OptionValues& options) const override {
    return std::make_unique<JlStepChunks>(
        ChunkedClipper(parameters, JlOptionsOf(gradients, sum, options)));
  }

  std::string Description(const OptionValues& options) const override {
    return fmt::format("norms estimated from {} directions with failure probability {:g} a step",
                       options.Whole(kDirections), options.Number(kFailure));
  }

  std::string Assumption() const override {
    return "The norms of gradients were estimated, and gradients of all records of a batch were "
           "summed by an ordinary backward pass. That its rounding stays within the share of the "
           "sensitivity that is kept for it is assumed, not proven.";
  }

 private:
  JlOptions JlOptionsOf(const GradientOptions& gradients, const SumOptions& sum,
                        const OptionValues& options) const {
    CheckMicroBatch(sum.micro_batch);
    // An ordinary backward pass adds up in float32, which in the worst case adds more for batches
    // above 14,000.
    const double rounding =
        std::max(sum.rounding, 12 * 0x1p-24 * static_cast<double>(sum.largest_batch));
    return {.directions = options.Whole(kDirections),
            .failure_probability = Delta(options.Number(kFailure)),
            .adjacency = sum.adjacency,
            .physical_batch = gradients.physical_batch,
            .largest_batch = sum.largest_batch,
            .rounding = rounding,
            .compare = gradients.compare,
            .made_up = gradients.made_up};
  }
};

}  // namespace

const NormsComponent& EstimatedNorms() {
  static const Jl component;
  return component;
}

}  // namespace sordino
