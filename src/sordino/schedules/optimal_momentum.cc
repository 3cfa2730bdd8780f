// The same as optimal.cc for debiased momentum B (Theorem 3.4 of the paper, theory/momentum.h).
#include <fmt/format.h>

#include <cmath>

#include "sordino/base/error.h"
#include "sordino/base/quantity.h"
#include "sordino/schedules/internal/schedule_arguments.h"
#include "sordino/schedules/schedule_shape.h"
#include "sordino/theory/momentum.h"

namespace sordino {
namespace {

class OptimalMomentumCurve : public ScheduleCurve {
 public:
  OptimalMomentumCurve(double momentum, double decay) : momentum_(momentum), decay_(decay) {}
  double Factor(std::int64_t step, std::int64_t steps) const override {
    return std::pow(MomentumInfluenceAt(momentum_, decay_, steps - step), -0.25);
  }
  bool IsConstant() const override { return false; }
  std::string Arguments() const override { return fmt::format("{}:{}", momentum_, decay_); }

 private:
  double momentum_;
  double decay_;
};

class OptimalMomentum : public ScheduleShape {
 public:
  OptimalMomentum()
      : ScheduleShape({.name = "optimal-momentum",
                       .help = "the same for debiased momentum B; without B and G by "
                               "`--momentum` and `--decay`, or `--kappa`"}) {}
  std::string_view Arguments() const override { return "B:G"; }
  std::string_view Note() const override { return "B is between 0 and 1"; }
  std::shared_ptr<const ScheduleCurve> Parse(std::string_view arguments,
                                             std::string_view) const override {
    const std::size_t colon = arguments.find(':');
    if (colon == std::string_view::npos) return nullptr;
    const auto momentum = internal::ShareFrom(arguments.substr(0, colon));
    const auto decay = internal::ShareFrom(arguments.substr(colon + 1));
    if (!momentum || !decay) return nullptr;
    return std::make_shared<OptimalMomentumCurve>(*momentum, *decay);
  }
  std::optional<std::string> ArgumentsFrom(const ScheduleTerms& terms) const override {
    if (!terms.momentum || !(*terms.momentum > 0)) {
      throw Error(
          "the schedule 'optimal-momentum' needs momentum; give --optimizer debiased-momentum with "
          "a --momentum above 0, or the schedule 'optimal'.");
    }
    if (terms.decay) {
      CheckRange("--decay", *terms.decay, 0, true, 1, true);
      return fmt::format("{}:{}", *terms.momentum, *terms.decay);
    }
    if (!terms.kappa) {
      throw Error(
          "the schedule 'optimal-momentum' needs --kappa, the condition number of the problem, or "
          "--decay, the share of the excess risk that a step leaves.");
    }
    CheckRange("--kappa", *terms.kappa, 1, true, kInfinity, true);
    // With the largest step size that the theorem takes.
    const double step = LargestMomentumStep(*terms.kappa, *terms.momentum);
    return fmt::format("{}:{}", *terms.momentum, 1 - step / *terms.kappa);
  }
};

}  // namespace

const ScheduleShape& OptimalMomentumSchedule() {
  static const OptimalMomentum component;
  return component;
}

}  // namespace sordino
