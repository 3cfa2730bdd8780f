#include "sordino/noise/noised_shards.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cstdint>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/gradients/fixed_point_sum.h"

namespace sordino {

NoisedGradients NoisedShards::Join(
    const NoisedGradients& shard, int shards, const std::vector<NamedParameter>& parameters,
    const std::function<void(const at::Tensor& shard, at::Tensor& all)>& gather) {
  SORDINO_CHECK(shard.value().size() == 1, "a shard is one tensor");
  const at::Tensor& own = shard.value().front();
  at::Tensor all = at::empty({shards * own.numel()}, own.options());
  gather(own, all);
  std::vector<at::Tensor> whole;
  whole.reserve(parameters.size());
  std::int64_t begin = 0;
  for (const NamedParameter& parameter : parameters) {
    const at::Tensor& value = parameter.value;
    SORDINO_CHECK(begin + value.numel() <= all.numel(), "shards have fewer coordinates");
    whole.push_back(all.narrow(0, begin, value.numel()).view(value.sizes()).to(value.device()));
    begin += value.numel();
  }
  return {std::move(whole), shard.standard_deviation()};
}

NoisedGradients NoisedShards::Cut(const NoisedGradients& whole, int shard, int shards,
                                  c10::Device device) {
  SORDINO_CHECK(0 <= shard && shard < shards, "a part that the whole does not have");
  std::vector<at::Tensor> parts;
  parts.reserve(whole.value().size() + 1);
  std::int64_t coordinates = 0;
  for (const at::Tensor& part : whole.value()) {
    parts.push_back(part.reshape({-1}));
    coordinates += part.numel();
  }
  const std::int64_t size = ShardSize(coordinates, shards);
  parts.push_back(at::zeros({size * shards - coordinates}, parts.front().options()));
  at::Tensor part = at::cat(parts).narrow(0, shard * size, size).to(device).contiguous();
  return {{std::move(part)}, whole.standard_deviation()};
}

}  // namespace sordino
