// AdaCliP: clipping of gradients that are centred and scaled coordinate by coordinate (Pichapati,
// Suresh, Yu, Reddi, Kumar, arXiv 1908.07643).
//
// With a tracked mean m and standard deviation s of every coordinate,
//
//     w = (g - m) / b,   b_j = sqrt(s_j sum_k s_k),   clipped to ||w|| <= C (C = 1),
//
// summed, noised and divided by the public batch size to y; then g~ = b y + m goes to the
// optimizer. Among all scales with E||w||^2 <= 1 this b makes the noise that reaches g~ smallest:
// minimise sum b_j^2 subject to sum s_j^2 / b_j^2 = 1 (theorem 2 of the paper). m and b are
// functions of earlier releases only (scaled_clipping.h):
//
//     m <- beta_1 m + (1 - beta_1) g~,
//     v  = min(max(k ((g~ - m)^2 - (b sd)^2), h_1), h_2),   s^2 <- beta_2 s^2 + (1 - beta_2) v,
//
// where m in v is the mean that the step was centred at, sd is the standard deviation of the noise
// on y, so (b sd)^2 is the part of (g~ - m)^2 that is noise, and k = 1 as published. The variance
// of a mean over B examples is B times smaller than that of one example: k = B tracks the latter.
#ifndef SORDINO_CLIPPING_ADACLIP_H_
#define SORDINO_CLIPPING_ADACLIP_H_

#include <vector>

#include "sordino/base/options.h"
#include "sordino/base/quantity.h"
#include "sordino/clipping/scaled_clipping.h"
#include "sordino/gradients/noised_value.h"

namespace sordino {

class AdaClip : public ScaledClipping {
 public:
  // C is in units of the scaled gradient; beta_1 (clip-mean-decay), beta_2 (clip-variance-decay),
  // h_1 and h_2 (clip-variance-min, clip-variance-max) and k (clip-variance-factor) are options of
  // the component. The mean starts at 0, the variance at sqrt(h_1 h_2). Frozen parameters are left
  // out. Throws Error when an option is out of range or no parameter requires a gradient.
  AdaClip(const std::vector<NamedParameter>& parameters, ClipNorm bound,
          const OptionValues& options = {});

  void Update(const NoisedGradients& mean) override;
  std::vector<Tracked> tracked() const override;

  // What was tracked, one tensor for each parameter: m and s^2.
  const std::vector<at::Tensor>& mean() const { return transform_.centre; }
  const std::vector<at::Tensor>& variance() const { return variance_; }

 private:
  // The mean and the variance. Throws Error when an entry of the mean is not finite, or a variance
  // is outside the range of the options.
  void Restore(const std::vector<std::vector<at::Tensor>>& saved) override;

  void SetScale();

  double mean_decay_;
  double variance_decay_;
  double smallest_variance_;
  double largest_variance_;
  double variance_factor_;
  std::vector<at::Tensor> variance_;
};

}  // namespace sordino

#endif  // SORDINO_CLIPPING_ADACLIP_H_
