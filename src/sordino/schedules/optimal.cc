// The noise that spends a budget best in descent whose excess risk falls to a share G a step
// (Theorem 3.2 and Lemma 3.1 of Hong, Wang and Zhou, arXiv 2101.07413; theory/noise_schedule.h):
// the influence of step t of T is G^(T - t), and the best noise is its power -1/4.
#include <fmt/format.h>

#include <cmath>

#include "sordino/base/error.h"
#include "sordino/base/quantity.h"
#include "sordino/schedules/internal/schedule_arguments.h"
#include "sordino/schedules/schedule_shape.h"

namespace sordino {
namespace {

class OptimalCurve : public ScheduleCurve {
 public:
  explicit OptimalCurve(double decay) : decay_(decay) {}
  double Factor(std::int64_t step, std::int64_t steps) const override {
    return std::pow(decay_, -0.25 * static_cast<double>(steps - 1 - step));
  }
  bool IsConstant() const override { return false; }
  std::string Arguments() const override { return fmt::format("{}", decay_); }

 private:
  double decay_;
};

class Optimal : public ScheduleShape {
 public:
  Optimal()
      : ScheduleShape({.name = "optimal",
                       .help = "G^(−(n − 1 − s)/4), the best noise where a step leaves a share G "
                               "of the excess risk; without G by `--decay`, or `--kappa`: "
                               "G = 1 − 1/κ"}) {}
  std::string_view Arguments() const override { return "G"; }
  std::string_view Note() const override { return "G is between 0 and 1"; }
  std::shared_ptr<const ScheduleCurve> Parse(std::string_view arguments,
                                             std::string_view) const override {
    const std::optional<double> decay = internal::ShareFrom(arguments);
    return decay ? std::make_shared<OptimalCurve>(*decay) : nullptr;
  }
  std::optional<std::string> ArgumentsFrom(const ScheduleTerms& terms) const override {
    if (terms.decay) {
      CheckRange("--decay", *terms.decay, 0, true, 1, true);
      return fmt::format("{}", *terms.decay);
    }
    if (!terms.kappa) {
      throw Error(
          "the schedule 'optimal' needs --kappa, the condition number of the problem, or --decay, "
          "the share of the excess risk that a step leaves.");
    }
    CheckRange("--kappa", *terms.kappa, 1, true, kInfinity, true);
    return fmt::format("{}", 1 - 1 / *terms.kappa);
  }
};

}  // namespace

const ScheduleShape& OptimalSchedule() {
  static const Optimal component;
  return component;
}

}  // namespace sordino
