#include "sordino/torch_cli/class_quality_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace sordino {

void AddQuality(nlohmann::ordered_json& json, const std::string& prefix,
                const std::optional<ClassQuality>& quality) {
  if (!quality) return;
  json[prefix + "log_loss"] = quality->log_loss;
  if (quality->auroc) json[prefix + "auroc"] = *quality->auroc;
  json[prefix + "calibration_error"] = quality->calibration_error;
}

std::string QualityText(const ClassQuality& quality) {
  const std::string area = quality.auroc ? fmt::format("AUROC {:.4f}, ", *quality.auroc) : "";
  return fmt::format("log-loss {:.4f}, {}calibration error {:.2f}%", quality.log_loss, area,
                     100 * quality.calibration_error);
}

}  // namespace sordino
