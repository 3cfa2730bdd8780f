// Exact rejection sampling of a symmetric, unimodal integer distribution under a step function.
//
// Target: rho(x) = exp(-x^2 / (2 p^2)) (Gaussian) or exp(-|x| / p) (Laplace), magnitudes in
// [0, Period()). The magnitudes are cut into at most 511 bins of w = 2^b integers. Bin j has an
// integer weight H_j >= M rho(j w), its largest value times a common integer factor M. A
// candidate is made of uniform bits only:
//   bin       an alias table (Walker 1977) of integer weights that add up to 2^41 exactly, the
//             rest of the sum being a bin whose candidates are always rejected;
//   position  b bits; sign one bit; the pair (negative, 0) is rejected so that 0 counts once;
//   u         uniform in [0, 1); accepted when u H_j < M rho(x).
// An accepted candidate has probability proportional to H_j (M rho(x) / H_j) = M rho(x): the
// target, whatever the H_j are, as long as the comparison is right. It is made with 28 bits of u:
//   1. u is below a lower bound of M rho / H_j over the bin (about 97% of the candidates);
//   2. else in doubles, whose error is at most 2^-40 of the value (the exponent is below 128, three
//      roundings put it off by less than 2^-43, and exp() of the C library is good to 2^-50);
//   3. else, u lying within that error, with 256 and then 3200 more bits of u and as many of the
//      exponential. The program stops if even that does not decide (probability below 2^-3000).
// So nothing is rounded: the distribution is the target restricted to the magnitudes below
// Period(), and for Laplace the periods above are added by exact coins (discrete_laplace.h).
//
// Small p: w = 1, every candidate but those for rounding of H_j is accepted in step 1; the
// Gaussian then counts 0 once by halving the weight of bin 0 instead of rejecting.
#ifndef SORDINO_RANDOM_INTERNAL_ENVELOPE_H_
#define SORDINO_RANDOM_INTERNAL_ENVELOPE_H_

#include <array>
#include <cstdint>
#include <span>

#include "sordino/random/generator.h"

namespace sordino::internal {

enum class EnvelopeShape : std::uint8_t { kGaussian, kLaplace };

// Of the Gaussian, whose tail beyond is left out (discrete_gaussian.h).
inline constexpr double kGaussianReach = 13;

class EnvelopeSampler {
 public:
  static constexpr int kColumnBits = 9;
  static constexpr std::size_t kColumns = std::size_t{1} << kColumnBits;
  static constexpr int kFractionBits = 32;
  static constexpr int kUBits = 28;
  static constexpr int kMaxPositionBits = 36;

  // Magnitudes up to reach * parameter at least are covered; reach * parameter <= 511 * 2^36.
  EnvelopeSampler(EnvelopeShape shape, double parameter, double reach);

  void Fill(Generator& generator, std::span<std::int64_t> out) const;

  // Magnitudes covered by the bins: 0 ... Period() - 1.
  std::int64_t Period() const { return static_cast<std::int64_t>(bins_) << position_bits_; }

  // The words that make one candidate, for tests that script the bits:
  //   low:  fraction (32 bits), column (9), sign (1), and 22 bits that are zero for all draws
  //         that may exceed a period (Laplace)
  //   high: position (36, the low b of them used), u (28)
  struct Candidate {
    std::uint64_t low;
    std::uint64_t high;
  };

  // Read by the tests, which check the conditions of the proof above for every bin.
  struct Column {
    std::uint32_t cut;    // fraction < cut: the bin of the column's own number
    std::uint32_t alias;  // else this one
  };
  std::span<const Column> columns() const { return columns_; }
  std::size_t bins() const { return bins_; }
  int position_bits() const { return position_bits_; }
  std::uint64_t factor() const { return factor_; }                       // M
  std::uint64_t weight(std::size_t bin) const { return weights_[bin]; }  // H_j
  std::uint32_t sure_below(std::size_t bin) const { return sure_below_[bin]; }
  bool halves_zero() const { return halves_zero_; }

 private:
  void ChooseBins(double reach);
  void ChooseWeights();
  void BuildAliasTable();
  double Exponent(double magnitude) const;
  double CandidatesPerDraw() const;

  template <EnvelopeShape kShape>
  std::size_t Examine(Generator& generator, std::span<const Candidate> candidates,
                      std::int64_t* accepted) const;
  bool Accept(Generator& generator, std::size_t bin, std::uint64_t magnitude,
              std::uint64_t u) const;
  bool AcceptExactly(Generator& generator, std::size_t bin, std::uint64_t magnitude,
                     std::uint64_t u) const;
  std::uint64_t WholePeriods(Generator& generator) const;

  EnvelopeShape shape_;
  double parameter_;
  double exponent_factor_;  // 1 / (2 p^2) or 1 / p
  int position_bits_ = 0;
  bool halves_zero_ = false;
  std::size_t bins_ = 0;  // the bin of this number rejects
  std::uint64_t factor_ = 0;
  double candidates_per_draw_ = 1;
  std::array<Column, kColumns> columns_{};
  std::array<std::uint32_t, kColumns> sure_below_{};
  std::array<double, kColumns> scale_of_u_{};  // 2^28 M / H_j
  std::array<std::uint64_t, kColumns> weights_{};
};

}  // namespace sordino::internal

#endif  // SORDINO_RANDOM_INTERNAL_ENVELOPE_H_
