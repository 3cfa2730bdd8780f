// What the audit of the implementation proves of every case, beside what is claimed.
//
// A bound is above the truth with a probability of at most 1e-4 for each case, and the seeds are
// fixed. The floors show that the attacks have power: at the seeds of these tests, and with the
// number of scores of a quick audit, they prove the share of the claim that is named for the case.
#include "sordino/audit/self_audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/sampling/sampler_component.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// The share of its claim that a quick audit proves at least, less a tenth of it or more: a case
// whose attack has become blind fails. Every case has an entry. Where it is 0 the attack is known
// to be too weak: estimated norms clip far below the bound, a quantile is drawn a few hundred
// times, and the last iterate of noisy descent on one row keeps little of it.
const std::map<std::string, double>& Floors() {
  static const std::map<std::string, double> floors = {
      {"full", 0.8},
      {"full-zero-out", 0.8},
      {"full-replace-one", 0.8},
      {"poisson", 0.65},
      {"poisson-replace-one", 0.65},
      {"fixed", 0.35},
      {"allocation", 0.6},
      {"one-record", 0.7},
      {"users", 0.55},
      {"micro-batch", 0.8},
      {"clipping-flat", 0.8},
      {"clipping-layerwise", 0.8},
      {"clipping-global", 0.8},
      {"clipping-global-layerwise", 0.8},
      {"clipping-automatic", 0.8},
      {"clipping-adaptive", 0.7},
      {"clipping-adaptive-layerwise", 0.7},
      {"clipping-preconditioned", 0.8},
      {"clipping-adaclip", 0.8},
      {"norms-materialise", 0.75},
      {"norms-ghost", 0.75},
      {"norms-loop", 0.75},
      {"norms-jl", 0},
      {"noise-gaussian", 0.65},
      {"noise-laplace", 0.55},
      {"cyclic", 0.5},
      {"ordered", 0.65},
      {"correlated-round", 0.65},
      {"correlated-run", 0.65},
      {"fit-output", 0.25},
      {"fit-objective", 0.25},
      {"fit-minima", 0.2},
      {"fit-gradient", 0},
      {"fit-newton", 0},
      {"fit-adassp", 0.1},
      {"release-count", 0.85},
      {"release-sum", 0.8},
      {"release-mean", 0.75},
      {"release-histogram", 0.85},
      {"release-sum-gaussian", 0.55},
      {"release-variance", 0.5},
      {"release-quantile", 0},
  };
  return floors;
}

class SelfAudit : public ::testing::TestWithParam<std::string> {};

TEST_P(SelfAudit, ProvesNoMoreThanTheClaim) {
  SelfAuditOptions options;
  options.quick = true;
  options.only = {GetParam()};
  options.seed = 7;
  const std::vector<SelfAuditFinding> findings = AuditSelf(options);
  ASSERT_EQ(findings.size(), 1U);
  const SelfAuditFinding& finding = findings.front();
  EXPECT_EQ(finding.name, GetParam());
  EXPECT_FALSE(finding.contradicts) << finding.lower << " of " << finding.claim;
  ASSERT_TRUE(Floors().contains(finding.name)) << "a new case needs a floor";
  EXPECT_GE(finding.lower, Floors().at(finding.name) * finding.claim)
      << "of " << finding.claim << " at delta " << finding.delta;
}

std::string TestName(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, SelfAudit, ::testing::ValuesIn(SelfAuditNames()), TestName);

TEST(SelfAuditNames, HaveEverySampler) {
  for (const std::string_view sampler : Samplers().names()) {
    EXPECT_THAT(SelfAuditNames(), ::testing::Contains(sampler));
  }
}

TEST(SelfAuditNames, AWordStandsForThoseThatBeginWithIt) {
  std::vector<std::string> names;
  for (const SelfAuditFinding& finding :
       AuditSelf({.quick = true, .only = {"full-zero-out", "norms"}, .seed = 1})) {
    names.push_back(finding.name);
  }
  EXPECT_THAT(names, ::testing::ElementsAre("full-zero-out", "norms-materialise", "norms-ghost",
                                            "norms-loop", "norms-jl"));
}

TEST(SelfAuditNames, UnknownOnesAreRefused) {
  EXPECT_THAT([] { AuditSelf({.only = {"poison"}}); },
              ThrowsMessage<Error>(HasSubstr("did you mean 'poisson'?")));
}

}  // namespace
}  // namespace sordino
