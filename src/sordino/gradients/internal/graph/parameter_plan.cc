#include "sordino/gradients/internal/graph/parameter_plan.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/generated/Functions.h>

#include <algorithm>
#include <optional>
#include <typeindex>
#include <utility>

#include "sordino/base/check.h"

namespace sordino {
namespace {

namespace ag = torch::autograd;
namespace generated = torch::autograd::generated;

template <typename Node>
const Node* Is(const ag::Node& node) {
  return typeid(node) == typeid(Node) ? static_cast<const Node*>(&node) : nullptr;
}

std::int64_t Wrap(std::int64_t dim, const at::Tensor& tensor) {
  return dim < 0 ? dim + tensor.dim() : dim;
}

// The output of a split that begins at `begin` along its dimension.
at::Tensor SplitOutput(const at::Tensor& whole, std::int64_t dim,
                       const std::vector<std::int64_t>& sizes, std::int64_t begin) {
  const std::int64_t wrapped = Wrap(dim, whole);
  return whole.slice(wrapped, begin, begin + sizes[static_cast<std::size_t>(wrapped)]);
}

template <typename Split>
at::Tensor EqualPart(const Split& split, const PathStep& step, const at::Tensor& whole) {
  const auto sizes = OutputSizes(*step.node, step.output);
  return SplitOutput(whole, split.dim, sizes, split.split_size.expect_int() * step.output);
}

template <typename Split>
at::Tensor ListedPart(const Split& split, const PathStep& step, const at::Tensor& whole) {
  std::int64_t begin = 0;
  for (std::uint32_t k = 0; k < step.output; ++k) begin += split.split_sizes[k].expect_int();
  return SplitOutput(whole, split.dim, OutputSizes(*step.node, step.output), begin);
}

// The view that a step of a path makes, of a tensor of positions.
at::Tensor Forward(const PathStep& step, const at::Tensor& whole) {
  const ag::Node& node = *step.node;
  if (Is<generated::TBackward0>(node) != nullptr) return whole.t();
  if (const auto* n = Is<generated::TransposeBackward0>(node)) {
    return whole.transpose(n->dim0, n->dim1);
  }
  if (const auto* n = Is<generated::PermuteBackward0>(node)) return whole.permute(n->dims);
  if (const auto* n = Is<generated::SliceBackward0>(node)) {
    return whole.slice(n->dim, n->start ? std::optional(n->start->expect_int()) : std::nullopt,
                       n->end ? std::optional(n->end->expect_int()) : std::nullopt,
                       n->step.expect_int());
  }
  if (const auto* n = Is<generated::SelectBackward0>(node)) {
    return whole.select(n->dim, n->index.expect_int());
  }
  if (const auto* n = Is<generated::UnbindBackward0>(node)) {
    return whole.select(n->dim, static_cast<std::int64_t>(step.output));
  }
  if (const auto* n = Is<generated::SplitBackward0>(node)) return EqualPart(*n, step, whole);
  if (const auto* n = Is<generated::UnsafeSplitBackward0>(node)) return EqualPart(*n, step, whole);
  if (const auto* n = Is<generated::SplitWithSizesBackward0>(node)) {
    return ListedPart(*n, step, whole);
  }
  if (const auto* n = Is<generated::UnsafeSplitWithSizesBackward0>(node)) {
    return ListedPart(*n, step, whole);
  }
  const auto sizes = OutputSizes(node, step.output);
  if (Is<generated::ExpandBackward0>(node) != nullptr) return whole.expand(sizes);
  if (const auto* n = Is<generated::RepeatBackward0>(node)) {
    std::vector<std::int64_t> repeats;
    for (const auto& repeat : n->repeats) repeats.push_back(repeat.expect_int());
    return whole.repeat(repeats);
  }
  // Views, squeezes and copies keep the order of the entries.
  return whole.reshape(sizes);
}

bool RepeatsEntries(const ParameterUse& use) {
  return std::any_of(use.path.begin(), use.path.end(), [](const PathStep& step) {
    return Is<generated::ExpandBackward0>(*step.node) != nullptr ||
           Is<generated::RepeatBackward0>(*step.node) != nullptr;
  });
}

// `tied`: lookups may be taken together with matrix products.
bool Stackable(TermKind first, TermKind second, bool turned, bool tied) {
  if (tied && first == TermKind::kLookup && second == TermKind::kOuter) return true;
  if (tied && first == TermKind::kOuter && second == TermKind::kLookup) return !turned;
  const auto whole_gradient = [](TermKind kind) {
    return kind == TermKind::kDirect || kind == TermKind::kRows;
  };
  if (turned) return first == TermKind::kOuter && second == TermKind::kOuter;
  if (first == TermKind::kConvolution) return false;
  return first == second || (whole_gradient(first) && whole_gradient(second));
}

bool Overlap(const at::Tensor& first, const at::Tensor& second, std::int64_t entries) {
  at::Tensor seen = at::zeros({entries}, at::TensorOptions().dtype(at::kBool));
  seen.index_fill_(0, first.reshape({-1}), true);
  return seen.index_select(0, second.reshape({-1})).any().item<bool>();
}

}  // namespace

at::Tensor PathPositions(const ParameterUse& use, at::IntArrayRef sizes) {
  at::Tensor positions = at::arange(c10::multiply_integers(sizes)).view(sizes);
  for (auto step = use.path.rbegin(); step != use.path.rend(); ++step) {
    positions = Forward(*step, positions);
  }
  SORDINO_CHECK(positions.sizes() == at::IntArrayRef(use.sizes),
                "the path of a parameter leads to the tensor that is used");
  return positions;
}

at::Tensor PullBack(const ParameterUse& use, at::Tensor gradient) {
  for (const PathStep& step : use.path) {
    ag::variable_list gradients(step.node->num_inputs());
    gradients[step.output] = std::move(gradient);
    gradient = (*step.node)(std::move(gradients))[0];
  }
  return gradient;
}

bool IsTransposition(const ParameterUse& use) {
  return use.path.size() == 1 && Is<generated::TBackward0>(*use.path[0].node) != nullptr &&
         use.sizes.size() == 2;
}

namespace {

// The clusters of the uses of a root, and whether it has to be written out.
struct Clusters {
  std::vector<UseCluster> clusters;
  bool written_out = false;
};

bool HasOnlyOuter(const UseCluster& cluster, const std::vector<TermKind>& kinds) {
  return std::all_of(cluster.uses.begin(), cluster.uses.end(),
                     [&](std::size_t use) { return kinds[use] == TermKind::kOuter; });
}

// A lookup that sees the matrix of the first use transposed cannot be turned; the others can.
void PutFirst(std::size_t use, UseCluster& cluster) {
  cluster.transposed.flip();
  cluster.uses.insert(cluster.uses.begin(), use);
  cluster.transposed.insert(cluster.transposed.begin(), false);
}

// A cluster of matrix products and lookups has one lookup, with as many rows for every example.
bool CannotBeTied(const Tape& tape, const UseCluster& cluster, const std::vector<TermKind>& kinds) {
  std::size_t lookups = 0;
  bool bags = false;
  for (const std::size_t use : cluster.uses) {
    if (kinds[use] != TermKind::kLookup) continue;
    ++lookups;
    const ag::Node& node = *tape.graph.nodes[tape.uses[use].node];
    bags = bags || Is<generated::EmbeddingBagBackward0>(node) != nullptr;
  }
  return lookups > 0 && lookups < cluster.uses.size() && (lookups > 1 || bags);
}

Clusters ClustersOf(const Tape& tape, const std::vector<std::size_t>& uses,
                    const std::vector<TermKind>& kinds, at::IntArrayRef sizes, bool tied) {
  Clusters result;
  std::vector<at::Tensor> first;  // positions of the first use of each cluster
  for (const std::size_t k : uses) {
    const ParameterUse& use = tape.uses[k];
    result.written_out = result.written_out || RepeatsEntries(use);
    const at::Tensor positions = PathPositions(use, sizes);
    bool placed = false;
    for (std::size_t c = 0; c < first.size() && !placed; ++c) {
      const bool same = positions.sizes() == first[c].sizes() && positions.equal(first[c]);
      const bool turned = !same && positions.dim() == 2 && first[c].dim() == 2 &&
                          positions.t().sizes() == first[c].sizes() &&
                          positions.t().equal(first[c]);
      if (!same && !turned) continue;
      placed = true;
      UseCluster& cluster = result.clusters[c];
      if (tied && turned && kinds[k] == TermKind::kLookup && HasOnlyOuter(cluster, kinds)) {
        PutFirst(k, cluster);
        first[c] = positions;
        continue;
      }
      result.written_out =
          result.written_out || !Stackable(kinds[cluster.uses.front()], kinds[k], turned, tied);
      cluster.uses.push_back(k);
      cluster.transposed.push_back(turned);
    }
    if (placed) continue;
    for (const at::Tensor& other : first) {
      result.written_out =
          result.written_out || Overlap(other, positions, c10::multiply_integers(sizes));
    }
    first.push_back(positions);
    result.clusters.push_back({{k}, {false}});
  }
  for (const UseCluster& cluster : result.clusters) {
    result.written_out = result.written_out || CannotBeTied(tape, cluster, kinds);
  }
  return result;
}

// Joins the families of the parameters of every derived tensor.
void FindFamilies(const Tape& tape, const std::vector<bool>& written_out, GradientPlan& plan) {
  std::vector<std::size_t> leader(tape.parameters);
  for (std::size_t p = 0; p < leader.size(); ++p) leader[p] = p;
  const auto find = [&](std::size_t p) {
    while (leader[p] != p) p = leader[p];
    return p;
  };
  std::vector<bool> in_family = written_out;
  for (const DerivedTensor& derived : tape.derived) {
    for (const std::size_t p : derived.parameters) {
      in_family[p] = true;
      leader[find(p)] = find(derived.parameters.front());
    }
  }
  std::vector<std::optional<std::size_t>> family_of(tape.parameters);
  for (std::size_t p = 0; p < tape.parameters; ++p) {
    if (!in_family[p]) continue;
    std::optional<std::size_t>& family = family_of[find(p)];
    if (!family) {
      family = plan.families.size();
      plan.families.emplace_back();
    }
    plan.families[*family].parameters.push_back(p);
    plan.roots[p].family = family;
  }
  for (std::size_t d = 0; d < tape.derived.size(); ++d) {
    const auto family = plan.roots[tape.derived[d].parameters.front()].family;
    plan.families[*family].derived.push_back(d);
    plan.roots[tape.parameters + d].family = family;
  }
}

}  // namespace

GradientPlan PlanGradients(const Tape& tape, const std::vector<TermKind>& kinds,
                           const std::vector<NamedParameter>& parameters, bool all_families) {
  std::vector<std::vector<std::size_t>> uses(tape.roots());
  for (std::size_t k = 0; k < tape.uses.size(); ++k) uses[tape.uses[k].root].push_back(k);
  GradientPlan plan;
  plan.roots.resize(tape.roots());
  std::vector<bool> written_out(tape.parameters, all_families);
  for (std::size_t root = 0; root < tape.roots(); ++root) {
    const bool is_parameter = root < tape.parameters;
    const at::IntArrayRef sizes = RootSizes(tape, root, parameters);
    const bool tied = is_parameter && parameters[root].value.is_cpu();
    Clusters clusters = ClustersOf(tape, uses[root], kinds, sizes, tied);
    plan.roots[root].clusters = std::move(clusters.clusters);
    if (is_parameter && clusters.written_out) written_out[root] = true;
  }
  FindFamilies(tape, written_out, plan);
  plan.positions.resize(tape.uses.size());
  const at::Device device = parameters.front().value.device();
  for (std::size_t k = 0; k < tape.uses.size() && !device.is_cpu(); ++k) {
    const ParameterUse& use = tape.uses[k];
    if (use.path.empty() || !plan.roots[use.root].family) continue;
    plan.positions[k] =
        PathPositions(use, RootSizes(tape, use.root, parameters)).reshape({-1}).to(device);
  }
  return plan;
}

}  // namespace sordino
