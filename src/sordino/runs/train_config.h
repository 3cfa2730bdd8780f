// Everything that a training run is told, with the defaults.
//
// The defaults are Tramer and Boneh's recipe for MNIST (arXiv 2011.11660): momentum 0.9, clipping
// norm 0.1, batches of 512, learning rate 0.5, 40 epochs. A setting that is left out takes its
// default or follows from the others (Completed below), so a run is described by a few of them and
// its run folder by all.
//
// train_settings.h gives each of them its flag, its key in a configuration file and its help.
#ifndef SORDINO_RUNS_TRAIN_CONFIG_H_
#define SORDINO_RUNS_TRAIN_CONFIG_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/base/component.h"
#include "sordino/data/augmentation.h"
#include "sordino/data/catalog.h"
#include "sordino/gradients/clipper.h"
#include "sordino/models/model.h"
#include "sordino/optimizers/optimizer.h"
#include "sordino/report/deployment_record.h"
#include "sordino/training/adaptive_noise.h"
#include "sordino/training/privacy_plan.h"

namespace sordino {

struct ModelSettings {
  std::string name;        // of models/model.h
  std::string script;      // or a TorchScript file
  std::string activation;  // empty: the model's own
  std::int64_t width = 0;  // 0: the model's own
  std::string pretrained;
  std::vector<std::string> freeze;
  std::uint64_t seed = 0;  // of the initial weights, never of batches, augmentation or noise
};

struct PrivacySettings {
  std::optional<double> epsilon;  // a target, or
  std::optional<double> noise;    // the noise multiplier; 0: not private
  std::optional<double> delta;
  std::optional<double> rate;
  Choice sampling = "poisson";
  std::string adjacency;  // empty: that of the sampler
  Choice clipping = "flat";
  double clip = 0.1;
  Choice noise_kind = "gaussian";
  std::string noise_schedule = "constant";
  std::string clip_schedule = "constant";
  std::string rate_schedule = "constant";
  // What the schedules 'optimal' and 'optimal-momentum' follow from; part of them once completed.
  std::optional<double> kappa;
  std::optional<double> decay;
  // Of the noise schedule 'adaptive' (training/adaptive_noise.h).
  std::optional<double> noise_factor;
  std::optional<double> validation_share;
  std::optional<std::int64_t> validation_every;
  std::optional<double> validation_budget;
  std::optional<double> validation_gain;
  std::int64_t micro_batch = 1;
};

struct TrainingSettings {
  std::optional<double> batch;
  std::optional<double> epochs;
  std::optional<std::int64_t> steps;
  Choice optimizer = "sgd";
  std::optional<double> learning_rate;
  std::string schedule = "constant";
  double projection_radius = 0;
  double average_decay = 0;
  bool flip = false;
  std::int64_t shift = 0;
  std::int64_t copies = 1;  // augmentation multiplicity
  // Factors of the losses of the classes, in their order; empty: 1. Declared: shares that were
  // counted in the data are private.
  std::vector<double> class_weights;
  Choice norms = "automatic";
  std::int64_t physical_batch = 0;
  bool fallback = false;
  std::string device = "cpu";
  std::string precision = "tf32";  // of products (device/precision.h)
  std::string graph = "auto";      // whether steps on a GPU are recorded (device/recorded_graph.h)
  std::int64_t threads = 0;        // 0: libtorch's choice
};

struct RunSettings {
  std::string out;                    // empty: runs/<date-time>-<data>-<model>
  std::int64_t evaluate_every = 0;    // steps; 0: once an epoch
  std::string ledger;                 // empty: one of the run's own, in its folder
  bool whole = false;                 // the run may take all of the ledger's budget
  std::int64_t checkpoint_every = 0;  // steps; 0: about once a minute
  std::int64_t canaries = 0;          // made-up records to audit the run with
  std::string canary_kind = "dirac";  // training/canary_records.h
  bool non_private = false;
  std::optional<std::uint64_t> insecure_seed;
  ReleasePurpose purpose;  // who answers for the model and what it is for, for record and statement
};

struct TrainConfig {
  DataRequest data;
  ModelSettings model;
  PrivacySettings privacy;
  TrainingSettings training;
  RunSettings run;

  // "cnn-mnist", or the name of the script without its folder.
  std::string ModelName() const;
  // False for a run that is not private by its settings: --non-private, or --noise 0, which clips.
  bool AddsNoise() const { return !run.non_private && privacy.noise != 0.0; }
  // Whether the noise is lowered as the run goes.
  bool HasAdaptiveNoise() const { return privacy.noise_schedule == "adaptive"; }
};

// With what was left out filled in from the declaration of the data and from the defaults: delta
// (1e-5 for data of the catalogue; otherwise it must be given), model, batch, steps, adjacency,
// learning rate, options of the components, evaluations. Completing twice is completing once.
// Throws Error for settings that contradict each other and for what is missing.
TrainConfig Completed(TrainConfig config, const DatasetDeclaration& declaration);

// The model that is taken where none is named, by the kind of the data: tables and features 'mlp',
// grey images 'cnn-mnist' and others 'cnn-cifar' ('logistic' where they are too small for these),
// text 'transformer'.
std::string DefaultModelName(const DatasetDeclaration& declaration);

// The parts of a completed configuration.
PlanOptions PlanOptionsOf(const TrainConfig& config, const DatasetDeclaration& declaration);
// Of adaptive noise; `plan` is that of the configuration.
NoiseRule NoiseRuleOf(const TrainConfig& config, const PrivacyPlan& plan);
OptimizerOptions OptimizerOptionsOf(const TrainConfig& config);
ModelOptions ModelOptionsOf(const TrainConfig& config);
ModelShape ModelShapeOf(const DatasetDeclaration& declaration);
// Undefined where none are declared.
at::Tensor ClassWeightsOf(const TrainConfig& config, c10::Device device);
AugmentationOptions AugmentationOptionsOf(const TrainConfig& config);
GradientOptions GradientOptionsOf(const TrainConfig& config);

// "cpu", "cuda", "cuda:N"; throws Error where there is no such device. The ranks of a machine share
// out its GPUs: "cuda" is number local_rank mod the number of GPUs.
c10::Device ParseDevice(const std::string& name, int local_rank = 0);
// The same on a machine with so many GPUs.
c10::Device ParseDevice(const std::string& name, int local_rank, std::uint64_t gpus);

}  // namespace sordino

#endif  // SORDINO_RUNS_TRAIN_CONFIG_H_
