// Upper bounds on delta of a short composition at many epsilons.
//
// CertifiedLogDelta composes anew for each question. What the grid answers best, few steps, is
// composed here some times for all of them (GridProfile), each direction of the adjacency by
// itself.
#ifndef SORDINO_ACCOUNTING_INTERNAL_SHORT_PROFILE_H_
#define SORDINO_ACCOUNTING_INTERNAL_SHORT_PROFILE_H_

#include <optional>
#include <vector>

#include "sordino/accounting/effort.h"
#include "sordino/accounting/event.h"
#include "sordino/accounting/internal/grid/grid.h"
#include "sordino/base/quantity.h"

namespace sordino {

class ShortProfile {
 public:
  // nullopt for events that other engines answer: long ones, closed forms, exact ones, and those
  // with alternatives.
  static std::optional<ShortProfile> Of(const Event& event, Effort effort);

  // Log delta at epsilon or more; 0 where nothing is known.
  double LogDelta(double epsilon);

 private:
  struct Direction {
    GridProfile profile;
    double largest_loss;         // of the composition: delta is 0 from there on
    double epsilon = kInfinity;  // that was asked last,
    double log_delta = 0;        // and the answer
  };
  std::vector<Direction> directions_;
};

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_SHORT_PROFILE_H_
