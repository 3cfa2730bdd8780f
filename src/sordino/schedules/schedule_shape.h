// The shape of a schedule: a component whose text form is its name and its arguments.
//
// A new one is a file that defines a class derived from ScheduleShape and a function that returns
// it, and a line in schedule_list.inc. What parsing yields is a curve, which may own data.
#ifndef SORDINO_SCHEDULES_SCHEDULE_SHAPE_H_
#define SORDINO_SCHEDULES_SCHEDULE_SHAPE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sordino/base/component.h"

namespace sordino {

// What is known about a run that some shapes need (Schedule::Completed).
struct ScheduleTerms {
  std::optional<double> kappa = std::nullopt;     // condition number of the problem, or
  std::optional<double> decay = std::nullopt;     // share of the excess risk that a step leaves
  std::optional<double> momentum = std::nullopt;  // of the optimizer
};

class ScheduleCurve {
 public:
  virtual ~ScheduleCurve() = default;
  // Of step 0 ... steps - 1; not negative. Infinity becomes the largest double.
  virtual double Factor(std::int64_t step, std::int64_t steps) const = 0;
  // Whether the factor is 1 at every step.
  virtual bool IsConstant() const = 0;
  // The number of steps that it is for; nullopt: any. Factor() is asked for no other.
  virtual std::optional<std::int64_t> Length() const { return std::nullopt; }
  // As they are parsed, with every digit that counts: "0.1", "30:0.5"; empty where there are none.
  virtual std::string Arguments() const = 0;
};

class ScheduleShape : public Component {
 public:
  using Component::Component;

  // "linear:E"
  std::string Usage() const override;
  // Names of the arguments, with colons between them; empty where there are none.
  virtual std::string_view Arguments() const = 0;
  // What they can be: "E is at least 0".
  virtual std::string_view Note() const = 0;
  // Null for arguments that it does not take. `column` is what the schedule is of, as a file names
  // it: "noise", "clip", "rate" or "learning-rate".
  virtual std::shared_ptr<const ScheduleCurve> Parse(std::string_view arguments,
                                                     std::string_view column) const = 0;
  // Arguments that follow from what is known about the run; nullopt where they have to be given.
  // Throws Error for terms that are missing or outside of their range.
  virtual std::optional<std::string> ArgumentsFrom(const ScheduleTerms& terms) const {
    static_cast<void>(terms);
    return std::nullopt;
  }
};

const Registry<ScheduleShape>& ScheduleShapes();

}  // namespace sordino

#endif  // SORDINO_SCHEDULES_SCHEDULE_SHAPE_H_
