#include "sordino/runs/distributed_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/sha256.h"
#include "sordino/device/threads.h"
#include "sordino/distributed/agreement.h"
#include "sordino/random/generator.h"
#include "sordino/runs/train_settings.h"
#include "sordino/training/classification.h"
#include "sordino/training/trainer.h"

namespace sordino {
namespace {

// What rank 0 tells: a letter, the noise multiplier in a line, and the settings; or a letter and a
// sentence.
constexpr char kShared = 'S';
constexpr char kRefused = 'R';

void UseThreadsOfRank(const TrainConfig& config) {
  UseThreads(std::max(1, static_cast<int>(config.training.threads)));
}

void CheckSettings(const PreparedRun& run) {
  TrainerOptions options;
  options.gradients = GradientOptionsOf(run.config);
  CheckShared(run.plan, ParametersOf(*run.model), options);
}

std::string HashOf(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  return Sha256Hex({static_cast<const char*>(whole.const_data_ptr()), whole.nbytes()});
}

// Of the operating system; that of rank 0 counts.
void RequireSame(Communicator& communicator, const std::string& name, const std::string& value) {
  const SharedSecret salt;
  RequireAgreement(
      communicator, {{.name = name, .value = value}},
      std::string(reinterpret_cast<const char*>(salt.bytes().data()), SharedSecret::kBytes));
}

}  // namespace

void ShareRun(PreparedRun& run, Communicator& communicator) {
  SORDINO_CHECK(communicator.IsFirst(), "rank 0 shares its run");
  try {
    CheckSettings(run);
  } catch (const Error& error) {
    ShareRefusal(error.what(), communicator);
    throw;
  }
  UseThreadsOfRank(run.config);
  communicator.Broadcast(
      fmt::format("{}{:a}\n{}", kShared, run.plan.noise().value(), WriteTrainConfig(run.config)));
  communicator.UseDevice(run.device);
  run.communicator = &communicator;
}

void ShareRefusal(const std::string& sentence, Communicator& communicator) {
  SORDINO_CHECK(communicator.IsFirst(), "rank 0 shares its run");
  communicator.Broadcast(kRefused + sentence);
}

PreparedRun ReceiveRun(Communicator& communicator, int local_rank) {
  SORDINO_CHECK(!communicator.IsFirst(), "rank 0 shares its run");
  const std::string told = communicator.Broadcast("");
  const std::size_t line = told.find('\n');
  if (!told.empty() && told.front() == kRefused) throw Error(told.substr(1));
  SORDINO_CHECK(!told.empty() && told.front() == kShared && line != std::string::npos,
                "rank 0 has shared what is no run");
  const double noise = std::stod(told.substr(1, line - 1));
  PreparedRun run = internal::PrepareServing(
      ParseTrainConfig(std::string_view(told).substr(line + 1), "the settings of rank 0"), noise,
      local_rank);
  UseThreadsOfRank(run.config);
  communicator.UseDevice(run.device);
  run.communicator = &communicator;
  return run;
}

void RequireSameSettings(Communicator& communicator, const std::string& settings) {
  RequireSame(communicator, "settings", settings);
}

void RequireSameData(Communicator& communicator, const Dataset& data) {
  RequireSame(communicator, "data", HashOf(data.inputs) + HashOf(data.labels));
}

void RequireSameCanaries(Communicator& communicator, const CanaryRecords& canaries) {
  RequireSame(communicator, "canaries",
              HashOf(canaries.records.inputs) + HashOf(canaries.records.labels) +
                  HashOf(canaries.other_labels));
}

}  // namespace sordino
