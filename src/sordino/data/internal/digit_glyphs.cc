#include "sordino/data/internal/digit_glyphs.h"

#include <array>
#include <cstddef>

namespace sordino::internal {
namespace {

using P = GlyphPoint;

constexpr P kOval[] = {{0, -70}, {-32, -54}, {-40, 0}, {-32, 54},
                       {0, 70},  {32, 54},   {40, 0},  {32, -54}};
constexpr P kNarrowOval[] = {{2, -70}, {-22, -52}, {-28, 0}, {-22, 54},
                             {0, 70},  {24, 52},   {28, 0},  {22, -54}};
constexpr P kOpenOval[] = {{20, -60}, {-12, -72}, {-40, -30}, {-34, 46}, {0, 72},
                           {38, 44},  {40, -20},  {16, -66},  {-4, -56}};
constexpr P kSlash[] = {{-24, 40}, {24, -40}};

constexpr P kPole[] = {{0, -66}, {0, 66}};
constexpr P kFlaggedPole[] = {{-22, -38}, {2, -66}, {2, -66}, {2, 66}};
constexpr P kFoot[] = {{-24, 66}, {26, 66}};

constexpr P kTwo[] = {{-34, -34}, {-30, -64}, {10, -74}, {38, -50}, {30, -14},
                      {-4, 22},   {-38, 62},  {-38, 62}, {40, 62}};
constexpr P kLoopedTwo[] = {{-34, -40}, {-16, -70}, {32, -68}, {34, -22}, {0, 24},
                            {-32, 64},  {-42, 40},  {-16, 34}, {4, 60},   {42, 56}};
constexpr P kSquareTwo[] = {{-34, -60}, {32, -66}, {38, -20}, {0, 0},
                            {-36, 30},  {-32, 66}, {38, 62}};

constexpr P kThree[] = {{-34, -50}, {-8, -74}, {38, -62}, {32, -16}, {-6, -4},
                        {-6, -4},   {38, 4},   {42, 54},  {4, 74},   {-36, 54}};
constexpr P kFlatThree[] = {{-34, -64}, {34, -64}, {34, -64}, {-2, -12}, {-2, -12},
                            {36, -8},   {42, 48},  {4, 74},   {-36, 52}};

constexpr P kOpenFour[] = {{-24, -64}, {-38, 12}, {-38, 12}, {40, 12}};
constexpr P kFourStem[] = {{20, -34}, {14, 68}};
constexpr P kTallFourStem[] = {{18, -64}, {18, 68}};
constexpr P kClosedFour[] = {{18, 68}, {18, -68}, {18, -68}, {-40, 24}, {-40, 24}, {40, 24}};

constexpr P kFive[] = {{34, -64}, {-26, -64}, {-26, -64}, {-32, -8}, {-32, -8},
                       {6, -26},  {44, 4},    {34, 58},   {-4, 74},  {-36, 54}};
constexpr P kRoundFive[] = {{36, -62}, {-12, -70}, {-36, -38}, {-8, -8},
                            {34, 4},   {38, 50},   {0, 72},    {-36, 56}};

constexpr P kSix[] = {{28, -66}, {-18, -46}, {-42, 12}, {-30, 62}, {8, 74},
                      {40, 44},  {26, 4},    {-10, 2},  {-36, 32}};
constexpr P kStraightSix[] = {{14, -70}, {-34, 20}, {-28, 64}, {8, 74},
                              {38, 48},  {28, 12},  {-4, 6},   {-32, 36}};

constexpr P kSeven[] = {{-36, -62}, {38, -62}, {38, -62}, {-8, 68}};
constexpr P kCross[] = {{-22, 4}, {30, 0}};
constexpr P kHookedSeven[] = {{-36, -40}, {-36, -62}, {-36, -62}, {38, -62},
                              {38, -62},  {2, 0},     {-8, 68}};

constexpr P kEight[] = {{32, -52}, {0, -76}, {-34, -50}, {-22, -14}, {24, 14},
                        {40, 48},  {0, 76},  {-40, 48},  {-24, 14},  {22, -14}};
constexpr P kUpperRing[] = {{0, -70}, {-30, -54}, {-30, -18}, {0, -2}, {30, -18}, {30, -54}};
constexpr P kLowerRing[] = {{0, -4}, {-38, 14}, {-38, 54}, {0, 72}, {38, 54}, {38, 14}};

constexpr P kNine[] = {{32, -40}, {10, -72}, {-30, -58}, {-36, -20}, {-6, 2},
                       {28, -20}, {32, -50}, {32, -50},  {26, 68}};
constexpr P kCurledNine[] = {{32, -40}, {8, -74},  {-32, -56}, {-34, -16}, {-4, 4},
                             {30, -18}, {34, -48}, {38, 20},   {16, 70},   {-26, 62}};

constexpr GlyphStroke kZeroA[] = {{kOval, true}};
constexpr GlyphStroke kZeroB[] = {{kNarrowOval, true}};
constexpr GlyphStroke kZeroC[] = {{kOpenOval}};
constexpr GlyphStroke kZeroD[] = {{kOval, true}, {kSlash}};
constexpr GlyphStroke kOneA[] = {{kPole}};
constexpr GlyphStroke kOneB[] = {{kFlaggedPole}};
constexpr GlyphStroke kOneC[] = {{kFlaggedPole}, {kFoot}};
constexpr GlyphStroke kTwoA[] = {{kTwo}};
constexpr GlyphStroke kTwoB[] = {{kLoopedTwo}};
constexpr GlyphStroke kTwoC[] = {{kSquareTwo}};
constexpr GlyphStroke kThreeA[] = {{kThree}};
constexpr GlyphStroke kThreeB[] = {{kFlatThree}};
constexpr GlyphStroke kFourA[] = {{kOpenFour}, {kFourStem}};
constexpr GlyphStroke kFourB[] = {{kOpenFour}, {kTallFourStem}};
constexpr GlyphStroke kFourC[] = {{kClosedFour}};
constexpr GlyphStroke kFiveA[] = {{kFive}};
constexpr GlyphStroke kFiveB[] = {{kRoundFive}};
constexpr GlyphStroke kSixA[] = {{kSix}};
constexpr GlyphStroke kSixB[] = {{kStraightSix}};
constexpr GlyphStroke kSevenA[] = {{kSeven}};
constexpr GlyphStroke kSevenB[] = {{kSeven}, {kCross}};
constexpr GlyphStroke kSevenC[] = {{kHookedSeven}};
constexpr GlyphStroke kEightA[] = {{kEight, true}};
constexpr GlyphStroke kEightB[] = {{kUpperRing, true}, {kLowerRing, true}};
constexpr GlyphStroke kNineA[] = {{kNine}};
constexpr GlyphStroke kNineB[] = {{kCurledNine}};

constexpr Glyph kZeros[] = {kZeroA, kZeroB, kZeroC, kZeroD};
constexpr Glyph kOnes[] = {kOneA, kOneB, kOneC};
constexpr Glyph kTwos[] = {kTwoA, kTwoB, kTwoC};
constexpr Glyph kThrees[] = {kThreeA, kThreeB};
constexpr Glyph kFours[] = {kFourA, kFourB, kFourC};
constexpr Glyph kFives[] = {kFiveA, kFiveB};
constexpr Glyph kSixes[] = {kSixA, kSixB};
constexpr Glyph kSevens[] = {kSevenA, kSevenB, kSevenC};
constexpr Glyph kEights[] = {kEightA, kEightB};
constexpr Glyph kNines[] = {kNineA, kNineB};

constexpr std::array<std::span<const Glyph>, 10> kDigits = {
    kZeros, kOnes, kTwos, kThrees, kFours, kFives, kSixes, kSevens, kEights, kNines};

}  // namespace

std::span<const Glyph> GlyphsOf(int digit) { return kDigits[static_cast<std::size_t>(digit)]; }

}  // namespace sordino::internal
