#include "sordino/gradients/jl_clipping.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/StringUtil.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <cstddef>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/gradients/internal/isolation/directional_derivative.h"
#include "sordino/gradients/internal/isolation/operation_comparison.h"
#include "sordino/gradients/internal/rounding/sum_sensitivity.h"

namespace sordino {
namespace {

// rho of the header: how far a computed directional derivative may be from <g, v>, over ||g||.
double DerivativeError(at::ScalarType type) { return type == at::kDouble ? 1e-10 : 1e-4; }

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
  return type;
}

void CheckGenerator(const at::Generator& generator, const std::vector<NamedParameter>& parameters) {
  if (!generator.defined()) {
    throw Error("The directions need a generator of their own; none was given.");
  }
  bool shared = generator == at::globalContext().defaultGenerator(at::kCPU);
  if (!parameters.empty() && !parameters[0].value.is_cpu()) {
    shared =
        shared || generator == at::globalContext().defaultGenerator(parameters[0].value.device());
  }
  if (shared) {
    throw Error(
        "The directions were to come from libtorch's default generator, which is rewound so that "
        "the model draws the same dropout masks again; give a generator of their own.");
  }
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
        const ClippingPolicy& policy, std::int64_t directions, at::Generator generator)
      : loss_(loss),
        parameters_(parameters),
        policy_(policy),
        directions_(directions),
        generator_(std::move(generator)),
        start_(generator_.defined() ? generator_.get_state() : at::Tensor()),
        type_(CheckedType(parameters)),
        groups_(policy.Groups(parameters)) {
    CheckGenerator(generator_, parameters_);
    if (parameters_.empty()) throw Error("There is no parameter to clip the gradient of.");
    if (directions_ < 1) {
      throw Error(
          c10::str("Norms are estimated from at least 1 direction, not ", directions_, "."));
    }
    SORDINO_CHECK(groups_.size() == parameters_.size(), "a parameter has no clipping group");
    group_count_ = *std::max_element(groups_.begin(), groups_.end()) + 1;
    for (const NamedParameter& parameter : parameters_) {
      const auto options = parameter.value.options().dtype(at::kDouble).requires_grad(false);
      sums_.push_back(at::zeros(parameter.value.sizes(), options));
    }
    clipped_ = at::zeros({group_count_}, sums_[0].options());
    AddCounts(at::zeros({group_count_, 0}, clipped_.options()));
  }

  Estimate Norms(RepeatedLoss& loss, std::int64_t examples);
  void Add(const Batch& batch, const JlOptions& options);

  std::int64_t group_count() const { return group_count_; }
  at::ScalarType type() const { return type_; }
  // How much larger ||g / scale|| may be than the bound on what is left after centring, over that
  // bound (clipping_policy.h); 1 without a transform.
  double Cancellation(const std::vector<double>& bounds) const {
    if (policy_.transform() == nullptr) return 1;
    const at::Tensor largest = policy_.Factors(at::zeros({group_count_, 1}, clipped_.options()));
    return TransformCancellation(*policy_.transform(),
                                 *std::min_element(bounds.begin(), bounds.end()),
                                 largest.max().item<double>());
  }
  SumParts Take();

 private:
  // Drawn in float64: the uniforms behind float32 normals have 24 bits, too coarse for the lower
  // tail of chi^2 with few directions.
  at::Tensor Direction(const at::Tensor& like) {
    const auto options = at::dtype(at::kDouble).device(generator_.device());
    return at::empty(like.sizes(), options).normal_(0, 1, generator_).to(like.device());
  }
  // Examples that contribute nothing: their norms count as infinite.
  void Drop(std::int64_t examples) {
    clipped_ += static_cast<double>(examples);
    AddCounts(at::full({group_count_, examples}, kInfinity, clipped_.options()));
  }
  void AddCounts(const at::Tensor& norms) {
    const at::Tensor counts = policy_.Counts(norms);
    if (counts.defined()) counts_ = counts_.defined() ? counts_ + counts : counts;
  }
  std::vector<at::Tensor> Gradients(const at::Tensor& losses, const at::Tensor& factors);
  void CheckAgreement(const Estimate& estimate, const at::Tensor& factors,
                      const std::vector<at::Tensor>& gradients) const;

  const LossFunction& loss_;
  const std::vector<NamedParameter>& parameters_;
  const ClippingPolicy& policy_;
  std::int64_t directions_;
  at::Generator generator_;
  at::Tensor start_;  // of the generator: all parts of a batch get the same directions
  at::ScalarType type_;
  std::vector<std::int64_t> groups_;
  std::int64_t group_count_ = 0;
  std::vector<at::Tensor> sums_;
  at::Tensor clipped_;
  at::Tensor counts_;
};

Estimate JlSum::Norms(RepeatedLoss& loss, std::int64_t examples) {
  const CoordinateTransform* transform = policy_.transform();
  generator_.set_state(start_);
  Estimate estimate;
  estimate.tangents.resize(parameters_.size());
  estimate.derivatives = at::zeros({group_count_, examples}, clipped_.options());
  at::Tensor squared = at::zeros_like(estimate.derivatives);
  for (std::int64_t group = 0; group < group_count_; ++group) {
    std::vector<at::Tensor> tangents(parameters_.size());
    at::Tensor derivatives;
    for (std::int64_t k = 0; k < directions_; ++k) {
      at::Tensor centre = at::zeros({}, clipped_.options());
      for (std::size_t p = 0; p < parameters_.size(); ++p) {
        if (groups_[p] != group) continue;
        const at::Tensor& value = parameters_[p].value;
        at::Tensor direction = Direction(value);
        if (transform != nullptr) {
          // <(g - centre) / scale, v> = <g, v / scale> - <centre, v / scale>
          direction = direction / transform->scale[p];
          centre += (transform->centre[p] * direction).sum();
        }
        tangents[p] = direction.to(value.scalar_type());
      }
      derivatives = loss.Derivatives(tangents);
      squared[group] += (derivatives - centre).square();
    }
    estimate.derivatives[group].copy_(derivatives);
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      if (groups_[p] == group) estimate.tangents[p] = tangents[p];
    }
  }
  estimate.norms = (squared / static_cast<double>(directions_)).sqrt_();
  return estimate;
}

std::vector<at::Tensor> JlSum::Gradients(const at::Tensor& losses, const at::Tensor& factors) {
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
        "The derivatives of forward and reverse mode disagree, so the estimated norms may not be "
        "those of the gradients; use exact norms, and see that the model draws its random numbers "
        "from libtorch's default generator and that its own autograd functions are right.");
  }
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

  RepeatedLoss repeated(loss_, batch, parameters_);
  const Estimate estimate = Norms(repeated, examples);
  const at::Tensor finite = at::isfinite(estimate.norms).all(0);
  const at::Tensor kept = finite.nonzero().squeeze(1);
  if (kept.size(0) < examples) {
    // Left in the graph, 0 * inf would reach the sum. The rest is estimated afresh: dropout masks
    // belong to places in the batch, and estimate and gradient must be of the same masks.
    Drop(examples - kept.size(0));
    Batch rest;
    for (const at::Tensor& tensor : batch) {
      rest.push_back(tensor.index_select(0, kept.to(tensor.device())));
    }
    Add(rest, options);
    return;
  }
  if (options.compare) {
    CompareWithJoint(loss_, batch, examples, GeneratorStates(parameters_[0].value.device()));
  }

  const at::Tensor factors = policy_.Factors(estimate.norms).to(at::kDouble);
  const std::vector<at::Tensor> gradients = Gradients(repeated.Losses(), factors);
  const bool good = std::all_of(gradients.begin(), gradients.end(), [](const at::Tensor& gradient) {
    return at::isfinite(gradient).all().item<bool>();
  });
  if (!good) {
    // An example with finite derivatives and a gradient that is not: found by halving.
    if (examples == 1) {
      Drop(1);
      return;
    }
    Add(Slice(batch, 0, examples / 2), options);
    Add(Slice(batch, examples / 2, examples), options);
    return;
  }
  CheckAgreement(estimate, factors, gradients);

  const at::Tensor total = factors.sum(1);
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (const CoordinateTransform* transform = policy_.transform()) {
      sums_[p] += (gradients[p] - total[groups_[p]] * transform->centre[p]) / transform->scale[p];
    } else {
      sums_[p] += gradients[p];
    }
  }
  clipped_ += (factors < 1).sum(1);
  AddCounts(estimate.norms);
}

SumParts JlSum::Take() {
  SumParts result;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    result.gradients.push_back(sums_[p].to(parameters_[p].value.scalar_type()));
  }
  result.clipped = PrivateValue<at::Tensor>(clipped_);
  result.counts = PrivateValue<at::Tensor>(counts_);
  return result;
}

}  // namespace

double JlSensitivityFactor(std::int64_t directions, double failure_probability) {
  if (directions < 1) {
    throw Error(c10::str("Norms are estimated from at least 1 direction, not ", directions, "."));
  }
  if (!(failure_probability > 0 && failure_probability <= 0.5)) {
    throw Error(c10::str("The failure probability of estimated norms lies above 0 and at most at ",
                         "0.5, not at ", failure_probability, "; try 1e-9."));
  }
  const boost::math::chi_squared distribution(static_cast<double>(directions));
  double quantile = boost::math::quantile(distribution, failure_probability);
  // The quantile is computed to some ulps; a smaller one is on the safe side.
  quantile *= 1 - 1e-12;
  while (quantile > 0 && boost::math::cdf(distribution, quantile) > failure_probability) {
    quantile *= 1 - 1e-9;
  }
  const double factor = std::sqrt(static_cast<double>(directions) / quantile) * (1 + 1e-15);
  if (!std::isfinite(factor)) {
    throw Error(c10::str("With ", directions, " directions the failure probability ",
                         failure_probability, " cannot be met; use more directions."));
  }
  return factor;
}

JlResult JlClippedSum(const LossFunction& loss, const Batch& batch,
                      const std::vector<NamedParameter>& parameters, const ClippingPolicy& policy,
                      const JlOptions& options, at::Generator generator) {
  const at::NoGradGuard no_grad;
  JlSum sum(loss, parameters, policy, options.directions, std::move(generator));
  const std::vector<double> bounds = policy.Bounds();
  SORDINO_CHECK(static_cast<std::int64_t>(bounds.size()) == sum.group_count(),
                "a clipping group has no bound");
  const double records = options.adjacency == Adjacency::kReplaceOne ? 2 : 1;
  const double beta = options.failure_probability.value();
  const double phi = JlSensitivityFactor(options.directions,
                                         beta / (records * static_cast<double>(sum.group_count())));
  const double rho = DerivativeError(sum.type());
  if (!(rho * phi < 0.5)) {
    throw Error(c10::str("With ", options.directions, " directions and the failure probability ",
                         beta, " an estimate may be ", phi,
                         " times too small, too close to its rounding; use more directions."));
  }
  sum.Add(batch, options);
  SumParts result = sum.Take();
  const double rounding = 1 + rho * sum.Cancellation(bounds);
  result.sensitivity =
      SumSensitivity(bounds, options.adjacency, 1, phi / (1 - rho * phi) * rounding * rounding - 1);
  if (policy.CountBound() > 0) {
    result.count_sensitivity =
        SumSensitivity(std::vector<double>{policy.CountBound()}, options.adjacency, 1, 0);
  }
  result.adjacency = options.adjacency;
  return {BoundedSum(std::move(result)), beta};
}

at::Tensor JlNorms(const LossFunction& loss, const Batch& batch,
                   const std::vector<NamedParameter>& parameters, const ClippingPolicy& policy,
                   std::int64_t directions, at::Generator generator) {
  const at::NoGradGuard no_grad;
  JlSum sum(loss, parameters, policy, directions, std::move(generator));
  RepeatedLoss repeated(loss, batch, parameters);
  return sum.Norms(repeated, Examples(batch)).norms;
}

}  // namespace sordino
