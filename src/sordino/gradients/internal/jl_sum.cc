#include "sordino/gradients/internal/jl_sum.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/StringUtil.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/device/precision.h"
#include "sordino/gradients/internal/isolation/directional_derivative.h"
#include "sordino/gradients/internal/isolation/operation_comparison.h"
#include "sordino/gradients/internal/physical_batch.h"

namespace sordino {
namespace {

// rho of the header: how far a computed directional derivative may be from <g, v>, over ||g||.
double DerivativeError(at::ScalarType type) { return type == at::kDouble ? 1e-10 : 1e-4; }

// Directions are rounded to this at the coarsest.
constexpr double kDirectionGrid = 0x1p-40;

at::ScalarType CheckedType(const std::vector<NamedParameter>& parameters) {
  at::ScalarType type = at::kDouble;
  for (const NamedParameter& parameter : parameters) {
    const at::ScalarType given = parameter.value.scalar_type();
    if (given != at::kFloat && given != at::kDouble) {
      throw Error(c10::str("Parameter '", parameter.name, "' has type ", given,
                           ", and norms are estimated by projections in float32 and float64 only; "
                           "use exact norms, or convert the model."));
    }
    if (given == at::kFloat) type = at::kFloat;
  }
  if (type == at::kFloat && UsedPrecision() == Precision::kBfloat16) {
    throw Error(
        "norms are estimated by projections in float32 and float64 only, and products are computed "
        "in bfloat16; use exact norms, or the precision tf32 or float32.");
  }
  return type;
}

struct Estimate {
  at::Tensor norms;  // [groups, examples]
  // The last direction, as tangents, and <g_i, tangents of group> by [groups, examples].
  std::vector<at::Tensor> tangents;
  at::Tensor derivatives;
};

class JlSum {
 public:
  JlSum(const LossFunction& loss, const std::vector<NamedParameter>& parameters,
        const ClippingPolicy& policy, std::int64_t count, const JlDirections& directions)
      : loss_(loss),
        parameters_(parameters),
        policy_(policy),
        count_(count),
        directions_(directions),
        type_(CheckedType(parameters)),
        groups_(policy.Groups(parameters)) {
    if (parameters_.empty()) throw Error("there is no parameter to clip the gradient of.");
    if (count_ < 1) {
      throw Error(c10::str("Norms are estimated from at least 1 direction, not ", count_, "."));
    }
    SORDINO_CHECK(groups_.size() == parameters_.size(), "a parameter has no clipping group");
    group_count_ = *std::max_element(groups_.begin(), groups_.end()) + 1;
    SORDINO_CHECK(static_cast<std::int64_t>(policy.Bounds().size()) == group_count_,
                  "a clipping group has no bound");
    for (const NamedParameter& parameter : parameters_) {
      const auto options = parameter.value.options().dtype(at::kDouble).requires_grad(false);
      sums_.push_back(at::zeros(parameter.value.sizes(), options));
    }
    clipped_ = at::zeros({group_count_}, sums_[0].options());
    AddCounts(at::zeros({group_count_, 0}, clipped_.options()));
  }

  Estimate Norms(RepeatedLoss& loss, std::int64_t examples);
  void Add(const Batch& batch, const JlOptions& options);
  void AddPart(const Batch& batch, bool compare);

  SumParts Take();

 private:
  std::vector<at::Tensor> Tangents(std::int64_t group, std::int64_t k, at::Tensor* centre) const;
  void AddCounts(const at::Tensor& norms) {
    const at::Tensor counts = policy_.Counts(norms);
    if (counts.defined()) counts_ = counts_.defined() ? counts_ + counts : counts;
  }
  std::vector<at::Tensor> Gradients(const at::Tensor& losses, const at::Tensor& factors) const;
  std::vector<at::Tensor> FiniteGradients(RepeatedLoss& loss, const Batch& batch,
                                          const at::Tensor& factors, at::Tensor& usable) const;
  void CheckAgreement(const Estimate& estimate, const at::Tensor& factors,
                      const std::vector<at::Tensor>& gradients) const;

  const LossFunction& loss_;
  const std::vector<NamedParameter>& parameters_;
  const ClippingPolicy& policy_;
  std::int64_t count_;  // of directions
  const JlDirections& directions_;
  at::ScalarType type_;
  std::vector<std::int64_t> groups_;
  std::int64_t group_count_ = 0;
  std::vector<at::Tensor> sums_;
  at::Tensor clipped_;
  at::Tensor counts_;
};

// Direction k of a group as tangents of its parameters; `centre` is what they give of the centre of
// a transform.
std::vector<at::Tensor> JlSum::Tangents(std::int64_t group, std::int64_t k,
                                        at::Tensor* centre) const {
  const CoordinateTransform* transform = policy_.transform();
  std::int64_t coordinates = 0;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (groups_[p] == group) coordinates += parameters_[p].value.numel();
  }
  const at::Tensor normals = directions_.Draw(group * count_ + k, coordinates);
  SORDINO_CHECK(normals.scalar_type() == at::kDouble && normals.numel() == coordinates,
                "a direction has another number of coordinates than was asked for");
  *centre = at::zeros({}, clipped_.options());
  std::vector<at::Tensor> tangents(parameters_.size());
  std::int64_t begin = 0;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (groups_[p] != group) continue;
    const at::Tensor& value = parameters_[p].value;
    at::Tensor direction =
        normals.narrow(0, begin, value.numel()).view(value.sizes()).to(value.device());
    begin += value.numel();
    if (transform != nullptr) {
      // <(g - centre) / scale, v> = <g, v / scale> - <centre, v / scale>
      direction = direction / transform->scale[p];
      *centre += (transform->centre[p] * direction).sum();
    }
    tangents[p] = direction.to(value.scalar_type());
  }
  return tangents;
}

Estimate JlSum::Norms(RepeatedLoss& loss, std::int64_t examples) {
  Estimate estimate;
  estimate.tangents.resize(parameters_.size());
  estimate.derivatives = at::zeros({group_count_, examples}, clipped_.options());
  at::Tensor squared = at::zeros_like(estimate.derivatives);
  for (std::int64_t group = 0; group < group_count_; ++group) {
    std::vector<at::Tensor> tangents;
    at::Tensor derivatives;
    for (std::int64_t k = 0; k < count_; ++k) {
      at::Tensor centre;
      tangents = Tangents(group, k, &centre);
      derivatives = loss.Derivatives(tangents);
      squared[group] += (derivatives - centre).square();
    }
    estimate.derivatives[group].copy_(derivatives);
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      if (groups_[p] == group) estimate.tangents[p] = tangents[p];
    }
  }
  estimate.norms = (squared / static_cast<double>(count_)).sqrt_();
  return estimate;
}

std::vector<at::Tensor> JlSum::Gradients(const at::Tensor& losses,
                                         const at::Tensor& factors) const {
  std::vector<at::Tensor> gradients(parameters_.size());
  for (std::int64_t group = 0; group < group_count_ && losses.requires_grad(); ++group) {
    std::vector<at::Tensor> inputs;
    std::vector<std::size_t> places;
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      if (groups_[p] != group) continue;
      inputs.push_back(parameters_[p].value);
      places.push_back(p);
    }
    if (inputs.empty()) continue;
    const auto results = torch::autograd::grad(
        {losses}, inputs, {factors[group].to(losses.options())},
        /*retain_graph=*/group + 1 < group_count_, /*create_graph=*/false, /*allow_unused=*/true);
    for (std::size_t i = 0; i < places.size(); ++i) gradients[places[i]] = results[i];
  }
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (!gradients[p].defined()) {
      gradients[p] = at::zeros_like(sums_[p]);
    } else {
      if (gradients[p].is_sparse()) gradients[p] = gradients[p].to_dense();
      gradients[p] = gradients[p].to(at::kDouble);
    }
  }
  return gradients;
}

void JlSum::CheckAgreement(const Estimate& estimate, const at::Tensor& factors,
                           const std::vector<at::Tensor>& gradients) const {
  const at::Tensor forward = (factors * estimate.derivatives).sum(1);
  at::Tensor reverse = at::zeros_like(forward);
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    reverse[groups_[p]] += (gradients[p] * estimate.tangents[p]).sum();
  }
  // Of one example with the error rho ||g||; the estimate may be well below the norm, and one
  // direction well above both, hence the second term and the factor.
  const at::Tensor scale = (factors * (estimate.norms + estimate.derivatives.abs())).sum(1);
  const at::Tensor apart = (forward - reverse).abs() > 4 * DerivativeError(type_) * scale;
  if (apart.any().item<bool>()) {
    throw Error(
        "the derivatives of forward and reverse mode disagree, so the estimated norms may not be "
        "those of the gradients; use exact norms, and see that the model draws its random numbers "
        "from libtorch's default generator and that its own autograd functions are right.");
  }
}

// The batch with the first usable example in the places of those that are not.
Batch Substituted(const Batch& batch, const at::Tensor& usable) {
  const std::int64_t examples = Examples(batch);
  const at::Tensor places = at::arange(examples, usable.options().dtype(at::kLong));
  const at::Tensor first = usable.to(at::kLong).argmax();
  const at::Tensor source = at::where(usable, places, first);
  Batch substituted;
  for (const at::Tensor& tensor : batch) {
    substituted.push_back(tensor.index_select(0, source.to(tensor.device())));
  }
  return substituted;
}

// sum_i factor_i g_i over the usable examples; those whose gradients are not finite are found by
// halving, and taken out of `usable`. Left in the graph, 0 * inf would reach the sum.
std::vector<at::Tensor> JlSum::FiniteGradients(RepeatedLoss& loss, const Batch& batch,
                                               const at::Tensor& factors,
                                               at::Tensor& usable) const {
  const at::Tensor places = usable.nonzero().squeeze(1);
  const std::int64_t count = places.size(0);
  std::vector<at::Tensor> sum;
  for (const at::Tensor& zeros : sums_) sum.push_back(at::zeros_like(zeros));
  if (count == 0) return sum;
  const bool all = count == usable.size(0);
  std::vector<at::Tensor> gradients =
      Gradients(loss.Losses(all ? batch : Substituted(batch, usable)),
                factors.masked_fill(usable.logical_not(), 0));
  const bool finite = std::all_of(
      gradients.begin(), gradients.end(),
      [](const at::Tensor& gradient) { return at::isfinite(gradient).all().item<bool>(); });
  if (finite) return gradients;
  if (count == 1) {
    usable = at::zeros_like(usable);
    return sum;
  }
  at::Tensor found = at::zeros_like(usable);
  for (const auto& [begin, end] :
       {std::pair{std::int64_t{0}, count / 2}, std::pair{count / 2, count}}) {
    at::Tensor half = at::zeros_like(usable).index_fill(0, places.slice(0, begin, end), true);
    const std::vector<at::Tensor> part = FiniteGradients(loss, batch, factors, half);
    for (std::size_t p = 0; p < sum.size(); ++p) sum[p] += part[p];
    found = found.logical_or(half);
  }
  usable = found;
  return sum;
}

void JlSum::Add(const Batch& batch, const JlOptions& options) {
  const std::int64_t examples = Examples(batch);
  if (examples == 0) return;
  if (options.physical_batch > 0 && examples > options.physical_batch) {
    for (std::int64_t begin = 0; begin < examples; begin += options.physical_batch) {
      Add(Slice(batch, begin, std::min(begin + options.physical_batch, examples)), options);
    }
    return;
  }
  if (options.made_up.empty()) return AddPart(batch, options.compare);
  try {
    return AddPart(batch, /*compare=*/false);
  } catch (const std::exception& error) {
    if (IsOutOfMemory(error)) throw;
    // What made-up examples show as well is no secret.
    JlSum(loss_, parameters_, policy_, count_, directions_).AddPart(options.made_up, false);
  }
  for (std::int64_t k = 0; k < examples; ++k) {
    try {
      AddPart(Slice(batch, k, k + 1), /*compare=*/false);
    } catch (const std::exception& error) {
      if (IsOutOfMemory(error)) throw;
      clipped_ += 1;
      AddCounts(at::full({group_count_, 1}, kInfinity, clipped_.options()));
    }
  }
}

// Changes nothing where it throws.
void JlSum::AddPart(const Batch& batch, bool compare) {
  const std::int64_t examples = Examples(batch);
  RepeatedLoss repeated(loss_, batch, parameters_);
  const Estimate estimate = Norms(repeated, examples);
  if (repeated.DrewRandomNumbers()) {
    throw Error(
        "the model draws random numbers (dropout), and norms that are estimated by projections are "
        "proven for models that do not; take dropout out of the model, or use exact norms.");
  }
  at::Tensor usable = at::isfinite(estimate.norms).all(0);
  at::Tensor factors = policy_.Factors(estimate.norms).to(at::kDouble);
  factors.masked_fill_(usable.logical_not(), 0);
  if (compare && usable.any().item<bool>()) {
    CompareWithJoint(loss_, Substituted(batch, usable), examples,
                     GeneratorStates(parameters_[0].value.device()));
  }
  const std::vector<at::Tensor> gradients = FiniteGradients(repeated, batch, factors, usable);
  const at::Tensor unusable = usable.logical_not();
  factors.masked_fill_(unusable, 0);
  Estimate finite = estimate;
  finite.norms = estimate.norms.masked_fill(unusable, 0);
  finite.derivatives = estimate.derivatives.masked_fill(unusable, 0);
  CheckAgreement(finite, factors, gradients);

  const at::Tensor total = factors.sum(1);
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (const CoordinateTransform* transform = policy_.transform()) {
      sums_[p] += (gradients[p] - total[groups_[p]] * transform->centre[p]) / transform->scale[p];
    } else {
      sums_[p] += gradients[p];
    }
  }
  clipped_ += (factors < 1).sum(1);
  // An example that contributes nothing counts as one of infinite norm.
  AddCounts(estimate.norms.masked_fill(unusable, kInfinity));
}

SumParts JlSum::Take() {
  SumParts result;
  result.gradients = std::move(sums_);
  result.clipped = PrivateValue<at::Tensor>(clipped_);
  result.counts = PrivateValue<at::Tensor>(counts_);
  return result;
}

// How much larger ||g / scale|| may be than the bound on what is left after centring, over that
// bound (clipping_policy.h); 1 without a transform.
double CancellationOf(const ClippingPolicy& policy) {
  if (policy.transform() == nullptr) return 1;
  const std::vector<double> bounds = policy.Bounds();
  const auto groups = static_cast<std::int64_t>(bounds.size());
  const at::Tensor largest = policy.Factors(at::zeros({groups, 1}, at::kDouble));
  return TransformCancellation(*policy.transform(), *std::min_element(bounds.begin(), bounds.end()),
                               largest.max().item<double>());
}

}  // namespace

SumParts JlTotals(const LossFunction& loss, const Batch& batch,
                  const std::vector<NamedParameter>& parameters, const ClippingPolicy& policy,
                  const JlOptions& options, const JlDirections& directions) {
  const at::NoGradGuard no_grad;
  if (options.compare && !options.made_up.empty()) {
    CheckJl(loss, parameters, policy, options, directions);
  }
  JlSum sum(loss, parameters, policy, options.directions, directions);
  sum.Add(batch, options);
  return sum.Take();
}

void CheckJl(const LossFunction& loss, const std::vector<NamedParameter>& parameters,
             const ClippingPolicy& policy, const JlOptions& options,
             const JlDirections& directions) {
  const at::NoGradGuard no_grad;
  JlSum(loss, parameters, policy, options.directions, directions)
      .AddPart(options.made_up, options.compare);
}

double JlExcess(const std::vector<NamedParameter>& parameters, const ClippingPolicy& policy,
                const JlOptions& options, double estimates) {
  const double beta = options.failure_probability.value();
  const double phi = JlSensitivityFactor(options.directions, beta / estimates);
  double coordinates = 0;
  for (const NamedParameter& parameter : parameters) {
    coordinates += static_cast<double>(parameter.value.numel());
  }
  const double rho =
      DerivativeError(CheckedType(parameters)) + std::sqrt(coordinates) * kDirectionGrid;
  if (!(rho * phi < 0.5)) {
    throw Error(c10::str("With ", options.directions, " directions and the failure probability ",
                         beta, " an estimate may be ", phi,
                         " times too small, too close to its rounding; use more directions."));
  }
  const double backward = 1 + rho * CancellationOf(policy);
  return phi / (1 - rho * phi) * backward * backward;
}

at::Tensor JlEstimates(const LossFunction& loss, const Batch& batch,
                       const std::vector<NamedParameter>& parameters, const ClippingPolicy& policy,
                       std::int64_t count, const JlDirections& directions) {
  const at::NoGradGuard no_grad;
  JlSum sum(loss, parameters, policy, count, directions);
  RepeatedLoss repeated(loss, batch, parameters);
  return sum.Norms(repeated, Examples(batch)).norms;
}

}  // namespace sordino
