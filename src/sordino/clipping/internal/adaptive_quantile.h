// Adaptive clipping in a run, with one clipping group or one for each layer
// (gradients/adaptive_clipping.h).
#ifndef SORDINO_CLIPPING_INTERNAL_ADAPTIVE_QUANTILE_H_
#define SORDINO_CLIPPING_INTERNAL_ADAPTIVE_QUANTILE_H_

#include <memory>
#include <vector>

#include "sordino/clipping/clipping_component.h"
#include "sordino/gradients/clipping_groups.h"

namespace sordino {

class AdaptiveQuantile : public ClippingComponent {
 public:
  AdaptiveQuantile(std::string_view name, std::string_view help);

  void CheckTerms(const ClippingTerms& terms, const OptionValues& options) const override;

  // How far the counts of neighbours are apart: a record adds 1/2 to the count of each group, and
  // under replace-one they differ twice as much.
  double CountSensitivity(const ClippingTerms& terms, std::int64_t groups) const;

  // z_g of adaptive_clipping.h, in the unit of the event.
  NoiseMultiplier GradientNoise(NoiseMultiplier total, const ClippingTerms& terms,
                                const OptionValues& options, std::int64_t groups) const override;

 protected:
  std::unique_ptr<ClippingState> StartWith(const ClippingTerms& terms, const OptionValues& options,
                                           const std::vector<NamedParameter>& parameters,
                                           const ClippingGroups& groups) const;
};

}  // namespace sordino

#endif  // SORDINO_CLIPPING_INTERNAL_ADAPTIVE_QUANTILE_H_
