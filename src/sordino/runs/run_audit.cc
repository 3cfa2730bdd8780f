#include "sordino/runs/run_audit.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "sordino/accounting/tradeoff.h"
#include "sordino/lower_bounds/two_worlds.h"
#include "sordino/report/roc_picture.h"
#include "sordino/runs/internal/audit_file.h"
#include "sordino/training/canary_records.h"

namespace sordino {
namespace {

constexpr int kProfileLines = 16;

using AuditRecord = nlohmann::ordered_json;

CanaryAudit AuditOf(const CanaryScores& scores, const std::vector<double>& of, Delta delta,
                    double confidence) {
  return AuditCanaries({.is_in = scores.is_in, .scores = of}, delta, 1 - confidence);
}

AuditRecord AttackerJson(const CanaryAudit& audit) {
  return {{"epsilon_lower",
           {{"one-run", audit.epsilon},
            {"one-run-fdp", audit.gaussian.epsilon},
            {"gdp", audit.signs.epsilon}}},
          {"mu_lower", {{"one-run-fdp", audit.gaussian.mu}, {"gdp", audit.signs.mu}}},
          {"guesses", audit.outcome.guesses},
          {"correct", audit.outcome.correct}};
}

RocCurve CurveOf(const std::string& name, const CanaryScores& scores,
                 const std::vector<double>& of) {
  std::vector<double> members;
  std::vector<double> others;
  for (std::size_t i = 0; i < of.size(); ++i) {
    (scores.is_in[i] != 0 ? members : others).push_back(of[i]);
  }
  if (members.empty() || others.empty()) return {.name = name, .points = {}};
  return {.name = name, .points = TwoWorlds(std::move(members), std::move(others)).Curve()};
}

// With both ends.
AuditRecord ThinnedCurve(const RocCurve& curve) {
  constexpr std::size_t kMaxCurvePoints = 400;
  const std::size_t stride = curve.points.size() / kMaxCurvePoints + 1;
  AuditRecord points = AuditRecord::array();
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    if (i % stride != 0 && i + 1 != curve.points.size()) continue;
    points.push_back({curve.points[i].first, curve.points[i].second});
  }
  return points;
}

// Rounded so that it still holds.
std::string Least(double value) { return fmt::format("{:.2f}", std::floor(value * 100) / 100); }

// What took part in the run, and who guessed.
std::string Attack(const std::string& kind) {
  if (!AreRecords(kind)) {
    return "made-up records (canaries) took part in the run, each if a coin of its own said so. "
           "Somebody who sees the noised gradient of every step";
  }
  return fmt::format(
      "made-up records (canaries: {}) were in the data beside the real ones, each if a coin of its "
      "own said so. The plan counts them as records, so that nothing depends on how many of them "
      "were in, and what is claimed holds for real records and canaries alike. Somebody who knows "
      "the canaries and sees the noised gradient of every step",
      kind == kCanaryKinds[1] ? "records of the test set with a wrong class"
                              : "random inputs with random classes");
}

}  // namespace

RunAudit AuditRun(const CanaryScores& scores, const std::string& kind, Epsilon claim, Delta delta) {
  RunAudit audit;
  audit.kind = kind;
  audit.canaries = static_cast<std::int64_t>(scores.is_in.size());
  audit.delta = delta.value();
  audit.claim = claim.value();
  audit.every_update = AuditOf(scores, scores.every_update, delta, kAuditConfidence);
  audit.last_model = AuditOf(scores, scores.last_model, delta, kAuditConfidence);
  audit.contradicts =
      AuditOf(scores, scores.every_update, delta, kContradictionConfidence).epsilon > audit.claim;
  return audit;
}

std::string AuditJson(const RunAudit& audit) {
  AuditRecord json;
  json["schema"] = 1;
  json["canaries"] = audit.canaries;
  json["canary_kind"] = audit.kind;
  json["delta"] = audit.delta;
  json["confidence"] = kAuditConfidence;
  json["epsilon_claimed"] = audit.claim;
  json["contradiction"] = audit.contradicts;
  json["every_update"] = AttackerJson(audit.every_update);
  json["last_model"] = AttackerJson(audit.last_model);
  return json.dump(2) + '\n';
}

std::string internal::AuditFile(const RunAudit& audit, const CanaryScores& scores) {
  AuditRecord json = AuditRecord::parse(AuditJson(audit));
  json["every_update"]["roc"] = ThinnedCurve(CurveOf("", scores, scores.every_update));
  json["last_model"]["roc"] = ThinnedCurve(CurveOf("", scores, scores.last_model));
  return json.dump(2) + '\n';
}

std::string AuditSvg(const RunAudit& audit, const CanaryScores& scores, const Event& event) {
  RocPicture picture;
  picture.title = "What the canaries gave away";
  picture.caption = fmt::format("{} canaries; epsilon {:.4g} at delta {:g} is claimed",
                                audit.canaries, audit.claim, audit.delta);
  picture.curves = {CurveOf("who sees every update", scores, scores.every_update),
                    CurveOf("who sees the last model", scores, scores.last_model)};
  picture.claim = PrivacyProfile(event, kProfileLines);
  picture.claim.push_back({.epsilon = audit.claim, .delta = audit.delta});
  return RocSvg(picture);
}

std::string AuditSentence(const RunAudit& audit) {
  std::string text = fmt::format(
      "{} {} "
      "guessed {} of the coins, {} of them right. With a confidence of {:g} % that proves an "
      "epsilon of at least "
      "{} at delta {:g}; if the run is Gaussian-DP, of at least {}, and by guesses about "
      "all canaries of at least {}. Somebody who sees the last model alone: {}. These are lower "
      "bounds: "
      "an attack on records of the data may learn more, up to the claim of {:.4g}.",
      audit.canaries, Attack(audit.kind), audit.every_update.outcome.guesses,
      audit.every_update.outcome.correct, 100 * kAuditConfidence, Least(audit.every_update.epsilon),
      audit.delta, Least(audit.every_update.gaussian.epsilon),
      Least(audit.every_update.signs.epsilon), Least(audit.last_model.epsilon), audit.claim);
  if (audit.contradicts) {
    text = fmt::format(
               "THE AUDIT CONTRADICTS THE CLAIM with a confidence of {:g} %: do not release this "
               "model. ",
               100 * kContradictionConfidence) +
           text;
  }
  return text;
}

}  // namespace sordino
