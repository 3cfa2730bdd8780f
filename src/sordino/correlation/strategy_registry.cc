#include "sordino/correlation/strategy.h"

namespace sordino {

#define SORDINO_COMPONENT(function, file) const StrategyKind& function();
#include "sordino/correlation/strategies/strategy_list.inc"
#undef SORDINO_COMPONENT

const Registry<StrategyKind>& Strategies() {
  static const Registry<StrategyKind> registry("noise correlation", {
#define SORDINO_COMPONENT(function, file) &function(),
#include "sordino/correlation/strategies/strategy_list.inc"
#undef SORDINO_COMPONENT
                                                                    });
  return registry;
}

}  // namespace sordino
