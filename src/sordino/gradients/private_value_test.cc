#include "sordino/gradients/private_value.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <concepts>
#include <ostream>
#include <type_traits>

namespace sordino {
namespace {

template <typename T>
concept Streamable = requires(std::ostream& stream, const T& value) {
  stream << value;
};

TEST(PrivateValue, IsReadByNamedCallsOnly) {
  const PrivateValue<double> value(0.25);
  EXPECT_EQ(value.RevealForNoise(), 0.25);
  EXPECT_EQ(value.RevealForAudit(), 0.25);
}

TEST(PrivateValue, HasNoFormatterAndNoConversion) {
  // The controls: double has all of them.
  static_assert(Streamable<double> && fmt::is_formattable<double>::value);
  static_assert(!Streamable<PrivateValue<double>>);
  static_assert(!fmt::is_formattable<PrivateValue<double>>::value);
  static_assert(!std::is_convertible_v<PrivateValue<double>, double>);
  static_assert(!std::is_constructible_v<double, PrivateValue<double>>);
  static_assert(!std::is_constructible_v<bool, PrivateValue<double>>);
  static_assert(!std::is_convertible_v<double, PrivateValue<double>>);
  static_assert(!std::equality_comparable<PrivateValue<double>>);
}

}  // namespace
}  // namespace sordino
