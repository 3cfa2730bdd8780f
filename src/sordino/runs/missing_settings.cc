#include "sordino/runs/missing_settings.h"

#include "sordino/data/format_settings.h"
#include "sordino/sampling/sampler_component.h"

namespace sordino {
namespace {

constexpr const char* kBudget = "the budget";

const MissingSetting kMissingDelta = {"delta", "--delta 1e-6",
                                      "well below one over the number of records"};

bool NeedsDelta(const DataRequest& data) {
  return !data.source.empty() && !IsDatasetName(data.source);
}

// How many records there are, or how they are drawn where that is private.
void AddRecords(const TrainConfig& config, std::vector<MissingSetting>& missing) {
  if (config.data.source.empty() || IsDatasetName(config.data.source)) return;
  if (config.data.records > 0) return;
  if (config.privacy.rate) {
    if (config.training.batch) return;
    missing.push_back({"the expected size of a batch", "--batch 500",
                       "which the sum of the gradients is divided by"});
    return;
  }
  const bool has_rate = Samplers().Find(config.privacy.sampling.name).HasRate();
  missing.push_back({"the number of records", "--records 20000",
                     has_rate ? "where it may be known to everybody; else --rate, --batch and "
                                "--steps"
                              : "which is public with this sampling"});
}

}  // namespace

std::vector<MissingSetting> MissingSettings(const TrainConfig& config) {
  std::vector<MissingSetting> missing = MissingDeclarations(config.data, /*to_train=*/true);
  AddRecords(config, missing);
  if (!config.privacy.epsilon && !config.privacy.noise && !config.run.non_private) {
    missing.push_back(
        {kBudget, "--epsilon 3", "or --noise, or --non-private for a comparison without privacy"});
  }
  if (!config.privacy.delta && config.AddsNoise() && NeedsDelta(config.data)) {
    missing.push_back(kMissingDelta);
  }
  return missing;
}

std::vector<MissingSetting> MissingSettings(const FitSettings& settings) {
  std::vector<MissingSetting> missing = MissingDeclarations(settings.data, /*to_train=*/true);
  if (settings.non_private) return missing;
  if (!settings.epsilon) {
    missing.push_back(
        {kBudget, "--epsilon 1", "or --non-private for public data and to compare with"});
  }
  if (!settings.delta && NeedsDelta(settings.data)) missing.push_back(kMissingDelta);
  return missing;
}

std::vector<MissingSetting> MissingSettings(const TuneSettings& settings) {
  std::vector<MissingSetting> missing = MissingSettings(settings.config);
  for (MissingSetting& one : missing) {
    if (one.what == kBudget) one.note = "of all tries together";
  }
  if (settings.tries.empty()) {
    missing.push_back({"what is tried", "--try lr=0.1..4:log,clip=0.1,1",
                       "settings with a list of values or a range each"});
  }
  return missing;
}

}  // namespace sordino
