// How exactly a GPU multiplies float32 matrices.
//
// It is the precision of the forward and backward pass: of what a gradient is. What is clipped and
// summed keeps the rounding that its sensitivity declares, whatever the gradients were computed
// with (gradients/internal/rounding/rounding.h).
#ifndef SORDINO_DEVICE_PRECISION_H_
#define SORDINO_DEVICE_PRECISION_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace sordino {

enum class Precision : std::uint8_t {
  kFloat32,  // 24 bits
  kTf32,     // factors are rounded to 11 bits, products added up with 24
};
inline constexpr std::array<std::string_view, 2> kPrecisionNames = {"float32", "tf32"};

// For all of libtorch in this process; without an effect on a CPU.
void UsePrecision(Precision precision);

// Throws Error for another name; `what` is the flag or key that it was given for.
Precision ParsePrecision(std::string_view what, std::string_view name);

}  // namespace sordino

#endif  // SORDINO_DEVICE_PRECISION_H_
