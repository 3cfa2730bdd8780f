#include "sordino/torch_cli/kernel_command.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/output_file.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/torch_program.h"
#include "sordino/clipping/clipped_kernel.h"
#include "sordino/data/batch_loader.h"
#include "sordino/data/catalog.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/clipping_groups.h"
#include "sordino/gradients/tangent_kernel.h"
#include "sordino/report/kernel_picture.h"
#include "sordino/runs/run_folder.h"
#include "sordino/runs/train_config.h"
#include "sordino/torch_cli/public_data.h"
#include "sordino/torch_cli/reported_errors.h"
#include "sordino/torch_cli/train_options.h"
#include "sordino/training/classification.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

// Five matrices of this many rows and their eigenvalues are what a machine of 8 GB takes.
constexpr std::int64_t kMaxKernelRows = 5120;
constexpr const char* kAllClippings = "all";
constexpr const char* kPublicNote =
    "For public data only: a kernel is computed from records without noise.";

struct KernelFlags {
  std::string source;
  TrainFlags settings;
  std::string examples = "64";
  std::string clipping = kAllClippings;
  std::string step = "1e-4";
  std::optional<std::string> picture;
  bool public_data = false;
  bool force = false;
  bool json = false;
  bool show_private = false;
};

struct LayerAnswer {
  std::string name;
  double trace = 0;
};

struct ClippingAnswer {
  ClippedKernel kernel;
  double clipped_share = 0;  // of the factors, those below 1
  double predicted = 0;
  double measured = 0;
};

struct KernelAnswer {
  std::string data;
  std::string model;
  std::int64_t examples = 0;
  std::int64_t outputs = 0;
  double clip = 0;
  double step = 0;
  std::vector<LayerAnswer> layers;
  std::vector<ClippingAnswer> clippings;
};

Batch BatchOf(const TrainConfig& config, const Model& model, std::int64_t examples) {
  const DataSplits data = OpenData(config.data);
  if (examples > data.train.size()) {
    throw Error(fmt::format("--examples is {} and the data have {} records; give fewer.", examples,
                            data.train.size()));
  }
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> batch = LoadRange(data.train, 0, examples, at::kCPU);
  if (model.HasFeatures()) batch[0] = model.Features(batch[0]);
  // Float64, so that what is told about signs is not rounding.
  if (batch[0].is_floating_point()) batch[0] = batch[0].to(at::kDouble);
  return batch;
}

void CheckRows(std::int64_t examples, std::int64_t classes) {
  if (classes < 2) {
    throw Error("the data have a number to predict; a kernel is of classes, so give such data.");
  }
  const std::int64_t most = kMaxKernelRows / classes;
  if (examples < 2 || examples > most) {
    throw Error(fmt::format(
        "--examples is {}; give from 2 to {}: the kernel of {} outputs has {} rows for each "
        "example, and may have {}.",
        examples, most, classes, classes, kMaxKernelRows));
  }
}

std::vector<std::string_view> ClippingsOf(const KernelFlags& flags) {
  const auto known = KernelClippings();
  if (flags.clipping == kAllClippings) return {known.begin(), known.end()};
  std::vector<std::string_view> choices = {kAllClippings};
  choices.insert(choices.end(), known.begin(), known.end());
  return {choices[IndexOfName("--clipping", flags.clipping, choices)]};
}

// The model with float64 parameters, in evaluation mode.
std::unique_ptr<Model> WideModel(const TrainConfig& config, const DatasetDeclaration& declaration) {
  std::unique_ptr<Model> model = MakeConfiguredModel(config, ModelShapeOf(declaration), at::kCPU);
  model->Train(false);
  for (auto& [name, value] : model->Parameters()) {
    at::Tensor parameter = value;
    parameter.set_data(value.detach().to(at::kDouble));
  }
  return model;
}

ClippingAnswer AnswerOf(std::string_view name, const std::vector<at::Tensor>& kernels,
                        const at::Tensor& loss_gradients, const KernelAnswer& answer) {
  ClippingAnswer clipping;
  clipping.kernel = ClipKernel(name, kernels, loss_gradients, ClipNorm(answer.clip));
  clipping.clipped_share = clipping.kernel.factors.lt(1).to(at::kDouble).mean().item<double>();
  clipping.predicted = answer.step * clipping.kernel.decrease_rate;
  return clipping;
}

KernelAnswer SolveKernel(const KernelFlags& flags) {
  TrainConfig config;
  SetFromFlags(config, WithSource(flags.settings.Given(), flags.source));
  const std::vector<std::string_view> clippings = ClippingsOf(flags);
  KernelAnswer answer;
  answer.examples = static_cast<std::int64_t>(ParseWhole("--examples", flags.examples));
  answer.step = ParseReal("--step", flags.step);
  answer.clip = config.privacy.clip;
  CheckRange("--step", answer.step, 0, true, 1e9, false);
  CheckRange("--clip", answer.clip, 0, true, 1e9, false);
  if (config.data.source.empty()) throw Error("there are no data; give --data, such as digits.");
  if (config.model.name.empty() == config.model.script.empty()) {
    throw Error("give one model: --model with a name, such as cnn-mnist, or --script.");
  }
  CheckPublicData(config.data, flags.public_data, "a tangent kernel is");
  const DatasetDeclaration declaration = Declare(config.data);
  CheckRows(answer.examples, declaration.classes);
  const std::unique_ptr<Model> model = WideModel(config, declaration);
  const Batch batch = BatchOf(config, *model, answer.examples);
  answer.data = declaration.name;
  answer.model = config.ModelName();

  const std::vector<NamedParameter> parameters = TrainedParameters(ParametersOf(*model));
  const TangentKernel kernel(
      parameters, [&](const Batch& b) { return model->Forward(b[0]); }, batch);
  answer.outputs = kernel.outputs().size(0);
  std::vector<at::Tensor> kernels;
  for (std::size_t r = 0; r < kernel.layers().size(); ++r) {
    kernels.push_back(kernel.Layer(r));
    answer.layers.push_back({kernel.layers()[r], kernels.back().trace().item<double>()});
  }
  const at::Tensor wanted = at::one_hot(batch[1], answer.outputs).to(at::kDouble).t();
  const at::Tensor loss_gradients = at::softmax(kernel.outputs(), 0) - wanted;
  const LossFunction loss = [&](const Batch& b) {
    return at::cross_entropy_loss(model->Forward(b[0]), b[1], {}, at::Reduction::None);
  };
  const auto layer_of = ClippingGroups::ByLayer(parameters).Assign(parameters);
  for (const std::string_view name : clippings) {
    ClippingAnswer clipping = AnswerOf(name, kernels, loss_gradients, answer);
    clipping.measured =
        MeasuredDecrease(parameters, layer_of, loss, batch, clipping.kernel.factors, answer.step);
    answer.clippings.push_back(std::move(clipping));
  }
  return answer;
}

void PrintKernelJson(const KernelAnswer& answer) {
  Json json = NewReport();
  json["public_data_only"] = true;
  json["data"] = answer.data;
  json["model"] = answer.model;
  json["examples"] = answer.examples;
  json["outputs"] = answer.outputs;
  json["clip"] = answer.clip;
  json["step"] = answer.step;
  json["tolerance"] = ClippedKernel::kTolerance;
  for (const LayerAnswer& layer : answer.layers) {
    json["layers"].push_back({{"layer", layer.name}, {"trace", layer.trace}});
  }
  for (const ClippingAnswer& clipping : answer.clippings) {
    const ClippedKernel& kernel = clipping.kernel;
    json["clippings"].push_back({{"clipping", kernel.clipping},
                                 {"symmetric", kernel.IsSymmetric()},
                                 {"asymmetry", kernel.asymmetry},
                                 {"positive_form", kernel.HasPositiveForm()},
                                 {"least_form", kernel.least_form},
                                 {"largest_form", kernel.largest_form},
                                 {"positive_eigenvalues", kernel.HasPositiveEigenvalues()},
                                 {"least_real", kernel.least_real},
                                 {"clipped_share", clipping.clipped_share},
                                 {"predicted_decrease", clipping.predicted},
                                 {"measured_decrease", clipping.measured}});
  }
  PrintReport(json);
}

// The clipping of `sordino train` that is a clipping of a kernel.
struct TrainedClipping {
  std::string_view kernel;
  std::string_view flags;
};
constexpr std::array<TrainedClipping, 3> kTrainedClippings = {
    {{"local-flat", "--clipping flat"},
     {"local-layerwise", "--clipping layerwise"},
     {"global-flat", "--clipping global"}}};

// What to do with the answer: the clipping whose step lowers the loss most.
std::string AfterKernel(const KernelAnswer& answer) {
  const ClippingAnswer* best = nullptr;
  std::string_view flags;
  for (const ClippingAnswer& clipping : answer.clippings) {
    for (const TrainedClipping& trained : kTrainedClippings) {
      if (clipping.kernel.clipping != trained.kernel) continue;
      if (best != nullptr && best->measured >= clipping.measured) continue;
      best = &clipping;
      flags = trained.flags;
    }
  }
  if (best == nullptr) return "Next: compare the ways to clip with --clipping all.";
  if (!(best->measured > 0)) {
    return "Next: no such step lowers the loss; try another --clip or a smaller --step.";
  }
  return fmt::format(
      "Next: a step with {} lowers the loss most here; 'sordino train {} --clip {:g}' clips so.",
      best->kernel.clipping, flags, answer.clip);
}

void PrintKernelText(const KernelAnswer& answer) {
  std::string text = fmt::format("{}\n\n{} on {} records of {}, {} outputs: a kernel of {} rows\n",
                                 kPublicNote, answer.model, answer.examples, answer.data,
                                 answer.outputs, answer.examples * answer.outputs);
  double whole = 0;
  for (const LayerAnswer& layer : answer.layers) whole += layer.trace;
  std::vector<std::vector<std::string>> layers = {{"layer", "trace", "share"}};
  for (const LayerAnswer& layer : answer.layers) {
    layers.push_back({layer.name.empty() ? "(none)" : layer.name,
                      fmt::format("{:.6g}", layer.trace),
                      fmt::format("{:.1f}%", 100 * layer.trace / whole)});
  }
  text += AlignedTable(layers, 3);
  std::vector<std::vector<std::string>> rows = {
      {"clipping", "symmetric", "least form", "least real", "clipped", "predicted", "measured"}};
  const auto number = [](double value) { return fmt::format("{:.4g}", value); };
  for (const ClippingAnswer& clipping : answer.clippings) {
    const ClippedKernel& kernel = clipping.kernel;
    rows.push_back({std::string(kernel.clipping), kernel.IsSymmetric() ? "yes" : "no",
                    number(kernel.least_form), number(kernel.least_real),
                    fmt::format("{:.0f}%", 100 * clipping.clipped_share),
                    number(clipping.predicted), number(clipping.measured)});
  }
  text += fmt::format(
      "\nclipping norm {:g}, step {:g}: decrease of the mean loss as predicted and as measured\n{}",
      answer.clip, answer.step, AlignedTable(rows, 7));
  text += fmt::format(
      "\nLeast form is the least eigenvalue of the symmetric part, least real the least real part "
      "of the eigenvalues; {:g} of the largest is rounding.\n",
      ClippedKernel::kTolerance);
  std::cout << text << '\n' << AfterKernel(answer) << '\n';
}

std::string PictureOf(const KernelAnswer& answer) {
  std::vector<KernelPictureRow> rows;
  for (const ClippingAnswer& clipping : answer.clippings) {
    const ClippedKernel& kernel = clipping.kernel;
    rows.push_back({.clipping = std::string(kernel.clipping),
                    .symmetric = kernel.IsSymmetric(),
                    .positive_form = kernel.HasPositiveForm(),
                    .positive_eigenvalues = kernel.HasPositiveEigenvalues(),
                    .least_form = kernel.least_form / kernel.largest_form,
                    .least_real = kernel.least_real / kernel.largest_form,
                    .predicted = clipping.predicted,
                    .measured = clipping.measured});
  }
  return KernelSvg(rows, fmt::format("{}, {} records of {}, clipping norm {:g}", answer.model,
                                     answer.examples, answer.data, answer.clip));
}

void RunKernel(const KernelFlags& flags) {
  std::optional<OutputFile> picture;
  if (flags.picture) {
    TrainConfig config;
    SetFromFlags(config, WithSource(flags.settings.Given(), flags.source));
    std::vector<std::filesystem::path> inputs;
    if (!config.data.source.empty()) {
      for (const DataFile& file : FilesOf(config.data)) inputs.emplace_back(file.path);
    }
    picture.emplace(OutputRequest{"--picture", *flags.picture, kSvgPicture, flags.force}, inputs);
  }
  const KernelAnswer answer = SolveKernel(flags);
  if (picture) picture->Write(PictureOf(answer));
  if (flags.json) {
    PrintKernelJson(answer);
  } else {
    PrintKernelText(answer);
  }
}

}  // namespace

void AddKernelCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand("kernel", TorchCommandSummary("kernel"));
  const auto flags = std::make_shared<KernelFlags>();
  KernelFlags& f = *flags;
  command
      ->add_option("source", f.source,
                   fmt::format("{}; or a file or folder", fmt::join(DatasetNames(), ", ")))
      ->type_name("NAME|FILE");
  f.settings.AddTo(*command, [](const Setting& setting) {
    return setting.section == "data" || setting.section == "model" || setting.flag == "--clip";
  });
  command->add_option("--examples", f.examples, "How many records, from the first (64)")
      ->type_name("N");
  command
      ->add_option("--clipping", f.clipping,
                   fmt::format("all, {} (all)", fmt::join(KernelClippings(), ", ")))
      ->type_name("NAME");
  command->add_option("--step", f.step, "Length of the step that is tried (1e-4)")->type_name("X");
  command->add_option("--picture", f.picture, "Draw the table to this SVG file")->type_name("FILE");
  command->add_flag("--public-data", f.public_data,
                    "The data are public: needed for files, because a kernel has no noise");
  AddForceFlag(*command, f.force);
  command->add_flag("--json", f.json, "One JSON object on standard output");
  AddShowPrivate(*command, f.show_private);
  command->footer(
      "Example:\n  sordino kernel digits --model cnn-mnist --examples 64 --clipping all");
  command->callback([flags] { ReportErrors(flags->show_private, [&] { RunKernel(*flags); }); });
}

}  // namespace sordino
