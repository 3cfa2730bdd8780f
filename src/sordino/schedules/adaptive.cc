// Noise that a run lowers as it goes (training/adaptive_noise.h). As a schedule it is 1: the
// trainer multiplies, and a filter pays for it.
#include "sordino/base/error.h"
#include "sordino/schedules/schedule_shape.h"

namespace sordino {
namespace {

class AdaptiveCurve : public ScheduleCurve {
 public:
  double Factor(std::int64_t, std::int64_t) const override { return 1; }
  bool IsConstant() const override { return true; }
  std::string Arguments() const override { return ""; }
};

class Adaptive : public ScheduleShape {
 public:
  Adaptive()
      : ScheduleShape({.name = "adaptive",
                       .help = "of the noise of `sordino train` only: times `--noise-factor` "
                               "whenever a private measurement on held-out records shows little "
                               "progress"}) {}
  std::string_view Arguments() const override { return ""; }
  std::string_view Note() const override { return ""; }
  std::shared_ptr<const ScheduleCurve> Parse(std::string_view arguments,
                                             std::string_view column) const override {
    if (column != "noise") {
      throw Error(
          "the schedule 'adaptive' is for --noise-schedule; for a clipping norm that follows the "
          "data use --clipping adaptive, and give another schedule here.");
    }
    return arguments.empty() ? std::make_shared<AdaptiveCurve>() : nullptr;
  }
};

}  // namespace

const ScheduleShape& AdaptiveSchedule() {
  static const Adaptive component;
  return component;
}

}  // namespace sordino
