// Draws handwritten-looking digits from strokes, the same bytes on every machine.
//
// A digit is one of a few glyphs of its class (an open or a closed 4, a crossed 7, a 1 with a
// foot), whose control points are moved, put through a random affine map, smoothed by corner
// cutting (Chaikin 1974) and drawn with a round pen. Stray strokes, a covered patch and noise come
// on top. Everything is integer arithmetic on numbers drawn from a counter, so an image is a
// function of its stream and its digit, and of nothing else.
#ifndef SORDINO_DATA_INTERNAL_DIGIT_RENDERER_H_
#define SORDINO_DATA_INTERNAL_DIGIT_RENDERER_H_

#include <cstdint>
#include <span>

namespace sordino::internal {

inline constexpr int kDigitSide = 28;
inline constexpr int kDigitPixels = kDigitSide * kDigitSide;

// Whole numbers from a counter: SplitMix64 (Steele, Lea, Flood 2014) started at a hash of the
// stream. It decides nothing about privacy.
class CounterDraws {
 public:
  explicit CounterDraws(std::uint64_t stream);
  std::uint64_t Next();
  // Uniform in [low, high] up to 2^-32.
  int Between(int low, int high);
  // True with probability percent / 100.
  bool Chance(int percent) { return Between(0, 99) < percent; }

 private:
  std::uint64_t state_;
};

// Writes the image of `digit` (0 to 9) that belongs to `stream`.
void RenderDigit(std::uint64_t stream, int digit, std::span<std::uint8_t, kDigitPixels> image);

}  // namespace sordino::internal

#endif  // SORDINO_DATA_INTERNAL_DIGIT_RENDERER_H_
