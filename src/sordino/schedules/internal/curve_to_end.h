// Shapes that go from 1 at the first step to E at the last: they differ in a formula.
#ifndef SORDINO_SCHEDULES_INTERNAL_CURVE_TO_END_H_
#define SORDINO_SCHEDULES_INTERNAL_CURVE_TO_END_H_

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

#include "sordino/schedules/internal/schedule_arguments.h"
#include "sordino/schedules/schedule_shape.h"

namespace sordino::internal {

// The factor at t in [0, 1]: 1 at t = 0 and `end` at t = 1, exactly.
using ToEnd = double (*)(double end, double t);

class CurveToEnd : public ScheduleCurve {
 public:
  CurveToEnd(ToEnd formula, double end) : formula_(formula), end_(end) {}
  double Factor(std::int64_t step, std::int64_t steps) const override {
    return formula_(end_, Progress(step, steps));
  }
  bool IsConstant() const override { return end_ == 1; }
  std::string Arguments() const override { return fmt::format("{}", end_); }

 private:
  ToEnd formula_;
  double end_;
};

class ShapeToEnd : public ScheduleShape {
 public:
  ShapeToEnd(Row row, ToEnd formula, bool zero_is_allowed, std::string_view note)
      : ScheduleShape(row), formula_(formula), zero_is_allowed_(zero_is_allowed), note_(note) {}

  std::string_view Arguments() const override { return "E"; }
  std::string_view Note() const override { return note_; }
  std::shared_ptr<const ScheduleCurve> Parse(std::string_view arguments,
                                             std::string_view) const override {
    const std::optional<double> end = FactorFrom(arguments, zero_is_allowed_);
    return end ? std::make_shared<CurveToEnd>(formula_, *end) : nullptr;
  }

 private:
  ToEnd formula_;
  bool zero_is_allowed_;
  std::string_view note_;
};

}  // namespace sordino::internal

#endif  // SORDINO_SCHEDULES_INTERNAL_CURVE_TO_END_H_
