// A factor that changes over the steps of a run: of the learning rate, the noise, the clipping norm
// or the sampling rate.
//
// Text form (parsed and printed):
//   constant          1
//   linear:E          from 1 at the first step to E at the last, in a straight line
//   cosine:E          the same along half a cosine: E + (1 - E) (1 + cos(pi t)) / 2
//   exponential:E     the same geometrically, E > 0
//   step:N:F          times F after every N steps, F > 0
//   warmup:N,...      the factor of the rest times min(1, (step + 1) / N)
// with t = step / (steps - 1). "warmup:100,cosine:0" is a common choice for learning rates.
#ifndef SORDINO_TRAINING_SCHEDULE_H_
#define SORDINO_TRAINING_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace sordino {

class Schedule {
 public:
  Schedule() = default;  // constant
  // Throws Error that shows the grammar.
  static Schedule Parse(std::string_view text);

  // Of step 0 ... steps - 1; finite, not negative.
  double Factor(std::int64_t step, std::int64_t steps) const;
  bool IsConstant() const;
  std::string ToString() const;
  friend bool operator==(const Schedule&, const Schedule&) = default;

 private:
  enum class Shape : std::uint8_t { kConstant, kLinear, kCosine, kExponential, kStep };
  Shape shape_ = Shape::kConstant;
  double end_ = 1;           // E or F
  std::int64_t every_ = 0;   // N of step
  std::int64_t warmup_ = 0;  // 0: none
};

}  // namespace sordino

#endif  // SORDINO_TRAINING_SCHEDULE_H_
