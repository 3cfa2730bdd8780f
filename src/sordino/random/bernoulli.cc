#include "sordino/random/bernoulli.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace sordino {
namespace {

// Heads when bits <= last or, for rate 0, never. The comparison is with the threshold less one,
// because the threshold 2^64 of rate 1 does not fit into 64 bits.
struct Threshold {
  explicit Threshold(SamplingRate rate) : possible(rate.value() > 0) {
    // Exact: scaling by a power of two, then rounding; at most 2^64.
    const double steps = std::max(1.0, std::nearbyint(std::ldexp(rate.value(), 64)));
    last = steps >= 0x1p64 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(steps) - 1;
  }
  bool Heads(std::uint64_t bits) const { return possible & (bits <= last); }

  bool possible;
  std::uint64_t last;
};

}  // namespace

SamplingRate EffectiveRate(SamplingRate rate) {
  if (rate.value() == 0) return rate;
  return SamplingRate(std::ldexp(std::max(1.0, std::nearbyint(std::ldexp(rate.value(), 64))), -64));
}

bool Bernoulli(Generator& generator, SamplingRate rate) {
  return Threshold(rate).Heads(generator.Next64());
}

void PoissonSample(Generator& generator, SamplingRate rate, std::uint64_t population,
                   std::vector<std::uint64_t>& selected) {
  constexpr std::size_t kBlock = 2048;
  const Threshold threshold(rate);
  std::array<std::uint64_t, kBlock> bits;
  std::array<std::uint64_t, kBlock> heads;
  for (std::uint64_t begin = 0; begin < population; begin += kBlock) {
    const std::size_t size = std::min<std::uint64_t>(kBlock, population - begin);
    generator.Fill(std::as_writable_bytes(std::span(bits).first(size)));
    std::size_t count = 0;
    for (std::size_t i = 0; i < size; ++i) {
      heads[count] = begin + i;
      count += threshold.Heads(bits[i]) ? 1 : 0;
    }
    selected.insert(selected.end(), heads.begin(), heads.begin() + count);
  }
}

}  // namespace sordino
