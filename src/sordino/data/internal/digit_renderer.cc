#include "sordino/data/internal/digit_renderer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>

#include "sordino/data/internal/digit_glyphs.h"

namespace sordino::internal {
namespace {

// Places on the image are in 1/256 of a pixel.
constexpr std::int64_t kPixel = 256;
constexpr std::int64_t kUntouched = std::numeric_limits<std::int64_t>::max();

struct Place {
  std::int64_t x;
  std::int64_t y;
};

// (x, y) of the glyph's box to a place: entries in 1/65536 of a unit of places.
struct AffineMap {
  std::int64_t xx, xy, yx, yy;
  Place origin;

  Place operator()(std::int64_t x, std::int64_t y) const {
    return {origin.x + (xx * x + xy * y) / 65536, origin.y + (yx * x + yy * y) / 65536};
  }
};

constexpr std::int64_t kOne = 1024;  // cosines and sines are in 1/1024

AffineMap DrawMap(CounterDraws& draws) {
  // Half the glyph's height of 72 becomes 7 to 10.2 pixels, its width varies on its own.
  const std::int64_t height = draws.Between(1800, 2600);
  const std::int64_t width = height * draws.Between(74, 110) / 100;
  const std::int64_t scale_x = width * 65536 / 72;
  const std::int64_t scale_y = height * 65536 / 72;
  // The rotation whose half angle has the tangent t: cos = (1 - t^2) / (1 + t^2),
  // sin = 2 t / (1 + t^2), so that no library's sine is asked. Up to 18 degrees.
  const std::int64_t t = draws.Between(-80, 80) + draws.Between(-80, 80);
  const std::int64_t norm = kOne * kOne + t * t;
  const std::int64_t cosine = kOne * (kOne * kOne - t * t) / norm;
  const std::int64_t sine = 2 * kOne * kOne * t / norm;
  const std::int64_t shear = draws.Between(-270, 270);
  // Sheared along x first, then scaled, then turned.
  const std::int64_t sheared = scale_x * shear / kOne;
  AffineMap map;
  map.xx = cosine * scale_x / kOne;
  map.xy = (cosine * -sheared - sine * scale_y) / kOne;
  map.yx = sine * scale_x / kOne;
  map.yy = (sine * -sheared + cosine * scale_y) / kOne;
  map.origin = {14 * kPixel + draws.Between(-480, 480), 14 * kPixel + draws.Between(-480, 480)};
  return map;
}

// Each corner is cut at a quarter and three quarters of its edges; the ends of an open line stay.
std::vector<Place> CutCorners(const std::vector<Place>& line, bool closed) {
  std::vector<Place> cut;
  cut.reserve(2 * line.size() + 2);
  if (!closed) cut.push_back(line.front());
  const std::size_t edges = closed ? line.size() : line.size() - 1;
  for (std::size_t i = 0; i < edges; ++i) {
    const Place a = line[i];
    const Place b = line[(i + 1) % line.size()];
    cut.push_back({(3 * a.x + b.x) / 4, (3 * a.y + b.y) / 4});
    cut.push_back({(a.x + 3 * b.x) / 4, (a.y + 3 * b.y) / 4});
  }
  if (!closed) cut.push_back(line.back());
  return cut;
}

// The squared distance of every pixel's centre from what was drawn, as far as the pen may reach.
class DistanceField {
 public:
  explicit DistanceField(std::int64_t reach) : reach_(reach) { squared_.fill(kUntouched); }

  void Draw(Place a, Place b) {
    const std::int64_t dx = b.x - a.x;
    const std::int64_t dy = b.y - a.y;
    const std::int64_t length = dx * dx + dy * dy;
    const Range columns = Pixels(a.x, b.x);
    const Range rows = Pixels(a.y, b.y);
    for (std::int64_t row = rows.first; row <= rows.last; ++row) {
      for (std::int64_t column = columns.first; column <= columns.last; ++column) {
        const std::int64_t px = column * kPixel + kPixel / 2 - a.x;
        const std::int64_t py = row * kPixel + kPixel / 2 - a.y;
        const std::int64_t along = px * dx + py * dy;
        std::int64_t squared = 0;
        if (along <= 0) {
          squared = px * px + py * py;
        } else if (along >= length) {
          squared = (px - dx) * (px - dx) + (py - dy) * (py - dy);
        } else {
          const std::int64_t cross = px * dy - py * dx;
          squared = cross * cross / length;
        }
        std::int64_t& nearest =
            squared_[static_cast<std::size_t>(row) * kDigitSide + static_cast<std::size_t>(column)];
        nearest = std::min(nearest, squared);
      }
    }
  }

  void Draw(const std::vector<Place>& line, bool closed) {
    for (std::size_t i = 0; i + 1 < line.size(); ++i) Draw(line[i], line[i + 1]);
    if (closed) Draw(line.back(), line.front());
  }

  std::int64_t operator[](std::size_t pixel) const { return squared_[pixel]; }

 private:
  struct Range {
    std::int64_t first;
    std::int64_t last;
  };

  Range Pixels(std::int64_t a, std::int64_t b) const {
    const std::int64_t low = std::max<std::int64_t>(std::min(a, b) - reach_, 0);
    const std::int64_t high = std::max<std::int64_t>(std::max(a, b) + reach_, -1);
    return {low / kPixel, high < 0 ? -1 : std::min<std::int64_t>(high / kPixel, kDigitSide - 1)};
  }

  std::int64_t reach_;
  std::array<std::int64_t, kDigitPixels> squared_;
};

std::int64_t IntegerRoot(std::int64_t square) {
  std::int64_t root = 0;
  for (std::int64_t bit = std::int64_t{1} << 12; bit > 0; bit >>= 1) {
    if ((root + bit) * (root + bit) <= square) root += bit;
  }
  return root;
}

// A pen with a round tip: full ink within `radius` of the line, none from `radius + edge` on.
struct Pen {
  std::int64_t radius;
  std::int64_t edge;
  std::int64_t ink;  // 0 to 255

  std::int64_t reach() const { return radius + edge; }
  std::int64_t InkAt(std::int64_t squared) const {
    if (squared >= reach() * reach()) return 0;
    const std::int64_t distance = IntegerRoot(squared);
    return ink * std::clamp<std::int64_t>(reach() - distance, 0, edge) / edge;
  }
};

using Canvas = std::array<std::int64_t, kDigitPixels>;

void Apply(const Pen& pen, const DistanceField& field, Canvas& canvas) {
  for (std::size_t i = 0; i < canvas.size(); ++i) {
    if (field[i] != kUntouched) canvas[i] = std::max(canvas[i], pen.InkAt(field[i]));
  }
}

void DrawGlyph(CounterDraws& draws, int digit, Canvas& canvas) {
  constexpr int kJitter = 6;  // of a control point, in units of the glyph's box
  const std::span<const Glyph> glyphs = GlyphsOf(digit);
  const Glyph glyph =
      glyphs[static_cast<std::size_t>(draws.Between(0, static_cast<int>(glyphs.size()) - 1))];
  const AffineMap map = DrawMap(draws);
  const Pen pen = {draws.Between(90, 330), draws.Between(200, 380), draws.Between(140, 255)};
  DistanceField field(pen.reach());
  for (const GlyphStroke& stroke : glyph) {
    std::vector<Place> line;
    line.reserve(stroke.points.size());
    for (std::size_t i = 0; i < stroke.points.size(); ++i) {
      if (i > 0 && stroke.points[i] == stroke.points[i - 1]) {
        line.push_back(line.back());
        continue;
      }
      const int x = stroke.points[i].x + draws.Between(-kJitter, kJitter);
      const int y = stroke.points[i].y + draws.Between(-kJitter, kJitter);
      line.push_back(map(x, y));
    }
    for (int round = 0; round < 2; ++round) line = CutCorners(line, stroke.closed);
    field.Draw(line, stroke.closed);
  }
  Apply(pen, field, canvas);
}

// A short stray line, fainter than a digit.
void DrawStrayLine(CounterDraws& draws, Canvas& canvas) {
  const Pen pen = {draws.Between(40, 160), 256, draws.Between(60, 200)};
  const Place a = {draws.Between(0, 28 * 256), draws.Between(0, 28 * 256)};
  const Place b = {a.x + draws.Between(-1800, 1800), a.y + draws.Between(-1800, 1800)};
  DistanceField field(pen.reach());
  field.Draw(a, b);
  Apply(pen, field, canvas);
}

void CoverPatch(CounterDraws& draws, Canvas& canvas) {
  const int width = draws.Between(4, 9);
  const int height = draws.Between(4, 9);
  const int left = draws.Between(2, kDigitSide - 2 - width);
  const int top = draws.Between(2, kDigitSide - 2 - height);
  const int grey = draws.Between(0, 110);
  for (int row = top; row < top + height; ++row) {
    for (int column = left; column < left + width; ++column) {
      canvas[static_cast<std::size_t>(row) * kDigitSide + static_cast<std::size_t>(column)] = grey;
    }
  }
}

}  // namespace

CounterDraws::CounterDraws(std::uint64_t stream) : state_(stream) {
  // One scrambling apart, so that neighbouring streams do not run into each other.
  state_ = Next() ^ 0x536f7264696e6f31U;
}

std::uint64_t CounterDraws::Next() {
  state_ += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

int CounterDraws::Between(int low, int high) {
  const std::uint64_t range = static_cast<std::uint64_t>(high - low) + 1;
  return low + static_cast<int>(((Next() >> 32) * range) >> 32);
}

void RenderDigit(std::uint64_t stream, int digit, std::span<std::uint8_t, kDigitPixels> image) {
  CounterDraws draws(stream);
  Canvas canvas{};
  DrawGlyph(draws, digit, canvas);
  while (draws.Chance(35)) DrawStrayLine(draws, canvas);
  if (draws.Chance(20)) CoverPatch(draws, canvas);
  // The noise of a pixel is the sum of two uniform numbers; its strength differs between images.
  const std::int64_t strength = draws.Between(0, 40);
  for (std::size_t i = 0; i < canvas.size(); ++i) {
    const std::uint64_t bits = draws.Next();
    const std::int64_t bell = static_cast<std::int64_t>(bits & 0xffff) +
                              static_cast<std::int64_t>((bits >> 16) & 0xffff) - 65535;
    const std::int64_t value = canvas[i] + strength * bell / 65536;
    image[i] = static_cast<std::uint8_t>(std::clamp<std::int64_t>(value, 0, 255));
  }
}

}  // namespace sordino::internal
