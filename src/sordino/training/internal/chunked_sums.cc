#include <deque>
#include <optional>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/clipping/norms_component.h"
#include "sordino/gradients/fixed_point_sum.h"
#include "sordino/noise/noised_shards.h"
#include "sordino/training/internal/libtorch_seed.h"
#include "sordino/training/internal/ordinary_gradients.h"
#include "sordino/training/internal/sharded_optimizer.h"
#include "sordino/training/internal/shared_start.h"
#include "sordino/training/internal/sum_source.h"

namespace sordino {
namespace {

class OneRankOfSeveral : public SumSource {
 public:
  OneRankOfSeveral(const SumSourceParts& parts, const std::vector<NamedParameter>& shared,
                   const OptimizerOptions& optimizer)
      : SumSource(parts),
        clipper_(parts.plan.StartChunks(shared, parts.options.gradients)),
        optimizer_(clipper_->parameters(), optimizer, parts.plan.steps(), parts.communicator) {}

  const std::vector<NamedParameter>& parameters() const override { return clipper_->parameters(); }
  Optimizer& optimizer() override { return optimizer_.whole(); }

  // Every rank asks the shared source for the same streams in the same order, those of chunks that
  // others compute included.
  void Request(std::int64_t step, std::vector<std::uint64_t> batch, Generator&) override {
    Requested requested{.examples = static_cast<std::int64_t>(batch.size())};
    const std::vector<Chunk> chunks = Cut(requested.examples);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      auto model = parts().shared.Stream({.step = static_cast<std::uint64_t>(step),
                                          .rank = static_cast<std::uint32_t>(i),
                                          .tensor = kModelStream});
      const std::uint64_t augmentation = model->Next64();
      if (static_cast<int>(i % static_cast<std::size_t>(all().Size())) != all().Rank()) continue;
      records().Request({batch.begin() + chunks[i].begin, batch.begin() + chunks[i].end},
                        augmentation);
      requested.models.push_back(std::move(model));
    }
    requests_.push_back(std::move(requested));
  }

  void Look(const ClippingPolicy& /*policy*/, std::int64_t /*step*/) override {}
  void Sum(const ClippingPolicy& policy, std::int64_t step) override {
    const Requested requested = TakeRequest();
    std::size_t chunk = 0;
    const auto next = [&]() -> std::optional<Batch> {
      if (chunk == requested.models.size()) return std::nullopt;
      parts().draws.Seed(*requested.models[chunk++]);
      return records().Take();
    };
    sum_.emplace(
        clipper_->Sum(parts().losses, requested.examples, next, policy, step, parts().shared));
  }

  const BoundedSum& Total() override {
    shard_.emplace(sum_->Scatter(
        [&](const at::Tensor& values, at::Tensor& part) { all().ReduceScatterSum(values, part); },
        all().Rank(), all().Size(), all().DeviceFor(parameters().front().value.device())));
    counts_.emplace(sum_->Counts([&](at::Tensor& values) { all().AllReduceSum(values); }));
    sum_.reset();
    return *counts_;
  }

  // What is gathered has noise on it.
  NoisedGradients Noised(const StepNoise& noise, bool whole) override {
    NoisedGradients shard = parts().noise.Add(*shard_, noise);
    shard_.reset();
    if (!whole) return shard;
    return NoisedShards::Join(
        shard, all().Size(), parameters(),
        [&](const at::Tensor& own, at::Tensor& gathered) { all().AllGather(own, gathered); });
  }
  void Update(const NoisedGradients& gradients, bool whole) override {
    counts_.reset();
    optimizer_.Step(whole ? NoisedShards::Cut(gradients, all().Rank(), all().Size(), at::kCPU)
                          : gradients);
  }

  void UpdateWithoutNoise(double divisor) override {
    const at::Tensor mean = shard_->steps.to(at::kDouble).mul_(shard_->granularity / divisor);
    const at::ScalarType type = shard_->type;
    shard_.reset();
    counts_.reset();
    optimizer_.StepNonPrivate(mean.to(type));
  }

  void SumOrdinary(std::int64_t /*step*/) override {
    const Requested requested = TakeRequest();
    SORDINO_CHECK(requested.models.size() == 1, "a rank has one part of an ordinary batch");
    parts().draws.Seed(*requested.models.front());
    is_empty_ = requested.examples == 0;
    ordinary_ = OrdinaryGradients(parts().losses, records().Take(), parameters(),
                                  requested.examples, parts().options.gradients.physical_batch);
  }
  void UpdateOrdinary() override {
    if (!is_empty_) optimizer_.StepNonPrivate(ShardOfSum(std::exchange(ordinary_, {}), all()));
  }

  NamedTensors SaveOptimizer() override { return optimizer_.SaveState(); }
  void RestoreOptimizer(const NamedTensors& state, std::int64_t updates) override {
    optimizer_.RestoreState(state, updates);
  }

 private:
  struct Requested {
    std::int64_t examples = 0;                            // of the batch of all ranks
    std::vector<std::unique_ptr<Generator>> models = {};  // of the chunks of this rank
  };

  Communicator& all() const { return parts().communicator; }

  // Of an ordinary run, one for each rank.
  std::vector<Chunk> Cut(std::int64_t examples) const {
    if (parts().clips) return Chunks(examples, clipper_->chunks());
    const std::int64_t ranks = all().Size();
    std::vector<Chunk> chunks;
    chunks.reserve(static_cast<std::size_t>(ranks));
    for (std::int64_t i = 0; i < ranks; ++i) {
      chunks.push_back({.begin = examples * i / ranks, .end = examples * (i + 1) / ranks});
    }
    return chunks;
  }

  Requested TakeRequest() {
    Requested first = std::move(requests_.front());
    requests_.pop_front();
    return first;
  }

  std::unique_ptr<StepChunks> clipper_;
  ShardedOptimizer optimizer_;
  std::deque<Requested> requests_;
  std::optional<FixedPointSum> sum_;
  std::optional<FixedPointShard> shard_;
  std::optional<BoundedSum> counts_;
  std::vector<at::Tensor> ordinary_;
  bool is_empty_ = false;
};

}  // namespace

std::unique_ptr<SumSource> ChunkedSums(const SumSourceParts& parts,
                                       std::vector<NamedParameter> parameters,
                                       const OptimizerOptions& optimizer) {
  return std::make_unique<OneRankOfSeveral>(
      parts, WithSharedValues(std::move(parameters), parts.communicator), optimizer);
}

}  // namespace sordino
