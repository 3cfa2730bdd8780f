#include "sordino/report/class_quality.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sordino/base/check.h"

namespace sordino {
namespace {

// Of one class against the others (Mann and Whitney); nullopt where one of the two is missing.
std::optional<double> AreaOf(std::vector<std::pair<double, bool>> chances) {
  std::ranges::sort(chances);
  double others_below = 0;
  double members = 0;
  double wins = 0;
  for (auto first = chances.begin(); first != chances.end();) {
    const auto last = std::find_if(
        first, chances.end(), [&](const auto& chance) { return chance.first != first->first; });
    const auto equal_members = static_cast<double>(
        std::count_if(first, last, [](const auto& chance) { return chance.second; }));
    const double equal_others = static_cast<double>(last - first) - equal_members;
    wins += equal_members * (others_below + equal_others / 2);
    members += equal_members;
    others_below += equal_others;
    first = last;
  }
  if (members == 0 || others_below == 0) return std::nullopt;
  return wins / members / others_below;
}

}  // namespace

void ClassQualityMeter::Add(std::span<const double> probabilities, std::int64_t truth) {
  SORDINO_CHECK(truth >= 0 && truth < std::ssize(probabilities), "a class is not there");
  chances_.resize(probabilities.size());
  for (std::size_t k = 0; k < probabilities.size(); ++k) {
    chances_[k].emplace_back(probabilities[k], static_cast<std::int64_t>(k) == truth);
  }
  const auto best = std::ranges::max_element(probabilities);
  const bool is_right = best - probabilities.begin() == truth;
  ++records_;
  right_ += is_right ? 1 : 0;
  loss_ -= std::log(
      std::max(probabilities[static_cast<std::size_t>(truth)], std::numeric_limits<double>::min()));
  const double place = std::clamp(*best, 0.0, 1.0) * static_cast<double>(kCalibrationBins);
  CalibrationBin& bin = bins_[std::min(static_cast<std::size_t>(place), kCalibrationBins - 1)];
  ++bin.records;
  bin.probability += *best;
  bin.right += is_right ? 1 : 0;
}

// Two classes have one area: that of the one is that of the other.
std::optional<double> ClassQualityMeter::Auroc() const {
  double sum = 0;
  double areas = 0;
  for (const auto& chances : chances_) {
    if (const std::optional<double> area = AreaOf(chances)) {
      sum += *area;
      ++areas;
    }
  }
  return areas > 0 ? std::optional(sum / areas) : std::nullopt;
}

ClassQuality ClassQualityMeter::Quality() const {
  SORDINO_CHECK(records_ > 0, "there is no record to measure a classifier on");
  const auto records = static_cast<double>(records_);
  ClassQuality quality = {.accuracy = static_cast<double>(right_) / records,
                          .log_loss = loss_ / records,
                          .auroc = Auroc(),
                          .calibration = bins_};
  for (CalibrationBin& bin : quality.calibration) {
    if (bin.records == 0) continue;
    quality.calibration_error += std::abs(bin.probability - bin.right) / records;
    bin.probability /= static_cast<double>(bin.records);
    bin.right /= static_cast<double>(bin.records);
  }
  return quality;
}

}  // namespace sordino
