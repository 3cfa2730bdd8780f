// How the commands say how good a classifier is (report/class_quality.h).
#ifndef SORDINO_TORCH_CLI_CLASS_QUALITY_REPORT_H_
#define SORDINO_TORCH_CLI_CLASS_QUALITY_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "sordino/report/class_quality.h"

namespace sordino {

// Adds log_loss, auroc and calibration_error, with the prefix before each name.
void AddQuality(nlohmann::ordered_json& json, const std::string& prefix,
                const std::optional<ClassQuality>& quality);

// "log-loss 0.3321, AUROC 0.9012, calibration error 1.20%".
std::string QualityText(const ClassQuality& quality);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_CLASS_QUALITY_REPORT_H_
