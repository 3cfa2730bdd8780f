#include "sordino/audit/membership.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "sordino/base/check.h"

namespace sordino {
namespace {

constexpr double kRatio = 2;            // gamma of rmia
constexpr double kMinVariance = 1e-12;  // of confidences that all agree
constexpr double kPriorShadows = 4;     // of bavaria
constexpr double kMinSide = 2;          // shadow models that saw a record, and that did not

std::vector<double> Listed(const at::Tensor& scores) {
  const at::Tensor flat = scores.to(at::kCPU, at::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

// Of the shadows that are marked, for each record.
struct Normals {
  at::Tensor mean;
  at::Tensor variance;
  at::Tensor counts;
  double pooled = 0;  // one variance for all records
};

Normals NormalsOf(const at::Tensor& confidences, const at::Tensor& marked) {
  const at::Tensor weights = marked.to(at::kDouble);
  const at::Tensor counts = weights.sum(0);
  Normals normals;
  normals.counts = counts;
  normals.mean = (confidences * weights).sum(0) / counts;
  const at::Tensor squares = ((confidences - normals.mean).pow(2) * weights).sum(0);
  normals.variance = (squares / (counts - 1)).clamp_min(kMinVariance);
  normals.pooled = std::max(kMinVariance, (squares.sum() / (counts - 1).sum()).item<double>());
  return normals;
}

at::Tensor LogDensity(const at::Tensor& value, const at::Tensor& mean, const at::Tensor& variance) {
  return -((value - mean).pow(2) / variance + variance.log()) / 2;
}

at::Tensor LiraScores(const at::Tensor& confidences, const Normals& in, const Normals& out) {
  return LogDensity(confidences, in.mean, in.variance) -
         LogDensity(confidences, out.mean, out.variance);
}

at::Tensor LiraFixedScores(const at::Tensor& confidences, const Normals& in, const Normals& out) {
  const auto variance = [&](const Normals& normals) {
    return at::full_like(confidences, normals.pooled);
  };
  return LogDensity(confidences, in.mean, variance(in)) -
         LogDensity(confidences, out.mean, variance(out));
}

// The predictive density of a value after the shadows of a side were seen.
at::Tensor LogPredictive(const at::Tensor& value, const Normals& side) {
  const at::Tensor freedom = side.counts - 1 + kPriorShadows;
  const at::Tensor variance =
      (kPriorShadows * side.pooled + side.variance * (side.counts - 1)) / freedom;
  const at::Tensor scale = variance * (1 + 1 / side.counts);
  const at::Tensor distance = (value - side.mean).pow(2) / (scale * freedom);
  return at::lgamma((freedom + 1) / 2) - at::lgamma(freedom / 2) - (freedom * scale).log() / 2 -
         (freedom + 1) / 2 * at::log1p(distance);
}

at::Tensor RmiaScores(const at::Tensor& confidences, const ShadowConfidences& shadows,
                      const at::Tensor& population) {
  const at::Tensor saw = shadows.saw.to(at::kDouble);
  const at::Tensor chances = shadows.confidences.sigmoid();
  const at::Tensor in = (chances * saw).sum(0) / saw.sum(0);
  const at::Tensor out = (chances * (1 - saw)).sum(0) / (1 - saw).sum(0);
  const at::Tensor ratios =
      confidences.sigmoid() / ((in + out) / 2).clamp_min(std::numeric_limits<double>::min());
  const at::Tensor others = std::get<0>((ratios.masked_select(population) * kRatio).sort());
  // How many of the others a record is not below.
  return at::searchsorted(others, ratios.contiguous(), /*out_int32=*/false, /*right=*/true)
             .to(at::kDouble) /
         static_cast<double>(std::max<std::int64_t>(1, others.numel()));
}

}  // namespace

at::Tensor ClassConfidences(const at::Tensor& logits, const at::Tensor& classes) {
  const at::Tensor all = logits.to(at::kDouble);
  const at::Tensor right = classes.to(all.device()).unsqueeze(1);
  const at::Tensor own = all.gather(1, right);
  const at::Tensor others =
      all.scatter(1, right, -std::numeric_limits<double>::infinity()).logsumexp(1, true);
  return (own - others).squeeze(1);
}

std::vector<AttackScores> MembershipScores(const at::Tensor& confidences,
                                           const ShadowConfidences& shadows,
                                           const at::Tensor& population) {
  std::vector<AttackScores> attacks = {{"loss", Listed(confidences)}};
  if (shadows.size() == 0) return attacks;
  const at::Tensor missed = shadows.saw.logical_not();
  SORDINO_CHECK(shadows.saw.sum(0).min().item<double>() >= kMinSide &&
                    missed.sum(0).min().item<double>() >= kMinSide,
                "a record was seen by too many or too few shadow models");
  const Normals in = NormalsOf(shadows.confidences, shadows.saw);
  const Normals out = NormalsOf(shadows.confidences, missed);
  const auto add = [&](const char* name, const at::Tensor& scores) {
    attacks.push_back({name, Listed(scores)});
  };
  add("calibrated", confidences - out.mean);
  add("lira", LiraScores(confidences, in, out));
  add("lira-fixed", LiraFixedScores(confidences, in, out));
  add("lira-offline", (confidences - out.mean) / out.variance.sqrt());
  add("bavaria", LogPredictive(confidences, in) - LogPredictive(confidences, out));
  add("rmia", RmiaScores(confidences, shadows, population));
  return attacks;
}

}  // namespace sordino
