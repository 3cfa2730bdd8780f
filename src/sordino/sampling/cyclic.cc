// Cyclic Poisson sampling: every record is in one of b groups, chosen uniformly and independently
// of all others when the run starts; step t draws from group t mod b, each of its records with the
// probability b q, independently. So a record rests for b - 1 steps after each step that may draw
// it, which is what noise that is correlated over up to b steps needs
// (noise/internal/correlation.h), and q is the probability that it is in the batch of a step, as
// with Poisson sampling.
//
// The event. Groups are independent of the records, so that neighbours can be given the same groups
// for all records but the one by which they differ, whose group is chosen at random: by the joint
// convexity of divergences the guarantee is that for the worst group. A record of group g is drawn
// in steps g, g + b, ..., once in each round of b steps, by a coin of its own. Where the noise
// makes what one participation adds a Gaussian release of the b steps that begin with it, these b
// steps are poisson(b q, release), and a run is a composition of them: at most one for each round
// that it begins (BandMF; Choquette-Choo et al., arXiv 2306.08153, Theorem 4, where groups are of
// equal size and fixed; here their sizes are random). Independent noise is the case of one step.
//
// A private run that is resumed has other groups, and a record may then be drawn twice within b
// steps. Its noise begins anew there as well, and the round is charged again (PrivacyPlan).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sordino/random/bernoulli.h"
#include "sordino/sampling/internal/random_batch_size.h"
#include "sordino/sampling/sampler.h"

namespace sordino {
namespace {

constexpr OptionSpec kGroups{
    .key = "groups",
    .flag = "--groups",
    .value_name = "N",
    .help = "Groups of records that are drawn from in turn; 0: as many as the noise needs",
    .what = "the number of groups of cyclic sampling",
    .type = OptionType::kWhole,
    .fallback = std::int64_t{0},
    .high = 1e6,
    .high_open = false};
constexpr const OptionSpec* kCyclicOptions[] = {&kGroups};

std::int64_t GroupsOf(const SamplingPlan& plan) {
  const std::int64_t given = plan.options.Whole(kGroups);
  if (given > 0) return given;
  const double most = std::floor((1 + 1e-12) / plan.rate->value());
  return std::max<std::int64_t>(
      1, std::min(plan.noise_bands, static_cast<std::int64_t>(std::min(most, 1e6))));
}

// The rate within a group.
SamplingRate GroupRate(const SamplingPlan& plan) {
  const double rate = plan.rate->value() * static_cast<double>(GroupsOf(plan));
  return EffectiveRate(SamplingRate(std::min(1.0, rate)));
}

class CyclicBatches : public BatchSampler {
 public:
  CyclicBatches(const SamplingPlan& plan, std::uint64_t records, RandomSource& random)
      : rate_(GroupRate(plan)) {
    const auto stream = random.Stream({.step = 0, .rank = 0, .tensor = kGroupStream});
    groups_ = SampleAllocation(*stream, static_cast<std::uint64_t>(GroupsOf(plan)), records);
  }
  std::vector<std::uint64_t> Batch(std::int64_t step, Generator& stream) override {
    const auto& group = groups_[static_cast<std::size_t>(step) % groups_.size()];
    std::vector<std::uint64_t> batch = SamplePoisson(stream, rate_, group.size());
    for (std::uint64_t& record : batch) record = group[record];
    return batch;
  }

 private:
  SamplingRate rate_;
  std::vector<std::vector<std::uint64_t>> groups_;
};

class Cyclic : public SamplerComponent {
 public:
  Cyclic()
      : SamplerComponent({.name = "cyclic",
                          .help = "Poisson sampling from groups of records in turn, so that each "
                                  "rests between two steps",
                          .options = kCyclicOptions}) {}

  void CheckPlan(const SamplingPlan& plan) const override {
    using internal::Require;
    Require(plan.rate.has_value() && plan.rate->value() > 0,
            "cyclic sampling needs its rate: declare the number of records (which makes it "
            "public), or give a positive rate.");
    const double rate = plan.rate->value() * static_cast<double>(GroupsOf(plan));
    Require(rate <= 1 + 1e-9,
            fmt::format("cyclic sampling was given {} groups and the rate {:.6g}; their product is "
                        "the share of a group that a step draws and may be at most 1: give fewer "
                        "groups or a smaller batch.",
                        GroupsOf(plan), plan.rate->value()));
    Require(plan.adjacency != Adjacency::kReplaceOne,
            "cyclic sampling is accounted under add-remove and zero-out only, and the adjacency is "
            "replace-one; use one of these.");
    Require(plan.noise_is_constant,
            "cyclic sampling is accounted for steps of equal noise, and the noise has a schedule; "
            "leave it out, or use Poisson sampling.");
    Require(plan.rows_per_user <= 1,
            fmt::format("cyclic sampling is accounted for one row per user, and users have up to "
                        "{}; declare one row per user, or use Poisson sampling.",
                        plan.rows_per_user));
    Require(plan.micro_batch == 1,
            fmt::format("micro-batches of {} with cyclic sampling have no bounded sensitivity (a "
                        "record that is not drawn moves all later ones); use fixed-size or full "
                        "batches.",
                        plan.micro_batch));
  }

  bool HasRate() const override { return true; }
  void CompleteRate(SamplingPlan& plan) const override { internal::CompleteBatchOrRate(plan); }
  double OverflowProbability() const override { return internal::RandomOverflow(); }
  // Over the choice of the groups, too: a record is in the batch with the probability q.
  std::int64_t MaxBatch(const SamplingPlan& plan) const override {
    return internal::MaxRandomBatch(plan, plan.rate->value());
  }
  SamplingRate Rate(const SamplingPlan& plan, std::int64_t) const override {
    return SamplingRate(GroupRate(plan).value() / static_cast<double>(GroupsOf(plan)));
  }
  std::int64_t Separation(const SamplingPlan& plan) const override { return GroupsOf(plan); }
  std::int64_t StepsPerEvent(const SamplingPlan& plan) const override { return GroupsOf(plan); }
  Event StepEvent(const SamplingPlan& plan, std::int64_t, const Event& release) const override {
    return Event::Poisson(GroupRate(plan), release);
  }
  std::unique_ptr<BatchSampler> Make(const SamplingPlan& plan, std::uint64_t records,
                                     RandomSource& random) const override {
    return std::make_unique<CyclicBatches>(plan, records, random);
  }

  std::string Description(const SamplingPlan& plan) const override {
    return fmt::format(
        "cyclic Poisson sampling from {} group{} of records in turn, at rate {:.6g} of a group "
        "(expected batch {:.6g})",
        GroupsOf(plan), GroupsOf(plan) == 1 ? "" : "s", GroupRate(plan).value(), plan.batch);
  }
  std::string Statement() const override {
    return "Every record was in one group, chosen uniformly and independently of all other "
           "records; the groups took turns, and each step drew from one of them. A round of all "
           "groups counts whole, also where the run stopped inside it.";
  }
};

}  // namespace

const SamplerComponent& CyclicSampler() {
  static const Cyclic component;
  return component;
}

}  // namespace sordino
