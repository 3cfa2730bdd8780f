#include "sordino/random/indexed_gaussian.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>

#include "sordino/base/check.h"
#include "sordino/base/quantity.h"
#include "sordino/random/discrete_gaussian.h"
#include "sordino/random/internal/envelope.h"

namespace sordino {
namespace {

// 1 / (2^13 sigma^2). With sigma = m 2^e, m a whole number of 53 bits, the significand is the whole
// part of 2^k / m^2 for the k that gives it 160 bits.
GaussianRate RateOf(double sigma) {
  using Integer = boost::multiprecision::cpp_int;
  int exponent = 0;
  const auto m = static_cast<std::uint64_t>(std::ldexp(std::frexp(sigma, &exponent), 53));
  exponent -= 53;
  const Integer square = Integer(m) * m;
  int k = kWideBits + static_cast<int>(msb(square)) - 1;
  Integer significand = (Integer(1) << k) / square;
  while (significand < Integer(1) << (kWideBits - 1)) {
    ++k;
    significand = (Integer(1) << k) / square;
  }
  GaussianRate rate{};
  rate.exponent = k - (kWideBits - 13) + 2 * exponent;
  for (std::uint32_t& limb : rate.significand.limb) {
    limb = static_cast<std::uint32_t>(significand & ~std::uint32_t{0});
    significand >>= 32;
  }
  SORDINO_CHECK(significand == 0 && rate.exponent >= 0, "the rate of a Gaussian has other digits");
  return rate;
}

void FillTable(const internal::EnvelopeSampler& sampler, double sigma, IndexedTable& table) {
  using Sampler = internal::EnvelopeSampler;
  static_assert(Sampler::kColumns == IndexedQuickTable::kColumns);
  static_assert(Sampler::kColumnBits + Sampler::kFractionBits == 41);
  SORDINO_CHECK(sampler.position_bits() <= kIndexedPositionBits,
                "the noise is too wide for its candidates");
  IndexedQuickTable& quick = table.quick;
  quick.position_bits = sampler.position_bits();
  quick.bins = static_cast<std::uint32_t>(sampler.bins());
  quick.zero_is_halved = sampler.halves_zero();
  table.factor = sampler.factor();
  table.rate = RateOf(sigma);
  table.exponent_factor = 0.5 / (sigma * sigma);
  table.slack = kIndexedSlack;
  for (std::size_t j = 0; j < Sampler::kColumns; ++j) {
    quick.column[j] = {sampler.columns()[j].cut, sampler.columns()[j].alias};
    if (j >= sampler.bins()) continue;
    quick.sure_below[j] = sampler.sure_below(j) >> (Sampler::kUBits - kIndexedUBits);
    const bool halved = quick.zero_is_halved && j == 0;
    table.weight[j] = sampler.weight(j) * (halved ? 2 : 1);
    const double first = std::ldexp(static_cast<double>(j), quick.position_bits);
    const double height = std::exp(-first * first * table.exponent_factor);
    const double share =
        static_cast<double>(table.factor) / static_cast<double>(table.weight[j]) * height;
    table.acceptance[j] = std::ldexp(share, kIndexedUBits);
  }
}

}  // namespace

ChaChaKey DrawChaChaKey(Generator& generator) {
  ChaChaKey key{};
  generator.Fill(std::as_writable_bytes(std::span(key.word)));
  return key;
}

void ForgetKey(ChaChaKey& key) { OPENSSL_cleanse(key.word, sizeof(key.word)); }

IndexedGaussian::IndexedGaussian(double sigma) : sigma_(sigma) {
  CheckRange("sigma of the discrete Gaussian", sigma, DiscreteGaussian::kMinSigma, false,
             DiscreteGaussian::kMaxSigma, false);
  const internal::EnvelopeSampler sampler(internal::EnvelopeShape::kGaussian, sigma,
                                          internal::kGaussianReach);
  auto table = std::make_shared<IndexedTable>();
  FillTable(sampler, sigma, *table);
  table_ = std::move(table);
}

void IndexedGaussian::Fill(const ChaChaKey& key, std::uint64_t draw, std::uint64_t first,
                           std::span<std::int64_t> out) const {
  SORDINO_CHECK(first < std::uint64_t{1} << 50, "a coordinate of noise is too large");
  std::int64_t values[kIndexedGroup];
  std::uint64_t coordinate = first;
  while (!out.empty()) {
    SORDINO_CHECK(
        DrawIndexedGroup(key, draw, coordinate / kIndexedGroup, table_->quick, *table_, values),
        "sixteen blocks of random bits did not give four values of noise");
    const std::size_t skipped = coordinate % kIndexedGroup;
    const std::size_t taken = std::min(out.size(), kIndexedGroup - skipped);
    std::copy_n(values + skipped, taken, out.begin());
    out = out.subspan(taken);
    coordinate += taken;
  }
}

}  // namespace sordino
