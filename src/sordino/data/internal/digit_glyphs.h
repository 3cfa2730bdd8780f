// The strokes of the digits that digit_renderer.h draws.
#ifndef SORDINO_DATA_INTERNAL_DIGIT_GLYPHS_H_
#define SORDINO_DATA_INTERNAL_DIGIT_GLYPHS_H_

#include <cstdint>
#include <span>

namespace sordino::internal {

// A point of a box from -76 to 76 each way, y downwards.
struct GlyphPoint {
  std::int8_t x;
  std::int8_t y;

  friend constexpr bool operator==(GlyphPoint, GlyphPoint) = default;
};

// A line through control points, smoothed where it is drawn; a point given twice stays a corner.
struct GlyphStroke {
  std::span<const GlyphPoint> points;
  bool closed = false;
};

using Glyph = std::span<const GlyphStroke>;

// The ways to write `digit`, 0 to 9.
std::span<const Glyph> GlyphsOf(int digit);

}  // namespace sordino::internal

#endif  // SORDINO_DATA_INTERNAL_DIGIT_GLYPHS_H_
