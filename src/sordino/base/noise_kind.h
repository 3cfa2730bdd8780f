// The distributions that noise is drawn from, and their names on the command line.
#ifndef SORDINO_BASE_NOISE_KIND_H_
#define SORDINO_BASE_NOISE_KIND_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace sordino {

enum class NoiseKind : std::uint8_t { kGaussian, kLaplace };

// In the order of NoiseKind.
inline constexpr std::array<std::string_view, 2> kNoiseKindNames = {"gaussian", "laplace"};

std::string_view NoiseKindName(NoiseKind kind);   // "gaussian", "laplace"
NoiseKind ParseNoiseKind(std::string_view name);  // the inverse; throws Error

}  // namespace sordino

#endif  // SORDINO_BASE_NOISE_KIND_H_
