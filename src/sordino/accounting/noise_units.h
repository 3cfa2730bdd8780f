// What the noise of an event is divided by: the units that event.h describes.
#ifndef SORDINO_ACCOUNTING_NOISE_UNITS_H_
#define SORDINO_ACCOUNTING_NOISE_UNITS_H_

#include "sordino/accounting/event.h"

namespace sordino {

// Where the event has noise.
struct NoiseUnits {
  bool unsampled = false;
  bool poisson = false;     // below Poisson sampling
  bool fixed = false;       // in batches of fixed size
  bool allocation = false;  // in random allocation, wherever that stands
};
NoiseUnits NoiseUnitsOf(const Event& event);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_NOISE_UNITS_H_
