// A value with noise already on it: the only kind that an adaptive policy learns from.
//
// What the policy learns decides how the next batch is clipped, so it must be post-processing of
// a release that was charged. The private counts and sums are PrivateValues, of another type: an
// update from un-noised data does not compile. The constructor is private, and its only friends are
// the functions of the noise step (noise/gradient_noise.h), NoisedShards, which joins the noised
// values of several processes, and ScaledClipping, which maps one noised value to another
// (tests/compile_fail/forged_noised_value.cc, forged_adaclip.cc). The value carries the standard
// deviation of its noise, and the policy stops the program when it is smaller than what was
// declared for the accounting.
#ifndef SORDINO_GRADIENTS_NOISED_VALUE_H_
#define SORDINO_GRADIENTS_NOISED_VALUE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "sordino/base/quantity.h"

namespace sordino {

class BoundedSum;
class DeviceNoise;
class FixedPointShard;
class NoisedShards;
class RandomSource;
class ScaledClipping;
struct StepNoise;

template <typename T>
class NoisedValue {
 public:
  const T& value() const { return value_; }
  // Of the noise on each entry, in the unit of the value; the least of them where entries differ.
  // Positive.
  double standard_deviation() const { return standard_deviation_; }

 private:
  friend NoisedValue<std::vector<at::Tensor>> AddNoise(const BoundedSum& sum,
                                                       const StepNoise& noise,
                                                       RandomSource& source);
  friend NoisedValue<std::vector<at::Tensor>> AddNoise(const BoundedSum& sum, DeviceNoise& noise);
  friend NoisedValue<std::vector<double>> AddCountNoise(const BoundedSum& sum, double count_noise,
                                                        std::int64_t step, RandomSource& source);
  friend NoisedValue<std::vector<at::Tensor>> AddNoise(const FixedPointShard& shard,
                                                       const StepNoise& noise,
                                                       RandomSource& source);
  friend class NoisedShards;
  friend class ScaledClipping;
  friend class TestForgery;  // testing/forged_values.h, which is not installed

  NoisedValue(T value, double standard_deviation)
      : value_(std::move(value)), standard_deviation_(standard_deviation) {
    CheckRange("the standard deviation of the noise on a noised value", standard_deviation, 0, true,
               kInfinity, true);
  }

  T value_;
  double standard_deviation_;
};

// One number for each clipping group.
using NoisedCounts = NoisedValue<std::vector<double>>;
// One tensor for each parameter, in its shape.
using NoisedGradients = NoisedValue<std::vector<at::Tensor>>;

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_NOISED_VALUE_H_
