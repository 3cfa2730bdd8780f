#include "sordino/runs/train_settings.h"

#include <fmt/format.h>

#include "sordino/base/adjacency_names.h"
#include "sordino/base/component.h"
#include "sordino/base/known_name.h"
#include "sordino/clipping/clipping_component.h"
#include "sordino/clipping/norms_component.h"
#include "sordino/data/catalog.h"
#include "sordino/device/precision.h"
#include "sordino/device/recorded_graph.h"
#include "sordino/noise/noise_component.h"
#include "sordino/optimizers/optimizer_component.h"
#include "sordino/runs/internal/component_rows.h"
#include "sordino/sampling/sampler_component.h"
#include "sordino/tables/encoding.h"
#include "sordino/training/canary_records.h"

namespace sordino {
namespace {

// A row's field.
#define SORDINO_FIELD(member) [](TrainConfig& config) -> SettingField { return &config.member; }

std::vector<Setting> DataRows() {
  return {
      {.section = "data",
       .key = "source",
       .flag = "--data",
       .value_name = "NAME|FILE",
       .help = "A dataset by name, a file or a folder",
       .field = SORDINO_FIELD(data.source)},
      {.section = "data",
       .key = "labels",
       .flag = "--labels",
       .value_name = "FILE",
       .help = "Labels, where they are in a file of their own",
       .field = SORDINO_FIELD(data.labels)},
      {.section = "data",
       .key = "test",
       .flag = "--test",
       .value_name = "FILE",
       .help = "The test set; it is taken to be public",
       .field = SORDINO_FIELD(data.test)},
      {.section = "data",
       .key = "test-labels",
       .flag = "--test-labels",
       .value_name = "FILE",
       .help = "Labels of the test set",
       .field = SORDINO_FIELD(data.test_labels)},
      {.section = "data",
       .key = "format",
       .flag = "--format",
       .value_name = "NAME",
       .help = OneOf(DataFormatNames()) + "; by the name of the file if left out",
       .field = SORDINO_FIELD(data.format),
       .choices = DataFormatNames()},
      {.section = "data",
       .key = "shape",
       .flag = "--shape",
       .value_name = "N,...",
       .help = "Shape of one example, such as 1,28,28",
       .field = SORDINO_FIELD(data.shape),
       .positive = true},
      {.section = "data",
       .key = "resize",
       .flag = "--resize",
       .value_name = "WxH",
       .help = "Of images: stretched to this width and height; 64x48:crop takes the middle, "
               "64x48:pad adds black",
       .field = SORDINO_FIELD(data.resize)},
      {.section = "data",
       .key = "classes",
       .flag = "--classes",
       .value_name = "N",
       .help = "Number of classes",
       .field = SORDINO_FIELD(data.classes),
       .positive = true},
      {.section = "data",
       .key = "class-names",
       .flag = "--class-names",
       .value_name = "A,B,...",
       .help = "Names of the classes, in order",
       .field = SORDINO_FIELD(data.class_names)},
      {.section = "data",
       .key = "records",
       .flag = "--records",
       .value_name = "N",
       .help = "Number of training records, where it may be known to everybody",
       .field = SORDINO_FIELD(data.records),
       .positive = true},
      {.section = "data",
       .key = "mean",
       .flag = "--mean",
       .value_name = "X,...",
       .help = "Normalisation by channel or column, declared",
       .field = SORDINO_FIELD(data.mean)},
      {.section = "data",
       .key = "deviation",
       .flag = "--deviation",
       .value_name = "X,...",
       .help = "Likewise: what is divided by",
       .field = SORDINO_FIELD(data.deviation)},
      {.section = "data",
       .key = "columns",
       .flag = "--columns",
       .value_name = "COLUMN",
       .help = "Of a table: age:numeric:0:120, city:categorical:A|B, sick:label:no|yes, "
               "cost:target:0:5000, note:text:1024, id:user, birth:date:1920-01-01:2020-12-31, "
               "smoker:boolean",
       .field = SORDINO_FIELD(data.columns.declared),
       .repeats = true,
       .rival = "schema"},
      {.section = "data",
       .key = "schema",
       .flag = "--schema",
       .value_name = "FILE",
       .help = "Of a table: a file that declares its columns instead",
       .field = SORDINO_FIELD(data.schema),
       .rival = "columns"},
      {.section = "data",
       .key = "no-header",
       .flag = "--no-header",
       .help = "Of a table: the first line is a record; the columns are called 1, 2, ...",
       .field = SORDINO_FIELD(data.no_header)},
      {.section = "data",
       .key = "encoding",
       .flag = "--encoding",
       .value_name = "NAME",
       .help = "Of a table: " + OneOf(EncodingNames()) + "; utf-8 if left out",
       .field = SORDINO_FIELD(data.encoding),
       .choices = EncodingNames()},
      {.section = "data",
       .key = "delimiter",
       .flag = "--delimiter",
       .value_name = "C",
       .help = "Of a table: between fields, one character or tab",
       .field = SORDINO_FIELD(data.delimiter)},
      {.section = "data",
       .key = "quote",
       .flag = "--quote",
       .value_name = "C",
       .help = "Of a table: around fields with delimiters in them, \", ' or none",
       .field = SORDINO_FIELD(data.quote)},
      {.section = "data",
       .key = "missing",
       .flag = "--missing",
       .value_name = "A,B,...",
       .help = "Of a table: cells without a value, such as '?,\"\"'",
       .field = SORDINO_FIELD(data.missing)},
      {.section = "data",
       .key = "rows-per-user",
       .flag = "--rows-per-user",
       .value_name = "N",
       .help = "Rows of one user that count at most",
       .field = SORDINO_FIELD(data.rows_per_user),
       .positive = true},
      {.section = "data",
       .key = "vocabulary",
       .flag = "--vocabulary",
       .value_name = "FILE",
       .help = "Text: public words, one a line; text:FILE takes those of public text, hash:4096 "
               "needs none",
       .field = SORDINO_FIELD(data.vocabulary)},
      {.section = "data",
       .key = "length",
       .flag = "--length",
       .value_name = "N",
       .help = "Text: tokens of an example",
       .field = SORDINO_FIELD(data.length),
       .positive = true},
  };
}

std::vector<Setting> ModelRows() {
  return {
      {.section = "model",
       .key = "name",
       .flag = "--model",
       .value_name = "NAME",
       .help = "A model by name",
       .field = SORDINO_FIELD(model.name),
       .rival = "script"},
      {.section = "model",
       .key = "script",
       .flag = "--script",
       .value_name = "FILE",
       .help = "A TorchScript file instead; it holds code, which runs",
       .field = SORDINO_FIELD(model.script),
       .rival = "name"},
      {.section = "model",
       .key = "activation",
       .flag = "--activation",
       .value_name = "NAME",
       .help = "relu, tanh, ...; the model's own if left out",
       .field = SORDINO_FIELD(model.activation)},
      {.section = "model",
       .key = "width",
       .flag = "--width",
       .value_name = "N",
       .help = "Hidden width; the model's own if left out",
       .field = SORDINO_FIELD(model.width)},
      {.section = "model",
       .key = "pretrained",
       .flag = "--pretrained",
       .value_name = "FILE",
       .help = "Weights to start from, as safetensors",
       .field = SORDINO_FIELD(model.pretrained)},
      {.section = "model",
       .key = "freeze",
       .flag = "--freeze",
       .value_name = "A,B,...",
       .help = "Parameters that begin so are not trained",
       .field = SORDINO_FIELD(model.freeze)},
      {.section = "model",
       .key = "seed",
       .flag = "--seed",
       .value_name = "N",
       .help = "Of the initial weights, never of batches, augmentation or noise",
       .field = SORDINO_FIELD(model.seed)},
  };
}

std::vector<Setting> BudgetRows() {
  return {
      {.section = "privacy",
       .key = "epsilon",
       .flag = "--epsilon",
       .value_name = "X",
       .help = "What may be spent; the noise follows from it",
       .field = SORDINO_FIELD(privacy.epsilon),
       .rival = "noise"},
      {.section = "privacy",
       .key = "delta",
       .flag = "--delta",
       .value_name = "X",
       .help = "Failure probability; 1e-5 for data known by name",
       .field = SORDINO_FIELD(privacy.delta)},
      {.section = "privacy",
       .key = "noise",
       .flag = "--noise",
       .value_name = "X",
       .help = "The noise multiplier, instead of an epsilon; 0 clips without noise: NOT PRIVATE",
       .field = SORDINO_FIELD(privacy.noise),
       .rival = "epsilon"},
      {.section = "privacy",
       .key = "rate",
       .flag = "--rate",
       .value_name = "Q",
       .help = "Poisson sampling rate, or one over the batches of an allocation; batch / records "
               "if left "
               "out",
       .field = SORDINO_FIELD(privacy.rate)},
  };
}

std::vector<Setting> SamplerRows() {
  return internal::ComponentRows(
      "privacy", "sampling", "--sampling", Samplers(),
      [](TrainConfig& config) -> Choice& { return config.privacy.sampling; });
}

std::vector<Setting> ClippingRows() {
  return internal::ComponentRows(
      "privacy", "clipping", "--clipping", ClippingPolicies(),
      [](TrainConfig& config) -> Choice& { return config.privacy.clipping; });
}

std::vector<Setting> NormsRows() {
  return internal::ComponentRows(
      "training", "norms", "--norms", NormMethods(),
      [](TrainConfig& config) -> Choice& { return config.training.norms; });
}

std::vector<Setting> PrivacyRows() {
  return {
      {.section = "privacy",
       .key = "adjacency",
       .flag = "--adjacency",
       .value_name = "NAME",
       .help =
           "add-remove, replace-one or zero-out; replace-one for fixed batches, else add-remove",
       .field = SORDINO_FIELD(privacy.adjacency),
       .choices = kAdjacencyNames},
      {.section = "privacy",
       .key = "clip",
       .flag = "--clip",
       .value_name = "C",
       .help = "Bound on the gradient of an example",
       .field = SORDINO_FIELD(privacy.clip)},
      {.section = "privacy",
       .key = "noise-schedule",
       .flag = "--noise-schedule",
       .value_name = "S",
       .help = "Factor of the noise over the steps: " + Schedule::Grammar(),
       .field = SORDINO_FIELD(privacy.noise_schedule)},
      {.section = "privacy",
       .key = "clip-schedule",
       .flag = "--clip-schedule",
       .value_name = "S",
       .help = "Factor of the clipping norm",
       .field = SORDINO_FIELD(privacy.clip_schedule)},
      {.section = "privacy",
       .key = "rate-schedule",
       .flag = "--rate-schedule",
       .value_name = "S",
       .help = "Factor of the sampling rate",
       .field = SORDINO_FIELD(privacy.rate_schedule)},
      {.section = "privacy",
       .key = "kappa",
       .flag = "--kappa",
       .value_name = "X",
       .help = "Condition number of the problem, for the schedules 'optimal' and "
               "'optimal-momentum'",
       .field = SORDINO_FIELD(privacy.kappa),
       .rival = "decay"},
      {.section = "privacy",
       .key = "decay",
       .flag = "--decay",
       .value_name = "X",
       .help = "Instead of --kappa: the share of the excess risk that a step leaves",
       .field = SORDINO_FIELD(privacy.decay),
       .rival = "kappa"},
      {.section = "privacy",
       .key = "noise-factor",
       .flag = "--noise-factor",
       .value_name = "X",
       .help = "Of the noise schedule 'adaptive': the noise is multiplied by it; 0.7 if left out",
       .field = SORDINO_FIELD(privacy.noise_factor)},
      {.section = "privacy",
       .key = "validation-share",
       .flag = "--validation-share",
       .value_name = "X",
       .help = "Likewise: the share of the records that is held out of training and measured; 0.1 "
               "if left out",
       .field = SORDINO_FIELD(privacy.validation_share)},
      {.section = "privacy",
       .key = "validation-every",
       .flag = "--validation-every",
       .value_name = "N",
       .help = "Likewise: steps from one private measurement to the next; a tenth of all steps if "
               "left out",
       .field = SORDINO_FIELD(privacy.validation_every),
       .positive = true},
      {.section = "privacy",
       .key = "validation-budget",
       .flag = "--validation-budget",
       .value_name = "X",
       .help = "Likewise: the share of the budget that all measurements take; 0.1 if left out",
       .field = SORDINO_FIELD(privacy.validation_budget)},
      {.section = "privacy",
       .key = "validation-gain",
       .flag = "--validation-gain",
       .value_name = "X",
       .help =
           "Likewise: the noise is lowered where the share of right predictions exceeds the best "
           "one by less than this; 0.01 if left out",
       .field = SORDINO_FIELD(privacy.validation_gain)},
      {.section = "privacy",
       .key = "micro-batch",
       .flag = "--micro-batch",
       .value_name = "N",
       .help = "Examples whose gradients are averaged before they are clipped",
       .field = SORDINO_FIELD(privacy.micro_batch)},
  };
}

std::vector<Setting> NoiseRows() {
  return internal::ComponentRows(
      "privacy", "noise-kind", "--noise-kind", Noises(),
      [](TrainConfig& config) -> Choice& { return config.privacy.noise_kind; });
}

std::vector<Setting> LengthRows() {
  return {
      {.section = "training",
       .key = "batch",
       .flag = "--batch",
       .value_name = "N",
       .help = "Records in a batch, in expectation if it is Poisson or allocated; 512 if left out",
       .field = SORDINO_FIELD(training.batch)},
      {.section = "training",
       .key = "epochs",
       .flag = "--epochs",
       .value_name = "N",
       .help = "Passes over the data, in expectation; 40 if left out",
       .field = SORDINO_FIELD(training.epochs),
       .rival = "steps"},
      {.section = "training",
       .key = "steps",
       .flag = "--steps",
       .value_name = "N",
       .help = "Steps, instead of epochs",
       .field = SORDINO_FIELD(training.steps),
       .rival = "epochs"},
  };
}

std::vector<Setting> OptimizerRows() {
  return internal::ComponentRows(
      "training", "optimizer", "--optimizer", Optimizers(),
      [](TrainConfig& config) -> Choice& { return config.training.optimizer; });
}

std::vector<Setting> LearningRateRows() {
  return {
      {.section = "training",
       .key = "learning-rate",
       .flag = "--lr",
       .value_name = "X",
       .help = internal::LearningRateHelp(),
       .field = SORDINO_FIELD(training.learning_rate)},
      {.section = "training",
       .key = "schedule",
       .flag = "--lr-schedule",
       .value_name = "S",
       .help = "Of the learning rate: " + Schedule::Grammar(),
       .field = SORDINO_FIELD(training.schedule)},
  };
}

std::vector<Setting> TrainingRows() {
  return {
      {.section = "training",
       .key = "projection-radius",
       .flag = "--projection-radius",
       .value_name = "R",
       .help = "Weights are projected onto this ball after each step; 0 is off",
       .field = SORDINO_FIELD(training.projection_radius)},
      {.section = "training",
       .key = "average-decay",
       .flag = "--average-decay",
       .value_name = "X",
       .help = "Decay of a moving average of the weights, which is what is saved; 0 is off",
       .field = SORDINO_FIELD(training.average_decay)},
      {.section = "training",
       .key = "flip",
       .flag = "--flip",
       .value_name = "",
       .help = "Augmentation: mirrored at random",
       .field = SORDINO_FIELD(training.flip)},
      {.section = "training",
       .key = "shift",
       .flag = "--shift",
       .value_name = "N",
       .help = "Augmentation: shifted by up to N pixels",
       .field = SORDINO_FIELD(training.shift)},
      {.section = "training",
       .key = "copies",
       .flag = "--copies",
       .value_name = "K",
       .help = "Augmented copies of an example, averaged before it is clipped",
       .field = SORDINO_FIELD(training.copies)},
      {.section = "training",
       .key = "class-weights",
       .flag = "--class-weights",
       .value_name = "X,...",
       .help = "Factors of the losses of the classes, declared; not counted in the data",
       .field = SORDINO_FIELD(training.class_weights)},
      {.section = "training",
       .key = "physical-batch",
       .flag = "--physical-batch",
       .value_name = "N",
       .help = "Examples in memory at once; 0 finds out",
       .field = SORDINO_FIELD(training.physical_batch)},
      {.section = "training",
       .key = "fallback",
       .flag = "--fallback",
       .value_name = "",
       .help = "Layers without a rule run example by example instead of being refused",
       .field = SORDINO_FIELD(training.fallback)},
      {.section = "training",
       .key = "device",
       .flag = "--device",
       .value_name = "NAME",
       .help = "cpu, cuda or cuda:N",
       .field = SORDINO_FIELD(training.device)},
      {.section = "training",
       .key = "precision",
       .flag = "--precision",
       .value_name = "NAME",
       .help = "Products: float32; tf32, which rounds factors to 11 bits on a GPU; or bfloat16",
       .field = SORDINO_FIELD(training.precision),
       .choices = kPrecisionNames},
      {.section = "training",
       .key = "graph",
       .flag = "--graph",
       .value_name = "NAME",
       .help = "Steps on a GPU are recorded and replayed: off, auto (where they can be) or on",
       .field = SORDINO_FIELD(training.graph),
       .choices = kGraphUseNames},
      {.section = "training",
       .key = "threads",
       .flag = "--threads",
       .value_name = "N",
       .help = "Processor threads; 0 is libtorch's choice",
       .field = SORDINO_FIELD(training.threads)},
  };
}

std::vector<Setting> RunRows() {
  return {
      {.section = "run",
       .key = "out",
       .flag = "--out",
       .value_name = "FOLDER",
       .help = "The run folder; runs/<time>-<data>-<model> if left out",
       .field = SORDINO_FIELD(run.out),
       .of_this_run = true},
      {.section = "run",
       .key = "evaluate-every",
       .flag = "--evaluate-every",
       .value_name = "N",
       .help = "Steps between evaluations on the test set; 0 is once an epoch",
       .field = SORDINO_FIELD(run.evaluate_every)},
      {.section = "run",
       .key = "ledger",
       .flag = "--ledger",
       .value_name = "FILE",
       .help = "The ledger of the data ('sordino ledger init'), which every step is charged to "
               "before its "
               "noise is drawn; one in the run folder if left out",
       .field = SORDINO_FIELD(run.ledger)},
      {.section = "run",
       .key = "whole",
       .flag = "--whole",
       .value_name = "",
       .help = "Let the run take all of the ledger's budget where nothing else admits its plan",
       .field = SORDINO_FIELD(run.whole)},
      {.section = "run",
       .key = "checkpoint-every",
       .flag = "--checkpoint-every",
       .value_name = "N",
       .help = "Steps between checkpoints; 0 is about once a minute",
       .field = SORDINO_FIELD(run.checkpoint_every)},
      {.section = "run",
       .key = "canaries",
       .flag = "--canaries",
       .value_name = "N",
       .help = "Made-up records to audit the run with, each in the data if its coin says so",
       .field = SORDINO_FIELD(run.canaries)},
      {.section = "run",
       .key = "canary-kind",
       .flag = "--canary-kind",
       .value_name = "NAME",
       .help = "What they are: " + OneOf(kCanaryKinds) +
               "; gradients of one coordinate, records of the test set with another class, or "
               "noise for inputs (dirac)",
       .field = SORDINO_FIELD(run.canary_kind)},
      {.section = "run",
       .key = "non-private",
       .flag = "--non-private",
       .value_name = "",
       .help = "NOT PRIVATE: the same loop without clipping and noise, to compare with",
       .field = SORDINO_FIELD(run.non_private)},
      {.section = "run",
       .key = "insecure-seed",
       .flag = "--insecure-seed",
       .value_name = "N",
       .help = "NOT PRIVATE: predictable batches and noise, for tests",
       .field = SORDINO_FIELD(run.insecure_seed)},
      {.section = "run",
       .key = "curator",
       .flag = "--curator",
       .value_name = "TEXT",
       .help = "Who keeps the data and answers for the model, for the statement and record.json",
       .field = SORDINO_FIELD(run.purpose.curator)},
      {.section = "run",
       .key = "use",
       .flag = "--use",
       .value_name = "TEXT",
       .help = "What the model is for, likewise",
       .field = SORDINO_FIELD(run.purpose.use)},
  };
}

#undef SORDINO_FIELD

std::vector<Setting> AllRows() {
  std::vector<Setting> all;
  for (const auto rows :
       {DataRows, ModelRows, BudgetRows, SamplerRows, ClippingRows, PrivacyRows, NoiseRows,
        LengthRows, OptimizerRows, LearningRateRows, TrainingRows, NormsRows, RunRows}) {
    for (Setting& row : rows()) all.push_back(std::move(row));
  }
  return all;
}

}  // namespace

std::span<const Setting> TrainSettings() {
  static const std::vector<Setting> rows = AllRows();
  return rows;
}

std::string DefaultText(const Setting& setting) {
  TrainConfig defaults;
  const SettingField field = setting.field(defaults);
  if (const auto* const text = std::get_if<std::string*>(&field)) return **text;
  if (const auto* const real = std::get_if<double*>(&field)) return fmt::format("{}", **real);
  if (const auto* const whole = std::get_if<std::int64_t*>(&field)) {
    return **whole == 0 ? "" : fmt::format("{}", **whole);
  }
  return "";
}

std::string_view SectionTitle(std::string_view section) {
  if (section == "data") return "Data";
  if (section == "model") return "Model";
  if (section == "privacy") return "Privacy";
  if (section == "training") return "Training";
  return "Run";
}

}  // namespace sordino
