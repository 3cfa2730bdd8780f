// Preconditioned clipping: gradients are divided by a scale of their coordinates before they are
// clipped, and multiplied by it after the noise (scale, then privatise: Ganesh, McMahan, Thakurta,
// arXiv 2507.01129; with public gradients: Asi, Duchi, Fallah, Javidbakht, Talwar, arXiv
// 2106.13756).
//
//     w = g / b,   clipped to ||w|| <= C, summed, noised and divided to y;   g~ = b y.
//
// b follows the second moment of what was released, as the denominator of an adaptive optimizer:
//
//     v <- beta v + (1 - beta) g~^2,   b_j = (sqrt(v_j) + eps r) / n,   r = sqrt(mean of v),
//
// with n so that the mean of b_j^2 is 1: C has the meaning of flat clipping, the squared norm of
// the noise on g~ is that of flat clipping, and a common factor of all v changes nothing. v begins
// with the mean of the first g~^2, the same for all coordinates; the first step is flat clipping at
// C. b_j is at least eps / (1 + eps), so that no coordinate alone decides the norm.
//
// The noise in g~^2 is not taken off. It is b_j^2 sd^2, in proportion to v_j where eps is small,
// and moves no b_j on average.
#ifndef SORDINO_CLIPPING_PRECONDITIONED_H_
#define SORDINO_CLIPPING_PRECONDITIONED_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "sordino/base/options.h"
#include "sordino/base/quantity.h"
#include "sordino/clipping/scaled_clipping.h"
#include "sordino/gradients/noised_value.h"

namespace sordino {

class PreconditionedClipping : public ScaledClipping {
 public:
  // With beta (clip-moment-decay) and eps (clip-scale-floor; large is flat clipping) from the
  // options of the component. Throws Error when one is out of range or no parameter requires a
  // gradient.
  PreconditionedClipping(const std::vector<NamedParameter>& parameters, ClipNorm bound,
                         const OptionValues& options = {});

  void Update(const NoisedGradients& mean) override;
  std::vector<Tracked> tracked() const override;

 private:
  // v. Throws Error when an entry is negative or not finite.
  void Restore(const std::vector<std::vector<at::Tensor>>& saved) override;

  // The mean over all coordinates, in float64.
  static at::Tensor MeanOf(const std::vector<at::Tensor>& values);
  void SetScale();

  double decay_;
  double floor_;
  std::vector<at::Tensor> moment_;  // v
  bool has_moment_ = false;         // false before the first update, where v is 0
};

}  // namespace sordino

#endif  // SORDINO_CLIPPING_PRECONDITIONED_H_
