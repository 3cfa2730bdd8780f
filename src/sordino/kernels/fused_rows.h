// The rows of two matrices as operands of a product of each example (fused_copy.h).
#ifndef SORDINO_KERNELS_FUSED_ROWS_H_
#define SORDINO_KERNELS_FUSED_ROWS_H_

#include <cstdint>

#include "sordino/kernels/fused_copy.h"
#include "sordino/kernels/fused_tile.h"

namespace sordino {

struct RowsMatrix {
  const float* values = nullptr;
  std::int64_t example = 0;  // steps, in elements
  std::int64_t row = 0;
  bool fours = false;  // all rows begin at multiples of 16 bytes, and have a multiple of 4 entries
};

// Rows of matrices: row t of example e is left + e * example + t * row, with m entries after each
// other; likewise right with n. A piece is kPieceRowsOf rows; they are added up in the same order
// whatever their number.
template <int kPieceRowsOf>
struct RowsSourceOf {
  using Matrix = RowsMatrix;
  Matrix left;
  Matrix right;
  int examples = 0;
  int rows = 0;  // of an example
  int m = 0;
  int n = 0;

  static constexpr int kPieceRows = kPieceRowsOf;
  static_assert(kPieceRows % kStepRows == 0);
  template <typename Tile>
  using View = FeatureMajor<Tile>;

  struct Cursor {
    int example = 0;
    int piece = 0;
  };

  SORDINO_HOST_DEVICE int pieces() const { return (rows + kPieceRows - 1) / kPieceRows; }
  SORDINO_HOST_DEVICE int Steps(int piece) const {
    const int rest = rows - piece * kPieceRows;
    return ((rest < kPieceRows ? rest : kPieceRows) + kStepRows - 1) / kStepRows;
  }
  template <typename Tile>
  SORDINO_HOST_DEVICE int stage_words() const {
    return kPieceRows * (View<Tile>::kLeftPitch + View<Tile>::kRightPitch);
  }
  SORDINO_HOST_DEVICE void Advance(Cursor& cursor) const {
    if (++cursor.piece == pieces()) {
      cursor.piece = 0;
      ++cursor.example;
    }
  }
  template <typename Tile, bool kTensorCores>
  SORDINO_HOST_DEVICE View<Tile> MakeView(const FusedPlace& /*place*/,
                                          const ThreadPlace& /*thread*/) const {
    return {nullptr, nullptr};
  }
  template <typename Tile>
  SORDINO_HOST_DEVICE void Show(const float* stage, View<Tile>& view) const {
    view.left = stage;
    view.right = stage + kPieceRows * View<Tile>::kLeftPitch;
  }

  template <typename Tile>
  SORDINO_HOST_DEVICE void Prepare(int /*thread*/, float* /*stage*/) const {}

  // Columns [begin, begin + kWidth) of a piece; a thread copies the same kEach of several rows.
  template <int kEach, int kWidth, int kPitch, int kThreads>
  SORDINO_HOST_DEVICE void LoadColumns(const Cursor& cursor, const Matrix& matrix, int begin,
                                       int end, int thread, float* to) const {
    constexpr int kAcross = kWidth / kEach;
    constexpr int kRowsAtOnce = kThreads / kAcross;
    static_assert(kThreads % kAcross == 0 && kPieceRows % kRowsAtOnce == 0);
    const int column = thread % kAcross * kEach;
    const int first = cursor.piece * kPieceRows + thread / kAcross;
    const int count = begin + column < end ? rows - first : 0;
    const float* from =
        matrix.values + cursor.example * matrix.example + first * matrix.row + begin + column;
    float* place = At(to, thread / kAcross * kPitch + column);
    SORDINO_UNROLL
    for (int row = 0; row < kPieceRows; row += kRowsAtOnce) {
      const bool valid = row < count;
      if constexpr (kEach == 4) {
        CopyFour(At(place, row * kPitch), valid ? from : matrix.values, valid ? 4 : 0);
      } else {
        CopyOne(At(place, row * kPitch), valid ? from : matrix.values, valid);
      }
      from += kRowsAtOnce * matrix.row;
    }
  }

  template <int kWidth, int kPitch, int kThreads>
  SORDINO_HOST_DEVICE void LoadOne(const Cursor& cursor, const Matrix& matrix, int begin, int end,
                                   int thread, float* to) const {
    if (matrix.fours) {
      LoadColumns<4, kWidth, kPitch, kThreads>(cursor, matrix, begin, end, thread, to);
    } else {
      LoadColumns<1, kWidth, kPitch, kThreads>(cursor, matrix, begin, end, thread, to);
    }
  }

  template <typename Tile>
  SORDINO_HOST_DEVICE void Load(const Cursor& cursor, const FusedPlace& place, int thread,
                                float* stage) const {
    LoadOne<Tile::kM, View<Tile>::kLeftPitch, Tile::kThreads>(cursor, left, place.m, m, thread,
                                                              stage);
    LoadOne<Tile::kN, View<Tile>::kRightPitch, Tile::kThreads>(
        cursor, right, place.n, n, thread, stage + kPieceRows * View<Tile>::kLeftPitch);
  }
};

using RowsSource = RowsSourceOf<32>;
// Sums leave room for one block on a multiprocessor. With larger pieces its warps wait for each
// other less often.
using SumRowsSource = RowsSourceOf<64>;

inline SumRowsSource ForSums(const RowsSource& source) {
  return {source.left, source.right, source.examples, source.rows, source.m, source.n};
}

}  // namespace sordino

#endif  // SORDINO_KERNELS_FUSED_ROWS_H_
