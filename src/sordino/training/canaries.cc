#include "sordino/training/canaries.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/gradients/saved_tensors.h"
#include "sordino/training/internal/canary_score.h"

namespace sordino {
namespace {

std::int64_t Coordinates(const std::vector<NamedParameter>& parameters) {
  std::int64_t sum = 0;
  for (const NamedParameter& parameter : parameters) sum += parameter.value.numel();
  return sum;
}

// Different whole numbers below `limit`, rising. A bias of limit / 2^64 in which of them
// are chosen changes nothing: the coins do not depend on it.
std::vector<std::int64_t> DrawDifferent(std::int64_t count, std::int64_t limit, Generator& stream) {
  std::vector<std::int64_t> drawn;
  if (count > limit / 2) {
    for (std::int64_t i = 0; i < limit; ++i) drawn.push_back(i);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto left = static_cast<std::uint64_t>(limit - i);
      const auto j = i + static_cast<std::int64_t>(stream.Next64() % left);
      std::swap(drawn[static_cast<std::size_t>(i)], drawn[static_cast<std::size_t>(j)]);
    }
    drawn.resize(static_cast<std::size_t>(count));
    std::sort(drawn.begin(), drawn.end());
    return drawn;
  }
  std::unordered_set<std::int64_t> seen;
  while (static_cast<std::int64_t>(drawn.size()) < count) {
    const auto next =
        static_cast<std::int64_t>(stream.Next64() % static_cast<std::uint64_t>(limit));
    if (seen.insert(next).second) drawn.push_back(next);
  }
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

at::Tensor Zeros(std::int64_t count) {
  return at::zeros({count}, at::TensorOptions().dtype(at::kDouble));
}

}  // namespace

void CheckCanaries(std::int64_t count, const std::vector<NamedParameter>& parameters) {
  const std::int64_t limit = Coordinates(parameters);
  if (count <= limit) return;
  throw Error(
      fmt::format("{} canaries were asked for, and the model trains {} numbers, one for each at "
                  "most; give at most {} canaries.",
                  count, limit, limit));
}

Canaries::Canaries(std::int64_t count, std::vector<NamedParameter> parameters, Adjacency adjacency,
                   Generator& stream)
    : parameters_(std::move(parameters)), other_sign_(adjacency == Adjacency::kReplaceOne) {
  CheckCanaries(count, parameters_);
  is_in_ = at::zeros({count}, at::TensorOptions().dtype(at::kLong));
  for (std::int64_t i = 0; i < count; ++i) {
    is_in_.mutable_data_ptr<std::int64_t>()[i] = static_cast<std::int64_t>(stream.Next64() & 1);
  }
  coordinates_ = DrawDifferent(count, Coordinates(parameters_), stream);
  FindPlaces();
  std::vector<at::Tensor> values;
  for (const NamedParameter& parameter : parameters_) values.push_back(parameter.value);
  start_ = Gathered(values);
  scores_ = Zeros(count);
}

void Canaries::FindPlaces() {
  parameter_of_.assign(coordinates_.size(), 0);
  places_.clear();
  std::int64_t begin = 0;
  for (std::size_t k = 0; k < parameters_.size(); ++k) {
    const at::Tensor& value = parameters_[k].value;
    const std::int64_t end = begin + value.numel();
    std::vector<std::int64_t> canaries;
    std::vector<std::int64_t> entries;
    for (std::size_t i = 0; i < coordinates_.size(); ++i) {
      if (coordinates_[i] < begin || coordinates_[i] >= end) continue;
      canaries.push_back(static_cast<std::int64_t>(i));
      entries.push_back(coordinates_[i] - begin);
      parameter_of_[i] = k;
    }
    places_.push_back(
        {at::tensor(canaries, at::kLong), at::tensor(entries, at::kLong).to(value.device())});
    begin = end;
  }
}

at::Tensor Canaries::Gathered(const std::vector<at::Tensor>& tensors) const {
  const at::NoGradGuard no_grad;
  at::Tensor all = Zeros(size());
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    if (places_[k].canaries.numel() == 0) continue;
    all.index_copy_(0, places_[k].canaries,
                    tensors[k]
                        .detach()
                        .reshape({-1})
                        .index_select(0, places_[k].entries)
                        .to(at::kCPU, at::kDouble));
  }
  return all;
}

std::vector<std::int64_t> Canaries::TakeFrom(std::vector<std::uint64_t>& batch,
                                             std::uint64_t records) {
  std::vector<std::int64_t> drawn;
  for (const std::uint64_t index : batch) {
    if (index >= records) drawn.push_back(static_cast<std::int64_t>(index - records));
  }
  std::erase_if(batch, [&](std::uint64_t index) { return index >= records; });
  return drawn;
}

std::vector<double> Canaries::Values(const ClippingPolicy& policy) const {
  const std::vector<std::int64_t> groups = policy.Groups(parameters_);
  const std::vector<double> bounds = policy.Bounds();
  std::vector<double> values;
  for (const std::size_t parameter : parameter_of_) {
    values.push_back(bounds[static_cast<std::size_t>(groups[parameter])]);
  }
  return values;
}

std::vector<Dirac> Canaries::Gradients(const std::vector<std::int64_t>& drawn,
                                       const ClippingPolicy& policy) const {
  const std::vector<double> values = Values(policy);
  const auto* const is_in = is_in_.const_data_ptr<std::int64_t>();
  std::vector<Dirac> gradients;
  for (const std::int64_t canary : drawn) {
    const auto i = static_cast<std::size_t>(canary);
    if (is_in[canary] == 0 && !other_sign_) continue;
    gradients.push_back(
        {.coordinate = coordinates_[i], .value = is_in[canary] != 0 ? values[i] : -values[i]});
  }
  return gradients;
}

std::vector<double> Canaries::Spread(const at::Tensor& seen, double noise) const {
  // Of normal values, the median of their sizes is so many standard deviations.
  constexpr double kMedianSize = 0.6745;
  constexpr std::int64_t kMinSpread = 16;  // canaries of a parameter that tell its spread
  constexpr double kMuchMore = 1.1;        // less than that is the chance of a median
  const auto larger = [&](const at::Tensor& values) {
    const double measured = values.abs().median().item<double>() / kMedianSize;
    return measured > kMuchMore * noise ? measured : noise;
  };
  std::vector<double> spread(coordinates_.size(), larger(seen));
  for (const Places& places : places_) {
    if (places.canaries.numel() < kMinSpread) continue;
    const double here = larger(seen.index_select(0, places.canaries));
    for (std::int64_t i = 0; i < places.canaries.numel(); ++i) {
      spread[static_cast<std::size_t>(places.canaries.const_data_ptr<std::int64_t>()[i])] = here;
    }
  }
  return spread;
}

void Canaries::Observe(const NoisedGradients& gradient, double divisor, SamplingRate rate,
                       const ClippingPolicy& policy) {
  const at::Tensor seen = (Gathered(gradient.value()) * divisor).nan_to_num(0, 0, 0);
  const std::vector<double> values = Values(policy);
  const std::vector<double> spread = Spread(seen, gradient.standard_deviation() * divisor);
  double* const scores = scores_.mutable_data_ptr<double>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double y = seen.const_data_ptr<double>()[i];
    scores[i] += internal::StepScore(y, values[i], spread[i], rate);
    if (other_sign_) scores[i] -= internal::StepScore(-y, values[i], spread[i], rate);
  }
}

CanaryScores Canaries::Scores() const {
  std::vector<at::Tensor> values;
  for (const NamedParameter& parameter : parameters_) values.push_back(parameter.value);
  at::Tensor moved = start_ - Gathered(values);
  if (size() > 0) moved = moved - moved.median();
  CanaryScores result;
  for (std::int64_t i = 0; i < size(); ++i) {
    result.is_in.push_back(static_cast<char>(is_in_.const_data_ptr<std::int64_t>()[i]));
    result.every_update.push_back(scores_.const_data_ptr<double>()[i]);
    result.last_model.push_back(moved.const_data_ptr<double>()[i]);
  }
  return result;
}

NamedTensors Canaries::Save() const {
  return {{"canary.in", is_in_.clone()},
          {"canary.coordinates", at::tensor(coordinates_, at::kLong)},
          {"canary.start", start_.clone()},
          {"canary.scores", scores_.clone()}};
}

void Canaries::Restore(SavedTensors& saved) {
  const at::Tensor coordinates = saved.Take("canary.coordinates", {size()}, at::kLong);
  is_in_ = saved.Take("canary.in", {size()}, at::kLong).clone();
  start_ = saved.Take("canary.start", {size()}, at::kDouble).clone();
  scores_ = saved.Take("canary.scores", {size()}, at::kDouble).clone();
  const std::int64_t limit = Coordinates(parameters_);
  for (std::size_t i = 0; i < coordinates_.size(); ++i) {
    coordinates_[i] = coordinates.const_data_ptr<std::int64_t>()[i];
    if (coordinates_[i] < (i == 0 ? 0 : coordinates_[i - 1] + 1) || coordinates_[i] >= limit) {
      throw Error(
          "the saved state has a canary that does not fit the model; resume the run that "
          "was saved.");
    }
  }
  FindPlaces();
}

}  // namespace sordino
