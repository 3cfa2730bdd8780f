// PrepareResume of training_run.h.
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <utility>

#include "sordino/base/error.h"
#include "sordino/models/safetensors.h"
#include "sordino/runs/internal/run_inputs.h"
#include "sordino/runs/training_run.h"

namespace sordino {
namespace {

// All steps were made and everything was written: a crash came before the checkpoints were removed.
bool IsComplete(const std::filesystem::path& folder, std::int64_t steps) {
  const std::filesystem::path file = folder / "model.safetensors";
  if (!std::filesystem::exists(file)) return false;
  const auto metadata = ReadSafetensors(file).metadata;
  const auto made = metadata.find("steps");
  return made != metadata.end() && made->second == fmt::format("{}", steps);
}

// Parts of the model that are not trained, as the run began with them.
void RestoreFrozen(const Model& model, const NamedTensors& tensors,
                   const std::filesystem::path& folder) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, value] : model.Parameters()) {
    if (value.requires_grad()) continue;
    bool found = false;
    for (const auto& [saved, tensor] : tensors) {
      if (saved != kFrozenPrefix + name || tensor.sizes() != value.sizes()) continue;
      value.copy_(tensor);
      found = true;
    }
    if (!found) {
      throw Error(
          fmt::format("the checkpoint of '{}' does not fit the model: it has no '{}'; resume a run "
                      "with the configuration that it began with.",
                      folder.string(), name));
    }
  }
}

}  // namespace

PreparedRun PrepareResume(const std::filesystem::path& folder, int local_rank) {
  if (!std::filesystem::is_directory(folder) || !std::filesystem::exists(folder / "config.toml")) {
    throw Error(
        fmt::format("'{}' is not the folder of a run; give the folder that 'sordino train' made.",
                    folder.string()));
  }
  const std::filesystem::path checkpoints = folder / kCheckpointFolder;
  std::optional<Checkpoint> seen;
  {
    const FolderLock nobody_writes(folder);
    seen = ReadNewestCheckpoint(checkpoints);
  }
  if (!seen) {
    throw Error(fmt::format("the run in '{}' {}; start a new one with 'sordino train {}'.",
                            folder.string(),
                            std::filesystem::exists(folder / "model.safetensors")
                                ? "has ended, and there is nothing to resume"
                                : "left no checkpoint: it stopped before its first step",
                            (folder / "config.toml").string()));
  }
  RunFolder locked = RunFolder::Reopen(folder, seen->facts.step);
  // Another process may have resumed it until now.
  std::optional<Checkpoint> newest = ReadNewestCheckpoint(checkpoints);
  if (!newest || newest->facts.step != seen->facts.step) {
    throw Error(
        fmt::format("the run in '{}' was resumed by another process; try again.", folder.string()));
  }
  CheckInputs(folder);
  const TrainConfig config = KeptConfig(folder);
  const bool has_noise = config.AddsNoise();
  PreparedRun run = internal::PrepareWithNoise(
      config, has_noise ? std::optional<double>(newest->facts.noise) : std::nullopt, local_rank);
  if (has_noise && run.plan.event().ToString() != newest->facts.plan) {
    throw Error(fmt::format(
        "the configuration in '{}' was changed: its plan is another than that of the checkpoint; "
        "put it back, or start a new run.",
        folder.string()));
  }
  if (IsComplete(folder, run.plan.steps())) {
    throw Error(
        fmt::format("the run in '{}' has ended, and there is nothing to resume.", folder.string()));
  }
  RestoreFrozen(*run.model, newest->tensors, folder);
  run.resume.emplace(ResumePoint{.folder = std::move(locked), .checkpoint = *std::move(newest)});
  return run;
}

}  // namespace sordino
