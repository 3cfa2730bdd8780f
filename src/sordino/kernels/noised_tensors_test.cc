// What a thread of the kernel does, on the processor, beside the noise step of libtorch.
#include "sordino/kernels/noised_tensors.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace sordino::internal {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// As AddNoise computes it (gradient_noise.cc).
at::Tensor NoisedByLibtorch(const at::Tensor& sum, const at::Tensor& noise, double granularity,
                            double divisor) {
  at::Tensor value = sum.to(at::kDouble).mul(1 / granularity);
  value = value.nan_to_num_(0, kSaturation, -kSaturation).round_();
  value.clamp_(-kSaturation, kSaturation);
  value.add_(noise.to(at::kDouble));
  return value.mul_(granularity / divisor).to(sum.scalar_type());
}

GridStep StepFor(double granularity, double divisor) {
  return {.steps_per_unit = 1 / granularity,
          .value_of_step = granularity / divisor,
          .finer_bits = kFinerBits};
}

// Bits, so that zeros of both signs and values that are not finite count.
std::uint64_t BitsOf(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

TEST(GridStep, ValuesAreThoseOfLibtorch) {
  std::mt19937_64 random(1);
  std::vector<double> values = {0.0,          -0.0,         0.5,          -0.5,
                                1.5,          2.5,          -2.5,         0.49999999999999994,
                                kInf,         -kInf,        std::nan(""), 0x1p50,
                                -0x1p50,      0x1p51,       0x1p60,       -0x1p70,
                                0x1p50 - 0.5, 0x1p50 - 1.5, 1e308,        -1e308,
                                1e-308};
  std::uniform_real_distribution<double> uniform(-60, 60);
  for (int i = 0; i < 20'000; ++i) {
    const double magnitude = std::exp2(uniform(random));
    values.push_back(i % 2 == 0 ? magnitude : -magnitude);
    values.push_back(std::round(magnitude) + 0.5);  // ties
  }
  const auto size = static_cast<std::int64_t>(values.size());
  const at::Tensor noise = at::zeros({size}, at::kLong);
  auto* const steps = noise.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < size; ++i) {
    steps[i] = i % 5 == 0 ? 0 : static_cast<std::int64_t>(random() >> 30) - (1LL << 33);
  }
  for (const double granularity : {1.0, 0x1p-20, 0x1p9}) {
    for (const double divisor : {1.0, 3.0, 256.0}) {
      const at::Tensor sum = at::tensor(values, at::kDouble);
      const at::Tensor wanted = NoisedByLibtorch(sum, noise, granularity, divisor);
      const GridStep step = StepFor(granularity, divisor);
      for (std::int64_t i = 0; i < size; ++i) {
        const double value = values[static_cast<std::size_t>(i)];
        ASSERT_EQ(BitsOf(NoisedValueOf(value, steps[i], step)),
                  BitsOf(wanted.const_data_ptr<double>()[i]))
            << value;
      }
    }
  }
}

TEST(GridStep, DrawsAreRoundedToTheNearestStep) {
  for (const int bits : {kFinerBits, kFinerBits + 2}) {
    const std::int64_t unit = std::int64_t{1} << bits;
    for (std::int64_t finer = -20'000; finer <= 20'000; ++finer) {
      const std::int64_t steps = RoundedSteps(finer, bits);
      EXPECT_LE(std::abs(unit * steps - finer), unit / 2);
      if (finer % unit != unit / 2 && finer % unit != -unit / 2) {
        EXPECT_EQ(RoundedSteps(-finer, bits), -steps);
      }
    }
  }
}

// Tensors of these sizes and of both types in turn; the sums and what comes out.
struct Tensors {
  explicit Tensors(const std::vector<std::int64_t>& sizes) {
    for (const std::int64_t size : sizes) {
      const at::ScalarType type = sums.size() % 2 == 0 ? at::kFloat : at::kDouble;
      sums.push_back(at::randn({size}, type).mul_(1000));
      noised.push_back(at::full({size}, -12345.0, type));
    }
  }

  // Those of [first, last), which begin at a coordinate.
  NoisedTensors Table(std::size_t first, std::size_t last, std::int64_t begin) const {
    NoisedTensors table{};
    for (std::size_t i = first; i < last; ++i) {
      const std::int64_t end = begin + sums[i].numel();
      table.tensor[table.count++] = {.sum = sums[i].const_data_ptr(),
                                     .noised = noised[i].mutable_data_ptr(),
                                     .begin = begin,
                                     .end = end,
                                     .is_double = sums[i].scalar_type() == at::kDouble};
      begin = end;
    }
    return table;
  }

  std::vector<at::Tensor> sums;
  std::vector<at::Tensor> noised;
};

// Draws that tell their coordinate.
std::int64_t DrawOf(std::int64_t coordinate) { return (coordinate + 1) * 1024; }

template <typename Target = NoisedTarget>
void Release(const NoisedTensors& table, const GridStep& step, const Target& target = {}) {
  const std::int64_t first = table.tensor[0].begin / kIndexedGroup;
  for (std::int64_t group = first; group * kIndexedGroup < table.tensor[table.count - 1].end;
       ++group) {
    std::int64_t draws[kIndexedGroup];
    for (int k = 0; k < kIndexedGroup; ++k) draws[k] = DrawOf(group * kIndexedGroup + k);
    ReleaseGroup(table, group, draws, step, target);
  }
}

// Whatever the cuts are, and in two launches as in one.
TEST(NoisedTensors, EveryCoordinateGetsItsNoiseOnce) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < 2 + random() % 20; ++i) sizes.push_back(1 + random() % 9);
    const Tensors tensors(sizes);
    const GridStep step = StepFor(0.25, 7);
    const std::size_t cut = 1 + random() % (sizes.size() - 1);
    std::int64_t before = 0;
    for (std::size_t i = 0; i < cut; ++i) before += sizes[i];
    if (round % 2 == 0) {
      Release(tensors.Table(0, sizes.size(), 0), step);
    } else {
      Release(tensors.Table(0, cut, 0), step);
      Release(tensors.Table(cut, sizes.size(), before), step);
    }
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const at::Tensor noise = at::arange(begin + 1, begin + 1 + sizes[i], at::kLong);
      ASSERT_TRUE(at::equal(tensors.noised[i], NoisedByLibtorch(tensors.sums[i], noise, 0.25, 7)))
          << "tensor " << i << " of round " << round;
      begin += sizes[i];
    }
  }
}

// The gradients of a descent are the values that are written without one, each used once.
TEST(NoisedTensors, ADescentIsByTheNoisedValues) {
  const std::vector<std::int64_t> sizes = {5, 1, 8, 3, 17};
  for (const double momentum : {0.0, 0.75}) {
    const Tensors tensors(sizes);
    const NoisedTensors table = tensors.Table(0, sizes.size(), 0);
    const GridStep step = StepFor(0.25, 7);
    Release(table, step);
    DescentTarget target{};
    target.factors = {.rate = 0.5, .momentum = momentum};
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> momenta;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      parameters.push_back(at::ones_like(tensors.sums[i]));
      momenta.push_back(at::ones_like(tensors.sums[i]));
      target.beside[i] = {parameters[i].mutable_data_ptr(),
                          momentum > 0 ? momenta[i].mutable_data_ptr() : nullptr};
    }
    const std::vector<at::Tensor> written = [&] {
      std::vector<at::Tensor> copies;
      for (const at::Tensor& value : tensors.noised) copies.push_back(value.clone());
      return copies;
    }();
    Release(table, step, target);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const at::Tensor direction = momentum > 0 ? written[i] + momentum : written[i];
      EXPECT_TRUE(at::allclose(parameters[i], 1 - 0.5 * direction, 1e-6, 0)) << i;
      EXPECT_TRUE(at::equal(momenta[i], momentum > 0 ? direction : at::ones_like(direction))) << i;
      EXPECT_TRUE(at::equal(tensors.noised[i], written[i])) << i;
    }
  }
}

}  // namespace
}  // namespace sordino::internal
