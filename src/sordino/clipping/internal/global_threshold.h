// Global clipping in a run, with one clipping group or one for each layer
// (gradients/global_clipping.h). The thresholds follow the schedule of the clipping norm, so that
// the factor stays the same.
#ifndef SORDINO_CLIPPING_INTERNAL_GLOBAL_THRESHOLD_H_
#define SORDINO_CLIPPING_INTERNAL_GLOBAL_THRESHOLD_H_

#include <string_view>

#include "sordino/clipping/clipping_component.h"

namespace sordino {

class GlobalThreshold : public ClippingComponent {
 public:
  GlobalThreshold(std::string_view name, std::string_view help);

  void CheckTerms(const ClippingTerms& terms, const OptionValues& options) const override;

 protected:
  // The threshold over the clipping norm.
  static double Ratio(const ClippingTerms& terms, const OptionValues& options);
};

}  // namespace sordino

#endif  // SORDINO_CLIPPING_INTERNAL_GLOBAL_THRESHOLD_H_
