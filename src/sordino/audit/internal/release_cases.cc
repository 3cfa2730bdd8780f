// Cases of `sordino release`: its statistics of a table of three rows at the lower bound, with one
// more row at the upper bound and without it.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <string_view>

#include "sordino/audit/internal/self_audit_case.h"
#include "sordino/mechanisms/table_release.h"
#include "sordino/random/generator.h"

namespace sordino::internal {
namespace {

constexpr double kReleaseEpsilon = 1;
constexpr double kReleaseDelta = 1e-2;
constexpr std::int64_t kReleasesTold = 1000;  // between reports of progress
constexpr const char* kColumn = "x";

TableRequest RequestOf(TableStatistic kind, NoiseKind noise) {
  TableRequest request;
  request.statistics = {{.kind = kind,
                         .column = kind == TableStatistic::kCount ? "" : kColumn,
                         .quantile = 0.5,
                         .epsilon = std::nullopt}};
  request.bounds.emplace(kColumn, Bounds(0, 1));
  request.bins[kColumn] = {.edges = {0, 0.5, 1}, .categories = {}};
  request.epsilon = kReleaseEpsilon;
  request.noise = noise;
  request.delta = noise == NoiseKind::kGaussian ? kReleaseDelta : 0;
  return request;
}

double Released(const TableRequest& request, World world, Generator& generator) {
  TableRelease release(request);
  release.SetHeader({kColumn});
  for (std::uint64_t line = 2; line < 5; ++line) release.AddRow({"0"}, line);
  if (world == World::kWith) release.AddRow({"1"}, 5);
  // Of a histogram, the bin of the row.
  return release.Finish(generator).releases.front().release.values.back();
}

std::vector<double> ReleaseScores(const TableRequest& request, World world, std::int64_t scores,
                                  AuditRuns& runs) {
  const auto seed = runs.NextSeed();
  const std::unique_ptr<Generator> generator =
      seed ? std::unique_ptr<Generator>(std::make_unique<InsecureSeededGenerator>(*seed))
           : std::make_unique<SecureGenerator>();
  std::vector<double> all;
  while (std::ssize(all) < scores) {
    all.push_back(Released(request, world, *generator));
    if (std::ssize(all) % kReleasesTold == 0) {
      runs.Tell(static_cast<double>(std::ssize(all)) / static_cast<double>(scores));
    }
  }
  return all;
}

SelfAuditCase ReleaseCase(TableStatistic kind, NoiseKind noise, std::int64_t quick_scores) {
  const TableRequest request = RequestOf(kind, noise);
  const bool is_gaussian = noise == NoiseKind::kGaussian;
  SelfAuditCase one;
  one.name = fmt::format("release-{}{}", TableStatisticName(kind), is_gaussian ? "-gaussian" : "");
  one.what = fmt::format("release of a {}{}", TableStatisticName(kind),
                         is_gaussian ? ", Gaussian noise" : "");
  one.deltas = {request.delta};
  one.claim = [](Delta) { return kReleaseEpsilon; };
  one.quick_scores = quick_scores;
  one.score = [request](World world, std::int64_t scores, AuditRuns& runs) {
    return ReleaseScores(request, world, scores, runs);
  };
  return one;
}

}  // namespace

std::vector<SelfAuditCase> ReleaseCases() {
  constexpr std::int64_t kScores = 30'000;
  constexpr std::int64_t kVarianceScores = 3000;  // its interval is an optimisation
  constexpr std::int64_t kQuantileScores = 300;   // a draw visits 2^16 cells
  std::vector<SelfAuditCase> cases;
  for (const TableStatistic kind : {TableStatistic::kCount, TableStatistic::kSum,
                                    TableStatistic::kMean, TableStatistic::kHistogram}) {
    cases.push_back(ReleaseCase(kind, NoiseKind::kLaplace, kScores));
  }
  cases.push_back(ReleaseCase(TableStatistic::kSum, NoiseKind::kGaussian, kScores / 2));
  cases.push_back(ReleaseCase(TableStatistic::kVariance, NoiseKind::kLaplace, kVarianceScores));
  cases.push_back(ReleaseCase(TableStatistic::kQuantile, NoiseKind::kLaplace, kQuantileScores));
  return cases;
}

}  // namespace sordino::internal
