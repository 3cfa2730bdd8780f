// What an event allows an attacker, in numbers that people understand.
//
// The attacker knows all other records and everything that was released, and wants to know whether
// one record was in the data. All numbers are upper bounds on success for every attack there is:
// they follow from certified lines (epsilon, delta) of the event (accounting/tradeoff.h).
#ifndef SORDINO_REPORT_GUARANTEE_H_
#define SORDINO_REPORT_GUARANTEE_H_

#include <utility>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/accounting/tradeoff.h"

namespace sordino {

struct Guarantee {
  double epsilon = 0;  // at delta; an upper bound
  double delta = 0;
  std::vector<TradeoffPoint> curve;  // the least false negative rate at false positive rates
  // Of a guess whether the record was there, at even odds: at most this share is right.
  double attack_accuracy = 0;
  // False positive rates, and the share of records that is recognised at most.
  std::vector<TradeoffPoint> recognised;
  // A belief that the record is there, before, and the largest one after, except with probability
  // delta: p e^epsilon / (1 - p + p e^epsilon).
  std::vector<std::pair<double, double>> beliefs;
};

// `failure` is the probability of what is not in the event (accounting/failures.h); it is paid for
// in every line. Takes up to seconds for an event of many kinds of steps.
Guarantee GuaranteeOf(const Event& event, double delta, double failure);

// The same of certified lines, for an epsilon that is known.
Guarantee GuaranteeOf(const std::vector<PrivacyLine>& lines, double epsilon, double delta);

}  // namespace sordino

#endif  // SORDINO_REPORT_GUARANTEE_H_
