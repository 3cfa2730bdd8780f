#include "sordino/training/internal/run_canaries.h"

#include <cmath>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/gradients/saved_tensors.h"
#include "sordino/random/random_source.h"
#include "sordino/training/internal/libtorch_seed.h"

namespace sordino {

std::int64_t CanaryRecordsOf(const TrainerOptions& options) {
  return options.canary_records ? options.canary_records->records.size() : 0;
}

std::int64_t CanariesOf(const TrainerOptions& options) {
  return options.canaries + CanaryRecordsOf(options);
}

RunCanaries::RunCanaries(const TrainerOptions& options, const PrivacyPlan& plan,
                         const std::vector<NamedParameter>& parameters, const LossFunction& losses,
                         Generator& coins)
    : adjacency_(plan.options().adjacency) {
  const std::int64_t in_data = CanaryRecordsOf(options);
  SORDINO_CHECK(options.canaries == 0 || in_data == 0, "a run has canaries of two kinds");
  SORDINO_CHECK(CanariesOf(options) == 0 || !plan.options().held_out,
                "canaries are in a run with held-out records");
  SORDINO_CHECK(
      in_data == 0 || adjacency_ == Adjacency::kReplaceOne || plan.options().micro_batch == 1,
      "a canary that is left out would move records to other micro-batches");
  if (options.canaries > 0) {
    gradients_ = std::make_unique<Canaries>(options.canaries, parameters, adjacency_, coins);
  }
  if (in_data > 0) {
    records_ = std::make_unique<DataCanaries>(
        *options.canary_records, parameters, losses,
        DataCanaryOptions{.adjacency = adjacency_,
                          .gradients = options.gradients,
                          .device = options.loader.device,
                          .copies = options.loader.augmentation.multiplicity},
        coins);
  }
}

Dataset RunCanaries::Joined(const Dataset& data, const TrainerOptions& options) const {
  return records_ ? DataCanaries::Joined(data, *options.canary_records, adjacency_) : data;
}

std::vector<std::int64_t> RunCanaries::TakeFrom(std::vector<std::uint64_t>& batch,
                                                std::uint64_t records) const {
  if (!records_) return Canaries::TakeFrom(batch, records);
  records_->Place(batch, records);
  return {};
}

std::vector<Dirac> RunCanaries::Gradients(const std::vector<std::int64_t>& drawn,
                                          const ClippingPolicy& policy) const {
  return gradients_ ? gradients_->Gradients(drawn, policy) : std::vector<Dirac>();
}

void RunCanaries::ObserveSum(const NoisedGradients& mean, double divisor, SamplingRate rate,
                             const ClippingPolicy& policy) {
  bound_ = 0;
  for (const double of_group : policy.Bounds()) bound_ = std::hypot(bound_, of_group);
  if (gradients_) gradients_->Observe(mean, divisor, rate, policy);
}

void RunCanaries::ObserveGradients(const NoisedGradients& gradients, double divisor,
                                   SamplingRate rate, Generator& stream) {
  if (!records_) return;
  // The passes of a step are compared: all of them draw the same.
  const std::uint64_t seed = stream.Next64();
  records_->Observe(gradients, divisor, rate, ClipNorm(bound_), [&] {
    RandomSource same(seed);
    SeedLibtorch(*same.Stream({}));
  });
}

CanaryScores RunCanaries::Scores() const {
  if (gradients_) return gradients_->Scores();
  return records_ ? records_->Scores() : CanaryScores();
}

void RunCanaries::Save(NamedTensors& state) const {
  NamedTensors own;
  if (gradients_) own = gradients_->Save();
  if (records_) own = records_->Save();
  for (auto& entry : own) state.push_back(std::move(entry));
}

void RunCanaries::Restore(SavedTensors& saved) {
  if (gradients_) gradients_->Restore(saved);
  if (records_) records_->Restore(saved);
}

}  // namespace sordino
