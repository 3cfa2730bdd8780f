#include "sordino/training/train_settings.h"

#include <fmt/format.h>

#include <array>

#include "sordino/base/noise_kind.h"

namespace sordino {
namespace {

constexpr std::array<std::string_view, 7> kFormats = {"idx", "cifar",  "csv", "tsv",
                                                      "npy", "images", "text"};
constexpr std::array<std::string_view, 4> kSamplings = {"poisson", "fixed", "full", "allocation"};
constexpr std::array<std::string_view, 3> kAdjacencies = {"add-remove", "replace-one", "zero-out"};
constexpr std::array<std::string_view, 5> kClippings = {"flat", "layerwise", "global", "automatic",
                                                        "adaptive"};
constexpr std::array<std::string_view, 4> kOptimizers = {"sgd", "adagrad", "adam", "adamw"};
constexpr std::array<std::string_view, 4> kNorms = {"automatic", "materialise", "ghost", "loop"};

// A row's field.
#define SORDINO_FIELD(member) [](TrainConfig& config) -> SettingField { return &config.member; }

constexpr Setting kSettings[] = {
    {"data", "source", "--data", "NAME|FILE", "A dataset by name, a file or a folder",
     SORDINO_FIELD(data.source)},
    {"data", "labels", "--labels", "FILE", "Labels, where they are in a file of their own",
     SORDINO_FIELD(data.labels)},
    {"data", "test", "--test", "FILE", "The test set; it is taken to be public",
     SORDINO_FIELD(data.test)},
    {"data", "test-labels", "--test-labels", "FILE", "Labels of the test set",
     SORDINO_FIELD(data.test_labels)},
    {"data", "format", "--format", "NAME", "idx, cifar, csv, tsv, npy, images or text",
     SORDINO_FIELD(data.format), kFormats},
    {"data", "shape", "--shape", "N,...", "Shape of one example, such as 1,28,28",
     SORDINO_FIELD(data.shape)},
    {"data", "classes", "--classes", "N", "Number of classes", SORDINO_FIELD(data.classes)},
    {"data", "class-names", "--class-names", "A,B,...", "Names of the classes, in order",
     SORDINO_FIELD(data.class_names)},
    {"data", "records", "--records", "N",
     "Number of training records, where it may be known to everybody", SORDINO_FIELD(data.records)},
    {"data", "mean", "--mean", "X,...", "Normalisation by channel or column, declared",
     SORDINO_FIELD(data.mean)},
    {"data", "deviation", "--deviation", "X,...", "Likewise: what is divided by",
     SORDINO_FIELD(data.deviation)},
    {"data",
     "columns",
     "--columns",
     "COLUMN",
     "Of a table: age:numeric:0:120, city:categorical:A|B, sick:label:no|yes, id:user",
     SORDINO_FIELD(data.columns.declared),
     {},
     true},
    {"data", "rows-per-user", "--rows-per-user", "N", "Rows of one user that count at most",
     SORDINO_FIELD(data.rows_per_user)},
    {"data", "vocabulary", "--vocabulary", "FILE", "Text: the words, one a line",
     SORDINO_FIELD(data.vocabulary)},
    {"data", "length", "--length", "N", "Text: tokens of an example", SORDINO_FIELD(data.length)},

    {"model",
     "name",
     "--model",
     "NAME",
     "A model by name",
     SORDINO_FIELD(model.name),
     {},
     false,
     false,
     "script"},
    {"model",
     "script",
     "--script",
     "FILE",
     "A TorchScript file instead; it holds code, which runs",
     SORDINO_FIELD(model.script),
     {},
     false,
     false,
     "name"},
    {"model", "activation", "--activation", "NAME", "relu, tanh, ...; the model's own if left out",
     SORDINO_FIELD(model.activation)},
    {"model", "width", "--width", "N", "Hidden width; the model's own if left out",
     SORDINO_FIELD(model.width)},
    {"model", "pretrained", "--pretrained", "FILE", "Weights to start from, as safetensors",
     SORDINO_FIELD(model.pretrained)},
    {"model", "freeze", "--freeze", "A,B,...", "Parameters that begin so are not trained",
     SORDINO_FIELD(model.freeze)},
    {"model", "seed", "--seed", "N",
     "Of the initial weights, never of batches, augmentation or noise", SORDINO_FIELD(model.seed)},

    {"privacy",
     "epsilon",
     "--epsilon",
     "X",
     "What may be spent; the noise follows from it",
     SORDINO_FIELD(privacy.epsilon),
     {},
     false,
     false,
     "noise"},
    {"privacy", "delta", "--delta", "X", "Failure probability; 1e-5 for data known by name",
     SORDINO_FIELD(privacy.delta)},
    {"privacy",
     "noise",
     "--noise",
     "X",
     "The noise multiplier, instead of an epsilon",
     SORDINO_FIELD(privacy.noise),
     {},
     false,
     false,
     "epsilon"},
    {"privacy", "rate", "--rate", "Q",
     "Poisson sampling rate, or one over the batches of an allocation; batch / records if left "
     "out",
     SORDINO_FIELD(privacy.rate)},
    {"privacy", "sampling", "--sampling", "NAME",
     "poisson, fixed, full or allocation: each record in one batch of every epoch",
     SORDINO_FIELD(privacy.sampling), kSamplings},
    {"privacy", "adjacency", "--adjacency", "NAME",
     "add-remove, replace-one or zero-out; replace-one for fixed batches, else add-remove",
     SORDINO_FIELD(privacy.adjacency), kAdjacencies},
    {"privacy", "clipping", "--clipping", "NAME", "flat, layerwise, global, automatic or adaptive",
     SORDINO_FIELD(privacy.clipping), kClippings},
    {"privacy", "clip", "--clip", "C", "Bound on the gradient of an example",
     SORDINO_FIELD(privacy.clip)},
    {"privacy", "clip-threshold", "--clip-threshold", "X",
     "Global clipping: larger gradients are dropped", SORDINO_FIELD(privacy.clip_threshold)},
    {"privacy", "noise-kind", "--noise-kind", "NAME", "gaussian or laplace",
     SORDINO_FIELD(privacy.noise_kind), kNoiseKindNames},
    {"privacy", "noise-schedule", "--noise-schedule", "S", "Factor of the noise over the steps",
     SORDINO_FIELD(privacy.noise_schedule)},
    {"privacy", "clip-schedule", "--clip-schedule", "S", "Factor of the clipping norm",
     SORDINO_FIELD(privacy.clip_schedule)},
    {"privacy", "rate-schedule", "--rate-schedule", "S", "Factor of the sampling rate",
     SORDINO_FIELD(privacy.rate_schedule)},
    {"privacy", "micro-batch", "--micro-batch", "N",
     "Examples whose gradients are averaged before they are clipped",
     SORDINO_FIELD(privacy.micro_batch)},
    {"privacy", "quantile", "--quantile", "Q", "Adaptive clipping: the norm that is followed",
     SORDINO_FIELD(privacy.target_quantile)},
    {"privacy", "clip-rate", "--clip-rate", "X", "Adaptive clipping: how fast it follows",
     SORDINO_FIELD(privacy.clip_learning_rate)},
    {"privacy", "count-noise", "--count-noise", "X",
     "Adaptive clipping: noise on its count, in examples; 0 is batch / 20",
     SORDINO_FIELD(privacy.count_noise)},

    {"training", "batch", "--batch", "N",
     "Records in a batch, in expectation if it is Poisson or allocated; 512 if left out",
     SORDINO_FIELD(training.batch)},
    {"training",
     "epochs",
     "--epochs",
     "N",
     "Passes over the data, in expectation; 40 if left out",
     SORDINO_FIELD(training.epochs),
     {},
     false,
     false,
     "steps"},
    {"training",
     "steps",
     "--steps",
     "N",
     "Steps, instead of epochs",
     SORDINO_FIELD(training.steps),
     {},
     false,
     false,
     "epochs"},
    {"training", "optimizer", "--optimizer", "NAME", "sgd, adagrad, adam or adamw",
     SORDINO_FIELD(training.optimizer), kOptimizers},
    {"training", "learning-rate", "--lr", "X", "0.5 for sgd, 0.01 for adagrad, 0.001 for adam(w)",
     SORDINO_FIELD(training.learning_rate)},
    {"training", "schedule", "--lr-schedule", "S",
     "Of the learning rate: constant, linear:E, cosine:E, exponential:E, step:N:F, warmup:N,...",
     SORDINO_FIELD(training.schedule)},
    {"training", "momentum", "--momentum", "X", "Of sgd; 0.9 if left out",
     SORDINO_FIELD(training.momentum)},
    {"training", "nesterov", "--nesterov", "", "Nesterov's momentum",
     SORDINO_FIELD(training.nesterov)},
    {"training", "weight-decay", "--weight-decay", "X", "L2 penalty; decoupled for adamw",
     SORDINO_FIELD(training.weight_decay)},
    {"training", "beta1", "--beta1", "X", "Of adam and adamw", SORDINO_FIELD(training.beta1)},
    {"training", "beta2", "--beta2", "X", "Of adam and adamw", SORDINO_FIELD(training.beta2)},
    {"training", "projection-radius", "--projection-radius", "R",
     "Weights are projected onto this ball after each step; 0 is off",
     SORDINO_FIELD(training.projection_radius)},
    {"training", "average-decay", "--average-decay", "X",
     "Decay of a moving average of the weights, which is what is saved; 0 is off",
     SORDINO_FIELD(training.average_decay)},
    {"training", "flip", "--flip", "", "Augmentation: mirrored at random",
     SORDINO_FIELD(training.flip)},
    {"training", "shift", "--shift", "N", "Augmentation: shifted by up to N pixels",
     SORDINO_FIELD(training.shift)},
    {"training", "copies", "--copies", "K",
     "Augmented copies of an example, averaged before it is clipped",
     SORDINO_FIELD(training.copies)},
    {"training", "norms", "--norms", "NAME", "automatic, materialise, ghost or loop",
     SORDINO_FIELD(training.norms), kNorms},
    {"training", "physical-batch", "--physical-batch", "N",
     "Examples in memory at once; 0 finds out", SORDINO_FIELD(training.physical_batch)},
    {"training", "fallback", "--fallback", "",
     "Layers without a rule run example by example instead of being refused",
     SORDINO_FIELD(training.fallback)},
    {"training", "device", "--device", "NAME", "cpu, cuda or cuda:N",
     SORDINO_FIELD(training.device)},
    {"training", "threads", "--threads", "N", "Processor threads; 0 is libtorch's choice",
     SORDINO_FIELD(training.threads)},

    {"run",
     "out",
     "--out",
     "FOLDER",
     "The run folder; runs/<time>-<data>-<model> if left out",
     SORDINO_FIELD(run.out),
     {},
     false,
     true},
    {"run", "evaluate-every", "--evaluate-every", "N",
     "Steps between looks at the test set; 0 is once an epoch", SORDINO_FIELD(run.evaluate_every)},
    {"run", "ledger", "--ledger", "FILE",
     "The ledger of the data ('sordino ledger init'), which every step is charged to before its "
     "noise is drawn; one in the run folder if left out",
     SORDINO_FIELD(run.ledger)},
    {"run", "checkpoint-every", "--checkpoint-every", "N",
     "Steps between checkpoints; 0 is about once a minute", SORDINO_FIELD(run.checkpoint_every)},
    {"run", "non-private", "--non-private", "",
     "NOT PRIVATE: the same loop without clipping and noise, to compare with",
     SORDINO_FIELD(run.non_private)},
    {"run", "insecure-seed", "--insecure-seed", "N",
     "NOT PRIVATE: predictable batches and noise, for tests", SORDINO_FIELD(run.insecure_seed)},
};

#undef SORDINO_FIELD

}  // namespace

std::span<const Setting> TrainSettings() { return kSettings; }

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
