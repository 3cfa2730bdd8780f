// The shape of a schedule of a test: half of the last factor in every step.
#include <cmath>

#include "sordino/schedules/schedule_shape.h"

namespace sordino {
namespace {

class HalvingCurve : public ScheduleCurve {
 public:
  double Factor(std::int64_t step, std::int64_t) const override {
    return std::exp2(-static_cast<double>(step));
  }
  bool IsConstant() const override { return false; }
  std::string Arguments() const override { return ""; }
};

class Halving : public ScheduleShape {
 public:
  Halving() : ScheduleShape({.name = "halving", .help = "of a test"}) {}
  std::string_view Arguments() const override { return ""; }
  std::string_view Note() const override { return ""; }
  std::shared_ptr<const ScheduleCurve> Parse(std::string_view arguments,
                                             std::string_view) const override {
    return arguments.empty() ? std::make_shared<HalvingCurve>() : nullptr;
  }
};

}  // namespace

const ScheduleShape& HalvingSchedule() {
  static const Halving component;
  return component;
}

}  // namespace sordino
