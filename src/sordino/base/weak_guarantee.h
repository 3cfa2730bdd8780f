// Guarantees that hold and protect nobody.
#ifndef SORDINO_BASE_WEAK_GUARANTEE_H_
#define SORDINO_BASE_WEAK_GUARANTEE_H_

#include <cstdint>
#include <string>

namespace sordino {

// Odds may change by e^50: nothing is hidden from anybody.
inline constexpr double kMaxMeaningfulEpsilon = 50;

// Sentences that begin with WEAK, for an epsilon above the limit and for a delta above one over the
// declared number of records (0: not declared); empty otherwise.
std::string WeakGuarantee(double epsilon, double delta, std::int64_t records);

}  // namespace sordino

#endif  // SORDINO_BASE_WEAK_GUARANTEE_H_
