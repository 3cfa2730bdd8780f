// Families of a pass: parameters whose gradients are written out for a few examples at a time.
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "sordino/gradients/internal/graph/per_example_pass.h"
#include "sordino/gradients/internal/graph/shared_gradients.h"
#include "sordino/gradients/internal/terms/tied_term.h"
#include "sordino/kernels/row_sums.h"

namespace sordino {
namespace {

// Of the gradients that are written out at once. On a GPU small chunks are launches that wait.
constexpr std::int64_t kChunkElements = 1 << 22;
constexpr std::int64_t kDeviceChunkElements = 1 << 28;

}  // namespace

// Gradients of the root for units [begin, end), [end - begin, entries], from all its parts;
// undefined without any.
at::Tensor PerExamplePass::Gradients(std::size_t root, std::int64_t begin, std::int64_t end) const {
  at::Tensor gradients;
  const at::IntArrayRef sizes = RootSizes(tape_, root, parameters_);
  const std::vector<RootTerm>& parts = states_[root].parts;
  if (parts.size() == 1 && tape_.uses[parts.front().use].path.empty()) {
    return Materialise(parts.front().term, begin, end).reshape({end - begin, -1});
  }
  for (const RootTerm& part : parts) {
    const at::Tensor own = Materialise(part.term, begin, end);
    if (!gradients.defined()) {
      gradients = at::zeros({end - begin, c10::multiply_integers(sizes)}, own.options());
    }
    const at::Tensor rows = own.reshape({end - begin, -1});
    const ParameterUse& use = tape_.uses[part.use];
    if (use.path.empty()) {
      gradients.add_(rows);
      continue;
    }
    const at::Tensor& known = plan_.positions[part.use];
    gradients.index_add_(1, known.defined() ? known : PathPositions(use, sizes).reshape({-1}),
                         rows);
  }
  return gradients;
}

// The same for each parameter of a family, with what its derived tensors add.
std::vector<at::Tensor> PerExamplePass::FamilyGradients(const Family& family, std::int64_t begin,
                                                        std::int64_t end) const {
  std::vector<at::Tensor> shared(tape_.parameters);
  if (!family.derived.empty()) {
    std::vector<at::Tensor> of_derived(tape_.derived.size());
    for (const std::size_t d : family.derived) {
      const std::size_t root = tape_.parameters + d;
      at::Tensor gradients = Gradients(root, begin, end);
      if (!gradients.defined()) continue;
      std::vector<std::int64_t> sizes = RootSizes(tape_, root, parameters_).vec();
      sizes.insert(sizes.begin(), end - begin);
      of_derived[d] = gradients.view(sizes);
    }
    shared = SharedGradients(tape_, of_derived);
  }
  std::vector<at::Tensor> result;
  for (const std::size_t p : family.parameters) {
    at::Tensor own = Gradients(p, begin, end);
    if (shared[p].defined()) own = own.defined() ? own + shared[p] : shared[p];
    result.push_back(std::move(own));
  }
  return result;
}

std::vector<ParameterTerm> PerExamplePass::TermsOf(std::size_t parameter) const {
  std::vector<ParameterTerm> terms;
  const std::optional<std::size_t>& family = plan_.roots[parameter].family;
  if (!family) {
    for (const RootTerm& part : states_[parameter].parts) {
      terms.push_back({part.use, part.term.lookup ? WrittenOut(part.term) : part.term});
    }
    return terms;
  }
  const std::vector<std::size_t>& members = plan_.families[*family].parameters;
  const auto index = static_cast<std::size_t>(std::find(members.begin(), members.end(), parameter) -
                                              members.begin());
  at::Tensor gradients = FamilyGradients(plan_.families[*family], 0, options_.units)[index];
  if (!gradients.defined()) return terms;
  terms.push_back({0,
                   {.kind = TermKind::kDirect,
                    .b = std::move(gradients),
                    .layout = {1, options_.units, 1},
                    .sizes = parameters_[parameter].value.sizes().vec()}});
  return terms;
}

// Visits the gradients of the parameters of a family, transformed where there is a transform, a few
// units at a time and always the same ones together: what the norms are taken of is bit for bit
// what the sums are of, so that nothing of the rounding in between has to be accounted for.
template <typename Visit>
void PerExamplePass::ForEachDense(const Family& family, const Visit& visit) const {
  const std::int64_t elements = squared_.is_cpu() ? kChunkElements : kDeviceChunkElements;
  std::int64_t entries = 1;
  for (const std::size_t p : family.parameters) entries += parameters_[p].value.numel();
  for (const std::size_t d : family.derived) {
    entries += c10::multiply_integers(tape_.derived[d].sizes);
  }
  const std::int64_t chunk = std::max<std::int64_t>(1, elements / entries);
  for (std::int64_t begin = 0; begin < options_.units; begin += chunk) {
    const std::int64_t end = std::min(begin + chunk, options_.units);
    std::vector<at::Tensor> all = FamilyGradients(family, begin, end);
    for (std::size_t k = 0; k < all.size(); ++k) {
      const std::size_t parameter = family.parameters[k];
      at::Tensor& gradients = all[k];
      if (options_.transform != nullptr) {
        const at::Tensor centre = options_.transform->centre[parameter].reshape({1, -1});
        const at::Tensor scale = options_.transform->scale[parameter].reshape({1, -1});
        gradients = gradients.defined() ? (gradients - centre) / scale
                                        : (-centre / scale).expand({end - begin, -1});
      }
      if (gradients.defined()) visit(parameter, begin, end, gradients);
    }
  }
}

// On a GPU the gradients are kept for the sums. Some operations add up in no fixed order there
// (lookups do), and gradients that are computed again could have other bits.
bool PerExamplePass::KeepsDense() const { return !squared_.is_cpu() && !options_.collect; }

void PerExamplePass::AddDenseNorms(const Family& family) {
  const bool keep = KeepsDense();
  ForEachDense(family, [&](std::size_t parameter, std::int64_t begin, std::int64_t end,
                           const at::Tensor& gradients) {
    const at::Tensor& squared = squared_of_[static_cast<std::size_t>(groups_[parameter])];
    squared.slice(0, begin, end).add_(RowSquaredNorms(gradients));
    if (keep) dense_.push_back({parameter, begin, end, gradients});
  });
  if (!keep) return;
  // What they were made of is not needed again.
  for (const std::size_t p : family.parameters) states_[p].parts.clear();
  for (const std::size_t d : family.derived) states_[tape_.parameters + d].parts.clear();
}

void PerExamplePass::AddDenseSums(const Family& family, const std::vector<ExampleFactors>& factors,
                                  bool all_finite, const SumAccuracy& accuracy,
                                  std::vector<at::Tensor>& sums) const {
  const auto add = [&](std::size_t parameter, std::int64_t begin, std::int64_t end,
                       const at::Tensor& gradients) {
    const Term term{.kind = TermKind::kDirect,
                    .b = gradients,
                    .layout = {1, end - begin, 1},
                    .sizes = parameters_[parameter].value.sizes().vec()};
    const ExampleFactors& group = factors[static_cast<std::size_t>(groups_[parameter])];
    const ExampleFactors own(group.float64.slice(0, begin, end), all_finite);
    const at::Tensor sum = WeightedSum(term, own, accuracy).to(at::kDouble);
    sums[parameter] = sums[parameter].defined() ? sums[parameter] + sum : sum;
  };
  if (KeepsDense()) {
    for (const DenseGradients& kept : dense_) {
      const std::optional<std::size_t>& own = plan_.roots[kept.parameter].family;
      if (&plan_.families[*own] == &family) {
        add(kept.parameter, kept.begin, kept.end, kept.gradients);
      }
    }
  } else {
    ForEachDense(family, add);
  }
  if (accuracy.wide) return;
  for (const std::size_t p : family.parameters) {
    const bool is_double = parameters_[p].value.scalar_type() == at::kDouble;
    if (sums[p].defined()) sums[p] = sums[p].to(is_double ? at::kDouble : at::kFloat);
  }
}

}  // namespace sordino
