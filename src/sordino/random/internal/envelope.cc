#include "sordino/random/internal/envelope.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "sordino/base/check.h"
#include "sordino/random/internal/exact_coin.h"

namespace sordino::internal {
namespace {

constexpr std::uint64_t kTotalWeight =
    std::uint64_t{1} << (EnvelopeSampler::kColumnBits + EnvelopeSampler::kFractionBits);
// More than the relative error of any weight that is computed in doubles (step 2 of the header).
constexpr double kRelativeError = 0x1p-40;
constexpr int kSpareBits = 22;

}  // namespace

EnvelopeSampler::EnvelopeSampler(EnvelopeShape shape, double parameter, double reach)
    : shape_(shape),
      parameter_(parameter),
      exponent_factor_(shape == EnvelopeShape::kGaussian ? 0.5 / (parameter * parameter)
                                                         : 1 / parameter) {
  ChooseBins(reach);
  ChooseWeights();
  BuildAliasTable();
  candidates_per_draw_ = CandidatesPerDraw();
}

double EnvelopeSampler::Exponent(double magnitude) const {
  return shape_ == EnvelopeShape::kGaussian ? magnitude * magnitude * exponent_factor_
                                            : magnitude * exponent_factor_;
}

void EnvelopeSampler::ChooseBins(double reach) {
  const auto last = static_cast<std::uint64_t>(std::ceil(reach * parameter_));
  while ((last >> position_bits_) + 1 >= kColumns) ++position_bits_;
  SORDINO_CHECK(position_bits_ <= kMaxPositionBits, "the noise is too wide for its table");
  bins_ = (last >> position_bits_) + 1;
  halves_zero_ = shape_ == EnvelopeShape::kGaussian && position_bits_ == 0;
}

void EnvelopeSampler::ChooseWeights() {
  std::array<double, kColumns> height{};
  for (std::size_t j = 0; j < bins_; ++j) {
    height[j] = std::exp(-Exponent(std::ldexp(static_cast<double>(j), position_bits_)));
  }
  if (halves_zero_) height[0] = 0.5;
  const double sum = std::accumulate(height.begin(), height.begin() + bins_, 0.0);
  // The slack of 2^-20 leaves room for rounding every weight up.
  const double factor = std::floor(static_cast<double>(kTotalWeight) * (1 - 0x1p-20) / sum);
  factor_ = static_cast<std::uint64_t>(factor);
  std::uint64_t total = 0;
  for (std::size_t j = 0; j < bins_; ++j) {
    weights_[j] = static_cast<std::uint64_t>(factor * height[j] * (1 + kRelativeError)) + 1;
    total += weights_[j];
    const std::uint64_t last = ((std::uint64_t{j} + 1) << position_bits_) - 1;
    const double lowest =
        halves_zero_ && j == 0 ? 0.5 : std::exp(-Exponent(static_cast<double>(last)));
    scale_of_u_[j] = std::ldexp(factor / static_cast<double>(weights_[j]), kUBits);
    sure_below_[j] = static_cast<std::uint32_t>(scale_of_u_[j] * lowest * (1 - kRelativeError));
  }
  SORDINO_CHECK(total <= kTotalWeight, "the weights of the noise table exceed their sum");
  weights_[bins_] = kTotalWeight - total;
}

// Every column holds 2^32 units: those of its own bin below the cut, and of one other bin above.
void EnvelopeSampler::BuildAliasTable() {
  constexpr std::uint64_t kCapacity = std::uint64_t{1} << kFractionBits;
  std::array<std::uint64_t, kColumns> left = weights_;
  std::vector<std::uint32_t> small;
  std::vector<std::uint32_t> large;
  for (std::uint32_t i = 0; i < kColumns; ++i) (left[i] < kCapacity ? small : large).push_back(i);
  while (!small.empty()) {
    SORDINO_CHECK(!large.empty(), "the weights of the noise table fall short of their sum");
    const std::uint32_t filled = small.back();
    const std::uint32_t giver = large.back();
    small.pop_back();
    columns_[filled] = {static_cast<std::uint32_t>(left[filled]), giver};
    left[giver] -= kCapacity - left[filled];
    if (left[giver] < kCapacity) {
      large.pop_back();
      small.push_back(giver);
    }
  }
  for (const std::uint32_t full : large) {
    SORDINO_CHECK(left[full] == kCapacity, "the weights of the noise table miss their sum");
    columns_[full] = {0, full};
  }
}

// Only the amount of work depends on this, so an estimate is enough.
double EnvelopeSampler::CandidatesPerDraw() const {
  double accepted = 0;
  for (std::size_t j = 0; j < bins_; ++j) {
    const double middle = static_cast<double>((std::uint64_t{2 * j + 1} << position_bits_) - 1) / 2;
    accepted += std::exp(-Exponent(middle));
  }
  const double zero = std::ldexp(0.5, -position_bits_);
  accepted = (accepted - zero) * static_cast<double>(factor_);
  return static_cast<double>(kTotalWeight) / accepted;
}

void EnvelopeSampler::Fill(Generator& generator, std::span<std::int64_t> out) const {
  constexpr std::size_t kBlock = 1024;
  std::array<Candidate, kBlock> candidates;
  std::array<std::int64_t, kBlock> accepted;
  while (!out.empty()) {
    // Sixteen more than the average needs: a second round for a few values would tell that a
    // candidate was rejected, and the surplus hides which of them came out.
    const auto wanted =
        static_cast<double>(std::min(out.size(), kBlock)) * candidates_per_draw_ + 16;
    const std::size_t count = std::min(kBlock, static_cast<std::size_t>(wanted));
    const std::span<Candidate> block = std::span(candidates).first(count);
    generator.Fill(std::as_writable_bytes(block));
    const std::size_t drawn =
        shape_ == EnvelopeShape::kGaussian
            ? Examine<EnvelopeShape::kGaussian>(generator, block, accepted.data())
            : Examine<EnvelopeShape::kLaplace>(generator, block, accepted.data());
    const std::size_t used = std::min(drawn, out.size());
    std::copy_n(accepted.begin(), used, out.begin());
    out = out.subspan(used);
  }
}

template <EnvelopeShape kShape>
std::size_t EnvelopeSampler::Examine(Generator& generator, std::span<const Candidate> candidates,
                                     std::int64_t* accepted) const {
  const int position_bits = position_bits_;
  const std::uint64_t position_mask = (std::uint64_t{1} << position_bits) - 1;
  const bool rejects_negative_zero = !halves_zero_;
  std::size_t count = 0;
  for (const Candidate& candidate : candidates) {
    const auto fraction = static_cast<std::uint32_t>(candidate.low);
    const std::size_t number = (candidate.low >> kFractionBits) % kColumns;
    const bool negative = (candidate.low >> (kFractionBits + kColumnBits)) & 1;
    const Column column = columns_[number];
    const std::size_t bin = fraction < column.cut ? number : column.alias;
    std::uint64_t magnitude =
        (std::uint64_t{bin} << position_bits) | (candidate.high & position_mask);
    const std::uint64_t u = candidate.high >> kMaxPositionBits;
    bool accept = u < sure_below_[bin];
    if (!accept) [[unlikely]]
      accept = Accept(generator, bin, magnitude, u);
    if constexpr (kShape == EnvelopeShape::kLaplace) {
      // The coin of a whole period has probability below 2^-37: its first 22 bits settle it
      // unless all of them are zero.
      if (candidate.low >> (64 - kSpareBits) == 0) [[unlikely]] {
        magnitude += WholePeriods(generator) * static_cast<std::uint64_t>(Period());
      }
    }
    accept &= !(negative & (magnitude == 0) & rejects_negative_zero);
    const auto value = static_cast<std::int64_t>(magnitude);
    accepted[count] = negative ? -value : value;
    count += accept ? 1 : 0;
  }
  return count;
}

bool EnvelopeSampler::Accept(Generator& generator, std::size_t bin, std::uint64_t magnitude,
                             std::uint64_t u) const {
  if (bin == bins_) return false;
  double bound = scale_of_u_[bin] * std::exp(-Exponent(static_cast<double>(magnitude)));
  if (halves_zero_ && magnitude == 0) bound *= 0.5;
  const auto known = static_cast<double>(u);
  if (known + 1 <= bound * (1 - kRelativeError)) return true;
  if (known >= bound * (1 + kRelativeError)) return false;
  return AcceptExactly(generator, bin, magnitude, u);
}

bool EnvelopeSampler::AcceptExactly(Generator& generator, std::size_t bin, std::uint64_t magnitude,
                                    std::uint64_t u) const {
  ExactBound bound;
  bound.numerator = factor_;
  bound.denominator = weights_[bin] * (halves_zero_ && magnitude == 0 ? 2 : 1);
  bound.magnitude = magnitude;
  bound.parameter = parameter_;
  bound.squared = shape_ == EnvelopeShape::kGaussian;
  return UniformIsBelow(generator, u, kUBits, bound);
}

std::uint64_t EnvelopeSampler::WholePeriods(Generator& generator) const {
  ExactBound bound;
  bound.magnitude = static_cast<std::uint64_t>(Period());
  bound.parameter = parameter_;
  std::uint64_t periods = 0;
  int known_bits = kSpareBits;
  while (UniformIsBelow(generator, 0, known_bits, bound)) {
    ++periods;
    known_bits = 0;
  }
  return periods;
}

}  // namespace sordino::internal
