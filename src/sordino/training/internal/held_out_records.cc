#include "sordino/training/internal/held_out_records.h"

#include <algorithm>
#include <cstddef>

#include "sordino/base/check.h"
#include "sordino/gradients/example_count.h"
#include "sordino/random/grid_noise.h"
#include "sordino/sampling/sampler.h"

namespace sordino {
namespace {

// Records in memory at once, of equal places (GradientOptions::equal_places).
constexpr std::size_t kHeldOutPart = 512;

}  // namespace

HeldOutRecords::HeldOutRecords(const Dataset& data, c10::Device device, double share,
                               Generator& coins)
    : loader_(std::make_unique<BatchLoader>(data, LoaderOptions{.device = device})) {
  const auto records = static_cast<std::uint64_t>(data.size());
  held_out_ = SamplePoisson(coins, SamplingRate(share), records);
  auto next = held_out_.begin();
  for (std::uint64_t record = 0; record < records; ++record) {
    if (next != held_out_.end() && *next == record) {
      ++next;
    } else {
      trained_.push_back(record);
    }
  }
}

void HeldOutRecords::FindRecords(std::vector<std::uint64_t>& indices) const {
  for (std::uint64_t& index : indices) index = trained_[index];
}

PrivateValue<std::int64_t> HeldOutRecords::Count(const LossFunction& indicator, bool one_by_one,
                                                 int rank, int ranks) {
  std::int64_t count = 0;
  const std::size_t first = static_cast<std::size_t>(rank) * kHeldOutPart;
  const std::size_t stride = static_cast<std::size_t>(ranks) * kHeldOutPart;
  for (std::size_t begin = first; begin < held_out_.size(); begin += stride) {
    const std::size_t end = std::min(begin + kHeldOutPart, held_out_.size());
    loader_->Request({held_out_.begin() + static_cast<std::ptrdiff_t>(begin),
                      held_out_.begin() + static_cast<std::ptrdiff_t>(end)});
    // Which record fails is as private as its count.
    count += CountExamples(indicator, loader_->Take(), one_by_one, /*hide_errors=*/true,
                           static_cast<std::int64_t>(kHeldOutPart))
                 .RevealForNoise();
  }
  return PrivateValue<std::int64_t>(count);
}

double NoisedCount(const PrivateValue<std::int64_t>& count, NoiseMultiplier noise,
                   Generator& stream) {
  // Whole numbers lie on the grid of the noise: nothing is rounded.
  const GridGaussian gaussian(noise.value());
  SORDINO_CHECK(gaussian.Granularity() <= 1, "the noise on a count is too coarse for it");
  return gaussian.AddTo(stream, static_cast<double>(count.RevealForNoise()));
}

}  // namespace sordino
