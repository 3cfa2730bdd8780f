#include <fmt/format.h>

#include <cmath>

#include "sordino/schedules/internal/schedule_arguments.h"
#include "sordino/schedules/schedule_shape.h"

namespace sordino {
namespace {

class StepCurve : public ScheduleCurve {
 public:
  StepCurve(std::int64_t every, double factor) : every_(every), factor_(factor) {}
  double Factor(std::int64_t step, std::int64_t) const override {
    return std::pow(factor_, std::floor(static_cast<double>(step) / static_cast<double>(every_)));
  }
  bool IsConstant() const override { return factor_ == 1; }
  std::string Arguments() const override { return fmt::format("{}:{}", every_, factor_); }

 private:
  std::int64_t every_;
  double factor_;
};

class Step : public ScheduleShape {
 public:
  Step() : ScheduleShape({.name = "step", .help = "F^⌊s/N⌋: times F after every N steps, F > 0"}) {}
  std::string_view Arguments() const override { return "N:F"; }
  std::string_view Note() const override {
    return "F is more than 0 and N is a whole number from 1";
  }
  std::shared_ptr<const ScheduleCurve> Parse(std::string_view arguments,
                                             std::string_view) const override {
    const std::size_t colon = arguments.find(':');
    if (colon == std::string_view::npos) return nullptr;
    const auto every = internal::CountFrom(arguments.substr(0, colon));
    const auto factor = internal::FactorFrom(arguments.substr(colon + 1), false);
    return every && factor ? std::make_shared<StepCurve>(*every, *factor) : nullptr;
  }
};

}  // namespace

const ScheduleShape& StepSchedule() {
  static const Step component;
  return component;
}

}  // namespace sordino
