// The dataset that every copy of the program carries: 60,000 + 10,000 drawn digits, 28 x 28, grey.
//
// They are drawn from strokes by a fixed generator in integer arithmetic (digit_renderer.h), so
// every machine makes the same bytes, offline and in about a second. Every ten images in a row hold
// each digit once. Nobody's data are in them, so both sets are public; `train` plays the part of
// private records. A linear model reaches about 90% of the test images, a small convolutional
// network more than 97% (docs/data.md says how that was measured).
#ifndef SORDINO_DATA_DIGITS_H_
#define SORDINO_DATA_DIGITS_H_

#include <cstdint>

#include "sordino/data/dataset.h"

namespace sordino {

inline constexpr std::int64_t kDigitsTrainRecords = 60'000;
inline constexpr std::int64_t kDigitsTestRecords = 10'000;

DatasetDeclaration DigitsDeclaration();

// The first `train` and `test` records of the two sets.
DataSplits MakeDigits(std::int64_t train = kDigitsTrainRecords,
                      std::int64_t test = kDigitsTestRecords);

}  // namespace sordino

#endif  // SORDINO_DATA_DIGITS_H_
