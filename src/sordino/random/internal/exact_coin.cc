#include "sordino/random/internal/exact_coin.h"

#include <boost/multiprecision/cpp_bin_float.hpp>

#include "sordino/base/check.h"

namespace sordino::internal {
namespace {

namespace mp = boost::multiprecision;

template <unsigned kBits>
using Real = mp::number<mp::cpp_bin_float<kBits, mp::digit_base_2>, mp::et_off>;

template <unsigned kBits>
Real<kBits> ValueOf(const ExactBound& bound) {
  using R = Real<kBits>;
  const R ratio = R(bound.magnitude) / R(bound.parameter);
  const R exponent = bound.squared ? R(ratio * ratio / 2) : ratio;
  return R(bound.numerator) / R(bound.denominator) * mp::exp(R(-exponent));
}

// The uniform number with its known bits, to be extended.
template <unsigned kBits>
struct Uniform {
  Real<kBits> low = 0;   // u is at least this
  Real<kBits> unit = 1;  // and less than low + unit

  void Extend(Generator& generator) {
    unit = mp::ldexp(unit, -64);
    low += unit * Real<kBits>(generator.Next64());
  }
};

enum class Answer { kBelow, kNotBelow, kUndecided };

// The computed bound is off by a few units in its last place, a power and an exponential of
// at most 2^7 included; 2^-24 of kBits is far more than that.
template <unsigned kBits>
Answer Compare(const Uniform<kBits>& u, const ExactBound& bound) {
  const Real<kBits> value = ValueOf<kBits>(bound);
  const Real<kBits> error = mp::ldexp(value, 24 - static_cast<int>(kBits));
  if (u.low + u.unit <= value - error) return Answer::kBelow;
  if (u.low >= value + error) return Answer::kNotBelow;
  return Answer::kUndecided;
}

}  // namespace

bool UniformIsBelow(Generator& generator, std::uint64_t known, int known_bits,
                    const ExactBound& bound) {
  // Wide enough for 63 + 3200 bits of u to be represented without rounding.
  constexpr unsigned kFirst = 384;
  constexpr unsigned kSecond = 3328;
  Uniform<kFirst> u;
  u.unit = mp::ldexp(Real<kFirst>(1), -known_bits);
  u.low = u.unit * Real<kFirst>(known);
  for (int i = 0; i < 4; ++i) u.Extend(generator);
  Answer answer = Compare(u, bound);
  if (answer == Answer::kUndecided) {
    Uniform<kSecond> longer;
    longer.low = Real<kSecond>(u.low);
    longer.unit = Real<kSecond>(u.unit);
    for (int i = 0; i < 46; ++i) longer.Extend(generator);
    answer = Compare(longer, bound);
  }
  SORDINO_CHECK(answer != Answer::kUndecided, "3200 random bits did not decide one coin");
  return answer == Answer::kBelow;
}

}  // namespace sordino::internal
