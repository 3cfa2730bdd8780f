#include "sordino/theory/clipped_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/theory/internal/symmetric_eigenvalues.h"

namespace sordino {
namespace {

constexpr std::array<std::string_view, 6> kFlowClippings = {
    "none", "local-flat", "local-layerwise", "global-flat", "global-layerwise", "global-declared"};
constexpr std::array<std::string_view, 2> kFlowProblemNames = {"fixed-kernel", "network"};

// The error of a step of the integration, in weights.
constexpr double kStepError = 1e-9;
constexpr double kFirstStep = 1e-3;
// Rates of the loss up to this share of the loss at the start are taken for rounding.
constexpr double kRateTolerance = 1e-9;

using Matrix = std::vector<std::vector<double>>;

double Dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

class LinearProblem final : public FlowProblem {
 public:
  LinearProblem(Matrix rows, std::vector<std::size_t> layers, std::vector<double> targets)
      : FlowProblem(std::move(layers)), rows_(std::move(rows)), targets_(std::move(targets)) {}

  std::vector<double> Start() const override { return std::vector<double>(layers().size(), 0.0); }
  FlowPoint At(std::span<const double> weights) const override {
    FlowPoint point{.residuals = {}, .derivatives = rows_};
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      point.residuals.push_back(Dot(rows_[i], weights) - targets_[i]);
    }
    return point;
  }

 private:
  Matrix rows_;
  std::vector<double> targets_;
};

constexpr std::size_t kUnits = 6;
constexpr std::size_t kInputs = 3;
constexpr std::size_t kFirstWeights = kUnits * (kInputs + 1);  // and biases

// The first layer has rows of kInputs weights and a bias, the second a weight for each unit.
class NetworkProblem final : public FlowProblem {
 public:
  NetworkProblem(std::vector<double> start, Matrix inputs, std::vector<double> targets)
      : FlowProblem(Layers()),
        start_(std::move(start)),
        inputs_(std::move(inputs)),
        targets_(std::move(targets)) {}

  static std::vector<std::size_t> Layers() {
    std::vector<std::size_t> layers(kFirstWeights, 0);
    layers.insert(layers.end(), kUnits, 1);
    return layers;
  }

  std::vector<double> Start() const override { return start_; }
  FlowPoint At(std::span<const double> weights) const override {
    FlowPoint point;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      std::vector<double> derivatives(weights.size());
      double output = 0;
      for (std::size_t u = 0; u < kUnits; ++u) {
        const auto row = weights.subspan(u * (kInputs + 1), kInputs + 1);
        const double unit = std::tanh(Dot(inputs_[i], row) + row[kInputs]);
        const double weight = weights[kFirstWeights + u];
        output += weight * unit;
        derivatives[kFirstWeights + u] = unit;
        const double slope = weight * (1 - unit * unit);
        for (std::size_t j = 0; j < kInputs; ++j) {
          derivatives[u * (kInputs + 1) + j] = slope * inputs_[i][j];
        }
        derivatives[u * (kInputs + 1) + kInputs] = slope;
      }
      point.residuals.push_back(output - targets_[i]);
      point.derivatives.push_back(std::move(derivatives));
    }
    return point;
  }

 private:
  std::vector<double> start_;
  Matrix inputs_;
  std::vector<double> targets_;
};

// Standard normal, from the engine alone: the distributions of the standard library differ between
// implementations.
double Normal(std::mt19937_64& random) {
  const double u = std::ldexp(static_cast<double>(random() >> 11) + 0.5, -53);
  const double v = std::ldexp(static_cast<double>(random() >> 11), -53);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

std::vector<double> Normals(std::size_t count, double scale, std::mt19937_64& random) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(scale * Normal(random));
  return numbers;
}

std::unique_ptr<FlowProblem> Drawn(std::string_view name, double scale, std::mt19937_64& random) {
  Matrix rows;
  if (name == "fixed-kernel") {
    for (int i = 0; i < 4; ++i) rows.push_back(Normals(4, 1, random));
    return FixedKernelProblem(std::move(rows), {0, 1, 2, 3}, Normals(4, scale, random));
  }
  const std::vector<double> centre = Normals(kInputs, 1, random);
  for (int i = 0; i < 5; ++i) {
    std::vector<double> row = Normals(kInputs, 0.5, random);
    for (std::size_t j = 0; j < kInputs; ++j) row[j] += centre[j];
    rows.push_back(std::move(row));
  }
  std::vector<double> start = Normals(kFirstWeights + kUnits, 1, random);
  return std::make_unique<NetworkProblem>(std::move(start), std::move(rows),
                                          Normals(5, scale, random));
}

class Flow {
 public:
  Flow(const FlowProblem& problem, const FlowClipping& clipping)
      : problem_(problem), clipping_(clipping), weights_(problem.Start()) {
    start_loss_ = LossOf(problem_.At(weights_));
    if (!(start_loss_ > 0))
      throw Error("the loss of a flow is 0 at its start; give other targets.");
    least_ = start_loss_;
  }

  FlowOutcome Follow(std::span<const double> times) {
    for (const double time : times) {
      StepTo(time);
      const FlowPoint point = problem_.At(weights_);
      outcome_.losses.push_back(LossOf(point) / start_loss_);
      LookAtKernel(point);
    }
    const std::vector<double> speed = Derivative(problem_.At(weights_));
    outcome_.end_speed = std::sqrt(Dot(speed, speed)) / clipping_.clip;
    return outcome_;
  }

 private:
  static double LossOf(const FlowPoint& point) {
    return Dot(point.residuals, point.residuals) /
           (2 * static_cast<double>(point.residuals.size()));
  }

  // [layers][examples]
  Matrix Norms(const FlowPoint& point) const {
    Matrix norms(problem_.layer_count(), std::vector<double>(point.residuals.size(), 0.0));
    for (std::size_t i = 0; i < point.residuals.size(); ++i) {
      for (std::size_t p = 0; p < weights_.size(); ++p) {
        const double g = point.residuals[i] * point.derivatives[i][p];
        norms[problem_.layers()[p]][i] += g * g;
      }
    }
    for (auto& row : norms) {
      for (double& norm : row) norm = std::sqrt(norm);
    }
    return norms;
  }

  double FactorOf(double norm, double bound) const { return norm > bound ? bound / norm : 1; }

  // [layers][examples]
  Matrix Factors(const FlowPoint& point) const {
    Matrix norms = Norms(point);
    const std::size_t layers = norms.size();
    const std::size_t examples = point.residuals.size();
    double bound = clipping_.clip;
    if (clipping_.name.ends_with("layerwise")) {
      bound /= std::sqrt(static_cast<double>(layers));
    } else {
      for (std::size_t i = 0; i < examples; ++i) {
        double square = 0;
        for (std::size_t r = 0; r < layers; ++r) square += norms[r][i] * norms[r][i];
        for (std::size_t r = 0; r < layers; ++r) norms[r][i] = std::sqrt(square);
      }
    }
    for (auto& row : norms) {
      const double largest = *std::max_element(row.begin(), row.end());
      for (double& norm : row) {
        if (clipping_.name == "none") {
          norm = 1;
        } else if (clipping_.name == "global-declared") {
          norm = norm <= clipping_.threshold ? clipping_.clip / clipping_.threshold : 0;
        } else {
          norm = FactorOf(clipping_.name.starts_with("global") ? largest : norm, bound);
        }
      }
    }
    return norms;
  }

  std::vector<double> Derivative(const FlowPoint& point) const {
    const Matrix factors = Factors(point);
    const auto n = static_cast<double>(point.residuals.size());
    std::vector<double> derivative(weights_.size(), 0.0);
    for (std::size_t i = 0; i < point.residuals.size(); ++i) {
      for (std::size_t p = 0; p < derivative.size(); ++p) {
        derivative[p] -=
            factors[problem_.layers()[p]][i] * point.residuals[i] * point.derivatives[i][p] / n;
      }
    }
    return derivative;
  }

  // What the loss does here, and how far it is above an earlier one.
  void LookAtLoss(const FlowPoint& point, const std::vector<double>& derivative) {
    double rate = 0;
    for (std::size_t i = 0; i < point.residuals.size(); ++i) {
      rate += point.residuals[i] * Dot(point.derivatives[i], derivative);
    }
    rate /= static_cast<double>(point.residuals.size());
    if (rate > kRateTolerance * start_loss_) outcome_.rises = true;
    const double loss = LossOf(point);
    least_ = std::min(least_, loss);
    outcome_.largest_rise = std::max(outcome_.largest_rise, (loss - least_) / start_loss_);
  }

  void LookAtKernel(const FlowPoint& point) {
    const Matrix factors = Factors(point);
    const std::size_t n = point.residuals.size();
    Matrix kernel(n, std::vector<double>(n, 0.0));
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t p = 0; p < weights_.size(); ++p) {
          kernel[i][j] +=
              point.derivatives[i][p] * point.derivatives[j][p] * factors[problem_.layers()[p]][j];
        }
      }
    }
    double largest = 0;
    double difference = 0;
    Matrix form = kernel;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        largest = std::max(largest, std::abs(kernel[i][j]));
        difference = std::max(difference, std::abs(kernel[i][j] - kernel[j][i]));
        form[i][j] = (kernel[i][j] + kernel[j][i]) / 2;
      }
    }
    if (largest == 0) return;  // every example is dropped
    outcome_.asymmetry = std::max(outcome_.asymmetry, difference / largest);
    const std::vector<double> eigenvalues = internal::SymmetricEigenvalues(form);
    outcome_.least_form =
        std::min(outcome_.least_form, eigenvalues.front() / std::abs(eigenvalues.back()));
  }

  void StepTo(double end) {
    while (time_ < end) {
      const double length = std::min(step_, end - time_);
      if (Try(length)) time_ = length == end - time_ ? end : time_ + length;
    }
  }

  // A step of Dormand and Prince; whether its error was small enough to be taken.
  bool Try(double length) {
    static constexpr std::array<std::array<double, 6>, 7> kStages = {
        {{},
         {1.0 / 5},
         {3.0 / 40, 9.0 / 40},
         {44.0 / 45, -56.0 / 15, 32.0 / 9},
         {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
         {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
         {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}}};
    static constexpr std::array<double, 7> kErrors = {
        71.0 / 57600, 0, -71.0 / 16695, 71.0 / 1920, -17253.0 / 339200, 22.0 / 525, -1.0 / 40};
    std::array<std::vector<double>, 7> slopes;
    std::vector<double> at = weights_;
    for (std::size_t stage = 0; stage < slopes.size(); ++stage) {
      for (std::size_t p = 0; p < at.size(); ++p) {
        double moved = 0;
        for (std::size_t s = 0; s < stage; ++s) moved += kStages[stage][s] * slopes[s][p];
        at[p] = weights_[p] + length * moved;
      }
      const FlowPoint point = problem_.At(at);
      slopes[stage] = Derivative(point);
      if (stage == 0) LookAtLoss(point, slopes[0]);
    }
    double error = 0;
    for (std::size_t p = 0; p < at.size(); ++p) {
      double off = 0;
      for (std::size_t s = 0; s < slopes.size(); ++s) off += kErrors[s] * slopes[s][p];
      error = std::max(error, std::abs(length * off));
    }
    const bool taken = error <= kStepError;
    // The last stage is at the end of the step.
    if (taken) weights_ = at;
    step_ = length * std::clamp(0.9 * std::pow(kStepError / (error + 1e-300), 0.2), 0.2, 5.0);
    return taken;
  }

  const FlowProblem& problem_;
  const FlowClipping& clipping_;
  std::vector<double> weights_;
  double time_ = 0;
  double step_ = kFirstStep;
  double start_loss_ = 0;
  double least_ = 0;
  FlowOutcome outcome_;
};

bool IsWellConditioned(const FlowProblem& problem) {
  const Matrix rows = problem.At(problem.Start()).derivatives;
  Matrix kernel(rows.size(), std::vector<double>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < rows.size(); ++j) kernel[i][j] = Dot(rows[i], rows[j]);
  }
  const std::vector<double> eigenvalues = internal::SymmetricEigenvalues(kernel);
  return eigenvalues.front() >= kLeastEigenvalue * eigenvalues.back();
}

}  // namespace

std::span<const std::string_view> FlowClippings() { return kFlowClippings; }
std::span<const std::string_view> FlowProblemNames() { return kFlowProblemNames; }

std::size_t FlowProblem::layer_count() const {
  return *std::max_element(layers_.begin(), layers_.end()) + 1;
}

std::unique_ptr<FlowProblem> FixedKernelProblem(std::vector<std::vector<double>> rows,
                                                std::vector<std::size_t> layers,
                                                std::vector<double> targets) {
  const bool fits = !layers.empty() && !rows.empty() && rows.size() == targets.size() &&
                    std::all_of(rows.begin(), rows.end(), [&](const std::vector<double>& row) {
                      return row.size() == layers.size();
                    });
  if (!fits) {
    throw Error(
        "the rows, layers and targets of a flow do not fit together; give a target for each row "
        "and a layer for each column.");
  }
  return std::make_unique<LinearProblem>(std::move(rows), std::move(layers), std::move(targets));
}

std::unique_ptr<FlowProblem> DrawFlowProblem(std::string_view name, double scale,
                                             std::mt19937_64& random) {
  const std::string_view known =
      kFlowProblemNames[IndexOfName("the problem", name, kFlowProblemNames)];
  if (!(scale > 0) || !std::isfinite(scale)) {
    throw Error(fmt::format("the scale of the targets is {}; give a number above 0.", scale));
  }
  for (;;) {
    std::unique_ptr<FlowProblem> problem = Drawn(known, scale, random);
    if (IsWellConditioned(*problem)) return problem;
  }
}

FlowOutcome FollowFlow(const FlowProblem& problem, const FlowClipping& clipping,
                       std::span<const double> times) {
  IndexOfName("the clipping", clipping.name, kFlowClippings);
  if (!(clipping.clip > 0) || !std::isfinite(clipping.clip)) {
    throw Error(fmt::format("the clipping norm is {}; give a number above 0.", clipping.clip));
  }
  if (!(clipping.threshold >= clipping.clip) || !std::isfinite(clipping.threshold)) {
    throw Error(fmt::format("the threshold is {}; give at least the clipping norm, {}.",
                            clipping.threshold, clipping.clip));
  }
  if (times.empty() || !(times.front() >= 0) || !std::is_sorted(times.begin(), times.end()) ||
      !std::isfinite(times.back())) {
    throw Error("the times of a flow must be finite numbers from 0 that increase.");
  }
  return Flow(problem, clipping).Follow(times);
}

}  // namespace sordino
