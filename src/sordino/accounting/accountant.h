// How much privacy was spent: every accountant side by side, and a certified interval.
//
//   const Event event = Event::Repeat(Event::Poisson(SamplingRate(0.01),
//                                     Event::Gaussian(NoiseMultiplier(4))), 10000);
//   const AccountReport report = Account(event, Delta(1e-5));
//   report.epsilon.upper   // what is spent: never too small
//
// The interval is the intersection of what the sound methods prove. Its upper end is the least
// sound upper bound; its lower end is attained by a pair of neighbouring datasets, so that no
// accountant, however clever, can report less. A sound method whose upper bound lies below that
// lower end is a contradiction (contradiction.h): the question is not answered.
#ifndef SORDINO_ACCOUNTING_ACCOUNTANT_H_
#define SORDINO_ACCOUNTING_ACCOUNTANT_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/effort.h"
#include "sordino/accounting/event.h"
#include "sordino/base/quantity.h"

namespace sordino {

// A certified answer of the privacy-loss engines.
struct Certified {
  Interval value;  // epsilon, or log delta
  std::string
      engine;  // "closed form", "exact", "contour", "smoothed", "split", "grid", "choice", "quick"
  std::string reason;  // why the upper end says nothing; empty otherwise
};

// The smallest epsilon >= 0 for which the event is (epsilon, e^log_delta)-DP. log_delta may be
// -infinity (pure DP).
Certified CertifiedEpsilon(const Event& event, double log_delta, Effort effort = Effort::kFull);
// log delta(epsilon).
Certified CertifiedLogDelta(const Event& event, double epsilon, Effort effort = Effort::kFull);

struct MethodReport {
  std::string name;             // "pld", "rdp", "moments", "zcdp", "gdp", "advanced", ...
  double value = kInfinity;     // epsilon (Account) or delta (AccountDelta): an upper bound
  std::optional<double> lower;  // pld only
  std::optional<double> order;  // rdp, zcdp, moments (lambda)
  bool sound = true;            // false: an estimate, not a bound
  std::string engine;           // pld only
};

struct AccountReport {
  Interval value;  // epsilon, or delta
  std::string decided_by;
  std::vector<MethodReport> methods;
  std::vector<std::pair<std::string, std::string>> skipped;  // method, why
  std::string reason;  // why the upper end says nothing: an infinite epsilon, or a delta of 1
};

AccountReport Account(const Event& event, Delta delta, Effort effort = Effort::kFull);
AccountReport AccountDelta(const Event& event, Epsilon epsilon, Effort effort = Effort::kFull);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_ACCOUNTANT_H_
