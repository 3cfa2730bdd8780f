// Poisson sampling: every record enters independently with the probability q_t = rate *
// rate_schedule(t) (rounded as it is drawn, random/bernoulli.h). Its event is poisson(q, release).
//
// The event of a Gaussian release counts in C under every adjacency, while sums of neighbours are
// 2C apart under replace-one: there the unit of the noise is half the distance. A pure event is
// that of the whole step, in the distance of neighbours.
//
// Of the k rows of a user a batch holds i with binomial probability, so the event is a mixture of
// Gaussians with shifts i (Ganesh, arXiv 2401.10294).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/random/bernoulli.h"
#include "sordino/sampling/internal/random_batch_size.h"
#include "sordino/sampling/sampler.h"

namespace sordino {
namespace {

class PoissonBatches : public BatchSampler {
 public:
  PoissonBatches(const SamplerComponent& sampler, const SamplingPlan& plan, std::uint64_t records)
      : sampler_(sampler), plan_(plan), records_(records) {}
  std::vector<std::uint64_t> Batch(std::int64_t step, Generator& stream) override {
    return SamplePoisson(stream, sampler_.Rate(plan_, step), records_);
  }

 private:
  const SamplerComponent& sampler_;
  SamplingPlan plan_;
  std::uint64_t records_;
};

class Poisson : public SamplerComponent {
 public:
  Poisson()
      : SamplerComponent({.name = "poisson",
                          .help = "every record with the probability `rate`, independently"}) {}

  void CheckPlan(const SamplingPlan& plan) const override {
    internal::Require(plan.rate.has_value(),
                      "Poisson sampling needs its rate: declare the number of records (which makes "
                      "it public), or give the rate.");
    internal::Require(plan.rate->value() > 0, "the sampling rate is 0; it must be positive.");
    internal::Require(
        plan.micro_batch == 1,
        fmt::format("micro-batches of {} with Poisson sampling have no bounded sensitivity (a "
                    "record that is not drawn moves all later ones); use fixed-size or full "
                    "batches.",
                    plan.micro_batch));
  }

  bool HasRate() const override { return true; }
  bool HasRateSchedule() const override { return true; }
  void CompleteRate(SamplingPlan& plan) const override { internal::CompleteBatchOrRate(plan); }
  double OverflowProbability() const override { return internal::RandomOverflow(); }

  std::int64_t MaxBatch(const SamplingPlan& plan) const override {
    double factor = 1;
    if (!plan.rate_schedule.IsConstant()) {
      for (std::int64_t step = 0; step < plan.steps; ++step) {
        factor = std::max(factor, plan.rate_schedule.Factor(step, plan.steps));
      }
    }
    return internal::MaxRandomBatch(plan, plan.rate->value() * factor);
  }

  SamplingRate Rate(const SamplingPlan& plan, std::int64_t step) const override {
    const double factor = plan.rate_schedule.Factor(step, plan.steps);
    const double rate = plan.rate->value() * factor;
    if (rate > 1) {
      throw Error(fmt::format(
          "the sampling rate {} times its schedule is {} at step {}; it must be at most 1.",
          plan.rate->value(), rate, step));
    }
    return EffectiveRate(SamplingRate(rate));
  }

  Event StepEvent(const SamplingPlan& plan, std::int64_t step,
                  const Event& release) const override {
    return Event::Poisson(Rate(plan, step), release);
  }

  bool ProtectsUsers() const override { return true; }

  Event UserEvent(const SamplingPlan& plan, std::int64_t step,
                  NoiseMultiplier noise) const override {
    const auto k = static_cast<double>(plan.rows_per_user);
    // P[i of the k rows are drawn], rounded up from the largest shift down; what rounding adds is
    // taken from the least ones, and what is left goes to i = 0.
    std::vector<std::pair<double, double>> parts;
    const double q = Rate(plan, step).value();
    double drawn = 0;
    for (std::int64_t i = plan.rows_per_user; i >= 1; --i) {
      const auto count = static_cast<double>(i);
      const double log_choose =
          std::lgamma(k + 1) - std::lgamma(count + 1) - std::lgamma(k - count + 1);
      const double log_rest = i == plan.rows_per_user ? 0 : (k - count) * std::log1p(-q);
      const double probability =
          std::min(1 - drawn, std::exp(log_choose + count * std::log(q) + log_rest) * (1 + 1e-10));
      if (probability <= 0) continue;
      parts.emplace_back(count, probability);
      drawn += probability;
    }
    if (drawn < 1) parts.emplace_back(0, 1 - drawn);
    return Event::MixtureGaussian(noise, parts, plan.adjacency);
  }

  double UnitShare(const SamplingPlan& plan) const override {
    return plan.noise_is_gaussian && plan.adjacency == Adjacency::kReplaceOne ? 0.5 : 1;
  }

  std::unique_ptr<BatchSampler> Make(const SamplingPlan& plan, std::uint64_t records,
                                     RandomSource&) const override {
    return std::make_unique<PoissonBatches>(*this, plan, records);
  }

  std::string Description(const SamplingPlan& plan) const override {
    return fmt::format("Poisson sampling at rate {:.6g} (expected batch {:.6g})",
                       plan.rate->value(), plan.batch);
  }
};

}  // namespace

const SamplerComponent& PoissonSampler() {
  static const Poisson component;
  return component;
}

}  // namespace sordino
