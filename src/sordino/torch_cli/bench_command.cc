#include "sordino/torch_cli/bench_command.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/progress.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/torch_program.h"
#include "sordino/device/precision.h"
#include "sordino/device/recorded_graph.h"
#include "sordino/device/threads.h"
#include "sordino/models/benchmark_models.h"
#include "sordino/runs/train_config.h"
#include "sordino/torch_cli/peer_steps.h"
#include "sordino/torch_cli/step_comparison.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<std::string_view, NormMethod>, 3> kNorms = {{
    {"automatic", NormMethod::kAutomatic},
    {"materialise", NormMethod::kMaterialise},
    {"ghost", NormMethod::kGhost},
}};

// The flags as they were typed.
struct StepOptions {
  std::vector<std::string> models;   // empty: all
  std::vector<std::string> batches;  // empty: that of each model
  std::string device = "cpu";
  std::string norms = "automatic";
  std::optional<std::string> threads;
  std::optional<std::string> seconds;
  std::string precision = "tf32";
  std::string graph = "auto";
  bool whole = false;
  std::int64_t bands = 1;
  std::optional<std::string> peers;
  bool json = false;
};

struct StepQuestion {
  std::vector<std::string> models;
  std::vector<std::int64_t> batches;  // empty: that of each model
  at::Device device = at::kCPU;
  ComparisonOptions comparison;
  std::string python;  // of other libraries; empty: none
};

struct StepAnswer {
  std::string model;
  std::int64_t batch;
  StepComparison comparison;
  std::string problem;  // of a model that could not be measured; else empty
  std::vector<PeerStep> peers;
};

template <typename Value>
void AddOnce(std::vector<Value>& values, const Value& value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

std::vector<std::string> ParseModels(const std::vector<std::string>& given) {
  const std::span<const std::string_view> known = BenchmarkModelNames();
  if (given.empty()) return {known.begin(), known.end()};
  std::vector<std::string> models;
  for (const std::string& name : given) {
    IndexOfName("a name in --models", name, known);
    AddOnce(models, name);
  }
  return models;
}

std::vector<std::int64_t> ParseBatches(const std::vector<std::string>& given) {
  constexpr std::uint64_t kLargest = 1 << 16;
  std::vector<std::int64_t> batches;
  for (const std::string& text : given) {
    const std::uint64_t examples = ParseWhole("--batch", text);
    if (examples < 1 || examples > kLargest) {
      throw Error(
          fmt::format("--batch is {}; give a number of examples from 1 to {}.", text, kLargest));
    }
    AddOnce(batches, static_cast<std::int64_t>(examples));
  }
  return batches;
}

NormMethod ParseNorms(const std::string& text) {
  std::array<std::string_view, kNorms.size()> names;
  std::transform(kNorms.begin(), kNorms.end(), names.begin(),
                 [](const auto& norm) { return norm.first; });
  return kNorms[IndexOfName("--norms", text, names)].second;
}

double ParseSeconds(const std::string& text) {
  const double seconds = ParseReal("--seconds", text);
  if (seconds <= 0 || seconds > 86400) {
    throw Error(
        fmt::format("--seconds is {}; give a time for each model above 0, such as 3.", text));
  }
  return seconds;
}

int ParseThreads(const std::string& text) {
  constexpr std::uint64_t kMost = 4096;
  const std::uint64_t threads = ParseWhole("--threads", text);
  if (threads < 1 || threads > kMost) {
    throw Error(
        fmt::format("--threads is {}; give a number from 1 to {}, such as the {} cores of "
                    "this machine.",
                    text, kMost, std::thread::hardware_concurrency()));
  }
  return static_cast<int>(threads);
}

StepQuestion MakeQuestion(const StepOptions& options) {
  StepQuestion question;
  question.models = ParseModels(options.models);
  question.batches = ParseBatches(options.batches);
  question.comparison.norms = ParseNorms(options.norms);
  if (options.seconds) question.comparison.seconds = ParseSeconds(*options.seconds);
  if (options.threads) UseThreads(ParseThreads(*options.threads));
  question.device = ParseDevice(options.device);
  UsePrecision(ParsePrecision("--precision", options.precision));
  question.comparison.graph = ParseGraphUse("--graph", options.graph);
  if (const std::string problem = RecordingProblem(question.device);
      question.comparison.graph == GraphUse::kOn && !problem.empty()) {
    throw Error("--graph is on, and steps cannot be recorded: " + problem);
  }
  question.comparison.whole = options.whole;
  CheckRange("--bands", static_cast<double>(options.bands), 1, false,
             static_cast<double>(kMaxBenchmarkBands), false);
  if (options.bands > 1 && !options.whole) {
    throw Error("--bands is about noise, which only whole steps have; add --whole.");
  }
  question.comparison.bands = options.bands;
  if (options.peers) {
    if (options.peers->empty()) {
      throw Error("--peers is empty; name a Python interpreter, such as python3.");
    }
    CheckPeers(*options.peers);
    question.python = *options.peers;
  }
  return question;
}

// Errors of libtorch come with a trace.
std::string FirstLine(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

std::vector<StepAnswer> Measure(const StepQuestion& question) {
  Progress progress("bench step",
                    question.models.size() * std::max<std::size_t>(1, question.batches.size()));
  std::vector<StepAnswer> answers;
  for (const std::string& name : question.models) {
    const BenchmarkModel model = MakeBenchmarkModel(name, question.device);
    const std::vector<std::int64_t> own = {model.batch};
    for (const std::int64_t batch : question.batches.empty() ? own : question.batches) {
      progress.Update(answers.size(), fmt::format("{}, batch {}", name, batch));
      answers.push_back(
          {.model = name, .batch = batch, .comparison = {}, .problem = {}, .peers = {}});
      try {
        answers.back().comparison =
            CompareSteps(model, batch, question.device, question.comparison);
      } catch (const std::exception& error) {
        answers.back().problem = FirstLine(error.what());
      }
      if (question.python.empty()) continue;
      answers.back().peers = TimePeers({.python = question.python,
                                        .model = name,
                                        .batch = batch,
                                        .device = question.device.is_cpu() ? "cpu" : "cuda",
                                        .seconds = question.comparison.seconds,
                                        .threads = at::get_num_threads()});
    }
  }
  progress.Update(answers.size());
  progress.Finish();
  return answers;
}

void PrintJson(const std::vector<StepAnswer>& answers) {
  Json json = NewReport();
  for (const StepAnswer& answer : answers) {
    const StepComparison& c = answer.comparison;
    Json& costs = json[answer.model][std::to_string(answer.batch)];
    for (const PeerStep& peer : answer.peers) {
      costs["peers"][peer.name] =
          peer.problem.empty() ? Json{{"ms", peer.milliseconds}} : Json{{"error", peer.problem}};
    }
    if (!answer.problem.empty()) {
      costs["error"] = answer.problem;
      continue;
    }
    costs.update({{"ordinary_ms", c.ordinary_step.milliseconds},
                  {"private_ms", c.private_step.milliseconds},
                  {"ratio", c.ratio()},
                  {"ordinary_mb", c.ordinary_step.megabytes},
                  {"private_mb", c.private_step.megabytes},
                  {"first_ms", c.first_milliseconds},
                  {"graph", c.graph}});
    if (c.eager_milliseconds > 0) costs["ordinary_eager_ms"] = c.eager_milliseconds;
  }
  PrintReport(json);
}

// A line for each model and library: its time, and that over ours, or why there is none.
std::string PeerText(const std::vector<StepAnswer>& answers) {
  std::string problems;
  std::vector<std::vector<std::string>> rows = {
      {"model", "batch", "library", "ms", "over private"}};
  for (const StepAnswer& answer : answers) {
    for (const PeerStep& peer : answer.peers) {
      std::vector<std::string> row = {answer.model, fmt::format("{}", answer.batch), peer.name};
      if (!peer.problem.empty()) {
        row.insert(row.end(), {"-", "-"});
        problems += fmt::format("{} at batch {} was not measured with {}: {}\n", answer.model,
                                answer.batch, peer.name, peer.problem);
      } else {
        const double own = answer.comparison.private_step.milliseconds;
        row.push_back(fmt::format("{:.3f}", peer.milliseconds));
        row.push_back(own > 0 ? fmt::format("{:.2f}", peer.milliseconds / own) : "-");
      }
      rows.push_back(std::move(row));
    }
  }
  return rows.size() == 1 ? "" : "\n" + AlignedTable(rows, rows.front().size()) + problems;
}

void PrintText(const StepQuestion& question, const std::vector<StepAnswer>& answers) {
  const bool on_cpu = question.device.is_cpu();
  std::vector<std::vector<std::string>> rows = {{"model", "batch", "ordinary ms", "private ms",
                                                 "ratio", "first", "ordinary MB", "private MB",
                                                 "steps"}};
  if (!on_cpu) rows.front().insert(rows.front().begin() + 2, "eager ms");
  std::string notes;
  for (const StepAnswer& answer : answers) {
    const StepComparison& c = answer.comparison;
    const std::string which = fmt::format("{} at batch {}", answer.model, answer.batch);
    if (!answer.problem.empty()) {
      notes += fmt::format("{} was not measured: {}\n", which, answer.problem);
      continue;
    }
    std::vector<std::string>& row = rows.emplace_back(std::vector<std::string>{
        answer.model, fmt::format("{}", answer.batch),
        fmt::format("{:.3f}", c.ordinary_step.milliseconds),
        fmt::format("{:.3f}", c.private_step.milliseconds), fmt::format("{:.2f}", c.ratio()),
        fmt::format("{:.1f}", c.first_ratio()), fmt::format("{:.2f}", c.ordinary_step.megabytes),
        fmt::format("{:.2f}", c.private_step.megabytes), fmt::format("{}", c.pairs)});
    if (on_cpu) continue;
    const double eager =
        c.eager_milliseconds > 0 ? c.eager_milliseconds : c.ordinary_step.milliseconds;
    row.insert(row.begin() + 2, fmt::format("{:.3f}", eager));
    if (c.graph != "recorded" && question.comparison.graph != GraphUse::kOff) {
      notes += fmt::format("{} was not recorded: {}\n", which, c.graph);
    }
  }
  const int threads = at::get_num_threads();
  std::string text = AlignedTable(rows, rows.front().size());
  text += fmt::format(
      "\nOn {}{}. Median times of steps that alternate; the ratio is that of the medians, and\n"
      "first that of the first private step, which checks the model. A private step is forward,\n"
      "backward, norms, clip and sum, {}. Memory is the largest amount that tensors take above\n"
      "parameters and batch.\n",
      question.device.str(),
      on_cpu ? fmt::format(" with {} thread{}", threads, threads == 1 ? "" : "s")
             : ", recorded steps where they can be; eager is an ordinary step that is not",
      question.comparison.whole ? "noise and update" : "without noise");
  std::cout << text << notes << PeerText(answers);
}

void Run(const StepOptions& options) {
  const StepQuestion question = MakeQuestion(options);
  const std::vector<StepAnswer> answers = Measure(question);
  // What was measured is shown; nothing at all is an error.
  if (std::all_of(answers.begin(), answers.end(),
                  [](const StepAnswer& answer) { return !answer.problem.empty(); })) {
    throw Error(fmt::format("{} at batch {}: {}", answers.front().model, answers.front().batch,
                            answers.front().problem));
  }
  if (options.json) {
    PrintJson(answers);
  } else {
    PrintText(question, answers);
  }
}

}  // namespace

void AddBenchCommand(CLI::App& app) {
  constexpr const char* kExample =
      "Example:\n  sordino bench step --models mnist,cifar10 --batch 256,32";
  CLI::App* bench = app.add_subcommand("bench", TorchCommandSummary("bench"));
  bench->require_subcommand(1);
  bench->footer(kExample);
  CLI::App* step = bench->add_subcommand(
      "step", "Time and memory of a private training step beside an ordinary one.");
  const auto options = std::make_shared<StepOptions>();
  StepOptions& o = *options;
  step->add_option(
          "--models", o.models,
          fmt::format("Any of {}; all without this flag", fmt::join(BenchmarkModelNames(), ", ")))
      ->delimiter(',')
      ->type_name("NAME,...");
  step->add_option(
          "--batch", o.batches,
          "Examples in a step, one number or several; without this flag 32 for resnet18 and "
          "gpt2, 16 for vit and 256 for the others")
      ->delimiter(',')
      ->type_name("N,...");
  step->add_option("--device", o.device, "cpu, cuda or cuda:N")
      ->type_name("DEVICE")
      ->capture_default_str();
  step->add_option("--threads", o.threads, "Processor threads; libtorch's choice without this flag")
      ->type_name("N");
  step->add_option("--seconds", o.seconds,
                   "How long each model is timed, about; 3 without this flag")
      ->type_name("TIME");
  step->add_option("--norms", o.norms, "How norms are found: automatic, materialise or ghost")
      ->type_name("METHOD")
      ->capture_default_str();
  step->add_option("--precision", o.precision, "Products: float32, tf32 (on a GPU) or bfloat16")
      ->type_name("NAME")
      ->capture_default_str();
  step->add_option("--graph", o.graph,
                   "Steps on a GPU are recorded: off, auto (where they can be) or on")
      ->type_name("NAME")
      ->capture_default_str();
  step->add_flag("--whole", o.whole,
                 "Measure whole steps: noise on the private gradients, and an update of the "
                 "weights in both steps");
  step->add_option("--bands", o.bands,
                   "Noise of whole steps is correlated over so many steps; 1 is independent noise")
      ->type_name("N")
      ->capture_default_str();
  step->add_option("--peers", o.peers,
                   "Time torch, Opacus and JAX beside it, with this Python, such as python3")
      ->type_name("PYTHON");
  step->add_flag("--json", o.json, "One JSON object on standard output");
  step->footer(
      std::string(kExample) +
      "\nOn a CPU, lstm and transformer take seconds a step at batch 256; try --batch 32.");
  step->callback([options] { Run(*options); });
}

}  // namespace sordino
