// The implementation under attack: `sordino audit self`.
//
// A claim of privacy is compared with what an attacker learns who sees what a mechanism releases
// and knows everything except whether one record is there. The record is the worst one that is
// known: a gradient of the clipping norm in a direction of its own, a value at the end of its
// bounds. The mechanisms are those of the library, through its public classes: trainer, samplers,
// clipping policies, ways to find norms, kinds of noise, methods of a fit, statistics of a release.
// Clipping policies, norms, noises and methods have a case each by their registries.
//
// Each case is run many times with the record and without it, with streams of random bits of its
// own each time, and every run gives one or more scores. Then, with a probability of kConfidence
// for a case (Bonferroni over all thresholds, two_worlds.h), the privacy of the mechanism is not
// better than the bound that is reported. The bounds of one case hold at every delta at once, so
// the deltas of the case are compared with the claim one by one, and the one where the bound comes
// nearest to the claim is reported. Where the claim is Gaussian-DP, the bound by mu counts too.
//
// Canaries of one training. A model with d coordinates has d canaries, one gradient each, so that
// one run gives d scores. In the trainer the noise is independent over coordinates, and the draws
// of Poisson sampling and random allocation are too: scores are independent. The two worlds are
// different runs.
#ifndef SORDINO_AUDIT_SELF_AUDIT_H_
#define SORDINO_AUDIT_SELF_AUDIT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sordino {

// Of each case.
inline constexpr double kSelfAuditConfidence = 0.9999;

struct SelfAuditOptions {
  bool quick = false;
  // Names of cases; any other word stands for the cases that begin with it and '-'. Empty: all.
  std::vector<std::string> only = {};
  // Instead of the operating system's randomness, for tests.
  std::optional<std::uint64_t> seed = {};
  // The case in hand and the share of all work that is done; may throw.
  std::function<void(const std::string& name, double share)> progress = {};
};

struct SelfAuditFinding {
  std::string name;
  std::string what;
  std::int64_t scores = 0;  // in each world
  double delta = 0;
  double claim = 0;          // epsilon at delta, its certified upper end
  double lower = 0;          // what is proven at kSelfAuditConfidence
  bool by_mu = false;        // proven by mu, for a claim of Gaussian-DP
  bool contradicts = false;  // at one of the deltas of the case
  double seconds = 0;
};

// In the order in which they are run.
std::vector<std::string> SelfAuditNames();

// Throws Error for a name of `only` that no case has.
std::vector<SelfAuditFinding> AuditSelf(const SelfAuditOptions& options);

}  // namespace sordino

#endif  // SORDINO_AUDIT_SELF_AUDIT_H_
