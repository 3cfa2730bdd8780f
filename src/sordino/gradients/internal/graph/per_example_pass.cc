#include "sordino/gradients/internal/graph/per_example_pass.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/quantity.h"
#include "sordino/gradients/internal/convolution/convolution_products.h"
#include "sordino/gradients/internal/graph/stand_ins.h"
#include "sordino/gradients/internal/rounding/rounding.h"
#include "sordino/gradients/internal/terms/fused_terms.h"
#include "sordino/gradients/internal/terms/norm_cost.h"
#include "sordino/gradients/internal/terms/term_rows.h"
#include "sordino/gradients/internal/terms/tied_term.h"
#include "sordino/kernels/row_sums.h"

namespace sordino {
namespace ag = torch::autograd;
namespace {

// Whether all that a term is computed from is float64.
bool IsFloat64(const Term& term) {
  const auto is = [](const at::Tensor& t) {
    return !t.defined() || at::toRealValueType(t.scalar_type()) == at::kDouble ||
           at::isIntegralType(t.scalar_type(), /*includeBool=*/true);
  };
  return is(term.a) && is(term.b);
}

}  // namespace

// Takes the gradient of a node before the node runs. Lives in the graph, and does nothing once the
// pass is over (its pointer is null), since a kept graph may run again.
class PerExamplePass::Listener : public ag::FunctionPreHook {
 public:
  Listener(std::shared_ptr<PerExamplePass*> pass, std::size_t node, bool last)
      : pass_(std::move(pass)), node_(node), last_(last) {}

  ag::variable_list operator()(const ag::variable_list& gradients) override {
    // A rule may run the node by itself.
    if (*pass_ == nullptr || (*pass_)->is_busy_) return gradients;
    (*pass_)->is_busy_ = true;
    (*pass_)->Arrived(node_, gradients);
    (*pass_)->is_busy_ = false;
    // Nobody after the last use wants the gradient: let it go instead of having it captured.
    return last_ ? ag::variable_list(gradients.size()) : gradients;
  }

 private:
  std::shared_ptr<PerExamplePass*> pass_;
  std::size_t node_;
  bool last_;
};

PerExamplePass::PerExamplePass(const at::Tensor& losses, const Tape& tape,
                               std::vector<std::unique_ptr<UseRule>> rules,
                               const std::vector<ExampleLayout>& layouts, const GradientPlan& plan,
                               const std::vector<NamedParameter>& parameters,
                               const std::vector<std::int64_t>& groups, const PassOptions& options)
    : tape_(tape),
      rules_(std::move(rules)),
      layouts_(layouts),
      plan_(plan),
      parameters_(parameters),
      groups_(groups),
      options_(options),
      uses_of_node_(tape.graph.nodes.size()),
      terms_(tape.uses.size()),
      states_(tape.roots()),
      missing_roots_(plan.families.size()) {
  const at::NoGradGuard no_grad;
  const std::int64_t group_count =
      groups.empty() ? 1 : *std::max_element(groups.begin(), groups.end()) + 1;
  at::Tensor loss_gradients;
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    squared_ = at::zeros({group_count, options.units}, losses.options().dtype(at::kDouble));
    for (std::int64_t group = 0; group < group_count; ++group) {
      squared_of_.push_back(squared_.select(0, group));
    }
    loss_gradients = at::full_like(losses, options.loss_weight);
  }
  takes_rows_ = options.transform == nullptr && !options.collect && HasRowOperations(losses);
  for (std::size_t k = 0; k < tape.uses.size(); ++k) {
    uses_of_node_[tape.uses[k].node].push_back(k);
    ++states_[tape.uses[k].root].missing;
  }
  for (std::size_t root = 0; root < states_.size(); ++root) {
    if (states_[root].missing > 0 && plan.roots[root].family) {
      ++missing_roots_[*plan.roots[root].family];
    }
  }
  Run(losses, loss_gradients);
  FinishAll();
}

// The backward pass, with a listener at each node that uses a parameter.
void PerExamplePass::Run(const at::Tensor& losses, const at::Tensor& loss_gradients) {
  const auto pass = std::make_shared<PerExamplePass*>(this);
  ag::edge_list outputs;
  StandIns stand_ins(tape_);
  for (std::size_t node = 0; node < tape_.graph.nodes.size(); ++node) {
    if (uses_of_node_[node].empty()) continue;
    const bool last = !tape_.leads_to_use[node];
    stand_ins.Add(node, rules_[uses_of_node_[node].front()]->Replacement(options_.keep_graph));
    stand_ins.Of(node)->add_tensor_pre_hook(std::make_unique<Listener>(pass, node, last));
    if (last) outputs.emplace_back(stand_ins.Of(node), 0);
  }
  stand_ins.TakeOver();
  if (!outputs.empty()) {
    ag::Engine::get_default_engine().execute({ag::impl::gradient_edge(losses)}, {loss_gradients},
                                             options_.keep_graph, /*create_graph=*/false,
                                             /*accumulate_grad=*/false, outputs);
  }
  *pass = nullptr;
}

// What has to wait for the end of the pass.
void PerExamplePass::FinishAll() {
  for (std::size_t root = 0; root < states_.size(); ++root) {
    // Uses that no gradient reached.
    if (states_[root].missing > 0 && !mismatch_) Finish(root);
  }
  for (const Family& family : plan_.families) {
    if (Waits(family) && !mismatch_) AddDenseNorms(family);
  }
  if (!mismatch_) AddRowNorms();
}

PerExamplePass::~PerExamplePass() = default;

void PerExamplePass::Arrived(std::size_t node, const std::vector<at::Tensor>& gradients) {
  const at::NoGradGuard no_grad;
  for (const std::size_t use : uses_of_node_[node]) {
    RootState& state = states_[tape_.uses[use].root];
    const at::Tensor gradient = rules_[use]->Arriving(gradients);
    if (gradient.defined() && gradient.numel() > 0 && !mismatch_) {
      const std::int64_t rows = rules_[use]->RowCount(gradient);
      ExampleLayout layout = layouts_[use];
      if (layout.inner == 0) layout = {1, options_.units, rows / options_.units};
      if (rows != layout.rows()) {
        mismatch_ = true;
        return;
      }
      terms_[use] = rules_[use]->MakeTerm(gradient, layout);
    }
    rules_[use].reset();
    if (--state.missing == 0 && !mismatch_) Finish(tape_.uses[use].root);
  }
}

void PerExamplePass::Finish(std::size_t root) {
  const RootPlan& plan = plan_.roots[root];
  RootState& state = states_[root];
  state.missing = 0;
  if (!plan.family) {
    for (const UseCluster& cluster : plan.clusters) FinishCluster(root, cluster);
    return;
  }
  for (const UseCluster& cluster : plan.clusters) {
    for (const std::size_t use : cluster.uses) {
      Term& term = terms_[use];
      if (!term.b.defined()) continue;
      all_float64_ = all_float64_ && IsFloat64(term);
      // Norms are of what is summed, so that kernels may compute it in their precision.
      if (!term.b.is_cpu() && Choose(term) == NormForm::kFused) term.fused = FusedUseOf(term);
      state.parts.push_back({std::move(term), use, false});
    }
  }
  const bool complete = --missing_roots_[*plan.family] == 0;
  if (complete && !Waits(plan_.families[*plan.family])) {
    AddDenseNorms(plan_.families[*plan.family]);
  }
}

void PerExamplePass::FinishCluster(std::size_t parameter, const UseCluster& cluster) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  std::vector<Term> terms;
  std::size_t use = cluster.uses.front();
  for (std::size_t k = 0; k < cluster.uses.size(); ++k) {
    Term term = std::move(terms_[cluster.uses[k]]);
    terms_[cluster.uses[k]] = {};
    if (!term.b.defined()) continue;
    all_float64_ = all_float64_ && IsFloat64(term);
    if (cluster.transposed[k]) std::swap(term.a, term.b);
    terms.push_back(std::move(term));
  }
  if (terms.empty()) return;

  RootTerm part;
  part.use = use;
  const bool whole_gradients =
      terms.front().kind == TermKind::kDirect || terms.front().kind == TermKind::kRows;
  if (whole_gradients && terms.size() > 1) {
    part.term = terms.front();
    part.term.kind = TermKind::kDirect;
    part.term.layout = {1, options_.units, 1};
    part.term.b = Materialise(terms.front(), 0, options_.units).clone();
    for (std::size_t k = 1; k < terms.size(); ++k) {
      part.term.b.add_(Materialise(terms[k], 0, options_.units));
    }
  } else {
    part.term = StackTied(std::move(terms));
  }
  part.term.sizes = tape_.uses[use].sizes;
  terms.clear();

  const at::Tensor& squared = squared_of_[static_cast<std::size_t>(groups_[parameter])];
  const NormForm form = Choose(part.term);
  if (form == NormForm::kFused) {
    // What its norm is taken of is what is summed: nothing of it is weighed.
    part.term.fused = FusedUseOf(part.term);
    AddFusedSquaredNorms(part.term, squared);
    states_[parameter].parts.push_back(std::move(part));
    return;
  }
  if (takes_rows_ && FinishWithOthers(parameter, part, form)) return;
  at::Tensor kept = AddSquaredNorms(part.term, form, squared);
  if (!kept.defined()) Weigh(part.term, groups_[parameter]);
  if (kept.defined() && !options_.collect) part.term = Direct(std::move(kept), part.term.sizes);
  states_[parameter].parts.push_back(std::move(part));
}

Term PerExamplePass::Direct(at::Tensor gradients, std::vector<std::int64_t> sizes) const {
  return {.kind = TermKind::kDirect,
          .b = std::move(gradients),
          .layout = {1, options_.units, 1},
          .sizes = std::move(sizes)};
}

// Records what a term that is not kept means for rounding.
void PerExamplePass::Weigh(const Term& term, std::int64_t group) {
  if (term.kind != TermKind::kOuter && term.kind != TermKind::kConvolution) return;
  std::int64_t features = 0;
  std::int64_t roundings = 0;
  std::int64_t rows = term.layout.rows_per_example();
  std::int64_t product_rows = std::numeric_limits<std::int64_t>::max();
  if (term.kind == TermKind::kOuter) {
    features = term.a.size(1) + term.b.size(1);
    roundings = std::min(kFeaturesPerGram, term.a.size(1)) + 1;
    if (term.lookup) {
      // Products with its rows are over all features of b, and norms of single rows have roundings
      // of their own.
      roundings = std::max<std::int64_t>(roundings + term.b.size(1), kNormRoundings);
      features = std::max<std::int64_t>(features, kNormRoundings);
      rows += term.lookup->layout.rows_per_example();
    } else if (rows == 1) {
      one_row_features_ = std::max(one_row_features_, features);
      return;
    } else {
      roundings += std::min(kFeaturesPerGram, term.b.size(1));
    }
  } else {
    // Norms of convolutions are of the rounded gradient itself, or from float64 Gram matrices.
    const at::Tensor& image = term.convolution.transposed ? term.a : term.b;
    rows *= image[0][0].numel();
    if (term.b.is_cpu()) product_rows = kRowsPerSum;
  }
  recomputed_features_ = std::max(recomputed_features_, features);
  recomputed_roundings_ = std::max(recomputed_roundings_, roundings);
  recomputed_rows_ = std::max(recomputed_rows_, rows);
  recomputed_product_rows_ = std::max(recomputed_product_rows_, std::min(rows, product_rows));
  if (!squared_mass_.defined()) squared_mass_ = at::zeros_like(squared_);
  squared_mass_.select(0, group).add_(AbsoluteMass(term).square());
}

NormForm PerExamplePass::Choose(const Term& term) const {
  switch (options_.norms) {
    case NormMethod::kMaterialise:
      return NormForm::kKeep;
    case NormMethod::kGhost:
      return NormForm::kGram;
    case NormMethod::kAutomatic:
    case NormMethod::kLoop:
      break;
  }
  return CheapestForm(term);
}

std::vector<at::Tensor> PerExamplePass::WeightedSums(const UnitFactors& given,
                                                     const SumAccuracy& accuracy) const {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  UnitFactors factors = given;
  if (takes_rows_ && !factors.float32.defined()) factors.float32 = factors.float64.to(at::kFloat);
  std::vector<ExampleFactors> by_group;
  by_group.reserve(squared_of_.size());
  for (std::int64_t group = 0; group < factors.float64.size(0); ++group) {
    by_group.emplace_back(
        factors.float64.select(0, group), factors.all_finite,
        factors.float32.defined() ? factors.float32.select(0, group) : at::Tensor());
  }
  std::vector<at::Tensor> sums(parameters_.size());
  const std::vector<at::Tensor> one_row_sums = AddRowSums(factors, accuracy, sums);
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const ExampleFactors& own = by_group[static_cast<std::size_t>(groups_[p])];
    if (plan_.roots[p].family) continue;
    for (std::size_t k = 0; k < states_[p].parts.size(); ++k) {
      const RootTerm& part = states_[p].parts[k];
      const ParameterUse& use = tape_.uses[part.use];
      const auto one_row = std::find(one_row_parts_.begin(), one_row_parts_.end(), std::pair(p, k));
      at::Tensor sum;
      if (one_row != one_row_parts_.end()) {
        sum = one_row_sums[static_cast<std::size_t>(one_row - one_row_parts_.begin())];
      } else if (part.term.kind == TermKind::kOuter && IsTransposition(use)) {
        sum = TransposedWeightedSum(part.term, own, accuracy);
      } else {
        sum = PullBack(use, WeightedSum(part.term, own, accuracy));
      }
      sums[p] = sums[p].defined() ? sums[p] + sum : sum;
    }
  }
  for (const Family& family : plan_.families) {
    AddDenseSums(family, by_group, factors.all_finite, accuracy, sums);
  }
  for (const at::Tensor& sum : sums) {
    SORDINO_CHECK(!accuracy.wide || !sum.defined() || sum.scalar_type() == at::kDouble,
                  "a sum of a large batch was rounded to float32");
  }
  return sums;
}

}  // namespace sordino
