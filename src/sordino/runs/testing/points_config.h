// A private run on a table of points (WritePoints of training/testing/trainer_cases.h).
#ifndef SORDINO_RUNS_TESTING_POINTS_CONFIG_H_
#define SORDINO_RUNS_TESTING_POINTS_CONFIG_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "sordino/runs/train_config.h"

namespace sordino {

// Epsilon at delta 1e-5 and clipping at 1; the run goes to `out`.
inline TrainConfig PointsConfig(const std::filesystem::path& table, std::int64_t records,
                                const std::string& model, double epsilon,
                                const std::filesystem::path& out) {
  TrainConfig config;
  config.data.source = table.string();
  config.data.columns.declared = {"x:numeric:0:1", "y:numeric:0:1", "above:label:no|yes"};
  config.data.records = records;
  config.model.name = model;
  config.privacy.epsilon = epsilon;
  config.privacy.delta = 1e-5;
  config.privacy.clip = 1;
  config.run.out = out.string();
  return config;
}

}  // namespace sordino

#endif  // SORDINO_RUNS_TESTING_POINTS_CONFIG_H_
