// What the tests of rounding share.
#ifndef SORDINO_GRADIENTS_TESTING_ROUNDING_TEST_SUPPORT_H_
#define SORDINO_GRADIENTS_TESTING_ROUNDING_TEST_SUPPORT_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sordino/gradients/internal/rounding/rounding.h"

namespace sordino {

// Between two vectors; an empty one is zero.
inline long double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  long double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) {
    const long double difference =
        static_cast<long double>(a[j]) - (b.empty() ? 0.0L : static_cast<long double>(b[j]));
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

inline RoundingModel GhostModel(std::int64_t features, std::int64_t rows, double cancellation) {
  RoundingModel model;
  model.features = features;
  model.rows = rows;
  model.cancellation = cancellation;
  return model;
}

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_TESTING_ROUNDING_TEST_SUPPORT_H_
