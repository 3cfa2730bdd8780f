// A very long schedule of sparsely sampled noise, rounded to fewer different steps from both sides.
//
// Less noise and more records in a batch are never more private (CoarsenNoise), so an upper end for
// the schedule that is rounded to less privacy and a lower end for the one that is rounded to more
// are ends for the schedule itself.
#ifndef SORDINO_ACCOUNTING_INTERNAL_COARSE_SCHEDULE_H_
#define SORDINO_ACCOUNTING_INTERNAL_COARSE_SCHEDULE_H_

#include <cstddef>
#include <optional>

#include "sordino/accounting/event.h"

namespace sordino {

// So many different steps are answered one by one.
inline constexpr std::size_t kMaxLines = 12000;

struct CoarseSchedule {
  Event less_private;
  Event more_private;

  // nullopt for a schedule that is shorter, or dense enough for the contour, as most are.
  static std::optional<CoarseSchedule> Of(const Event& event);
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_COARSE_SCHEDULE_H_
