// The part of a pass that takes many matrices at once, on a GPU (device/row_operations.h).
#include <ATen/TensorOperators.h>

#include <cstddef>
#include <utility>

#include "sordino/gradients/internal/graph/per_example_pass.h"
#include "sordino/gradients/internal/rounding/rounding.h"
#include "sordino/gradients/internal/terms/term_rows.h"
#include "sordino/kernels/row_sums.h"

namespace sordino {

// Adds matrices whose norms are taken in one launch at the end of the pass.
void PerExamplePass::AddPiece(std::size_t parameter, std::initializer_list<at::Tensor> matrices) {
  const auto first = static_cast<int>(rows_.size());
  rows_.insert(rows_.end(), matrices);
  pieces_.push_back({.first = first,
                     .second = matrices.size() == 2 ? first + 1 : -1,
                     .group = static_cast<int>(groups_[parameter])});
}

// Without a norm yet, where it can be taken together with those of other terms; false where not.
bool PerExamplePass::FinishWithOthers(std::size_t parameter, RootTerm& part, NormForm form) {
  Term& term = part.term;
  if (term.kind == TermKind::kOuter && term.layout.rows_per_example() == 1) {
    term.a = Wide(term.a);
    term.b = Wide(term.b);
  }
  if (at::Tensor gradients = GradientsToKeep(term, form); gradients.defined()) {
    if (!HasRowOperations(gradients)) {
      squared_of_[static_cast<std::size_t>(groups_[parameter])].add_(RowSquaredNorms(gradients));
    } else {
      AddPiece(parameter, {gradients});
      if (tape_.uses[part.use].path.empty()) {
        row_sums_.emplace_back(parameter, std::move(gradients));
        return true;
      }
    }
    term = Direct(std::move(gradients), term.sizes);
  } else if (term.kind == TermKind::kOuter && term.layout.rows_per_example() == 1 &&
             HasRowOperations(term.a) && HasRowOperations(term.b)) {
    AddPiece(parameter, {term.a, term.b});
    Weigh(term, groups_[parameter]);
    one_row_parts_.emplace_back(parameter, states_[parameter].parts.size());
  } else {
    return false;
  }
  states_[parameter].parts.push_back(std::move(part));
  return true;
}

void PerExamplePass::AddRowNorms() {
  if (pieces_.empty()) return;
  DeviceAddRowNorms(rows_, pieces_, kMaxRowsNorm * kMaxRowsNorm, squared_);
  rows_.clear();
}

// Adds the sums of row_sums_, and returns those of one_row_parts_, in their order, as their
// parameters want them.
std::vector<at::Tensor> PerExamplePass::AddRowSums(const UnitFactors& factors,
                                                   const SumAccuracy& accuracy,
                                                   std::vector<at::Tensor>& sums) const {
  std::vector<at::Tensor> products;
  std::vector<at::Tensor> found;
  if (row_sums_.empty() && one_row_parts_.empty()) return products;
  std::vector<FactoredProduct> small;
  small.reserve(one_row_parts_.size() + row_sums_.size());
  for (const auto& [p, part] : one_row_parts_) {
    const RootTerm& own = states_[p].parts[part];
    const bool is_turned = IsTransposition(tape_.uses[own.use]);
    small.push_back(
        {is_turned ? own.term.b : own.term.a, is_turned ? own.term.a : own.term.b, groups_[p]});
  }
  for (const auto& [p, gradients] : row_sums_) small.push_back({{}, gradients, groups_[p]});
  if (!accuracy.wide && AreSmallProducts(small, options_.units)) {
    products = DeviceRowProducts(small, factors.float64);
    const auto middle = products.begin() + static_cast<std::ptrdiff_t>(one_row_parts_.size());
    found.assign(middle, products.end());
    products.erase(middle, products.end());
    for (std::size_t k = 0; k < products.size(); ++k) {
      const RootTerm& own = states_[one_row_parts_[k].first].parts[one_row_parts_[k].second];
      const ParameterUse& use = tape_.uses[own.use];
      if (!IsTransposition(use)) products[k] = PullBack(use, products[k].reshape(own.term.sizes));
    }
  } else {
    products = OneRowProducts(factors, accuracy);
    std::vector<FactoredRows> rows;
    rows.reserve(row_sums_.size());
    for (const auto& [p, gradients] : row_sums_) rows.push_back({gradients, groups_[p]});
    if (!rows.empty()) found = DeviceRowSums(rows, factors.float64, accuracy.wide);
  }
  for (std::size_t k = 0; k < found.size(); ++k) {
    const std::size_t p = row_sums_[k].first;
    const at::Tensor sum = found[k].view(parameters_[p].value.sizes());
    sums[p] = sums[p].defined() ? sums[p] + sum : sum;
  }
  return products;
}

// The sums of one_row_parts_ as products of libtorch.
std::vector<at::Tensor> PerExamplePass::OneRowProducts(const UnitFactors& factors,
                                                       const SumAccuracy& accuracy) const {
  std::vector<FactoredRows> rows;
  rows.reserve(2 * one_row_parts_.size());
  for (const auto& [p, part] : one_row_parts_) {
    const Term& term = states_[p].parts[part].term;
    rows.push_back({term.a, groups_[p], /*scales=*/false});
    rows.push_back({term.b, groups_[p], /*scales=*/true});
  }
  std::vector<at::Tensor> products;
  products.reserve(one_row_parts_.size());
  if (rows.empty()) return products;
  const std::vector<at::Tensor> scaled = DeviceScaledRows(rows, factors.float32);
  for (std::size_t k = 0; k < one_row_parts_.size(); ++k) {
    const auto& [p, part] = one_row_parts_[k];
    const Term& term = states_[p].parts[part].term;
    const ParameterUse& use = tape_.uses[states_[p].parts[part].use];
    const at::Tensor& left = scaled[2 * k];
    const at::Tensor& right = scaled[2 * k + 1];
    products.push_back(
        IsTransposition(use)
            ? ProductOfRows(right, left, accuracy)
            : PullBack(use, ProductOfRows(left, right, accuracy).reshape(term.sizes)));
  }
  return products;
}

}  // namespace sordino
