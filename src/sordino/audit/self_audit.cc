#include "sordino/audit/self_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>

#include "sordino/audit/internal/self_audit_case.h"
#include "sordino/base/known_name.h"
#include "sordino/lower_bounds/two_worlds.h"

namespace sordino {
namespace {

using internal::AuditRuns;
using internal::SelfAuditCase;
using internal::World;

// Scores of a run that is not quick over those of a quick one.
constexpr std::int64_t kFullFactor = 10;
// Seeds of the runs of one world; seeds are for tests alone.
constexpr std::uint64_t kSeedsOfAWorld = 1U << 20U;

std::vector<SelfAuditCase> AllCases() {
  std::vector<SelfAuditCase> cases = internal::TrainingCases();
  for (auto* const more : {&internal::FitCases, &internal::ReleaseCases}) {
    for (SelfAuditCase& one : more()) cases.push_back(std::move(one));
  }
  return cases;
}

std::vector<SelfAuditCase> ChosenCases(const std::vector<std::string>& only) {
  std::vector<SelfAuditCase> cases = AllCases();
  if (only.empty()) return cases;
  std::vector<std::string_view> names;
  names.reserve(cases.size());
  for (const SelfAuditCase& one : cases) names.push_back(one.name);
  std::set<std::string_view> chosen;
  for (const std::string& wanted : only) {
    const std::size_t before = chosen.size();
    if (std::find(names.begin(), names.end(), wanted) != names.end()) {
      chosen.insert(wanted);
      continue;
    }
    for (const std::string_view name : names) {
      if (name.starts_with(wanted + '-')) chosen.insert(name);
    }
    // Throws with the nearest name.
    if (chosen.size() == before) static_cast<void>(IndexOfName("--only", wanted, names));
  }
  std::vector<SelfAuditCase> kept;
  for (const SelfAuditCase& one : cases) {
    if (chosen.contains(one.name)) kept.push_back(one);
  }
  return kept;
}

// The bound of a delta beside its claim: the one that comes nearest to it.
void Compare(const SelfAuditCase& one, const TwoWorlds& worlds, SelfAuditFinding& finding) {
  double nearest = -1;
  for (const double delta : one.deltas) {
    const double claim = one.claim(Delta(delta));
    if (!(claim > 0)) continue;
    const TwoWorlds::Bounds bounds = worlds.LowerBounds(Delta(delta), 1 - kSelfAuditConfidence);
    const bool by_mu = one.is_gaussian && bounds.mu_epsilon > bounds.epsilon;
    const double lower = by_mu ? bounds.mu_epsilon : bounds.epsilon;
    if (lower > claim) finding.contradicts = true;
    if (lower / claim <= nearest) continue;
    nearest = lower / claim;
    finding.delta = delta;
    finding.claim = claim;
    finding.lower = lower;
    finding.by_mu = by_mu;
  }
}

SelfAuditFinding Audited(const SelfAuditCase& one, const SelfAuditOptions& options,
                         const std::function<void(double)>& tell) {
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t scores = one.quick_scores * (options.quick ? 1 : kFullFactor);
  const auto world = [&](World which, double begin) {
    const std::uint64_t place = which == World::kWith ? 1 : 0;
    AuditRuns runs(options.seed
                       ? std::optional<std::uint64_t>((2 * *options.seed + place) * kSeedsOfAWorld)
                       : std::nullopt,
                   [&tell, begin](double share) { tell(begin + share / 2); });
    return one.score(which, scores, runs);
  };
  std::vector<double> with = world(World::kWith, 0);
  std::vector<double> without = world(World::kWithout, 0.5);
  SelfAuditFinding finding;
  finding.name = one.name;
  finding.what = one.what;
  finding.scores = static_cast<std::int64_t>(std::min(with.size(), without.size()));
  Compare(one, TwoWorlds(std::move(with), std::move(without)), finding);
  finding.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return finding;
}

}  // namespace

std::vector<std::string> SelfAuditNames() {
  std::vector<std::string> names;
  for (const SelfAuditCase& one : AllCases()) names.push_back(one.name);
  return names;
}

std::vector<SelfAuditFinding> AuditSelf(const SelfAuditOptions& options) {
  const std::vector<SelfAuditCase> cases = ChosenCases(options.only);
  std::vector<SelfAuditFinding> findings;
  const auto count = static_cast<double>(cases.size());
  for (const SelfAuditCase& one : cases) {
    const auto done = static_cast<double>(findings.size());
    findings.push_back(Audited(one, options, [&](double share) {
      if (options.progress) options.progress(one.name, (done + share) / count);
    }));
  }
  return findings;
}

}  // namespace sordino
