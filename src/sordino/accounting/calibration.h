// From a budget to the noise, the number of steps or the sampling rate that meets it.
//
// No answer is on the wrong side: the certified upper end of epsilon at the answer is at most the
// target. It is the tightest to kCalibrationTolerance relative, or that upper end is within a
// quarter of the width of its own interval of the target, and within 2e-4 of it (more where the
// upper end jumps between engines, and after several tries). A budget that nothing meets is an
// expected failure and gives nullopt.
#ifndef SORDINO_ACCOUNTING_CALIBRATION_H_
#define SORDINO_ACCOUNTING_CALIBRATION_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "sordino/accounting/event.h"
#include "sordino/base/quantity.h"

namespace sordino {

inline constexpr double kCalibrationTolerance = 2e-5;

// The certified interval of epsilon, with the Renyi bound where the privacy-loss engines have
// none: what calibration compares with the target.
Interval SpentEpsilon(const Event& event, Delta delta);

struct NoiseCalibration {
  NoiseMultiplier noise;
  Interval epsilon;  // at that noise
};
// The least noise for which event_of(noise) spends at most epsilon. Epsilon must fall as the noise
// grows.
std::optional<NoiseCalibration> CalibrateNoise(
    const std::function<Event(NoiseMultiplier)>& event_of, Epsilon epsilon, Delta delta);

struct StepCalibration {
  std::uint64_t steps;
  Interval epsilon;
};
// The largest number of steps that spends at most epsilon, up to the same tolerance; nullopt when
// not even one does. At most 10^12.
std::optional<StepCalibration> CalibrateSteps(const Event& step, Epsilon epsilon, Delta delta);

struct RateCalibration {
  SamplingRate rate;
  Interval epsilon;
};
// The largest sampling rate for which event_of(rate) spends at most epsilon.
std::optional<RateCalibration> CalibrateRate(const std::function<Event(SamplingRate)>& event_of,
                                             Epsilon epsilon, Delta delta);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_CALIBRATION_H_
