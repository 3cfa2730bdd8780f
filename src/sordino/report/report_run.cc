#include "sordino/report/report_run.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "sordino/base/error.h"
#include "sordino/base/sha256.h"
#include "sordino/base/shallow_json.h"
#include "sordino/base/toml_nesting.h"
#include "sordino/report/internal/record_table.h"
#include "sordino/report/internal/report_files.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using internal::FlagAt;
using internal::NumberAt;
using internal::ReadReportFile;
using internal::ReadReportObject;
using internal::TextAt;
using internal::WholeAt;
using RunJson = nlohmann::ordered_json;

constexpr std::uintmax_t kMaxMetrics = 64U << 20U;
constexpr std::uintmax_t kMaxConfig = 4U << 20U;
constexpr std::uintmax_t kMaxStatement = 1U << 20U;
constexpr std::uintmax_t kMaxEventText = 64U << 20U;
constexpr std::uintmax_t kMaxAudit = 4U << 20U;
constexpr std::uint64_t kMaxWeightsHeader = 16U << 20U;
constexpr std::uintmax_t kMaxSums = 1U << 20U;
constexpr std::size_t kMaxHashes = 32;
constexpr std::size_t kSha256Bytes = 32;

// Paths are left out: they name folders and people of the machine.
constexpr auto kShownSettings = std::to_array<std::string_view>({
    "data.format",
    "data.shape",
    "data.resize",
    "data.classes",
    "data.records",
    "data.rows-per-user",
    "data.length",
    "model.name",
    "model.activation",
    "model.width",
    "model.freeze",
    "model.seed",
    "privacy.epsilon",
    "privacy.delta",
    "privacy.noise",
    "privacy.rate",
    "privacy.sampling",
    "privacy.groups",
    "privacy.clipping",
    "privacy.clip-threshold",
    "privacy.quantile",
    "privacy.clip-rate",
    "privacy.count-noise",
    "privacy.clip-mean-decay",
    "privacy.clip-variance-decay",
    "privacy.clip-variance-min",
    "privacy.clip-variance-max",
    "privacy.clip-variance-factor",
    "privacy.clip-moment-decay",
    "privacy.clip-scale-floor",
    "privacy.adjacency",
    "privacy.clip",
    "privacy.noise-schedule",
    "privacy.clip-schedule",
    "privacy.rate-schedule",
    "privacy.kappa",
    "privacy.decay",
    "privacy.noise-factor",
    "privacy.validation-share",
    "privacy.validation-every",
    "privacy.validation-budget",
    "privacy.validation-gain",
    "privacy.micro-batch",
    "privacy.noise-kind",
    "privacy.noise-correlation",
    "training.batch",
    "training.epochs",
    "training.steps",
    "training.optimizer",
    "training.momentum",
    "training.nesterov",
    "training.weight-decay",
    "training.stabiliser",
    "training.beta1",
    "training.beta2",
    "training.learning-rate",
    "training.schedule",
    "training.projection-radius",
    "training.average-decay",
    "training.flip",
    "training.shift",
    "training.copies",
    "training.physical-batch",
    "training.fallback",
    "training.device",
    "training.precision",
    "training.graph",
    "training.threads",
    "training.norms",
    "training.jl-directions",
    "training.jl-failure",
    "run.evaluate-every",
    "run.canaries",
    "run.canary-kind",
    "run.non-private",
});
constexpr auto kHiddenSettings = std::to_array<std::string_view>({
    "data.source",      "data.labels",          "data.test",
    "data.test-labels", "data.class-names",     "data.mean",
    "data.deviation",   "data.columns",         "data.schema",
    "data.no-header",   "data.delimiter",       "data.missing",
    "data.encoding",    "data.quote",           "data.vocabulary",
    "model.script",     "model.pretrained",     "training.class-weights",
    "run.ledger",       "run.checkpoint-every", "run.insecure-seed",
    "run.out",          "run.curator",          "run.use",
    "run.whole",
});
// A fit keeps its declaration in the same file; the rest of it are defaults of training.
constexpr auto kFitSettings = std::to_array<std::string_view>({
    "data.format",
    "data.classes",
    "data.records",
    "privacy.epsilon",
    "privacy.delta",
    "privacy.adjacency",
});

constexpr std::array<ReportMeasure, 6> kMeasures = {{
    {"epsilon", &ReportPoint::epsilon},
    {"test_accuracy", &ReportPoint::test_accuracy},
    {"test_loss", &ReportPoint::test_loss},
    {"test_mean_squared_error", &ReportPoint::mean_squared_error},
    {"test_mean_absolute_error", &ReportPoint::mean_absolute_error},
    {"seconds", &ReportPoint::seconds},
}};

[[noreturn]] void RefuseFile(const fs::path& file, const std::string& why) {
  throw Error(fmt::format("the file '{}' cannot be shown: {}.", file.string(), why));
}

std::string ValueText(const toml::node& node) {
  if (const auto* text = node.as_string()) return internal::ShortText(text->get());
  if (const auto* whole = node.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "yes" : "no";
  std::string list;
  if (const toml::array* array = node.as_array()) {
    for (const toml::node& entry : *array) {
      if (entry.is_value()) list += (list.empty() ? "" : ", ") + ValueText(entry);
    }
  }
  return internal::ShortText(list);
}

std::string FileName(const std::string& path) {
  return internal::ShortText(fs::path(path).filename().string());
}

void ReadConfig(const fs::path& folder, ReportRun& run) {
  const fs::path file = folder / "config.toml";
  const std::string text = ReadReportFile(file, kMaxConfig).value_or("");
  CheckTomlNesting(text, file.string());
  toml::table config;
  try {
    config = toml::parse(text);
  } catch (const toml::parse_error&) {
    RefuseFile(file, "it is not a TOML file");
  }
  const auto at = [&](std::string_view name) {
    const std::size_t dot = name.find('.');
    return config[name.substr(0, dot)][name.substr(dot + 1)];
  };
  run.data = FileName(at("data.source").value_or(std::string()));
  run.target_epsilon = at("privacy.epsilon").value<double>();
  run.delta = at("privacy.delta").value<double>();
  run.without_privacy = at("run.non-private").value_or(false);
  const std::string script = FileName(at("model.script").value_or(std::string()));
  if (run.kind == ReportKind::kTraining) {
    run.model =
        script.empty() ? internal::ShortText(at("model.name").value_or(std::string())) : script;
  }
  const auto show = [&](std::string_view name) {
    const auto node = at(name);
    if (node.node() != nullptr) run.settings.emplace_back(name, ValueText(*node.node()));
  };
  if (run.kind == ReportKind::kFit) {
    std::for_each(kFitSettings.begin(), kFitSettings.end(), show);
  } else {
    std::for_each(kShownSettings.begin(), kShownSettings.end(), show);
  }
}

std::optional<ReportPoint> ParsePoint(const std::string& line, bool& is_private) {
  const RunJson json = RunJson::parse(line, kShallowJson, /*allow_exceptions=*/false);
  const std::optional<std::int64_t> step = WholeAt(json, "step");
  if (!step) return std::nullopt;
  if (FlagAt(json, "private") == false) is_private = false;
  ReportPoint point;
  point.step = *step;
  for (const ReportMeasure& measure : kMeasures) {
    point.*measure.field = NumberAt(json, std::string(measure.name).c_str());
  }
  return point;
}

void ReadPoints(const fs::path& folder, ReportRun& run) {
  const std::optional<std::string> text = ReadReportFile(folder / "metrics.jsonl", kMaxMetrics);
  if (!text) return;
  std::istringstream lines(*text);
  std::string line;
  // The last line of a run that goes on may not be whole.
  while (std::getline(lines, line) && !lines.eof()) {
    if (const auto point = ParsePoint(line, run.is_private)) run.points.push_back(*point);
  }
}

void ReadEventText(const fs::path& folder, ReportRun& run) {
  constexpr std::string_view kWarning = "NOT PRIVATE\n";
  const fs::path file = folder / "event.txt";
  std::string text = ReadReportFile(file, kMaxEventText).value_or("");
  if (text.starts_with(kWarning)) {
    run.is_private = false;
    text.erase(0, kWarning.size());
  }
  if (text.find_first_not_of(" \n\r\t") == std::string::npos) return;
  try {
    // Read and written anew: numbers of an event, and nothing else.
    run.event = Event::Parse(text).ToString();
  } catch (const Error&) {
    RefuseFile(file, "it does not hold an event");
  }
}

// What the file of the weights says about itself; empty where it says nothing.
RunJson WeightsMetadata(const fs::path& weights) {
  std::ifstream in(weights, std::ios::binary);
  std::array<unsigned char, 8> bytes{};
  if (!in.read(reinterpret_cast<char*>(bytes.data()), bytes.size())) return {};
  std::uint64_t length = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) length = (length << 8U) | bytes[i];
  if (length > kMaxWeightsHeader) return {};
  std::string header(length, '\0');
  if (!in.read(header.data(), static_cast<std::streamsize>(length))) return {};
  return internal::ObjectAt(RunJson::parse(header, kShallowJson, /*allow_exceptions=*/false),
                            "__metadata__");
}

void AddHash(const std::string& name, const std::string& hash, ReportRun& run) {
  const bool is_hash = hash.size() == 2 * kSha256Bytes &&
                       hash.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (is_hash && run.hashes.size() < kMaxHashes) run.hashes.emplace_back(FileName(name), hash);
}

// Lines "HASH  NAME" of what decided the run: its configuration, scripts and vocabularies.
void ReadSums(const fs::path& folder, ReportRun& run) {
  std::istringstream lines(ReadReportFile(folder / "SHA256SUMS", kMaxSums).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t gap = line.find("  ");
    if (gap != std::string::npos) AddHash(line.substr(gap + 2), line.substr(0, gap), run);
  }
}

void ReadStatement(const fs::path& folder, ReportRun& run) {
  std::string text = ReadReportFile(folder / "statement.txt", kMaxStatement).value_or("");
  const fs::path weights = folder / "model.safetensors";
  std::error_code none;
  run.has_ended = fs::is_regular_file(weights, none);
  if (run.has_ended) {
    const RunJson metadata = WeightsMetadata(weights);
    const std::string hash = TextAt(metadata, "statement_sha256").value_or("");
    AddHash("weights", TextAt(metadata, "weights_sha256").value_or(""), run);
    AddHash("statement.txt", hash, run);
    if (Sha256Hex(text) != hash) {
      text = "The statement of this folder was changed since the run ended, and is not shown.";
    }
  }
  run.statement = std::move(text);
}

void ReadRecord(const fs::path& folder, ReportRun& run) {
  const std::optional<RunJson> json = ReadReportObject(folder / "record.json", kMaxAudit);
  if (!json) return;
  run.record = internal::RecordTable(*json);
  const RunJson& privacy = internal::ObjectAt(*json, "privacy");
  const RunJson& release = internal::ObjectAt(*json, "release");
  run.failure = std::clamp(NumberAt(privacy, "failure").value_or(0), 0.0, 1.0);
  if (TextAt(release, "kind") == "fit") run.kind = ReportKind::kFit;
  if (run.kind == ReportKind::kFit) run.model = TextAt(release, "model").value_or("");
  if (FlagAt(privacy, "private") == false) run.is_private = false;
}

void ReadAudit(const fs::path& folder, ReportRun& run) {
  const std::optional<RunJson> json = ReadReportObject(folder / "audit.json", kMaxAudit);
  if (!json) return;
  ReportAudit audit;
  audit.canaries = WholeAt(*json, "canaries").value_or(0);
  audit.delta = NumberAt(*json, "delta").value_or(0);
  audit.confidence = NumberAt(*json, "confidence").value_or(0);
  audit.epsilon_claimed = NumberAt(*json, "epsilon_claimed").value_or(0);
  audit.contradiction = FlagAt(*json, "contradiction").value_or(false);
  constexpr std::array<std::pair<const char*, const char*>, 2> kAttackers = {
      {{"every_update", "who sees every update"}, {"last_model", "who sees the last model"}}};
  for (const auto& [key, name] : kAttackers) {
    const auto found = json->find(key);
    if (found == json->end() || !found->is_object()) continue;
    ReportAttacker attacker;
    attacker.name = name;
    attacker.guesses = WholeAt(*found, "guesses").value_or(0);
    attacker.correct = WholeAt(*found, "correct").value_or(0);
    attacker.curve = internal::CurveAt(*found, "roc");
    const auto bounds = found->find("epsilon_lower");
    for (const char* method : {"one-run", "one-run-fdp", "gdp"}) {
      if (bounds == found->end()) break;
      if (const auto bound = NumberAt(*bounds, method)) {
        attacker.epsilon_lower.emplace_back(method, *bound);
      }
    }
    audit.attackers.push_back(std::move(attacker));
  }
  run.audit = std::move(audit);
}

}  // namespace

std::span<const ReportMeasure> ReportMeasures() { return kMeasures; }
std::span<const std::string_view> ShownSettings() { return kShownSettings; }
std::span<const std::string_view> HiddenSettings() { return kHiddenSettings; }

bool IsRunFolderToReport(const fs::path& folder) {
  std::error_code none;
  return fs::exists(folder / "config.toml", none);
}

ReportRun ReadReportRun(const fs::path& folder) {
  ReportRun run;
  std::error_code none;
  const fs::path whole = fs::weakly_canonical(folder, none);
  run.name = FileName(whole.has_filename() ? whole.string() : whole.parent_path().string());
  if (fs::exists(folder / "coefficients.csv", none)) run.kind = ReportKind::kFit;
  ReadRecord(folder, run);
  ReadConfig(folder, run);
  ReadPoints(folder, run);
  ReadEventText(folder, run);
  ReadSums(folder, run);
  ReadStatement(folder, run);
  ReadAudit(folder, run);
  run.predictions = ReadReportPredictions(folder);
  if (run.is_private) run.coefficients = ReadReportCoefficients(folder);
  return run;
}

}  // namespace sordino
