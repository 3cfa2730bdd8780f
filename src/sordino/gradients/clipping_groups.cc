#include "sordino/gradients/clipping_groups.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/kernels/row_sums.h"

namespace sordino {
namespace {

std::string_view LayerOf(std::string_view parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : parameter.substr(0, dot);
}

}  // namespace

ClippingGroups ClippingGroups::Flat() { return {}; }

ClippingGroups ClippingGroups::ByLayer(const std::vector<NamedParameter>& parameters) {
  ClippingGroups groups;
  groups.flat_ = false;
  std::unordered_set<std::string_view> seen;
  for (const NamedParameter& parameter : parameters) {
    const std::string_view layer = LayerOf(parameter.name);
    if (parameter.value.requires_grad() && seen.insert(layer).second) {
      groups.layers_.emplace_back(layer);
    }
  }
  if (groups.layers_.empty()) {
    throw Error("layerwise clipping was given " + std::to_string(parameters.size()) +
                " parameters of which none requires a gradient; pass the parameters that are "
                "trained.");
  }
  return groups;
}

std::vector<std::int64_t> ClippingGroups::Assign(
    const std::vector<NamedParameter>& parameters) const {
  std::vector<std::int64_t> groups(parameters.size(), 0);
  if (flat_) {
    return groups;
  }
  std::unordered_map<std::string_view, std::int64_t> index;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    index.emplace(layers_[layer], static_cast<std::int64_t>(layer));
  }
  std::vector<bool> seen(layers_.size(), false);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto found = index.find(LayerOf(parameters[i].name));
    if (found == index.end()) {
      throw Error("parameter '" + parameters[i].name + "' is in none of the " +
                  std::to_string(layers_.size()) +
                  " layers that the clipping policy has bounds for; make the policy from the "
                  "parameters that it clips.");
    }
    groups[i] = found->second;
    seen[static_cast<std::size_t>(found->second)] = true;
  }
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing != seen.end()) {
    throw Error("layer '" + layers_[static_cast<std::size_t>(missing - seen.begin())] +
                "' has a clipping bound and no parameter; make the policy from the parameters "
                "that it clips.");
  }
  return groups;
}

void ClippingGroups::CheckOneForEach(std::string_view what, std::size_t given) const {
  if (given == size()) {
    return;
  }
  std::string names;
  for (const std::string& layer : layers_) {
    names += (names.empty() ? "" : ", ") + ("'" + layer + "'");
  }
  throw Error(std::to_string(given) + " " + std::string(what) + " were given for " +
              std::to_string(size()) + (flat_ ? " clipping group" : " layers (" + names + ")") +
              "; give one for each, in this order.");
}

const at::Tensor& GroupColumn::OnDeviceOf(const at::Tensor& norms) const {
  SORDINO_CHECK(norms.dim() == 2 && norms.size(0) == static_cast<std::int64_t>(values_.size()) &&
                    norms.scalar_type() == at::kDouble,
                "norms must be float64 of shape [groups, examples] with the groups of the policy");
  if (!column_.defined() || column_.device() != norms.device()) {
    std::vector<double> copy = values_;
    column_ = at::from_blob(copy.data(), {static_cast<std::int64_t>(copy.size()), 1}, at::kDouble)
                  .clone()
                  .to(norms.device());
  }
  return column_;
}

at::Tensor FactorsToBound(const GroupColumn& below, const at::Tensor& norms) {
  return FactorsWithin(norms, below.OnDeviceOf(norms));
}

std::vector<ClipNorm> EqualBounds(const ClippingGroups& groups, ClipNorm total) {
  const double share = 1 / std::sqrt(static_cast<double>(groups.size()));
  return std::vector<ClipNorm>(groups.size(), ClipNorm(total.value() * share));
}

std::vector<double> Values(const std::vector<ClipNorm>& bounds) {
  std::vector<double> values;
  values.reserve(bounds.size());
  for (const ClipNorm bound : bounds) {
    values.push_back(bound.value());
  }
  return values;
}

std::vector<double> ValuesBelow(const std::vector<ClipNorm>& bounds) {
  std::vector<double> values = Values(bounds);
  std::transform(values.begin(), values.end(), values.begin(), BelowBound);
  return values;
}

}  // namespace sordino
