#include "sordino/random/grid_noise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <type_traits>

namespace sordino {
namespace {

constexpr std::size_t kBlock = 1024;

template <typename Sampler>
constexpr bool kIsGaussian = std::is_same_v<Sampler, DiscreteGaussian>;

// Above the scale in steps; 13 sigma < 2^4 sigma and, but for 2^-92, 64 scales of Laplace then
// fit into the 24 bits of a float.
template <typename Sampler>
int StepBits(GridPrecision precision) {
  if (precision == GridPrecision::kDouble) return 40;
  return kIsGaussian<Sampler> ? 20 : 18;
}

double CheckedScale(std::string_view name, double scale, GridPrecision precision) {
  const double limit = precision == GridPrecision::kDouble ? 0x1p900 : 0x1p100;
  CheckRange(name, scale, 1 / limit, false, limit, false);
  return scale;
}

// The grid on which `scale` has between 2^(bits - 1) and 2^bits steps.
Grid GridFor(double scale, int bits) {
  int exponent = 0;
  static_cast<void>(std::frexp(scale, &exponent));
  return Grid(exponent - bits);
}

double RoundedUp(double value) { return std::nextafter(value, kInfinity); }

// Hands `visit` blocks of integer noise together with where they belong.
template <typename Sampler, typename Visit>
void ForEachBlock(const Sampler& sampler, Generator& generator, std::size_t size,
                  const Visit& visit) {
  std::array<std::int64_t, kBlock> noise;
  for (std::size_t begin = 0; begin < size; begin += kBlock) {
    const std::size_t count = std::min(kBlock, size - begin);
    sampler.Fill(generator, std::span(noise).first(count));
    for (std::size_t i = 0; i < count; ++i) visit(begin + i, noise[i]);
  }
}

}  // namespace

Grid::Grid(int exponent)
    : step_(std::ldexp(1.0, exponent)), steps_per_unit_(std::ldexp(1.0, -exponent)) {}

std::int64_t Grid::Round(double value) const {
  const double steps = std::nearbyint(value * steps_per_unit_);
  const double finite = std::isnan(steps) ? 0.0 : steps;
  return static_cast<std::int64_t>(std::clamp(finite, -0x1p62, 0x1p62));
}

L1Sensitivity Grid::Enlarged(L1Sensitivity sensitivity, std::uint64_t dimension) const {
  const double slack = RoundedUp(RoundedUp(static_cast<double>(dimension)) * step_);
  return L1Sensitivity(RoundedUp(sensitivity.value() + slack));
}

L2Sensitivity Grid::Enlarged(L2Sensitivity sensitivity, std::uint64_t dimension) const {
  const double root = RoundedUp(std::sqrt(RoundedUp(static_cast<double>(dimension))));
  return L2Sensitivity(RoundedUp(sensitivity.value() + RoundedUp(root * step_)));
}

template <typename Sampler>
GridNoise<Sampler>::GridNoise(double scale, GridPrecision precision)
    : scale_(CheckedScale(kIsGaussian<Sampler> ? "the standard deviation of the Gaussian noise"
                                               : "the scale of the Laplace noise",
                          scale, precision)),
      precision_(precision),
      grid_(GridFor(scale, StepBits<Sampler>(precision))),
      sampler_(scale / grid_.Granularity()) {}

template <typename Sampler>
double GridNoise<Sampler>::AddTo(Generator& generator, double value) const {
  AddTo(generator, std::span<double>(&value, 1));
  return value;
}

template <typename Sampler>
void GridNoise<Sampler>::AddTo(Generator& generator, std::span<double> values) const {
  ForEachBlock(sampler_, generator, values.size(), [&](std::size_t i, std::int64_t noise) {
    values[i] = grid_.Value(grid_.Round(values[i]) + noise);
  });
}

template <typename Sampler>
void GridNoise<Sampler>::AddTo(Generator& generator, std::span<float> values) const {
  ForEachBlock(sampler_, generator, values.size(), [&](std::size_t i, std::int64_t noise) {
    const auto value = static_cast<double>(values[i]);
    values[i] = static_cast<float>(grid_.Value(grid_.Round(value) + noise));
  });
}

template <typename Sampler>
void GridNoise<Sampler>::Fill(Generator& generator, std::span<double> out) const {
  ForEachBlock(sampler_, generator, out.size(),
               [&](std::size_t i, std::int64_t noise) { out[i] = grid_.Value(noise); });
}

template <typename Sampler>
void GridNoise<Sampler>::Fill(Generator& generator, std::span<float> out) const {
  if (precision_ != GridPrecision::kFloat) {
    throw Error(
        "float noise was asked for on a grid for doubles, where floats would round it; build the "
        "noise with GridPrecision::kFloat.");
  }
  const auto step = static_cast<float>(grid_.Granularity());
  ForEachBlock(sampler_, generator, out.size(), [&](std::size_t i, std::int64_t noise) {
    out[i] = static_cast<float>(noise) * step;
  });
}

template class GridNoise<DiscreteGaussian>;
template class GridNoise<DiscreteLaplace>;

}  // namespace sordino
