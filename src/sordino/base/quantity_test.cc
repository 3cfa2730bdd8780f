#include "sordino/base/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>

namespace sordino {
namespace {

using ::testing::HasSubstr;

TEST(Quantity, KeepsItsValue) {
  EXPECT_EQ(Epsilon(1.5).value(), 1.5);
  EXPECT_EQ(Delta(1e-300).value(), 1e-300);
  EXPECT_EQ(Epsilon(kInfinity).value(), kInfinity);
}

TEST(Quantity, AcceptsExactlyItsRange) {
  EXPECT_NO_THROW(Epsilon{0});
  EXPECT_NO_THROW(Delta{0});
  EXPECT_NO_THROW(Delta{1});
  EXPECT_NO_THROW(SamplingRate{1});
  EXPECT_NO_THROW(NoiseMultiplier{std::numeric_limits<double>::denorm_min()});
  EXPECT_NO_THROW(RenyiOrder{std::nextafter(1.0, 2.0)});
  EXPECT_THROW(Epsilon{-1e-300}, Error);
  EXPECT_THROW(Delta{std::nextafter(1.0, 2.0)}, Error);
  EXPECT_THROW(SamplingRate{-0.1}, Error);
  EXPECT_THROW(NoiseMultiplier{0}, Error);
  EXPECT_THROW(NoiseMultiplier{kInfinity}, Error);
  EXPECT_THROW(RenyiOrder{1}, Error);
  EXPECT_THROW(Rho{kInfinity}, Error);
  EXPECT_THROW(ClipNorm{0}, Error);
}

TEST(Quantity, RefusesNaN) {
  EXPECT_THROW(Epsilon{std::nan("")}, Error);
  EXPECT_THROW(Delta{std::nan("")}, Error);
  EXPECT_THROW(NoiseMultiplier{std::nan("")}, Error);
}

TEST(Quantity, SaysWhatWasGivenAndWhatIsAllowed) {
  try {
    SamplingRate rate(1.5);
    FAIL() << "a rate of 1.5 was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the sampling rate is 1.5"));
    EXPECT_THAT(error.what(), HasSubstr("at least 0 and at most 1"));
  }
}

TEST(Quantity, DoesNotConvertToAnotherQuantityOrToADouble) {
  static_assert(!std::is_convertible_v<Epsilon, Delta>);
  static_assert(!std::is_constructible_v<Delta, Epsilon>);
  static_assert(!std::is_convertible_v<double, Epsilon>);
  static_assert(!std::is_convertible_v<Epsilon, double>);
  static_assert(!std::is_constructible_v<L2Sensitivity, L1Sensitivity>);
  SUCCEED();
}

TEST(Quantity, ComparesWithinItsType) {
  EXPECT_LT(Epsilon(1), Epsilon(2));
  EXPECT_EQ(Delta(0.5), Delta(0.5));
}

TEST(Adjacency, NamesRoundTrip) {
  for (const Adjacency adjacency :
       {Adjacency::kAddRemove, Adjacency::kReplaceOne, Adjacency::kZeroOut}) {
    EXPECT_EQ(ParseAdjacency(AdjacencyName(adjacency)), adjacency);
  }
  EXPECT_THROW(ParseAdjacency("swap"), Error);
}

}  // namespace
}  // namespace sordino
