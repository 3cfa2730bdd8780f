#include "sordino/runs/train_config.h"

#include <ATen/Context.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/clipping/clipping_component.h"
#include "sordino/clipping/norms_component.h"
#include "sordino/lower_bounds/canary_audit.h"
#include "sordino/optimizers/optimizer_component.h"
#include "sordino/runs/internal/adaptive_settings.h"
#include "sordino/schedules/schedule_shape.h"
#include "sordino/training/canary_records.h"

namespace sordino {
namespace {

constexpr double kDefaultBatch = 512;
constexpr double kDefaultEpochs = 40;
// Images that 'cnn-mnist' and 'cnn-cifar' take (docs/models.md).
constexpr std::int64_t kLeastMnistSide = 14;
constexpr std::int64_t kLeastCifarSide = 8;
constexpr double kNamedDataDelta = 1e-5;
// Batch, clipping norm, noise and learning rate (kMaxStepFactor) are at most 1e9 each: their
// product, which is the largest step of a weight, is then below the largest number of single
// precision.
constexpr double kMaxFactor = 1e9;
// Far below any use; accounting computes with quotients of it, which must stay normal numbers.
constexpr double kMinDelta = 1e-300;
constexpr std::int64_t kMaxCopies = 1000;
constexpr std::int64_t kMaxAuditCanaries = 1'000'000;

void CheckNames(const TrainConfig& config) {
  if (config.data.source.empty()) {
    throw Error(
        "there is nothing to train on; give --data with a dataset's name, such as digits, or a "
        "file.");
  }
  if (!config.model.name.empty() && !config.model.script.empty()) {
    throw Error("--model and --script are two models; give one of them.");
  }
  if (!config.model.script.empty() && !config.run.non_private && config.training.device == "cpu" &&
      config.training.threads > kThreadsOfEqualPlaces) {
    throw Error(fmt::format(
        "--threads is {}, and a private run of a --script takes at most {} on a processor, so that "
        "the rounding of a record does not depend on its place in a batch; give --threads {}, and "
        "--processes for more.",
        config.training.threads, kThreadsOfEqualPlaces, kThreadsOfEqualPlaces));
  }
  if (!config.model.script.empty() &&
      (!config.model.activation.empty() || config.model.width != 0)) {
    throw Error(
        "--activation and --width are for models by name; a --script comes with its own, so leave "
        "them out.");
  }
}

// What a run without noise or clipping has no use for is a sign of a misunderstanding.
void CheckWithoutNoise(const TrainConfig& config) {
  if (config.AddsNoise()) return;
  const PrivacySettings& privacy = config.privacy;
  if (config.run.non_private && privacy.noise == 0.0) {
    throw Error(
        "--non-private neither clips nor adds noise, and --noise 0 clips; give one of them.");
  }
  if (config.run.non_private && !(privacy.clipping == PrivacySettings().clipping)) {
    throw Error(fmt::format(
        "--non-private does not clip, so --clipping {} has no meaning beside it; give --noise 0 to "
        "clip without noise, or leave it out.",
        privacy.clipping.name));
  }
  if (!config.run.non_private && privacy.noise_schedule != PrivacySettings().noise_schedule) {
    throw Error(fmt::format(
        "--noise 0 adds no noise, so --noise-schedule {} has no meaning beside it; leave one of "
        "them out.",
        privacy.noise_schedule));
  }
}

void CheckBudget(const TrainConfig& config) {
  const PrivacySettings& privacy = config.privacy;
  if (privacy.epsilon && privacy.noise) {
    throw Error(
        "--epsilon and --noise are both given; give --epsilon, which decides the noise, or "
        "--noise, "
        "which decides the epsilon.");
  }
  if (!privacy.epsilon && !privacy.noise && !config.run.non_private) {
    throw Error(
        "there is no budget; give --epsilon (such as 3) with --delta, or --noise, or --non-private "
        "for a comparison without privacy.");
  }
  CheckWithoutNoise(config);
  if (privacy.epsilon) CheckRange("--epsilon", *privacy.epsilon, 0, true, kInfinity, true);
  if (privacy.noise) CheckRange("--noise", *privacy.noise, 0, false, kMaxFactor, false);
  if (privacy.delta) CheckRange("--delta", *privacy.delta, kMinDelta, false, 1, true);
  if (privacy.rate) CheckRange("--rate", *privacy.rate, 0, true, 1, false);
  CheckRange("--clip", privacy.clip, 0, true, kMaxFactor, false);
}

void CompletePrivacy(TrainConfig& config, const DatasetDeclaration& data) {
  PrivacySettings& privacy = config.privacy;
  if (!privacy.delta) {
    if (!IsDatasetName(config.data.source) && config.AddsNoise()) {
      throw Error(
          "there is no --delta; give the probability with which the guarantee may fail, well below "
          "one over the number of records, such as 1e-6.");
    }
    privacy.delta = kNamedDataDelta;
  }
  privacy.sampling = Samplers().Completed(privacy.sampling);
  privacy.noise_kind = Noises().Completed(privacy.noise_kind);
  privacy.clipping = ClippingPolicies().Completed(privacy.clipping);
  const SamplerComponent& sampler = Samplers().Find(privacy.sampling.name);
  if (privacy.adjacency.empty()) privacy.adjacency = AdjacencyName(sampler.DefaultAdjacency());
  if (!sampler.HasRate() && privacy.rate) {
    throw Error(fmt::format("--rate is for --sampling {}; leave it out with --sampling {}.",
                            SamplersWith(&SamplerComponent::HasRate), sampler.name()));
  }
  if (data.records == 0 && !privacy.rate) {
    throw Error(
        "the number of records is not declared; give --records when it may be known to everybody, "
        "or --rate with --batch and --steps, so that it stays private.");
  }
}

void CompleteLength(TrainConfig& config, const DatasetDeclaration& data) {
  TrainingSettings& training = config.training;
  const auto records = static_cast<double>(data.records);
  const SamplerComponent& sampler = Samplers().Find(config.privacy.sampling.name);
  if (const std::optional<double> batch = sampler.BatchOf(records)) {
    if (training.batch && *training.batch != *batch) {
      throw Error(fmt::format("--batch is {:g} and a {} batch has all {:g} records; leave it out.",
                              *training.batch, sampler.name(), *batch));
    }
    training.batch = batch;
  }
  if (!training.batch && config.privacy.rate) {
    if (data.records == 0) {
      throw Error(
          "--rate is given and the number of records is private; give --batch too, the expected "
          "size of a batch, which the sum of gradients is divided by.");
    }
    training.batch = *config.privacy.rate * records;
  }
  if (!training.batch) training.batch = std::min(kDefaultBatch, records);
  CheckRange("--batch", *training.batch, 0, true, kMaxFactor, false);
  if (data.records > 0 && *training.batch > records) {
    throw Error(fmt::format("--batch is {:g} and the data have {} records; give at most that many.",
                            *training.batch, data.records));
  }
  if (sampler.HasWholeEpochs() && !config.privacy.rate) {
    SamplingPlan plan;
    plan.batch = *training.batch;
    plan.records = data.records;
    sampler.CompleteRate(plan);
    config.privacy.rate = plan.rate->value();
    training.batch = plan.batch;
  }
  if (training.epochs && training.steps) {
    throw Error("--epochs and --steps are both given; give one of them.");
  }
  if (!training.steps) {
    if (!training.epochs) training.epochs = kDefaultEpochs;
    CheckRange("--epochs", *training.epochs, 0, true, 1e6, false);
    const double rate = config.privacy.rate.value_or(*training.batch / records);
    const double steps = std::ceil(*training.epochs / rate * (1 - 1e-12));
    CheckRange("the number of steps that --epochs and --batch make", steps, 1, false,
               static_cast<double>(kMaxPlanSteps), false);
    training.steps = static_cast<std::int64_t>(steps);
    training.epochs.reset();
  }
  CheckRange("--steps", static_cast<double>(*training.steps), 1, false,
             static_cast<double>(kMaxPlanSteps), false);
}

// A file has a factor for each step of a run, so it may say how many there are.
void CompleteStepsFromFiles(TrainConfig& config) {
  TrainingSettings& training = config.training;
  if (training.steps || training.epochs) return;
  const PrivacySettings& privacy = config.privacy;
  const std::pair<std::string_view, std::string_view> schedules[] = {
      {privacy.noise_schedule, "noise"},
      {privacy.clip_schedule, "clip"},
      {privacy.rate_schedule, "rate"},
      {training.schedule, "learning-rate"}};
  for (const auto& [text, column] : schedules) {
    if (!Schedule::FileOf(text)) continue;
    training.steps = Schedule::Parse(text, column).Length();
    return;
  }
}

void CompleteSchedules(TrainConfig& config) {
  PrivacySettings& privacy = config.privacy;
  if (privacy.kappa && privacy.decay) {
    throw Error("--kappa and --decay are both given; give one of them.");
  }
  ScheduleTerms terms{.kappa = privacy.kappa, .decay = privacy.decay, .momentum = std::nullopt};
  terms.momentum =
      Optimizers().Find(config.training.optimizer.name).Momentum(config.training.optimizer.options);
  bool used = false;
  for (std::string* text : {&privacy.noise_schedule, &privacy.clip_schedule, &privacy.rate_schedule,
                            &config.training.schedule}) {
    *text = Schedule::Completed(*text, terms, used);
  }
  if ((privacy.kappa || privacy.decay) && !used) {
    throw Error(fmt::format(
        "{} is for the schedules 'optimal' and 'optimal-momentum', and none is given; add "
        "--noise-schedule optimal, or leave it out.",
        privacy.kappa ? "--kappa" : "--decay"));
  }
  privacy.kappa.reset();
  privacy.decay.reset();
}

void CheckClassWeights(const TrainConfig& config, const DatasetDeclaration& declaration) {
  const std::vector<double>& weights = config.training.class_weights;
  if (weights.empty()) return;
  if (declaration.target) {
    throw Error(fmt::format(
        "--class-weights was given, and '{}' is a number without classes; leave it out.",
        declaration.target->name));
  }
  if (static_cast<std::int64_t>(weights.size()) != declaration.classes) {
    throw Error(
        fmt::format("--class-weights has {} numbers, and there are {} classes; give one for "
                    "each.",
                    weights.size(), declaration.classes));
  }
  for (const double weight : weights) {
    CheckRange("a number of --class-weights", weight, 0, true, kMaxFactor, false);
  }
}

void CompleteOptimizer(TrainConfig& config) {
  TrainingSettings& training = config.training;
  training.optimizer = Optimizers().Completed(training.optimizer);
  training.norms = NormMethods().Completed(training.norms);
  if (!training.learning_rate) {
    training.learning_rate = Optimizers().Find(training.optimizer.name).LearningRate();
  }
  CheckRange("--copies", static_cast<double>(training.copies), 1, false, kMaxCopies, false);
  if (training.threads > 4096) {
    throw Error(fmt::format("--threads is {}; give at most 4096.", training.threads));
  }
}

void CheckCanarySettings(const TrainConfig& config, const DatasetDeclaration& declaration) {
  const RunSettings& run = config.run;
  const bool are_records = AreRecords(run.canary_kind);
  if (run.canaries == 0) {
    if (!are_records) return;
    throw Error(fmt::format(
        "--canary-kind {} was given without --canaries; give their number, or leave it out.",
        run.canary_kind));
  }
  if (!config.AddsNoise()) {
    throw Error(fmt::format(
        "--canaries audit what is claimed of a private run, and {} claims nothing; leave one of "
        "them out.",
        run.non_private ? "--non-private" : "--noise 0"));
  }
  if (run.canaries < kMinAuditCanaries || run.canaries > kMaxAuditCanaries) {
    throw Error(fmt::format("--canaries is {}; give {} to {}, or 0 for none.", run.canaries,
                            kMinAuditCanaries, kMaxAuditCanaries));
  }
  CheckCanaryKind(run.canary_kind, declaration,
                  !config.data.test.empty() || IsDatasetName(config.data.source));
  if (are_records && config.privacy.micro_batch > 1 &&
      ParseAdjacency(config.privacy.adjacency) != Adjacency::kReplaceOne) {
    throw Error(fmt::format(
        "--canary-kind {} cannot be used with micro-batches under {}: a canary that is left out "
        "would move records to others; use --adjacency replace-one, or --canary-kind dirac.",
        run.canary_kind, config.privacy.adjacency));
  }
}

}  // namespace

std::string TrainConfig::ModelName() const {
  return model.script.empty() ? model.name : std::filesystem::path(model.script).stem().string();
}

std::string DefaultModelName(const DatasetDeclaration& declaration) {
  if (declaration.kind == InputKind::kTokens) return "transformer";
  if (declaration.kind == InputKind::kFeatures) return "mlp";
  const std::int64_t channels = declaration.shape[0];
  const std::int64_t side = std::min(declaration.shape[1], declaration.shape[2]);
  if (channels == 1 && side >= kLeastMnistSide) return "cnn-mnist";
  return side >= kLeastCifarSide ? "cnn-cifar" : "logistic";
}

TrainConfig Completed(TrainConfig config, const DatasetDeclaration& declaration) {
  CheckNames(config);
  if (config.ModelName().empty()) config.model.name = DefaultModelName(declaration);
  CheckBudget(config);
  config.data = WithSchema(std::move(config.data));  // a run does not need the file again
  CompletePrivacy(config, declaration);
  CompleteStepsFromFiles(config);
  CompleteLength(config, declaration);
  CompleteOptimizer(config);
  CompleteSchedules(config);
  internal::CompleteAdaptive(config, declaration);
  CheckClassWeights(config, declaration);
  CheckCanarySettings(config, declaration);
  CheckPurpose(config.run.purpose);
  CheckRange("--checkpoint-every", static_cast<double>(config.run.checkpoint_every), 0, false,
             kInfinity, true);
  if (config.run.evaluate_every == 0) {
    const double rate = config.privacy.rate.value_or(
        declaration.records > 0 ? *config.training.batch / static_cast<double>(declaration.records)
                                : 1);
    config.run.evaluate_every =
        std::clamp<std::int64_t>(std::llround(1 / rate), 1, *config.training.steps);
  }
  return config;
}

PlanOptions PlanOptionsOf(const TrainConfig& config, const DatasetDeclaration& declaration) {
  const PrivacySettings& privacy = config.privacy;
  PlanOptions options;
  options.sampling = privacy.sampling;
  options.batch = *config.training.batch;
  if (privacy.rate) options.rate = SamplingRate(*privacy.rate);
  options.records = declaration.records;
  if (options.records > 0 && config.run.canaries > 0 && AreRecords(config.run.canary_kind)) {
    // They are records that the run is planned for (training/internal/data_canaries.h).
    options.records += config.run.canaries;
    const SamplerComponent& sampler = Samplers().Find(privacy.sampling.name);
    options.batch = sampler.BatchOf(static_cast<double>(options.records)).value_or(options.batch);
  }
  options.steps = *config.training.steps;
  options.adjacency = ParseAdjacency(privacy.adjacency);
  options.clipping = privacy.clipping;
  options.norms = config.training.norms;
  options.clip = ClipNorm(privacy.clip);
  options.noise = privacy.noise_kind;
  options.noise_schedule = Schedule::Parse(privacy.noise_schedule, "noise");
  options.clip_schedule = Schedule::Parse(privacy.clip_schedule, "clip");
  options.rate_schedule = Schedule::Parse(privacy.rate_schedule, "rate");
  options.rows_per_user = declaration.rows_per_user;
  options.micro_batch = privacy.micro_batch;
  if (config.HasAdaptiveNoise()) {
    options.held_out =
        HeldOutPlan{.share = *privacy.validation_share, .every = *privacy.validation_every};
  }
  return options;
}

OptimizerOptions OptimizerOptionsOf(const TrainConfig& config) {
  const TrainingSettings& training = config.training;
  OptimizerOptions options;
  options.algorithm = training.optimizer;
  options.learning_rate = *training.learning_rate;
  options.schedule = Schedule::Parse(training.schedule, "learning-rate");
  options.projection_radius = training.projection_radius;
  options.average_decay = training.average_decay;
  return options;
}

ModelOptions ModelOptionsOf(const TrainConfig& config) {
  ModelOptions options;
  options.activation = config.model.activation;
  options.width = config.model.width;
  options.pretrained = config.model.pretrained;
  options.freeze = config.model.freeze;
  options.seed = config.model.seed;
  return options;
}

ModelShape ModelShapeOf(const DatasetDeclaration& declaration) {
  ModelShape shape;
  shape.input = declaration.shape;
  shape.tokens = declaration.kind == InputKind::kTokens;
  shape.vocabulary = declaration.vocabulary;
  shape.classes = declaration.Outputs();
  shape.predicts_number = declaration.target.has_value();
  if (declaration.kind == InputKind::kImage) {
    shape.mean = declaration.normalisation.mean;
    shape.deviation = declaration.normalisation.deviation;
  }
  return shape;
}

at::Tensor ClassWeightsOf(const TrainConfig& config, c10::Device device) {
  const std::vector<double>& weights = config.training.class_weights;
  return weights.empty() ? at::Tensor() : at::tensor(weights, at::kFloat).to(device);
}

AugmentationOptions AugmentationOptionsOf(const TrainConfig& config) {
  AugmentationOptions options;
  options.flip = config.training.flip;
  options.shift = config.training.shift;
  options.multiplicity = config.training.copies;
  return options;
}

GradientOptions GradientOptionsOf(const TrainConfig& config) {
  GradientOptions options;
  options.physical_batch = config.training.physical_batch;
  options.fallback = config.training.fallback;
  // A script may come from somebody who is not trusted.
  options.equal_places = !config.model.script.empty() && !config.run.non_private;
  options.graph = ParseGraphUse("--graph", config.training.graph);
  return options;
}

c10::Device ParseDevice(const std::string& name, int local_rank) {
  return ParseDevice(name, local_rank, name == "cpu" ? 0 : at::getNumGPUs());
}

c10::Device ParseDevice(const std::string& name, int local_rank, std::uint64_t gpus) {
  if (name == "cpu") return c10::kCPU;
  std::uint64_t index = 0;
  bool known = name == "cuda";
  if (name.rfind("cuda:", 0) == 0) {
    const char* const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + 5, end, index);
    known = error == std::errc() && stop == end;
  }
  if (!known) throw Error(fmt::format("--device is '{}'; it can be cpu, cuda or cuda:N.", name));
  if (gpus == 0) {
    throw Error(fmt::format(
        "--device is {}, and this libtorch sees no CUDA device; use --device cpu, or build with a "
        "CUDA libtorch on a machine with a GPU.",
        name));
  }
  if (name == "cuda") index = static_cast<std::uint64_t>(local_rank) % gpus;
  if (index >= gpus) {
    throw Error(fmt::format("--device is {}, and the CUDA devices here are cuda:0 to cuda:{}.",
                            name, gpus - 1));
  }
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

}  // namespace sordino
