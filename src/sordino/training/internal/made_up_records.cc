#include "sordino/training/internal/made_up_records.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace sordino::internal {
namespace {

constexpr std::uint64_t kSeed = 41;
// Three draws of six units, as a model is looked at (gradients/internal/part_clipper.cc).
constexpr std::int64_t kThird = 6;
constexpr std::int64_t kMadeUp = 3 * kThird;

// Of texts that end in padding, never of padding alone.
at::Tensor Tokens(const std::vector<std::int64_t>& sizes, std::int64_t vocabulary,
                  const at::Generator& random) {
  const std::int64_t most = std::max<std::int64_t>(vocabulary, 2);
  at::Tensor tokens = at::randint(1, most, sizes, random, at::kLong);
  // Ties: one word again and again.
  tokens.narrow(0, kThird, kThird).fill_(1);
  tokens.narrow(0, 2 * kThird, kThird).fill_(most - 1);
  const std::int64_t length = sizes.back();
  const at::Tensor ends = at::randint(1, length + 1, {kMadeUp, 1}, random, at::kLong);
  return tokens.masked_fill(at::arange(length).unsqueeze(0) >= ends, 0);
}

at::Tensor Numbers(const std::vector<std::int64_t>& sizes, const at::Generator& random) {
  at::Tensor numbers = at::randn(sizes, random, at::kFloat);
  // Ties, which may also be places in a table.
  numbers.narrow(0, kThird, kThird).abs_().round_().clamp_(0, 1);
  numbers.narrow(0, 2 * kThird, kThird).mul_(3).clamp_(-3, 3);
  return numbers;
}

// Ones that end in zeros, ones alone, and both in any order after a one: tokens with padding, or
// a mask of them.
at::Tensor Flags(const std::vector<std::int64_t>& sizes, const at::Generator& random) {
  at::Tensor flags = at::randint(0, 2, sizes, random, at::kLong);
  flags.narrow(0, kThird, kThird).fill_(1);
  flags.select(-1, 0).fill_(1);
  // The same ends in every tensor of a batch.
  const std::int64_t length = sizes.back();
  std::vector<std::int64_t> rows(sizes.size(), 1);
  rows.front() = kThird;
  const at::Tensor ends = at::arange(kThird).remainder(length).add_(1).view(rows);
  flags.narrow(0, 0, kThird).copy_(at::arange(length) < ends);
  return flags;
}

at::Tensor Pixels(const std::vector<std::int64_t>& sizes, const at::Generator& random) {
  at::Tensor pixels = at::randint(0, 256, sizes, random, at::kByte);
  pixels.narrow(0, kThird, kThird).bitwise_and_(0xC0);
  at::Tensor ends = pixels.narrow(0, 2 * kThird, kThird);
  ends.copy_(ends.ge(128).to(at::kByte).mul_(255));
  return pixels;
}

}  // namespace

Batch MadeUpRecords(const Dataset& data, const LoaderOptions& loader) {
  const at::Generator random = at::detail::createCPUGenerator(kSeed);
  std::vector<std::int64_t> sizes = data.inputs.sizes().vec();
  sizes.front() = kMadeUp;
  Dataset made_up;
  made_up.declaration = data.declaration;
  const at::ScalarType type = data.inputs.scalar_type();
  if (type == at::kByte) {
    made_up.inputs = Pixels(sizes, random);
  } else if (type == at::kLong) {
    made_up.inputs = Tokens(sizes, data.declaration.vocabulary, random);
  } else {
    made_up.inputs = Numbers(sizes, random).to(type);
  }
  if (data.labels.scalar_type() == at::kLong) {
    made_up.labels =
        at::arange(kMadeUp).remainder(std::max<std::int64_t>(data.declaration.classes, 1));
  } else {
    made_up.labels =
        at::rand({kMadeUp}, random, at::kFloat).mul_(2).sub_(1).to(data.labels.scalar_type());
  }
  BatchLoader batches(made_up, loader);
  std::vector<std::uint64_t> all(kMadeUp);
  std::iota(all.begin(), all.end(), 0);
  batches.Request(std::move(all), kSeed);
  return batches.Take();
}

Batch MadeUpRecords(const Batch& form) {
  const at::Generator random = at::detail::createCPUGenerator(kSeed);
  Batch made_up;
  for (const at::Tensor& tensor : form) {
    std::vector<std::int64_t> sizes = tensor.sizes().vec();
    sizes.front() = kMadeUp;
    const at::ScalarType type = tensor.scalar_type();
    at::Tensor values;
    if (at::isFloatingType(type) || at::isComplexType(type)) {
      values = Numbers(sizes, random);
    } else if (sizes.size() == 1) {
      values = at::arange(kMadeUp).remainder(2);
    } else {
      values = Flags(sizes, random);
    }
    made_up.push_back(values.to(type).to(tensor.device()));
  }
  return made_up;
}

TrainerOptions WithMadeUpRecords(TrainerOptions options, const Dataset& data, const Batch& form,
                                 bool is_private) {
  if (is_private && !form.empty()) {
    options.gradients.made_up = MadeUpRecords(form);
  } else if (is_private && data.inputs.defined() && data.labels.defined()) {
    options.gradients.made_up = MadeUpRecords(data, options.loader);
  }
  return options;
}

}  // namespace sordino::internal
