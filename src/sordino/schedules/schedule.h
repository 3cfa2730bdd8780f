// A factor that changes over the steps of a run: of the learning rate, the noise, the clipping norm
// or the sampling rate.
//
// Text form (parsed and printed): a shape, `linear:0.1`, or `warmup:N,` and a shape. The shapes are
// components (schedule_shape.h, schedule_list.inc). With a warm-up the factor of the shape is
// multiplied by min(1, (step + 1) / N). "warmup:100,cosine:0" is a common choice for learning
// rates.
#ifndef SORDINO_SCHEDULES_SCHEDULE_H_
#define SORDINO_SCHEDULES_SCHEDULE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace sordino {

class ScheduleCurve;

class Schedule {
 public:
  Schedule() = default;  // constant
  // Throws Error that shows the grammar.
  static Schedule Parse(std::string_view text);
  // "constant, linear:E, ..., warmup:N,..." for a help text.
  static std::string Grammar();

  // Of step 0 ... steps - 1; finite, not negative.
  double Factor(std::int64_t step, std::int64_t steps) const;
  bool IsConstant() const;
  std::string ToString() const;
  friend bool operator==(const Schedule& a, const Schedule& b) {
    return a.ToString() == b.ToString();
  }

 private:
  std::string text_ = "constant";               // without the warm-up
  std::shared_ptr<const ScheduleCurve> curve_;  // null: constant
  std::int64_t warmup_ = 0;                     // 0: none
};

}  // namespace sordino

#endif  // SORDINO_SCHEDULES_SCHEDULE_H_
