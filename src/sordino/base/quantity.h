// Strong types for the quantities of differential privacy.
//
// An epsilon and a delta are both doubles, and a swapped pair is a privacy bug that makes no
// noise. Here each quantity is a type of its own: construction is explicit and checks the range,
// arithmetic goes through value(), and passing one where another is wanted does not compile
// (tests/compile_fail shows it).
//
//   Epsilon          [0, inf]    privacy loss of (epsilon, delta)-DP; infinity means no guarantee
//   Delta            [0, 1]      failure probability of (epsilon, delta)-DP
//   NoiseMultiplier  (0, inf)    standard deviation (Gaussian) or scale (Laplace) of the noise
//                                divided by the sensitivity
//   SamplingRate     [0, 1]      probability that a record enters a batch
//   ClipNorm         (0, inf)    bound C on an example's gradient norm
//   RenyiOrder       (1, inf)    order alpha of a Renyi divergence
//   Rho              [0, inf)    parameter of zero-concentrated DP
//   L1Sensitivity    [0, inf)    global sensitivity in the L1 norm
//   L2Sensitivity    [0, inf)    global sensitivity in the L2 norm
#ifndef SORDINO_BASE_QUANTITY_H_
#define SORDINO_BASE_QUANTITY_H_

#include <compare>
#include <cstdint>
#include <limits>
#include <string_view>

#include "sordino/base/error.h"

namespace sordino {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Throws Error when value lies outside [low, high] (or outside the open end) or is NaN.
void CheckRange(std::string_view name, double value, double low, bool low_open, double high,
                bool high_open);

// Tag supplies kName, kLow, kLowOpen, kHigh, kHighOpen.
template <typename Tag>
class Quantity {
 public:
  constexpr explicit Quantity(double value) : value_(value) {
    const bool above = Tag::kLowOpen ? value > Tag::kLow : value >= Tag::kLow;
    const bool below = Tag::kHighOpen ? value < Tag::kHigh : value <= Tag::kHigh;
    if (!(above && below)) {
      CheckRange(Tag::kName, value, Tag::kLow, Tag::kLowOpen, Tag::kHigh, Tag::kHighOpen);
    }
  }

  constexpr double value() const { return value_; }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;

 private:
  double value_;
};

namespace internal {
struct EpsilonTag {
  static constexpr std::string_view kName = "epsilon";
  static constexpr double kLow = 0, kHigh = kInfinity;
  static constexpr bool kLowOpen = false, kHighOpen = false;
};
struct DeltaTag {
  static constexpr std::string_view kName = "delta";
  static constexpr double kLow = 0, kHigh = 1;
  static constexpr bool kLowOpen = false, kHighOpen = false;
};
struct NoiseMultiplierTag {
  static constexpr std::string_view kName = "the noise multiplier";
  static constexpr double kLow = 0, kHigh = kInfinity;
  static constexpr bool kLowOpen = true, kHighOpen = true;
};
struct SamplingRateTag {
  static constexpr std::string_view kName = "the sampling rate";
  static constexpr double kLow = 0, kHigh = 1;
  static constexpr bool kLowOpen = false, kHighOpen = false;
};
struct ClipNormTag {
  static constexpr std::string_view kName = "the clipping norm";
  static constexpr double kLow = 0, kHigh = kInfinity;
  static constexpr bool kLowOpen = true, kHighOpen = true;
};
struct RenyiOrderTag {
  static constexpr std::string_view kName = "the Renyi order";
  static constexpr double kLow = 1, kHigh = kInfinity;
  static constexpr bool kLowOpen = true, kHighOpen = true;
};
struct RhoTag {
  static constexpr std::string_view kName = "rho";
  static constexpr double kLow = 0, kHigh = kInfinity;
  static constexpr bool kLowOpen = false, kHighOpen = true;
};
struct L1SensitivityTag {
  static constexpr std::string_view kName = "the L1 sensitivity";
  static constexpr double kLow = 0, kHigh = kInfinity;
  static constexpr bool kLowOpen = false, kHighOpen = true;
};
struct L2SensitivityTag {
  static constexpr std::string_view kName = "the L2 sensitivity";
  static constexpr double kLow = 0, kHigh = kInfinity;
  static constexpr bool kLowOpen = false, kHighOpen = true;
};
}  // namespace internal

using Epsilon = Quantity<internal::EpsilonTag>;
using Delta = Quantity<internal::DeltaTag>;
using NoiseMultiplier = Quantity<internal::NoiseMultiplierTag>;
using SamplingRate = Quantity<internal::SamplingRateTag>;
using ClipNorm = Quantity<internal::ClipNormTag>;
using RenyiOrder = Quantity<internal::RenyiOrderTag>;
using Rho = Quantity<internal::RhoTag>;
using L1Sensitivity = Quantity<internal::L1SensitivityTag>;
using L2Sensitivity = Quantity<internal::L2SensitivityTag>;

// How two neighbouring datasets differ. The sensitivity of a sum of records of norm at most C is
// C under kAddRemove and kZeroOut and 2C under kReplaceOne.
enum class Adjacency : std::uint8_t {
  kAddRemove,   // one record is added or removed
  kReplaceOne,  // one record is replaced by another; the number of records is public
  kZeroOut,     // one record is replaced by a special record that contributes nothing
};

std::string_view AdjacencyName(Adjacency adjacency);  // "add-remove", "replace-one", "zero-out"
Adjacency ParseAdjacency(std::string_view name);      // the inverse; throws Error

// A certified answer: the true value lies in [lower, upper].
struct Interval {
  double lower = 0;
  double upper = kInfinity;
};

}  // namespace sordino

#endif  // SORDINO_BASE_QUANTITY_H_
