#include "sordino/training/privacy_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "sordino/accounting/calibration.h"
#include "sordino/accounting/failures.h"
#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/gradients/adaptive_clipping.h"
#include "sordino/random/bernoulli.h"

namespace sordino {
namespace {

constexpr std::array<std::string_view, 5> kClippingNames = {"flat", "layerwise", "global",
                                                            "automatic", "adaptive"};
constexpr std::array<std::string_view, 2> kNoiseNames = {"gaussian", "laplace"};

constexpr double kOverflowProbability = 0x1p-80;  // of one Poisson batch
constexpr double kMostParameters = 0x1p36;
constexpr std::int64_t kMostRecords = std::int64_t{1} << 40;
constexpr std::int64_t kMostRowsPerUser = 1000;

void Require(bool condition, const std::string& sentence) {
  if (!condition) throw Error(sentence);
}

// A schedule of a privacy quantity must stay positive: the factor of every step is looked at once.
void CheckSchedule(const Schedule& schedule, std::string_view what, std::int64_t steps) {
  if (schedule.IsConstant()) return;
  for (std::int64_t step = 0; step < steps; ++step) {
    Require(schedule.Factor(step, steps) > 0,
            fmt::format("the schedule '{}' of the {} reaches 0 at step {}; it must stay positive, "
                        "for example linear:0.1.",
                        schedule.ToString(), what, step));
  }
}

void CheckNumbers(const PlanOptions& o) {
  Require(
      o.steps >= 1 && o.steps <= kMostPlanSteps,
      fmt::format("the number of steps is {}; it must be from 1 to {}.", o.steps, kMostPlanSteps));
  Require(o.records >= 0 && o.records <= kMostRecords,
          fmt::format("the number of records is {}; it must be from 1 to 2^40.", o.records));
  Require(std::isfinite(o.batch) && o.batch > 0,
          fmt::format("the batch size is {}; it must be positive: give a batch, or a rate and the "
                      "number of records.",
                      o.batch));
  Require(o.rows_per_user >= 0 && o.rows_per_user <= kMostRowsPerUser,
          fmt::format("rows per user is {}; it must be from 1 to {}.", o.rows_per_user,
                      kMostRowsPerUser));
  Require(o.micro_batch >= 1,
          fmt::format("the micro-batch is {}; it must be at least 1.", o.micro_batch));
}

void CheckSampling(const PlanOptions& o) {
  switch (o.sampling) {
    case SamplingKind::kPoisson:
      Require(o.rate.has_value(),
              "Poisson sampling needs its rate: declare the number of records (which makes it "
              "public), or give the rate.");
      Require(o.rate->value() > 0, "the sampling rate is 0; it must be positive.");
      Require(o.micro_batch == 1,
              fmt::format("micro-batches of {} with Poisson sampling have no bounded sensitivity "
                          "(a record that is not drawn moves all later ones); use fixed-size or "
                          "full batches.",
                          o.micro_batch));
      return;
    case SamplingKind::kFixedSize:
      Require(o.records > 0, "fixed-size batches need the number of records; declare it.");
      Require(o.adjacency == Adjacency::kReplaceOne,
              fmt::format("fixed-size batches are accounted under replace-one only, and the "
                          "adjacency is {}; use replace-one, or Poisson sampling.",
                          AdjacencyName(o.adjacency)));
      Require(o.batch == std::floor(o.batch) && o.batch <= static_cast<double>(o.records),
              fmt::format("the batch is {}; with fixed-size batches it must be a whole number of "
                          "the {} records.",
                          o.batch, o.records));
      break;
    case SamplingKind::kFullBatch:
      Require(o.records > 0, "full batches need the number of records; declare it.");
      break;
  }
  Require(o.rate_schedule.IsConstant(),
          fmt::format("a schedule of the sampling rate needs Poisson sampling, and the sampling is "
                      "{}.",
                      SamplingName(o.sampling)));
}

void CheckCombinations(const PlanOptions& o) {
  if (o.rows_per_user > 1) {
    Require(o.sampling != SamplingKind::kFixedSize && o.adjacency != Adjacency::kReplaceOne &&
                o.noise == NoiseKind::kGaussian && o.micro_batch == 1,
            "a guarantee for users with several rows needs Gaussian noise, Poisson or full batches "
            "without micro-batches, and the adjacency add-remove or zero-out; use these, or one "
            "row per user.");
  }
  if (o.clipping == ClippingKind::kGlobal) {
    Require(o.clip_threshold >= o.clip.value() && std::isfinite(o.clip_threshold),
            fmt::format("global clipping needs a threshold of at least the clipping norm {}, and "
                        "it is {}.",
                        o.clip.value(), o.clip_threshold));
  } else {
    Require(o.clip_threshold == 0, "a clipping threshold is for global clipping only.");
  }
  if (o.clipping == ClippingKind::kAdaptive) {
    Require(o.clip_schedule.IsConstant(),
            "adaptive clipping chooses its own norm; leave out the schedule of the clipping norm.");
    Require(o.noise == NoiseKind::kGaussian,
            "adaptive clipping shares its noise between gradients and counts, which needs Gaussian "
            "noise.");
    Require(o.rows_per_user <= 1 && o.micro_batch == 1,
            "adaptive clipping counts records; use it without rows per user and micro-batches.");
  }
}

PlanOptions Checked(PlanOptions options) {
  if (options.sampling == SamplingKind::kFullBatch && options.batch == 0) {
    options.batch = static_cast<double>(options.records);
  }
  if (options.sampling == SamplingKind::kPoisson && options.records > 0) {
    const auto records = static_cast<double>(options.records);
    if (options.rate.has_value() && options.batch == 0) {
      options.batch = options.rate->value() * records;
    } else if (!options.rate.has_value() && options.batch > 0) {
      Require(options.batch <= records,
              fmt::format("the batch of {} is larger than the {} records; give at most that many, "
                          "or use full batches.",
                          options.batch, options.records));
      options.rate = SamplingRate(options.batch / records);
    }
  }
  CheckNumbers(options);
  CheckSampling(options);
  CheckCombinations(options);
  CheckSchedule(options.noise_schedule, "noise", options.steps);
  CheckSchedule(options.clip_schedule, "clipping norm", options.steps);
  CheckSchedule(options.rate_schedule, "sampling rate", options.steps);
  if (options.clipping == ClippingKind::kAdaptive && options.count_noise == 0) {
    options.count_noise = options.batch / 20;
  }
  return options;
}

// The least m with P[Binomial(n, q) > m] <= 2^-80 for every n q = mean, by Chernoff's bound
// exp(-mean h(m / mean - 1)), h(u) = (1 + u) log(1 + u) - u.
std::int64_t PoissonQuantile(double mean) {
  const double wanted = -std::log(kOverflowProbability);
  const auto exponent = [&](double m) { return m * std::log(m / mean) - m + mean; };
  double low = mean;
  double high = mean + 1;
  while (exponent(high) < wanted) high += high - low;
  while (high - low > 0.5) {
    const double middle = (low + high) / 2;
    (exponent(middle) < wanted ? low : high) = middle;
  }
  return static_cast<std::int64_t>(std::ceil(high));
}

Event UserEvent(const PlanOptions& options, NoiseMultiplier noise, SamplingRate rate) {
  const auto k = static_cast<double>(options.rows_per_user);
  if (options.sampling == SamplingKind::kFullBatch) {
    return Event::Gaussian(NoiseMultiplier(noise.value() / k), options.adjacency);
  }
  // P[i of the k rows are drawn]; what is left after rounding goes to i = 0, the least shift, after
  // the others were rounded up.
  std::vector<std::pair<double, double>> parts;
  const double q = rate.value();
  double drawn = 0;
  for (std::int64_t i = 1; i <= options.rows_per_user; ++i) {
    const auto count = static_cast<double>(i);
    const double log_choose =
        std::lgamma(k + 1) - std::lgamma(count + 1) - std::lgamma(k - count + 1);
    const double log_rest = i == options.rows_per_user ? 0 : (k - count) * std::log1p(-q);
    const double probability =
        std::min(1 - drawn, std::exp(log_choose + count * std::log(q) + log_rest) * (1 + 1e-12));
    if (probability <= 0) continue;
    parts.emplace_back(count, probability);
    drawn += probability;
  }
  if (drawn < 1) parts.emplace_back(0, 1 - drawn);
  return Event::MixtureGaussian(noise, parts, options.adjacency);
}

// Everything that is not the event itself, over all steps.
double FailureProbability(const PlanOptions& options, double steps) {
  if (steps == 0) return 0;
  const double overflow =
      options.sampling == SamplingKind::kPoisson ? steps * kOverflowProbability : 0;
  // Discrete Laplace noise is exact.
  if (options.noise == NoiseKind::kLaplace) return overflow;
  return overflow + NoiseDistance(steps * kMostParameters);
}

}  // namespace

std::string_view ClippingName(ClippingKind kind) {
  return kClippingNames[static_cast<std::size_t>(kind)];
}

ClippingKind ParseClipping(std::string_view name) {
  return static_cast<ClippingKind>(IndexOfName("the clipping", name, kClippingNames));
}

std::string_view NoiseName(NoiseKind kind) { return kNoiseNames[static_cast<std::size_t>(kind)]; }

NoiseKind ParseNoise(std::string_view name) {
  return static_cast<NoiseKind>(IndexOfName("the kind of noise", name, kNoiseNames));
}

PrivacyPlan::PrivacyPlan(const PlanOptions& options, NoiseMultiplier noise, Delta delta)
    : options_(Checked(options)), noise_(noise), delta_(delta) {
  if (options_.clipping == ClippingKind::kAdaptive) {
    // Refused here rather than at the first step, when records were touched.
    for (const std::int64_t step : {std::int64_t{0}, options_.steps - 1}) {
      static_cast<void>(GradientNoise(step, 1));
    }
  }
}

std::optional<PrivacyPlan> PrivacyPlan::ForBudget(const PlanOptions& options,
                                                  sordino::Epsilon epsilon, Delta delta) {
  const PlanOptions checked = Checked(options);
  PlanOptions without_counts = checked;
  without_counts.clipping = ClippingKind::kFlat;
  without_counts.clip_threshold = 0;
  const auto event_of = [&](NoiseMultiplier noise) {
    return PrivacyPlan(without_counts, noise, delta).event();
  };
  for (const double share : kFailureShares) {
    const double failure = FailureProbability(checked, static_cast<double>(checked.steps));
    if (!FailuresArePaid(failure, epsilon, delta.value() * share)) continue;
    const std::optional<NoiseCalibration> found =
        CalibrateNoise(event_of, epsilon, DeltaForEvents(delta, share));
    if (!found.has_value()) return std::nullopt;
    return PrivacyPlan(checked, found->noise, delta);
  }
  return std::nullopt;
}

Event PrivacyPlan::StepEvent(std::int64_t step) const {
  const NoiseMultiplier noise = StepNoise(step);
  if (options_.rows_per_user > 1) {
    return UserEvent(
        options_, noise,
        options_.sampling == SamplingKind::kPoisson ? StepRate(step) : SamplingRate(1));
  }
  const Event release =
      options_.noise == NoiseKind::kGaussian
          ? Event::Gaussian(noise, options_.adjacency)
          : Event::Pure(sordino::Epsilon((1 / noise.value()) * (1 + 0x1p-50)), options_.adjacency);
  switch (options_.sampling) {
    case SamplingKind::kPoisson:
      return Event::Poisson(StepRate(step), release);
    case SamplingKind::kFixedSize:
      return Event::Fixed(StepRate(step), release);
    case SamplingKind::kFullBatch:
      break;
  }
  return release;
}

Event PrivacyPlan::EventOf(std::int64_t steps) const { return EventOf(0, steps); }

Event PrivacyPlan::EventOf(std::int64_t first, std::int64_t last) const {
  SORDINO_CHECK(0 <= first && first <= last && last <= options_.steps,
                "more steps than the plan has");
  if (first == last) return Event::None(options_.adjacency);
  if (options_.noise_schedule.IsConstant() && options_.rate_schedule.IsConstant()) {
    return Event::Repeat(StepEvent(0), static_cast<std::uint64_t>(last - first));
  }
  // Steps of equal noise and rate are one group, so that long schedules stay small.
  std::map<std::pair<double, double>, std::pair<std::int64_t, std::uint64_t>> groups;
  for (std::int64_t step = first; step < last; ++step) {
    const double rate = options_.sampling == SamplingKind::kFullBatch ? 1 : StepRate(step).value();
    ++groups.try_emplace({StepNoise(step).value(), rate}, step, 0).first->second.second;
  }
  std::vector<std::pair<Event, std::uint64_t>> events;
  for (const auto& [key, group] : groups) {
    events.emplace_back(StepEvent(group.first), group.second);
  }
  return Event::Compose(std::move(events), options_.adjacency);
}

double PrivacyPlan::Failure(std::int64_t steps) const {
  return FailureProbability(options_, static_cast<double>(steps));
}

Interval PrivacyPlan::Epsilon(std::int64_t steps) const {
  if (steps == 0) return {0, 0};
  return SpentEpsilon(EventOf(steps), delta_, Failure(steps));
}

NoiseMultiplier PrivacyPlan::StepNoise(std::int64_t step) const {
  return NoiseMultiplier(noise_.value() * options_.noise_schedule.Factor(step, options_.steps));
}

NoiseMultiplier PrivacyPlan::GradientNoise(std::int64_t step, std::int64_t groups) const {
  const NoiseMultiplier total = StepNoise(step);
  if (options_.clipping != ClippingKind::kAdaptive) return total;
  // One record adds 1/2 to the count of each group (adaptive_clipping.h); neighbours differ twice
  // as much under replace-one, of which the unit of a Poisson event is half.
  const bool twice = options_.adjacency == Adjacency::kReplaceOne;
  const double unit = std::sqrt(static_cast<double>(groups)) / 2 * (twice ? 2 : 1) * UnitShare();
  return GradientNoiseMultiplier(total, L2Sensitivity(unit), options_.count_noise);
}

double PrivacyPlan::UnitShare() const {
  // A pure event is that of the whole step under its adjacency, so Laplace noise counts in the
  // distance of neighbours.
  const bool counts_in_clips = options_.noise == NoiseKind::kGaussian;
  return counts_in_clips && options_.sampling == SamplingKind::kPoisson &&
                 options_.adjacency == Adjacency::kReplaceOne
             ? 0.5
             : 1;
}

SamplingRate PrivacyPlan::StepRate(std::int64_t step) const {
  switch (options_.sampling) {
    case SamplingKind::kPoisson: {
      const double factor = options_.rate_schedule.Factor(step, options_.steps);
      const double rate = options_.rate->value() * factor;
      Require(rate <= 1, fmt::format("the sampling rate {} times its schedule is {} at step {}; it "
                                     "must be at most 1.",
                                     options_.rate->value(), rate, step));
      return EffectiveRate(SamplingRate(rate));
    }
    case SamplingKind::kFixedSize:
      return SamplingRate(options_.batch / static_cast<double>(options_.records));
    case SamplingKind::kFullBatch:
      break;
  }
  return SamplingRate(1);
}

ClipNorm PrivacyPlan::StepClip(std::int64_t step) const {
  return ClipNorm(options_.clip.value() * options_.clip_schedule.Factor(step, options_.steps));
}

double PrivacyPlan::Divisor(std::int64_t step) const {
  return options_.batch * options_.rate_schedule.Factor(step, options_.steps);
}

std::int64_t PrivacyPlan::LargestBatch() const {
  switch (options_.sampling) {
    case SamplingKind::kPoisson: {
      double factor = 1;
      if (!options_.rate_schedule.IsConstant()) {
        for (std::int64_t step = 0; step < options_.steps; ++step) {
          factor = std::max(factor, options_.rate_schedule.Factor(step, options_.steps));
        }
      }
      const auto records = static_cast<double>(MostRecords());
      const double mean = std::min(1.0, options_.rate->value() * factor) * records;
      return std::min(MostRecords(), PoissonQuantile(mean));
    }
    case SamplingKind::kFixedSize:
      return static_cast<std::int64_t>(options_.batch);
    case SamplingKind::kFullBatch:
      break;
  }
  return options_.records;
}

SumOptions PrivacyPlan::Sum() const {
  SumOptions sum;
  sum.adjacency = options_.adjacency;
  sum.micro_batch = options_.micro_batch;
  sum.largest_batch = LargestBatch();
  // The result of a sum is rounded four times to float32, which may add 8 B 2^-24 for a batch of B;
  // half as much again is left to everything else.
  sum.rounding = std::max(sum.rounding, 12 * 0x1p-24 * static_cast<double>(sum.largest_batch));
  return sum;
}

std::int64_t PrivacyPlan::MostRecords() const {
  if (options_.records > 0) return options_.records;
  return static_cast<std::int64_t>(std::ceil(2 * options_.batch / options_.rate->value()));
}

std::string PrivacyPlan::Description() const {
  std::string text;
  switch (options_.sampling) {
    case SamplingKind::kPoisson:
      text = fmt::format("Poisson sampling at rate {:.6g} (expected batch {:.6g})",
                         options_.rate->value(), options_.batch);
      break;
    case SamplingKind::kFixedSize:
      text = fmt::format("batches of {:.0f} of {} records without replacement", options_.batch,
                         options_.records);
      break;
    case SamplingKind::kFullBatch:
      text = fmt::format("full batches of {} records", options_.records);
      break;
  }
  text += fmt::format(", {} clipping at {:.6g}", ClippingName(options_.clipping),
                      options_.clip.value());
  text += fmt::format(", {} noise of multiplier {:.6g}", NoiseName(options_.noise), noise_.value());
  text += fmt::format(", {} step{}", options_.steps, options_.steps == 1 ? "" : "s");
  const auto scheduled = [&](std::string_view what, const Schedule& schedule) {
    if (!schedule.IsConstant()) text += fmt::format(", {} by {}", what, schedule.ToString());
  };
  scheduled("noise", options_.noise_schedule);
  scheduled("clipping norm", options_.clip_schedule);
  scheduled("sampling rate", options_.rate_schedule);
  if (options_.micro_batch > 1) {
    text += fmt::format(", micro-batches of {}", options_.micro_batch);
  }
  return text;
}

}  // namespace sordino
