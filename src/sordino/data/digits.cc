#include "sordino/data/digits.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/data/internal/digit_renderer.h"

namespace sordino {
namespace {

using internal::CounterDraws;
using internal::kDigitPixels;
using internal::kDigitSide;
using internal::RenderDigit;

constexpr std::int64_t kClasses = 10;

// The streams of the two sets and of their orders of digits do not meet.
constexpr std::uint64_t kTrainStreams = 0;
constexpr std::uint64_t kTestStreams = std::uint64_t{1} << 32;
constexpr std::uint64_t kOrderStreams = std::uint64_t{1} << 40;

// The order of the digits within a block of ten images.
std::array<int, kClasses> BlockOrder(std::uint64_t first_stream, std::int64_t block) {
  std::array<int, kClasses> order{};
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  CounterDraws draws(kOrderStreams + first_stream + static_cast<std::uint64_t>(block));
  for (std::size_t i = order.size() - 1; i > 0; --i) {
    std::swap(order[i], order[static_cast<std::size_t>(draws.Between(0, static_cast<int>(i)))]);
  }
  return order;
}

Dataset Draw(std::uint64_t first_stream, std::int64_t records) {
  Dataset data;
  data.declaration = DigitsDeclaration();
  data.inputs = at::empty({records, 1, kDigitSide, kDigitSide}, at::kByte);
  data.labels = at::empty({records}, at::kLong);
  auto* const pixels = data.inputs.mutable_data_ptr<std::uint8_t>();
  auto* const labels = data.labels.mutable_data_ptr<std::int64_t>();
  const std::int64_t blocks = (records + kClasses - 1) / kClasses;
  at::parallel_for(0, blocks, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::array<int, kClasses> order = BlockOrder(first_stream, block);
      for (std::int64_t i = 0; i < kClasses && block * kClasses + i < records; ++i) {
        const std::int64_t record = block * kClasses + i;
        labels[record] = order[static_cast<std::size_t>(i)];
        RenderDigit(first_stream + static_cast<std::uint64_t>(record),
                    order[static_cast<std::size_t>(i)],
                    std::span<std::uint8_t, kDigitPixels>(pixels + record * kDigitPixels,
                                                          std::size_t{kDigitPixels}));
      }
    }
  });
  return data;
}

}  // namespace

DatasetDeclaration DigitsDeclaration() {
  DatasetDeclaration declaration;
  declaration.name = "digits";
  declaration.kind = InputKind::kImage;
  declaration.shape = {1, kDigitSide, kDigitSide};
  declaration.classes = kClasses;
  declaration.records = kDigitsTrainRecords;
  declaration.normalisation = {{0.5}, {0.5}, "constants of the program, not of the data"};
  return declaration;
}

DataSplits MakeDigits(std::int64_t train, std::int64_t test) {
  SORDINO_CHECK(
      train >= 0 && train <= kDigitsTrainRecords && test >= 0 && test <= kDigitsTestRecords,
      "there are 60,000 + 10,000 digits");
  return {Draw(kTrainStreams, train), Draw(kTestStreams, test)};
}

}  // namespace sordino
