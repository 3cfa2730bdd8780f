#include "sordino/training/internal/sharded_optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/gradients/fixed_point_sum.h"
#include "sordino/gradients/saved_tensors.h"

namespace sordino {
namespace {

constexpr std::string_view kShardPrefix = "optimizer.shard.";
constexpr std::string_view kStepCount = "step";

at::ScalarType TypeOf(const std::vector<NamedParameter>& parameters) {
  const at::ScalarType type = parameters.front().value.scalar_type();
  for (const NamedParameter& parameter : parameters) {
    const at::ScalarType own = parameter.value.scalar_type();
    if (own == type && (own == at::kFloat || own == at::kDouble)) continue;
    throw Error(fmt::format(
        "the parameter '{}' is of the type {}; several processes train parameters that are all "
        "float32 or all float64, so convert the model, or use one process.",
        parameter.name, c10::toString(own)));
  }
  return type;
}

at::Tensor FlatZeros(const std::vector<NamedParameter>& parameters,
                     const Communicator& communicator) {
  const int shards = communicator.Size();
  const auto there = at::TensorOptions(TypeOf(parameters))
                         .device(communicator.DeviceFor(parameters.front().value.device()));
  std::int64_t coordinates = 0;
  for (const NamedParameter& parameter : parameters) coordinates += parameter.value.numel();
  return at::zeros({shards * ShardSize(coordinates, shards)}, there);
}

// The average is that of all parameters.
OptimizerOptions OfShard(OptimizerOptions options) {
  options.average_decay = 0;
  options.projection_radius = 0;
  return options;
}

OptimizerOptions OfWhole(OptimizerOptions options, const Communicator& communicator) {
  if (!communicator.IsFirst()) options.average_decay = 0;
  return options;
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(std::vector<NamedParameter> parameters,
                                   const OptimizerOptions& options, std::int64_t steps,
                                   Communicator& communicator)
    : parameters_(std::move(parameters)),
      communicator_(communicator),
      projects_(options.projection_radius > 0),
      flat_(FlatZeros(parameters_, communicator)),
      shard_(
          at::zeros({flat_.numel() / communicator.Size()}, flat_.scalar_type()).requires_grad_()),
      optimizer_({{"shard", shard_}}, OfShard(options), steps),
      whole_(Optimizer::Follower(parameters_, OfWhole(options, communicator), steps)) {
  ReadShard();
}

void ShardedOptimizer::ReadShard() {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> parts = Cut(flat_);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].copy_(parameters_[i].value);
  shard_.copy_(flat_.narrow(0, communicator_.Rank() * shard_.numel(), shard_.numel()));
}

// Views of a flat vector in the shapes of the parameters.
std::vector<at::Tensor> ShardedOptimizer::Cut(const at::Tensor& flat) const {
  std::vector<at::Tensor> parts;
  std::int64_t begin = 0;
  for (const NamedParameter& parameter : parameters_) {
    const std::int64_t count = parameter.value.numel();
    parts.push_back(flat.narrow(0, begin, count).view(parameter.value.sizes()));
    begin += count;
  }
  return parts;
}

void ShardedOptimizer::Step(const NoisedGradients& shard) {
  optimizer_.Step(shard);
  GatherShards();
}

void ShardedOptimizer::StepNonPrivate(const at::Tensor& shard) {
  optimizer_.StepNonPrivate({shard});
  GatherShards();
}

void ShardedOptimizer::GatherShards() {
  const at::NoGradGuard no_grad;
  communicator_.AllGather(shard_.detach().to(flat_.device()), flat_);
  const std::vector<at::Tensor> parts = Cut(flat_);
  // Values are copied and storages kept, as an optimizer does it.
  for (std::size_t i = 0; i < parts.size(); ++i) parameters_[i].value.detach().copy_(parts[i]);
  whole_.Follow();
  if (projects_) ReadShard();
}

NamedTensors ShardedOptimizer::SaveState() {
  NamedTensors state = whole_.SaveState();
  for (const auto& [name, tensor] : optimizer_.SaveState()) {
    SORDINO_CHECK(name.starts_with(kShardPrefix), "an optimizer keeps something of no shard");
    const std::string_view what = std::string_view(name).substr(kShardPrefix.size());
    if (what == kStepCount) {
      for (const NamedParameter& parameter : parameters_) {
        state.emplace_back(fmt::format("optimizer.{}.{}", parameter.name, what), tensor.clone());
      }
      continue;
    }
    at::Tensor all = at::zeros({flat_.numel()}, tensor.options());
    communicator_.AllGather(tensor, all);
    const std::vector<at::Tensor> parts = Cut(all);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      state.emplace_back(fmt::format("optimizer.{}.{}", parameters_[i].name, what),
                         parts[i].clone());
    }
  }
  return state;
}

void ShardedOptimizer::RestoreState(const NamedTensors& state, std::int64_t steps_done) {
  const at::NoGradGuard no_grad;
  NamedTensors averages;
  NamedTensors kept;
  for (const auto& entry : state) {
    (entry.first.starts_with("average.") ? averages : kept).push_back(entry);
  }
  if (!communicator_.IsFirst()) averages.clear();
  // What is kept of the first parameter is kept of all of them.
  std::vector<std::string> kinds;
  const std::string prefix = fmt::format("optimizer.{}.", parameters_.front().name);
  for (const auto& [name, tensor] : kept) {
    const std::string what = name.starts_with(prefix) ? name.substr(prefix.size()) : "";
    if (!what.empty() && what.find('.') == std::string::npos) kinds.push_back(what);
  }
  SavedTensors saved(kept);
  NamedTensors of_shard;
  for (const std::string& what : kinds) {
    at::Tensor all = at::zeros({flat_.numel()}, flat_.scalar_type());
    const std::vector<at::Tensor> parts = Cut(all);
    std::int64_t steps = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string name = fmt::format("optimizer.{}.{}", parameters_[i].name, what);
      if (what == kStepCount) {
        steps = saved.TakeNumber(name, steps_done, steps_done);
      } else {
        parts[i].copy_(saved.Take(name, parts[i].sizes(), flat_.scalar_type()));
      }
    }
    of_shard.emplace_back(
        std::string(kShardPrefix) + what,
        what == kStepCount
            ? at::scalar_tensor(steps, at::kLong)
            : all.narrow(0, communicator_.Rank() * shard_.numel(), shard_.numel()).clone());
  }
  saved.CheckAllTaken();
  optimizer_.RestoreState(of_shard, steps_done);
  whole_.RestoreState(averages, steps_done);
  ReadShard();
}

}  // namespace sordino
