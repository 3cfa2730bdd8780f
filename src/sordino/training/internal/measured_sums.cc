#include <optional>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/training/internal/libtorch_seed.h"
#include "sordino/training/internal/ordinary_gradients.h"
#include "sordino/training/internal/sum_source.h"
#include "sordino/training/noised_update.h"

namespace sordino {
namespace {

std::vector<NamedParameter> Trained(std::vector<NamedParameter> parameters) {
  std::erase_if(parameters, [](const NamedParameter& p) { return !p.value.requires_grad(); });
  if (parameters.empty()) {
    throw Error("no parameter of the model requires a gradient; freeze fewer layers.");
  }
  return parameters;
}

// Made-up records that stand for an empty batch.
constexpr std::int64_t kCalls = 2;

class OneProcess : public SumSource {
 public:
  OneProcess(const SumSourceParts& parts, const std::vector<NamedParameter>& trained,
             const OptimizerOptions& optimizer)
      : SumSource(parts),
        optimizer_(parts.options.update
                       ? Optimizer::Follower(trained, optimizer, parts.plan.steps())
                       : Optimizer(trained, optimizer, parts.plan.steps())),
        update_(parts.noise, optimizer_),
        clipper_(parts.plan.StartSums(trained, parts.options.gradients)) {
    SeedModel(0);
  }

  const std::vector<NamedParameter>& parameters() const override { return clipper_->parameters(); }
  Optimizer& optimizer() override { return optimizer_; }
  bool LearnsFromBatches() const override { return clipper_->LearnsFromBatches(); }

  void Request(std::int64_t /*step*/, std::vector<std::uint64_t> batch,
               Generator& stream) override {
    // Augmentation is part of what is released: nobody may be able to repeat it (augmentation.h).
    records().Request(std::move(batch), stream.Next64());
  }

  // A sum of no records looks as any other does.
  void Look(const ClippingPolicy& policy, std::int64_t step) override {
    SumMadeUp(policy, step, 0);
  }
  void Sum(const ClippingPolicy& policy, std::int64_t step) override {
    const Batch batch = TakeBatch(step);
    // A program sees its loss called in every step: whether there were records is private.
    if (parts().options.update && Examples(batch) == 0) SumMadeUp(policy, step, kCalls);
    sum_.emplace(clipper_->Sum(parts().losses, batch, policy, step, parts().shared));
  }
  const BoundedSum& Total() override { return *sum_; }
  NoisedGradients Noised(const StepNoise& noise, bool /*whole*/) override {
    return parts().noise.Add(*sum_, noise);
  }
  void Update(const NoisedGradients& gradients, bool /*whole*/) override {
    sum_.reset();
    if (!parts().options.update) {
      optimizer_.Step(gradients);
      return;
    }
    parts().options.update(gradients);
    optimizer_.Follow();
  }
  void NoiseAndUpdate(const StepNoise& noise) override {
    if (parts().options.update) return SumSource::NoiseAndUpdate(noise);
    update_.Step(*sum_, noise);
    sum_.reset();
  }

  void UpdateWithoutNoise(double divisor) override {
    std::vector<at::Tensor> means;
    for (std::size_t k = 0; k < sum_->gradients.size(); ++k) {
      means.push_back(sum_->gradients[k].div(divisor).to(sum_->noised_types[k]));
    }
    sum_.reset();
    optimizer_.StepNonPrivate(means);
  }

  void SumOrdinary(std::int64_t step) override {
    const Batch batch = TakeBatch(step);
    const std::int64_t examples = Examples(batch);
    ordinary_.clear();
    if (examples == 0) return;
    ordinary_ = OrdinaryGradients(parts().losses, batch, parameters(), examples,
                                  parts().options.gradients.physical_batch);
  }
  void UpdateOrdinary() override {
    if (!ordinary_.empty()) optimizer_.StepNonPrivate(std::exchange(ordinary_, {}));
  }

  NamedTensors SaveOptimizer() override { return optimizer_.SaveState(); }
  void RestoreOptimizer(const NamedTensors& state, std::int64_t updates) override {
    optimizer_.RestoreState(state, updates);
  }

 private:
  // Dropout draws by place in the batch from libtorch's default generators, which start from a
  // constant: like augmentation it has to be secret.
  void SeedModel(std::int64_t step) {
    parts().draws.Seed(*parts().shared.Stream(
        {.step = static_cast<std::uint64_t>(step), .rank = 0, .tensor = kModelStream}));
  }

  void SumMadeUp(const ClippingPolicy& policy, std::int64_t step, std::int64_t records) {
    Batch batch;
    for (const at::Tensor& tensor : parts().options.gradients.made_up) {
      batch.push_back(tensor.narrow(0, 0, records));
    }
    if (batch.empty()) return;
    static_cast<void>(clipper_->Sum(parts().losses, batch, policy, step, parts().shared));
  }

  // What uses the generators between steps (an evaluation, canaries that are records, a program)
  // may show what it drew: a step draws bits that nobody has seen.
  Batch TakeBatch(std::int64_t step) {
    if (parts().options.insecure_seed || !parts().draws.AreFresh()) SeedModel(step);
    return records().Take();
  }

  Optimizer optimizer_;
  NoisedUpdate update_;
  std::unique_ptr<StepClipper> clipper_;
  std::optional<BoundedSum> sum_;
  std::vector<at::Tensor> ordinary_;
};

}  // namespace

std::unique_ptr<SumSource> MeasuredSums(const SumSourceParts& parts,
                                        std::vector<NamedParameter> parameters,
                                        const OptimizerOptions& optimizer) {
  return std::make_unique<OneProcess>(parts, Trained(std::move(parameters)), optimizer);
}

}  // namespace sordino
