// Kernels over the rows of several matrices in one launch, by plain pointers. The stream is a
// cudaStream_t.
#ifndef SORDINO_KERNELS_ROW_LAUNCH_H_
#define SORDINO_KERNELS_ROW_LAUNCH_H_

#include <cstdint>

#include "sordino/kernels/host_device.h"

namespace sordino::kernels {

// As many as fit into the arguments of a launch.
inline constexpr int kMaxMatrices = 48;

// [rows, width] float32, rows contiguous, one for each example.
struct RowMatrix {
  const float* values = nullptr;
  float* result = nullptr;  // ScaleRows: the same sizes; SumRows: [width]
  std::int64_t width = 0;
  std::int64_t group = 0;  // the row of the factors
  bool scales = true;      // ScaleRows: by the factor; otherwise rows of factor 0 become 0
  int first_span = 0;      // SquaredNorms: the spans of the matrices before it
};

struct RowMatrices {
  RowMatrix matrices[kMaxMatrices];
  int count = 0;
  std::int64_t rows = 0;
};

// A row is added up in spans of so many columns, each by a block of threads: few examples with wide
// rows use the whole device. Spans depend on the width alone, so that a row has the same bits
// whatever stands beside it.
inline constexpr std::int64_t kLeastSpan = 4096;
inline constexpr std::int64_t kMostSpans = 256;
struct ColumnRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
SORDINO_HOST_DEVICE ColumnRange ColumnsOfSpan(std::int64_t width, std::int64_t span) {
  std::int64_t columns = (width + kMostSpans - 1) / kMostSpans;
  columns = columns < kLeastSpan ? kLeastSpan : columns;
  const std::int64_t begin = span * columns;
  return {begin, begin + columns < width ? begin + columns : width};
}
// Sets first_span of all matrices; returns how many spans they have together, each at least one.
inline int CountSpans(RowMatrices& all) {
  int count = 0;
  for (int m = 0; m < all.count; ++m) {
    all.matrices[m].first_span = count++;
    while (ColumnsOfSpan(all.matrices[m].width, count - all.matrices[m].first_span - 1).end <
           all.matrices[m].width) {
      ++count;
    }
  }
  return count;
}

// squared[m, row]: the squared norms of the rows of matrix m, float64. `spans` is memory for
// [spans, rows]; it may be `squared` where each matrix has one.
void LaunchSquaredNorms(const RowMatrices& all, int span_count, double* spans, double* squared,
                        void* stream);

// What matrices add to the squared norms of a clipping group: the squared norm of a row of `first`,
// times that of `second` where it is not negative.
struct NormPiece {
  int first = 0;
  int second = -1;
  int group = 0;
};
inline constexpr int kMaxPieces = 96;
struct NormPieces {
  NormPiece pieces[kMaxPieces];
  int count = 0;
};
// total[group, row] += the pieces, in their order; infinite where the squared norm of a row of a
// pair is above `limit`. squared [matrices, rows].
void LaunchAddPieces(const NormPieces& pieces, const double* squared, double limit,
                     std::int64_t groups, std::int64_t rows, double* total, void* stream);

// Squared norms of rows and pieces in one launch, where no matrix is wider than this.
inline constexpr std::int64_t kMaxSmallWidth = 1024;
void LaunchSmallNorms(const RowMatrices& all, const NormPieces& pieces, double limit,
                      std::int64_t groups, double* total, void* stream);

// The last step of clipping: factors of rows that do not count (mask, may be null) or have a norm
// above `largest` in any group become 0, in float64 and float32; above[group] is how many norms of
// rows that count are above bounds[group] or not a number. norms and factors [groups, rows].
struct FactorArrays {
  const double* norms = nullptr;
  const double* factors = nullptr;
  const double* bounds = nullptr;  // [groups]
  const bool* mask = nullptr;      // [rows]
  double* factors64 = nullptr;
  float* factors32 = nullptr;
  std::int64_t* above = nullptr;  // [groups]
  // Instead of `norms` and `factors`: squared norms, whose roots are written, and what the factors
  // are min(1, below / norm) of; subnormal factors are 0. [groups, rows] and [groups].
  const double* squared = nullptr;
  const double* below = nullptr;
  double* roots = nullptr;
  std::int64_t groups = 0;
  std::int64_t rows = 0;
  double largest = 0;
};
void LaunchFactors(const FactorArrays& arrays, void* stream);

// result = the rows times their factors, rounded once; 0 where the factor is 0, whatever the
// values. factors [groups, rows].
void LaunchScaleRows(const RowMatrices& all, const float* factors, void* stream);

// result[k] = sum over the rows of factor * value[k], in float64, rounded once; rows of factor 0
// are left out.
void LaunchSumRows(const RowMatrices& all, const double* factors, void* stream);

// The sums over the rows of each example. Row r of example e is
// (r / inner * examples + e) * inner + r % inner.
struct ExampleSumArrays {
  const float* values = nullptr;  // [outer * examples * inner, width]
  // Where `input` is not null, row r counts times (input[r] - mean[r]) * deviation[r].
  const float* input = nullptr;
  const float* mean = nullptr;       // [outer * examples * inner]
  const float* deviation = nullptr;  // likewise
  float* result = nullptr;           // [examples, width]
  std::int64_t outer = 1;
  std::int64_t examples = 0;
  std::int64_t inner = 1;
  std::int64_t width = 0;
  bool fours = false;  // all rows begin at multiples of 16 bytes, and have a multiple of 4 entries
};
// A block has at least this many columns of an example.
inline constexpr int kSumColumns = 32;
// Runs of at most 8 rows are added in float32, those in float64 (rows of one entry in float64 from
// the start), in an order that follows from the number of rows of an example alone; rounded once.
void LaunchExampleSums(const ExampleSumArrays& arrays, void* stream);

// The rows of a lookup table. Row r of example e is (r / inner * examples + e) * inner + r % inner.
struct LookupArrays {
  const std::int64_t* index = nullptr;
  const float* gradient = nullptr;  // [outer * examples * inner, width]
  std::int64_t outer = 1;
  std::int64_t examples = 0;
  std::int64_t inner = 1;
  std::int64_t width = 0;
  std::int64_t padding_index = -1;
  double* squared = nullptr;        // norms: [examples]
  const double* factors = nullptr;  // sum: [examples]
  double* table = nullptr;          // sum: [entries, width]
};
// More rows an example have no place in shared memory.
inline constexpr std::int64_t kMaxLookupRows = 4096;
// Adds the squared norms of the gradients: for each example the rows that look up the same entry
// are added, then squared.
void LaunchLookupNorms(const LookupArrays& arrays, void* stream);
// Adds the gradients times the factors to the table; examples of factor 0 are left out.
void LaunchLookupSum(const LookupArrays& arrays, void* stream);

}  // namespace sordino::kernels

#endif  // SORDINO_KERNELS_ROW_LAUNCH_H_
