// A convolution as a product of each example (fused_copy.h).
#ifndef SORDINO_KERNELS_FUSED_WINDOWS_H_
#define SORDINO_KERNELS_FUSED_WINDOWS_H_

#include <cstdint>

#include "sordino/kernels/fused_copy.h"
#include "sordino/kernels/fused_tile.h"

namespace sordino {

// The signal and the windows of an image (convolution_shape.h): left[t, i] is channel i of the
// signal at position t, right[t, j] the pixel that entry j of the kernel meets there. A piece is
// `block_y` x `block_x` positions of one image at one depth; its part of the image is copied once,
// and read once for each entry of the kernel.
struct WindowSource {
  struct Steps5 {  // strides, in elements
    std::int64_t image = 0;
    int channel = 0;
    int z = 0;
    int y = 0;
    int x = 0;
  };
  const float* image = nullptr;
  const float* signal = nullptr;
  Steps5 image_step;
  Steps5 signal_step;
  int outer = 1;
  int examples = 0;
  int inner = 1;
  int m = 0;         // signal channels of a group
  int n = 0;         // entries of a kernel: image channels of a group times kernel volume
  int channels = 0;  // image channels of a group
  int kernel[3] = {1, 1, 1};
  int stride[3] = {1, 1, 1};
  int padding[3] = {0, 0, 0};
  int dilation[3] = {1, 1, 1};
  int extent[3] = {1, 1, 1};     // of the image
  int positions[3] = {1, 1, 1};  // of the kernel

  // The plan of a piece.
  int block_y = 1;
  int block_x = 1;
  int blocks_y = 1;
  int blocks_x = 1;
  int piece_rows = 8;  // positions of a piece, rounded up to steps
  int left_pitch = 12;
  int patch_y = 1;  // rows of the image beneath a piece
  int patch_x = 1;  // and columns
  int pitch_y = 1;  // in shared memory
  int pitch_z = 1;  // likewise
  int pitch_channel = 1;
  int patch_words = 0;
  bool signal_fours = false;
  // Whole lines of the image are copied, four pixels at once, after `lead` words and the padding;
  // columns outside of the image are 0 from the beginning.
  bool image_fours = false;
  int lead = 0;
  Divider by_line_fours;
  Divider by_patch_x;
  Divider by_patch_y;
  Divider by_kernel_z;
  Divider by_piece_rows;
  Divider by_block_x;

  template <typename Tile>
  using View = ImagePatch<Tile>;

  struct Cursor {
    int example = 0;
    int image = 0;  // of the example
    int z = 0;
    int y = 0;  // block
    int x = 0;  // block
  };

  SORDINO_HOST_DEVICE int images() const { return outer * inner; }
  SORDINO_HOST_DEVICE int pieces() const { return images() * positions[0] * blocks_y * blocks_x; }
  SORDINO_HOST_DEVICE int Steps(int /*piece*/) const { return piece_rows / kStepRows; }
  SORDINO_HOST_DEVICE int kernel_volume() const { return kernel[0] * kernel[1] * kernel[2]; }
  template <typename Tile>
  SORDINO_HOST_DEVICE int stage_words() const {
    return piece_rows + Tile::kM * left_pitch + patch_words;
  }
  SORDINO_HOST_DEVICE void Advance(Cursor& cursor) const {
    if (++cursor.x < blocks_x) return;
    cursor.x = 0;
    if (++cursor.y < blocks_y) return;
    cursor.y = 0;
    if (++cursor.z < positions[0]) return;
    cursor.z = 0;
    if (++cursor.image < images()) return;
    cursor.image = 0;
    ++cursor.example;
  }
  // Columns beyond the last read the last: what they give is not used.
  template <typename Tile, bool kTensorCores>
  SORDINO_HOST_DEVICE View<Tile> MakeView(const FusedPlace& place,
                                          const ThreadPlace& thread) const {
    View<Tile> view;
    view.left_pitch = left_pitch;
    const int volume = kernel_volume();
    const int first_channel = place.n / volume;
    SORDINO_UNROLL
    for (int k = 0; k < Tile::kNTiles; ++k) {
      const int lane = kTensorCores ? thread.lane / 4 : thread.lane % 8;
      int column = place.n + thread.column + k * 8 + lane;
      column = column < n ? column : n - 1;
      const int channel = column / volume;
      int rest = column - channel * volume;
      const int x = rest % kernel[2];
      rest /= kernel[2];
      const int y = rest % kernel[1];
      const int z = rest / kernel[1];
      view.offsets[k] = (channel - first_channel) * pitch_channel + z * pitch_z +
                        y * dilation[1] * pitch_y + x * dilation[2] + lead;
    }
    return view;
  }
  template <typename Tile>
  SORDINO_HOST_DEVICE void Show(const float* stage, View<Tile>& view) const {
    view.positions = reinterpret_cast<const int*>(stage);
    view.left = stage + piece_rows;
    view.patch = stage + piece_rows + Tile::kM * left_pitch;
  }

  SORDINO_HOST_DEVICE std::int64_t ImageOf(int example, int index) const {
    if (outer == 1) return static_cast<std::int64_t>(example) * inner + index;
    const int o = index / inner;
    return (static_cast<std::int64_t>(o) * examples + example) * inner + (index - o * inner);
  }

  template <int kThreads>
  SORDINO_HOST_DEVICE void LoadPatch(const Cursor& cursor, const FusedPlace& place, int columns,
                                     int thread, float* to) const {
    const int volume = kernel_volume();
    const int first_channel = place.n / volume;
    const int last_column = place.n + columns < n ? place.n + columns : n;
    const int patch_channels = (last_column - 1) / volume - first_channel + 1;
    const float* from =
        image + ImageOf(cursor.example, cursor.image) * image_step.image +
        static_cast<std::int64_t>(place.group * channels + first_channel) * image_step.channel;
    const int first_z = cursor.z * stride[0] - padding[0];
    const int first_y = cursor.y * block_y * stride[1] - padding[1];
    const int first_x = cursor.x * block_x * stride[2] - padding[2];
    if (image_fours) {
      const int fours = extent[2] / 4;
      const int count = patch_channels * kernel[0] * patch_y * fours;
      SORDINO_NO_UNROLL
      for (int k = thread; k < count; k += kThreads) {
        const int row = by_line_fours.Quotient(k);
        const int column = by_line_fours.Remainder(k, row) * 4;
        const int plane = by_patch_y.Quotient(row);
        const int line = by_patch_y.Remainder(row, plane);
        const int channel = by_kernel_z.Quotient(plane);
        const int depth = by_kernel_z.Remainder(plane, channel);
        const int z = first_z + depth * dilation[0];
        const int y = first_y + line;
        const bool valid = static_cast<unsigned>(z) < static_cast<unsigned>(extent[0]) &&
                           static_cast<unsigned>(y) < static_cast<unsigned>(extent[1]);
        const int inside = z * image_step.z + y * image_step.y + column;
        const std::int64_t offset =
            static_cast<std::int64_t>(channel) * image_step.channel + inside;
        CopyFour(At(to, channel * pitch_channel + depth * pitch_z + line * pitch_y + lead +
                            padding[2] + column),
                 valid ? from + offset : image, valid ? 4 : 0);
      }
      return;
    }
    const int count = patch_channels * kernel[0] * patch_y * patch_x;
    SORDINO_NO_UNROLL
    for (int k = thread; k < count; k += kThreads) {
      const int row = by_patch_x.Quotient(k);
      const int column = by_patch_x.Remainder(k, row);
      const int plane = by_patch_y.Quotient(row);
      const int line = by_patch_y.Remainder(row, plane);
      const int channel = by_kernel_z.Quotient(plane);
      const int depth = by_kernel_z.Remainder(plane, channel);
      const int z = first_z + depth * dilation[0];
      const int y = first_y + line;
      const int x = first_x + column;
      const bool valid = static_cast<unsigned>(z) < static_cast<unsigned>(extent[0]) &&
                         static_cast<unsigned>(y) < static_cast<unsigned>(extent[1]) &&
                         static_cast<unsigned>(x) < static_cast<unsigned>(extent[2]);
      const int inside = z * image_step.z + y * image_step.y + x * image_step.x;
      const std::int64_t offset = static_cast<std::int64_t>(channel) * image_step.channel + inside;
      CopyOne(At(to, channel * pitch_channel + depth * pitch_z + line * pitch_y + column),
              valid ? from + offset : image, valid);
    }
  }

  template <typename Tile>
  SORDINO_HOST_DEVICE void LoadSignal(const Cursor& cursor, const FusedPlace& place, int thread,
                                      float* to) const {
    const int first_y = cursor.y * block_y;
    const int first_x = cursor.x * block_x;
    const int lines = positions[1] - first_y < block_y ? positions[1] - first_y : block_y;
    const int width = positions[2] - first_x < block_x ? positions[2] - first_x : block_x;
    const int inside = cursor.z * signal_step.z + first_y * signal_step.y + first_x * signal_step.x;
    const float* from = signal + ImageOf(cursor.example, cursor.image) * signal_step.image +
                        static_cast<std::int64_t>(place.group * m + place.m) * signal_step.channel +
                        inside;
    const int rows_left = m - place.m;
    if (signal_fours) {  // whole lines, which lie after each other
      const int valid = lines * block_x;
      SORDINO_NO_UNROLL
      for (int k = thread * 4; k < Tile::kM * piece_rows; k += Tile::kThreads * 4) {
        const int row = by_piece_rows.Quotient(k);
        const int t = by_piece_rows.Remainder(k, row);
        int count = row < rows_left ? valid - t : 0;
        count = count < 0 ? 0 : (count > 4 ? 4 : count);
        CopyFour(
            At(to, row * left_pitch + t),
            count > 0 ? from + static_cast<std::int64_t>(row) * signal_step.channel + t : signal,
            count);
      }
      return;
    }
    SORDINO_NO_UNROLL
    for (int k = thread; k < Tile::kM * piece_rows; k += Tile::kThreads) {
      const int row = by_piece_rows.Quotient(k);
      const int t = by_piece_rows.Remainder(k, row);
      const int y = by_block_x.Quotient(t);
      const int x = by_block_x.Remainder(t, y);
      const bool valid = row < rows_left && y < lines && x < width;
      const int within = y * signal_step.y + x * signal_step.x;
      CopyOne(At(to, row * left_pitch + t),
              valid ? from + static_cast<std::int64_t>(row) * signal_step.channel + within : signal,
              valid);
    }
  }

  // Once for a stage, before anything is loaded.
  template <typename Tile>
  SORDINO_HOST_DEVICE void Prepare(int thread, float* stage) const {
    if (!image_fours) return;
    float* patch = stage + piece_rows + Tile::kM * left_pitch;
    SORDINO_NO_UNROLL
    for (int k = thread; k < patch_words; k += Tile::kThreads) patch[k] = 0;
  }

  template <typename Tile>
  SORDINO_HOST_DEVICE void Load(const Cursor& cursor, const FusedPlace& place, int thread,
                                float* stage) const {
    const int lines = positions[1] - cursor.y * block_y;
    const int width = positions[2] - cursor.x * block_x;
    // Rows without a position read that of the first one: their signal is 0, and what they meet is
    // a pixel that the column meets anyway.
    SORDINO_NO_UNROLL
    for (int t = thread; t < piece_rows; t += Tile::kThreads) {
      const int y = by_block_x.Quotient(t);
      const int x = by_block_x.Remainder(t, y);
      const bool valid = y < block_y && y < lines && x < width;
      reinterpret_cast<int*>(stage)[t] = valid ? y * stride[1] * pitch_y + x * stride[2] : 0;
    }
    LoadSignal<Tile>(cursor, place, thread, stage + piece_rows);
    LoadPatch<Tile::kThreads>(cursor, place, Tile::kN, thread,
                              stage + piece_rows + Tile::kM * left_pitch);
  }
};

}  // namespace sordino

#endif  // SORDINO_KERNELS_FUSED_WINDOWS_H_
