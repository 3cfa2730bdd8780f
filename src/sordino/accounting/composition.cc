#include "sordino/accounting/composition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/renyi.h"
#include "sordino/base/check.h"

namespace sordino {
namespace {

double SampledEpsilon(double epsilon, double q) {
  if (q == 0) return 0;
  if (epsilon > 40) return epsilon + std::log(q + (1 - q) * std::exp(-epsilon));
  return std::log1p(q * std::expm1(epsilon)) * (1 + kAdvancedMargin);
}

}  // namespace

double LogAdd(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == -kInfinity ? a : a + std::log1p(std::exp(b - a));
}

StepGuarantee ComposeBasic(std::span<const StepGuarantee> steps) {
  StepGuarantee total;
  for (const StepGuarantee& step : steps) {
    if (step.count == 0) continue;
    const double times = static_cast<double>(step.count);
    total.epsilon += times * step.epsilon;
    total.log_delta = LogAdd(total.log_delta, std::log(times) + step.log_delta);
  }
  total.epsilon *= 1 + kAdvancedMargin;
  total.log_delta = std::min(0.0, total.log_delta + kAdvancedMargin);
  return total;
}

StepGuarantee AmplifyBySampling(StepGuarantee step, double q) {
  CheckRange("the sampling rate", q, 0, false, 1, false);
  step.epsilon = SampledEpsilon(step.epsilon, q);
  step.log_delta += std::log(q);
  return step;
}

double AdvancedEpsilon(std::span<const StepGuarantee> steps, double log_slack) {
  double mean = 0;
  double squares = 0;
  for (const StepGuarantee& step : steps) {
    const double times = static_cast<double>(step.count);
    mean += times * step.epsilon * std::tanh(0.5 * step.epsilon);
    squares += times * step.epsilon * step.epsilon;
  }
  if (squares == 0) return 0;
  return (std::sqrt(-2 * log_slack * squares) + mean) * (1 + kAdvancedMargin);
}

double LeastLogDelta(const Event& event) { return event.kind().LeastLogDelta(event); }

double SumOfLeastLogDeltas(const Event& event) {
  double total = -kInfinity;
  for (const auto& [child, count] : event.children()) {
    const double one = LeastLogDelta(child);
    if (one == -kInfinity) continue;
    total = LogAdd(total, one + std::log(static_cast<double>(count)));
  }
  return std::min(total, 0.0);
}

double EpsilonByCurve(const Event& event, double log_delta, std::optional<RenyiCurve>& curve) {
  if (!curve) curve.emplace(event);
  if (!curve->reason().empty()) return kInfinity;
  return curve->ToEpsilon(log_delta).epsilon;
}

double SampledStepEpsilon(const Event& child, double q, double log_delta,
                          std::optional<RenyiCurve>& curve) {
  if (q == 0) return 0;
  return SampledEpsilon(StepEpsilon(child, log_delta - std::log(q), curve), q);
}

double StepEpsilon(const Event& event, double log_delta) {
  std::optional<RenyiCurve> curve;
  return StepEpsilon(event, log_delta, curve);
}

double StepEpsilon(const Event& event, double log_delta, std::optional<RenyiCurve>& curve) {
  if (log_delta >= 0) return 0;
  if (const std::optional<double> sigma = EquivalentGaussian(event)) {
    return GaussianEpsilon(1 / *sigma, log_delta);
  }
  return event.kind().StepEpsilon(event, log_delta, curve);
}

namespace {

// Schedules of more steps than this are rounded to a grid of noises, 1 / kCoarsePoints apart.
constexpr std::size_t kManyDifferent = 256;
constexpr double kCoarsePoints = 512;

// The steps of an event with what each needs of delta.
class StepPlan {
 public:
  StepPlan(const Event& event, double log_delta) : log_delta_(log_delta) {
    double log_fixed = -kInfinity;
    const bool many = event.children().size() > kManyDifferent;
    for (const auto& [part, count] :
         (many ? CoarsenNoise(event, kCoarsePoints) : event).Flatten()) {
      Step step{part, count, LeastLogDelta(part), false, 0, std::nullopt};
      step.fixed_epsilon = StepEpsilon(part, step.log_least);
      step.adjustable = std::isinf(step.fixed_epsilon);
      const double times = static_cast<double>(count);
      if (step.adjustable) adjustable_ += times;
      log_fixed = LogAdd(log_fixed, std::log(times) + step.log_least);
      steps_.push_back(step);
    }
    if (log_fixed > log_delta || (log_fixed == log_delta && adjustable_ > 0 && log_delta < 0)) {
      reason_ = fmt::format("the steps' own deltas sum to {:.3g}, which leaves nothing of {:.3g}",
                            std::exp(log_fixed), std::exp(log_delta));
    } else if (log_delta == -kInfinity) {
      log_free_ = -kInfinity;
    } else {
      log_free_ = log_delta + std::log1p(-std::exp(log_fixed - log_delta));
    }
    if (reason_.empty() && adjustable_ > 0 && log_delta == -kInfinity) {
      reason_ = "delta is 0 and a step has no pure guarantee";
    }
  }

  // The guarantees when the adjustable steps share exp(log_share) beyond what they need.
  std::vector<StepGuarantee> At(double log_share) const {
    std::vector<StepGuarantee> guarantees;
    guarantees.reserve(steps_.size());
    for (const Step& step : steps_) {
      if (!step.adjustable) {
        guarantees.push_back({step.fixed_epsilon, step.log_least, step.count});
        continue;
      }
      const double log_delta = std::min(
          0.0, LogAdd(step.log_least, log_share - std::log(adjustable_) - kAdvancedMargin));
      guarantees.push_back({StepEpsilon(step.event, log_delta, step.curve), log_delta, step.count});
    }
    return guarantees;
  }

  bool empty() const { return steps_.empty(); }
  std::size_t size() const { return steps_.size(); }
  bool adjustable() const { return adjustable_ > 0; }
  double log_free() const { return log_free_; }
  double log_delta() const { return log_delta_; }
  const std::string& reason() const { return reason_; }

 private:
  struct Step {
    Event event;
    std::uint64_t count;
    double log_least;
    bool adjustable;
    double fixed_epsilon;
    mutable std::optional<RenyiCurve> curve;  // made when the step needs one, and kept
  };
  double log_delta_;
  std::vector<Step> steps_;
  double adjustable_ = 0;
  double log_free_ = -kInfinity;
  std::string reason_;
};

// What `result_of` makes of the plan, where there is something to compose and enough of delta.
template <typename ResultOf>
MethodResult Composed(const Event& event, double log_delta, std::string_view method,
                      ResultOf result_of) {
  SORDINO_CHECK(log_delta <= 0, "log delta above 0");
  if (log_delta == 0) return {0, ""};
  const StepPlan plan(event, log_delta);
  if (plan.empty()) return {0, ""};
  if (!plan.reason().empty()) return {kInfinity, plan.reason()};
  MethodResult result = result_of(plan);
  if (std::isinf(result.epsilon) && result.reason.empty()) {
    result.reason = fmt::format("{} composition gives no finite epsilon here", method);
  }
  return result;
}

// The fraction of the free delta that the steps get; the rest is the slack of the theorem.
constexpr std::array<double, 12> kFractions = {1e-3, 0.01, 0.05, 0.1, 0.2,  0.35,
                                               0.5,  0.65, 0.8,  0.9, 0.97, 0.999};
constexpr std::array<double, 2> kFewFractions = {0.2, 0.5};

std::span<const double> Fractions(const StepPlan& plan) {
  static constexpr std::array<double, 1> kNone = {0.0};
  if (!plan.adjustable()) return kNone;
  if (plan.size() > kManyDifferent / 4) return kFewFractions;
  return kFractions;
}

struct Split {
  double epsilon = kInfinity;
  double fraction = 0;
};

Split BestAdvanced(const StepPlan& plan) {
  Split best;
  for (const double fraction : Fractions(plan)) {
    const double epsilon = AdvancedEpsilon(plan.At(plan.log_free() + std::log(fraction)),
                                           plan.log_free() + std::log1p(-fraction));
    if (epsilon < best.epsilon) best = {epsilon, fraction};
  }
  return best;
}

}  // namespace

MethodResult BasicComposition(const Event& event, double log_delta) {
  return Composed(event, log_delta, "basic", [](const StepPlan& plan) {
    return MethodResult{ComposeBasic(plan.At(plan.log_free())).epsilon, ""};
  });
}

MethodResult AdvancedComposition(const Event& event, double log_delta) {
  return Composed(event, log_delta, "advanced", [](const StepPlan& plan) -> MethodResult {
    if (plan.log_free() > -kInfinity) return {BestAdvanced(plan).epsilon, ""};
    return {kInfinity, "advanced composition needs a delta above the sum of the steps' deltas"};
  });
}

MethodResult OptimalComposition(const Event& event, double log_delta) {
  return Composed(event, log_delta, "optimal", [&](const StepPlan& plan) {
    // Each evaluation sums binomial tails, so the split is taken from advanced composition, whose
    // optimum lies near, and only its neighbourhood is tried.
    double best = kInfinity;
    const double near = plan.log_free() == -kInfinity ? 0 : BestAdvanced(plan).fraction;
    const std::array<double, 3> factors = {1.0, 0.5, 1.5};
    const std::size_t tries =
        plan.adjustable() && plan.size() <= kManyDifferent / 4 ? factors.size() : 1;
    for (std::size_t i = 0; i < tries; ++i) {
      const double fraction = std::min(near * factors[i], 0.5 * (1 + near));
      const std::vector<StepGuarantee> steps = plan.At(plan.log_free() + std::log(fraction));
      best = std::min(best, OptimalEpsilon(steps, log_delta));
    }
    return MethodResult{best, ""};
  });
}

}  // namespace sordino
