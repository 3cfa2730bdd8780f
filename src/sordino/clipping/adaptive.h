// Adaptive clipping: the clipping norm follows a quantile of the gradient norms (Andrew, Thakkar,
// McMahan, Ramaswamy, arXiv 1905.03871), flat or for each layer.
//
// With target quantile gamma, learning rate eta and expected batch size B, every step releases,
// beside the gradients clipped at C, the noised count of examples within C, and then moves C:
//
//     count = sum_i (1[||g_i|| <= C] - 1/2),
//     fraction = (count + N(0, sigma_b^2)) / B + 1/2,
//     C <- C exp(-eta (fraction - gamma)).
//
// Sensitivity of the counts. Centred at 1/2, an example adds +1/2 or -1/2 to the count of each of
// m groups, so what it adds has L2 norm sqrt(m) / 2 (CountBound); an example of norm NaN or
// infinity adds -1/2. A sum of such terms has the sensitivity of any sum of bounded terms
// (sum_sensitivity.h). Counts are multiples of 1/2 and exact in float64.
//
// One noise multiplier for both. The gradients (sensitivity S, noise of standard deviation
// z_g S) and the counts (sensitivity s, noise sigma_b each) are one Gaussian release: divide each
// part by its noise, and the whole has unit noise and squared sensitivity z_g^-2 + (s / sigma_b)^2.
// It is a Gaussian mechanism with multiplier z exactly when that equals z^-2:
//
//     z_g = (z^-2 - (s / sigma_b)^2)^(-1/2).
//
// For one group under add-remove, s = 1/2, and this is theorem 1 of the paper,
// z_g = (z^-2 - (2 sigma_b)^-2)^(-1/2); for m groups s = sqrt(m) / 2. What is charged is z: an
// event that says gaussian(z) has paid for the counts.
//
// One C: Factors, Bounds and Counts read the same numbers, and a BoundedSum carries the
// sensitivity of the C that it was clipped at, whatever Update does later.
#ifndef SORDINO_CLIPPING_ADAPTIVE_H_
#define SORDINO_CLIPPING_ADAPTIVE_H_

#include <cstdint>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/gradients/clipping_groups.h"
#include "sordino/gradients/clipping_policy.h"
#include "sordino/gradients/noised_value.h"

namespace sordino {

struct AdaptiveClippingOptions {
  // B, a public constant: the declared batch size or the expectation of a Poisson batch; positive.
  double expected_batch = 0;
  // sigma_b, standard deviation of the noise on each count, in examples; positive. B / 20 is the
  // paper's choice and costs little for flat clipping; m groups want sqrt(m) times as much.
  double count_noise = 0;
  double target_quantile = 0.5;  // [0, 1]
  double learning_rate = 0.2;    // (0, 10]
  // C never leaves this range, whatever the noise.
  ClipNorm smallest{1e-6};
  ClipNorm largest{1e6};
};

// z_g for the total multiplier z, the counts' sensitivity s and sigma_b, rounded up by 1e-11.
// Throws Error when the counts alone use up 99.9% of 1/z or more; a larger count_noise leaves
// room.
NoiseMultiplier GradientNoiseMultiplier(NoiseMultiplier total, L2Sensitivity count_sensitivity,
                                        double count_noise);

class AdaptiveClipping : public ClippingPolicy {
 public:
  // One initial bound for each group, in their order.
  AdaptiveClipping(ClippingGroups groups, const std::vector<ClipNorm>& initial,
                   AdaptiveClippingOptions options);

  std::vector<std::int64_t> Groups(const std::vector<NamedParameter>& parameters) const override;
  at::Tensor Factors(const at::Tensor& norms) const override;
  std::vector<double> Bounds() const override;
  at::Tensor Counts(const at::Tensor& norms) const override;
  double CountBound() const override;

  // Moves C. The counts are those of BoundedSum with noise on them; noise smaller than
  // count_noise stops the program, because the event was charged for count_noise.
  void Update(const NoisedCounts& counts);

  // Resumes from the bounds of an earlier policy of the same options, which are functions of noised
  // counts. Throws Error when they are not one for each group, or not in the range of the options.
  void Restore(const std::vector<double>& bounds);

  const AdaptiveClippingOptions& options() const { return options_; }

 private:
  void Set(std::vector<double> bounds);

  ClippingGroups groups_;
  AdaptiveClippingOptions options_;
  GroupColumn bounds_;
  GroupColumn below_;
};

}  // namespace sordino

#endif  // SORDINO_CLIPPING_ADAPTIVE_H_
