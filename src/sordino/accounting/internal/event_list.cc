#include "sordino/accounting/internal/event_kind.h"

namespace sordino {

const std::vector<const EventKind*>& EventKinds() {
  static const std::vector<const EventKind*> kinds = {
#define SORDINO_COMPONENT(function, file) &function(),
#include "sordino/accounting/events/event_list.inc"
#undef SORDINO_COMPONENT
  };
  return kinds;
}

}  // namespace sordino
