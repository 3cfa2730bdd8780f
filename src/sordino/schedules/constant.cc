#include "sordino/schedules/schedule_shape.h"

namespace sordino {
namespace {

class ConstantCurve : public ScheduleCurve {
 public:
  double Factor(std::int64_t, std::int64_t) const override { return 1; }
  bool IsConstant() const override { return true; }
  std::string Arguments() const override { return ""; }
};

class Constant : public ScheduleShape {
 public:
  Constant() : ScheduleShape({.name = "constant", .help = "1"}) {}
  std::string_view Arguments() const override { return ""; }
  std::string_view Note() const override { return ""; }
  std::shared_ptr<const ScheduleCurve> Parse(std::string_view arguments,
                                             std::string_view) const override {
    return arguments.empty() ? std::make_shared<ConstantCurve>() : nullptr;
  }
};

}  // namespace

const ScheduleShape& ConstantSchedule() {
  static const Constant component;
  return component;
}

}  // namespace sordino
