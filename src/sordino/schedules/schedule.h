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
#include <optional>
#include <string>
#include <string_view>

namespace sordino {

class ScheduleCurve;
struct ScheduleTerms;

class Schedule {
 public:
  Schedule() = default;  // constant
  // `column` is what the schedule is of, as a file of factors names it (schedule_table.h). Throws
  // Error that shows the grammar.
  static Schedule Parse(std::string_view text, std::string_view column = "noise");
  // The text with the arguments that a shape was not given and that follow from the run:
  // "optimal" becomes "optimal:0.9". Every other text stays as it is, also one that Parse refuses.
  // `used` becomes true where terms were needed. Throws Error for terms that are missing.
  static std::string Completed(std::string_view text, const ScheduleTerms& terms, bool& used);
  // The file that a text names, and the text with another file; nullopt and the text itself where
  // it names none.
  static std::optional<std::string> FileOf(std::string_view text);
  static std::string WithFile(std::string_view text, const std::string& file);
  // "constant, linear:E, ..., warmup:N,..." for a help text.
  static std::string Grammar();

  // Of step 0 ... steps - 1; finite, not negative.
  double Factor(std::int64_t step, std::int64_t steps) const;
  bool IsConstant() const;
  // The number of steps that it is for, where it is for one only.
  std::optional<std::int64_t> Length() const;
  // Throws Error where it is for another number of steps. `what` is what it is of: "noise".
  void CheckLength(std::string_view what, std::int64_t steps) const;
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
