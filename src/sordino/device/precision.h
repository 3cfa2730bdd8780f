// How exactly matrices are multiplied.
//
// It is the precision of the forward and backward pass: of what a gradient is. What is clipped and
// summed keeps the rounding that its sensitivity declares, whatever the gradients were computed
// with (gradients/internal/rounding/rounding.h).
#ifndef SORDINO_DEVICE_PRECISION_H_
#define SORDINO_DEVICE_PRECISION_H_

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string_view>

namespace sordino {

enum class Precision : std::uint8_t {
  kFloat32,  // 24 bits
  kTf32,     // factors are rounded to 11 bits, products added up with 24; on a GPU alone
  // Factors and results of matrix products and convolutions are rounded to 8 bits, products added
  // up with 24. Parameters, and all other operations, are float32, and products that are not
  // converted (recurrent layers) are TF32 on a GPU.
  kBfloat16,
};
inline constexpr std::array<std::string_view, 3> kPrecisionNames = {"float32", "tf32", "bfloat16"};

// For all of this process. libtorch itself does not know of bfloat16: forward passes of private
// steps do (gradients/internal/isolation/bfloat16_products.h), and others in an OrdinaryPrecision.
void UsePrecision(Precision precision);
Precision UsedPrecision();

// In its scope, for all of this process; then it is as before.
class ScopedPrecision {
 public:
  explicit ScopedPrecision(Precision precision);
  ~ScopedPrecision();
  ScopedPrecision(const ScopedPrecision&) = delete;
  ScopedPrecision& operator=(const ScopedPrecision&) = delete;

 private:
  const Precision before_;
  const bool had_tf32_products_;
  const bool had_tf32_convolutions_;
};

// Throws Error for another name; `what` is the flag or key that it was given for.
Precision ParsePrecision(std::string_view what, std::string_view name);

// In its scope the operations of an ordinary forward pass on this thread have the precision that is
// used: with bfloat16, by libtorch's autocast. Converted weights are not kept: they would be those
// of an earlier step, and a recorded step would not read new ones.
class OrdinaryPrecision {
 public:
  explicit OrdinaryPrecision(at::Device device);
  ~OrdinaryPrecision();
  OrdinaryPrecision(const OrdinaryPrecision&) = delete;
  OrdinaryPrecision& operator=(const OrdinaryPrecision&) = delete;

 private:
  const at::DeviceType device_;
  const bool was_enabled_;
  const bool had_cache_;
  const at::ScalarType type_;
};

}  // namespace sordino

#endif  // SORDINO_DEVICE_PRECISION_H_
