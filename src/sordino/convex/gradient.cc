// Gradient perturbation: projected descent on noised sums of gradients (Bassily, Smith and
// Thakurta, FOCS 2014; Song, Chaudhuri and Sarwate, 2013).
//
//     v <- m v + (sum_i clip(grad l_i) + noise + lambda theta),  theta <- project(theta - eta v)
//
// Sensitivity. A row's gradient x r^T has the norm |x| |r|; r is scaled down to C / R where it is
// longer, and |x| <= R, so the sum moves by at most C (add-remove, zero-out) or 2 C (replace-one),
// and the two computed sums by at most twice the rounding of internal/gradient_sum.h more. Theta is
// projected to |Theta| <= rho_max, where that rounding is bounded. Everything after the noise is
// post-processing. T full batches of Gaussian noise are T Gaussian releases; a batch that every row
// enters with probability q is a Poisson event; Laplace noise of scale z sqrt(d) times the L2
// sensitivity is a pure release of 1 / z (the L1 norm of d numbers is at most sqrt(d) times their
// L2 norm), T of them cost T / z by basic and less by advanced composition.
//
// Settings by theory. For Gaussian noise only the duration t = eta T / (1 - m) matters, not T
// (theory/empirical_risk.h): t is where the predicted risk is least, and T the least number of
// steps that reaches it with a stable step size, 1 / (curvature R^2 + lambda / n) of the mean. The
// momentum m = 1 - 5 / T, at most 0.9, only saves steps.
#include <ATen/Functions.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "sordino/accounting/calibration.h"
#include "sordino/accounting/failures.h"
#include "sordino/base/check.h"
#include "sordino/convex/internal/budget.h"
#include "sordino/convex/internal/gradient_sum.h"
#include "sordino/convex/internal/vector_noise.h"
#include "sordino/convex/method.h"
#include "sordino/random/bernoulli.h"

namespace sordino {
namespace {

constexpr double kMaxSteps = 100'000;
constexpr OptionSpec kSteps{.key = "steps",
                            .flag = "--steps",
                            .value_name = "T",
                            .help = "Steps of descent; by theory where it is left out",
                            .what = "the number of steps",
                            .type = OptionType::kWhole,
                            .low = 1,
                            .high = kMaxSteps,
                            .high_open = false};
constexpr OptionSpec kDuration{.key = "duration",
                               .flag = "--duration",
                               .value_name = "X",
                               .help =
                                   "Step size of the mean loss times steps; by theory where it "
                                   "is left out",
                               .what = "the duration",
                               .low_open = true};
constexpr OptionSpec kClip{.key = "clip",
                           .flag = "--clip",
                           .value_name = "X",
                           .help =
                               "Bound on the slope of a row's loss, at most the bound of the loss "
                               "itself; 1 for classes",
                           .what = "the bound on the slopes",
                           .low_open = true};
constexpr OptionSpec kBatch{.key = "batch",
                            .flag = "--batch",
                            .value_name = "N",
                            .help =
                                "Mean number of rows that are drawn for a step; all of them "
                                "where it is left out",
                            .what = "the batch size",
                            .type = OptionType::kWhole,
                            .low = 1};
constexpr OptionSpec kNoise{.key = "noise",
                            .flag = "--noise",
                            .value_name = "KIND",
                            .help = "gaussian, or laplace for pure epsilon",
                            .what = "the kind of noise",
                            .type = OptionType::kText,
                            .fallback = std::string_view("gaussian")};
constexpr const OptionSpec* kGradientOptions[] = {&kSteps, &kDuration, &kClip, &kBatch, &kNoise};

double Momentum(double steps) { return std::clamp(1 - 5 / steps, 0.0, 0.9); }

// Of Theta, for the projection. Noise in many dimensions is longer than the weights, and a small
// ball would shrink both: this one only bounds the rounding.
double Radius(const FitQuestion& question) { return 100 * internal::WeightNorm(question); }

// What a step's noise is multiplied with.
double StepSensitivity(const FitPlan& plan) {
  const double rounding = internal::MaxGradientRounding(plan.question.table, Radius(plan.question));
  // Below a sampler the unit is the bound on one row under every adjacency.
  if (plan.sampling_rate < 1) return plan.clip + 2 * rounding;
  return internal::NeighbourFactor(plan.question) * plan.clip + 2 * rounding;
}

Event StepEvent(const FitPlan& plan, NoiseMultiplier z) {
  const Adjacency adjacency = plan.question.adjacency;
  if (plan.is_laplace) return Event::Pure(Epsilon((1 / z.value()) * (1 + 0x1p-50)), adjacency);
  Event release = Event::Gaussian(z, adjacency);
  if (plan.sampling_rate == 1) return release;
  return Event::Poisson(EffectiveRate(SamplingRate(plan.sampling_rate)), release);
}

// The multiplier of one of T steps; nullopt where nothing meets the budget.
std::optional<double> StepMultiplier(const FitPlan& plan, std::int64_t steps) {
  const FitQuestion& q = plan.question;
  const auto t = static_cast<double>(steps);
  if (plan.is_laplace && q.delta.value() == 0) return t / q.epsilon.value() * (1 + 0x1p-40);
  if (!plan.is_laplace && plan.sampling_rate == 1) {
    return std::sqrt(t) / internal::GaussianBudget(q.epsilon, q.delta, plan.failure);
  }
  const double share = kFailureShares[1];
  if (!plan.is_laplace && !FailuresArePaid(plan.failure, q.epsilon, q.delta.value() * share)) {
    return std::nullopt;
  }
  const auto found = CalibrateNoise(
      [&](NoiseMultiplier z) {
        return Event::Repeat(StepEvent(plan, z), static_cast<std::uint64_t>(steps));
      },
      q.epsilon, plan.is_laplace ? q.delta : DeltaForEvents(q.delta, share));
  if (!found) return std::nullopt;
  return found->noise.value();
}

class Gradient : public FitMethod {
 public:
  Gradient()
      : FitMethod({.name = "gradient",
                   .help = "descent with noise on every sum of gradients",
                   .options = kGradientOptions}) {}

  void Check(const OptionValues& options) const override {
    const std::string noise = options.Text(kNoise);
    if (noise != "gaussian" && noise != "laplace") {
      throw Error("the kind of noise must be gaussian or laplace.");
    }
    if (noise == "laplace" && options.Has(kBatch.key)) {
      throw Error("Laplace noise cannot be used with a batch size; leave one of them out.");
    }
  }

  PlannedFit Plan(const FitQuestion& question, const OptionValues& options) const override {
    FitPlan plan;
    plan.method = Choice(std::string(name()), options);
    plan.question = question;
    plan.lambda = question.lambda.value_or(0);
    plan.is_laplace = question.delta.value() == 0 || options.Text(kNoise) == "laplace";
    const LossBounds bounds = internal::BoundsOf(question);
    const double slope = options.Has(kClip.key) ? options.Number(kClip) : DefaultSlope(question);
    plan.clip = std::min(slope, bounds.slope) * question.table.row_bound;
    if (options.Has(kBatch.key)) {
      plan.sampling_rate = std::min(
          1.0, static_cast<double>(options.Whole(kBatch)) / static_cast<double>(question.records));
      if (plan.is_laplace) return internal::Refused(*this, "a batch size needs a delta above 0.");
      if (plan.sampling_rate < 1 && question.rows_per_user > 1) {
        return internal::Refused(
            *this,
            "a batch draws rows one by one, and the rows of a user would enter "
            "it together or not; leave out the batch size.");
      }
    }
    return Complete(plan, options);
  }

  FitResult Run(const FitPlan& plan, const Problem& problem, RandomSource& source,
                const FitProgress& progress) const override {
    const double slope_clip = plan.clip / problem.shape().row_bound;
    const double radius = Radius(plan.question);
    const double sensitivity = StepSensitivity(plan);
    const double momentum = Momentum(static_cast<double>(plan.steps));
    at::Tensor theta = at::zeros({problem.shape().features, problem.scores()}, at::kDouble);
    at::Tensor velocity = at::zeros_like(theta);
    for (std::int64_t step = 0; step < plan.steps; ++step) {
      if (progress) progress(static_cast<double>(step) / static_cast<double>(plan.steps));
      const at::Tensor sum = Sum(plan, problem, theta, slope_clip, step, source);
      const at::Tensor noised = Noised(plan, sum, sensitivity, step, source);
      velocity.mul_(momentum).add_(noised).add_(theta, plan.lambda * plan.sampling_rate);
      theta.sub_(velocity, plan.step_size);
      const double norm = internal::NormBound(theta);
      if (norm > radius) theta.mul_(radius / norm);
    }
    if (progress) progress(1);
    return {.coefficients = theta};
  }

 private:
  // Slopes of classes are longer than 1 only where another class has most of the probability.
  static double DefaultSlope(const FitQuestion& question) {
    const bool classifies = CheckedLoss(question.table).Classifies();
    return classifies ? 1 : question.table.target_bound;
  }

  PlannedFit Complete(FitPlan plan, const OptionValues& options) const {
    const FitQuestion& q = plan.question;
    const auto n = static_cast<double>(q.records);
    const double r = q.table.row_bound;
    const double smoothness = internal::BoundsOf(q).curvature * r * r + plan.lambda / n;
    const auto p = static_cast<double>(internal::Parameters(q));
    std::vector<std::int64_t> candidates;
    if (options.Has(kSteps.key)) {
      candidates.push_back(options.Whole(kSteps));
    } else {
      for (const int steps : {5, 10, 20, 50, 100, 200, 500, 1000}) candidates.push_back(steps);
    }
    plan.excess_risk = kInfinity;
    for (const std::int64_t steps : candidates) {
      const auto t = static_cast<double>(steps);
      FitPlan tried = plan;
      tried.steps = steps;
      tried.failure = plan.is_laplace ? 0 : internal::GaussianFailure(t * p);
      const auto z = StepMultiplier(tried, steps);
      if (!z) continue;
      tried.multiplier = *z;
      // What one step would need: the noise of a step falls by sqrt(T) when all of T are one.
      const double deviation = tried.multiplier * StepSensitivity(tried) / tried.sampling_rate *
                               (plan.is_laplace ? std::numbers::sqrt2 * std::sqrt(p) : 1) /
                               std::sqrt(t);
      const double longest = t * (1 + Momentum(t)) / (1 - Momentum(t)) / smoothness;
      const auto risk = [&](double duration) {
        return DescentRisk(internal::ShapeOf(q), deviation, duration);
      };
      const double duration = options.Has(kDuration.key)
                                  ? options.Number(kDuration)
                                  : LeastRiskAt(risk, 1e-6 * longest, longest);
      tried.excess_risk = risk(duration);
      tried.step_size = duration * (1 - Momentum(t)) / t / n / tried.sampling_rate;
      // More steps only for a better prediction.
      if (tried.excess_risk < 0.98 * plan.excess_risk) plan = tried;
    }
    if (plan.steps == 0) {
      return internal::Refused(*this, "no noise of gradient perturbation meets this budget.");
    }
    plan.event = Event::Repeat(StepEvent(plan, NoiseMultiplier(plan.multiplier)),
                               static_cast<std::uint64_t>(plan.steps));
    plan.noises = {{"on each sum of gradients",
                    plan.multiplier * StepSensitivity(plan) *
                        (plan.is_laplace ? std::numbers::sqrt2 * std::sqrt(p) : 1)}};
    return internal::Planned(plan);
  }

  static at::Tensor Sum(const FitPlan& plan, const Problem& problem, const at::Tensor& theta,
                        double slope_clip, std::int64_t step, RandomSource& source) {
    if (plan.sampling_rate == 1) return internal::GradientSum(problem, theta, slope_clip);
    const auto stream = source.Stream(
        {.step = static_cast<std::uint64_t>(step), .rank = 0, .tensor = kSamplingStream});
    std::vector<std::uint64_t> drawn;
    PoissonSample(*stream, SamplingRate(plan.sampling_rate),
                  static_cast<std::uint64_t>(problem.rows()), drawn);
    const std::vector<std::int64_t> rows(drawn.begin(), drawn.end());
    return internal::GradientSum(problem, theta, slope_clip,
                                 at::tensor(rows, at::TensorOptions(at::kLong)));
  }

  static at::Tensor Noised(const FitPlan& plan, const at::Tensor& sum, double sensitivity,
                           std::int64_t step, RandomSource& source) {
    const auto stream =
        source.Stream({.step = static_cast<std::uint64_t>(step), .rank = 0, .tensor = 0});
    if (!plan.is_laplace) {
      return internal::AddGaussianNoise(sum, sensitivity, plan.multiplier, *stream).value;
    }
    const double l1 = sensitivity * std::sqrt(static_cast<double>(sum.numel())) * (1 + 0x1p-50);
    return internal::AddLaplaceNoise(sum, l1, plan.multiplier, *stream).value;
  }
};

}  // namespace

const FitMethod& GradientMethod() {
  static const Gradient component;
  return component;
}

}  // namespace sordino
