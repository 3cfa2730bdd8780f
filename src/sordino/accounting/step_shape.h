// A mechanism that is made step by step, described by a few words and numbers: which noise, how the
// records of a step are drawn, and what neighbours are.
//
// Units are those of accounting/event.h: the noise is a standard deviation (Gaussian) or a scale
// (Laplace) divided by the sensitivity.
#ifndef SORDINO_ACCOUNTING_STEP_SHAPE_H_
#define SORDINO_ACCOUNTING_STEP_SHAPE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sordino/accounting/event.h"
#include "sordino/base/quantity.h"

namespace sordino {

enum class Sampling : std::uint8_t { kPoisson, kFixed, kAllocation, kNone };
enum class Mechanism : std::uint8_t { kGaussian, kLaplace, kDiscreteGaussian, kDiscreteLaplace };

// In the order of the enumerations.
inline constexpr std::array<std::string_view, 4> kSamplingNames = {"poisson", "fixed", "allocation",
                                                                   "none"};
inline constexpr std::array<std::string_view, 4> kMechanismNames = {
    "gaussian", "laplace", "discrete-gaussian", "discrete-laplace"};

// Noise that is correlated between the steps of one release (events/matrix.cc). Where records are
// sampled, each step draws from one of `steps` groups in turn, so that a record of the group enters
// with `steps` times the rate.
struct MatrixRelease {
  double sensitivity;   // of the matrix, for all steps of a release in which one record takes part
  std::uint64_t steps;  // at least 1
};

// What stays the same while a schedule or a search changes noise, rate and steps.
struct StepShape {
  Mechanism mechanism = Mechanism::kGaussian;
  Sampling sampling = Sampling::kNone;
  Adjacency adjacency = Adjacency::kAddRemove;
  std::uint64_t sensitivity = 1;  // of the discrete mechanisms
  // Gaussian noise, with Poisson sampling or none. Its noise multiplier is that of a row.
  std::optional<MatrixRelease> matrix = {};

  // The release that is repeated: a step, a whole allocation of 1/rate steps, or that of a matrix.
  // The rate is not looked at where nothing is sampled.
  Event Step(NoiseMultiplier noise, SamplingRate rate) const;
  // The steps of one such release.
  std::uint64_t StepsOfOne(SamplingRate rate) const;
  // How many of them so many steps take; one that was begun counts whole.
  std::uint64_t CountOf(std::uint64_t steps, SamplingRate rate) const;
  // The probability that a record takes part in one of them, where it is drawn by itself.
  SamplingRate ReleaseRate(SamplingRate rate) const;
};

// How the event is to be read where that is easily mistaken: the unit of the noise under
// replace-one and in batches of fixed size, and what a random allocation stands for. Empty
// otherwise.
std::string UnitNote(const Event& event);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_STEP_SHAPE_H_
