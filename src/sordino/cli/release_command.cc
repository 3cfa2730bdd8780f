#include "sordino/cli/release_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sordino/accounting/failures.h"
#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/missing_setting.h"
#include "sordino/base/progress.h"
#include "sordino/base/shown_text.h"
#include "sordino/base/stop.h"
#include "sordino/base/weak_guarantee.h"
#include "sordino/cli/command_tree.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/ledger_forecast.h"
#include "sordino/cli/ledger_report.h"
#include "sordino/cli/private_details.h"
#include "sordino/cli/program.h"
#include "sordino/cli/purpose_flags.h"
#include "sordino/cli/release_options.h"
#include "sordino/cli/release_record.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/value_flag.h"
#include "sordino/ledger/data_description.h"
#include "sordino/ledger/ledger.h"
#include "sordino/mechanisms/table_release.h"
#include "sordino/random/generator.h"
#include "sordino/tables/encoding.h"
#include "sordino/tables/table_file.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

// Smaller files are read before anybody looks at a progress bar.
constexpr std::uint64_t kBytesWorthABar = std::uint64_t{64} << 20;

// The ledger that a release is charged to, if there is one.
class ReleaseLedger {
 public:
  // Opens the ledger and looks whether it would admit the release: a release that it does not is
  // refused before the data is read.
  ReleaseLedger(const ReleaseOptions& options, const TableRequest& request,
                const TableRelease& release)
      : declaration_{
            .what = DescribeRelease(request, options.file),
            .plan = release.event(),
            .failure = release.failure(),
            .unit = request.user_column.empty() ? ProtectedUnit::kRecord : ProtectedUnit::kUser,
            .is_private = !options.insecure_seed,
            .may_count_whole = options.whole} {
    const std::vector<std::filesystem::path> data = {options.file};
    const std::optional<std::filesystem::path> file = ChooseLedger(options.ledger, data);
    if (!file) return;
    ledger_.emplace(Ledger::Open(*file));
    const Begun begun = ledger_->Preview(declaration_);
    if (!begun.verdict.admitted) Refuse(begun.verdict);
    after_ = ledger_->filter().After(declaration_.plan, declaration_.failure, begun.terms);
  }

  explicit operator bool() const { return ledger_.has_value(); }

  // Durable when it returns. Throws Error where the ledger refuses.
  void Charge(const Event& event) {
    if (!ledger_) return;
    const Begun begun = ledger_->BeginRun(
        declaration_, {.event = event, .failure = declaration_.failure, .words = "the release"});
    if (!begun.verdict.admitted) Refuse(begun.verdict);
    run_ = begun.id;
  }

  const RunDeclaration& declaration() const { return declaration_; }
  const std::filesystem::path& file() const { return ledger_->file(); }
  // As its filter would be with the release.
  const BudgetFilter& after() const { return *after_; }

  Json ToJson() {
    return {{"file", ledger_->file().string()},
            {"run", run_},
            {"head", ledger_->head().hash},
            {"epsilon", IntervalJson(ledger_->ComposedEpsilon())}};
  }

  std::string ToText() { return ChargedText(*ledger_) + "\n"; }

 private:
  [[noreturn]] void Refuse(const Verdict& verdict) {
    throw Error(fmt::format("nothing was released: {}{}.",
                            RefusalText(*ledger_, declaration_, verdict), WholeHint(verdict)));
  }

  RunDeclaration declaration_;
  std::optional<Ledger> ledger_;
  std::optional<BudgetFilter> after_;
  std::string run_;
};

Json RangeJson(const Interval& interval) { return {interval.lower, interval.upper}; }

Json ReleaseJson(const TableRequest& request, const NamedRelease& named) {
  const Release& release = named.release;
  Json json;
  json["statistic"] = named.statistic;
  json["column"] = named.column.empty() ? Json(nullptr) : Json(named.column);
  if (named.group.size() == 1) {
    json["group"] = named.group.front();
  } else {
    for (std::size_t i = 0; i < named.group.size(); ++i) {
      json["groups"][request.group_by[i].column] = named.group[i];
    }
  }
  if (named.quantile) json["quantile"] = *named.quantile;
  if (named.clip_norm) json["clip_norm"] = *named.clip_norm;
  if (!named.columns.empty()) json["columns"] = named.columns;
  if (named.bins.empty() && named.columns.empty()) {
    json["value"] = release.value();
    json["interval"] = RangeJson(release.interval());
  } else {
    if (!named.bins.empty()) json["bins"] = named.bins;
    json["value"] = release.values;
    json["interval"] = Json::array();
    for (const Interval& interval : release.intervals) {
      json["interval"].push_back(RangeJson(interval));
    }
  }
  json["confidence"] = release.confidence;
  json["noise_scale"] = release.noise_scale;
  json["epsilon"] = release.epsilon.value();
  json["delta"] = release.delta.value();
  return json;
}

std::string WeakWarning(const TableResult& result) {
  return WeakGuarantee(result.epsilon.value(), result.delta.value(), 0);
}

void PrintJson(const TableResult& result, const TableRequest& request, ReleaseLedger& ledger) {
  Json json = NewReport();
  json["releases"] = Json::array();
  for (const NamedRelease& named : result.releases) {
    json["releases"].push_back(ReleaseJson(request, named));
  }
  json["epsilon"] = result.epsilon.value();
  json["delta"] = result.delta.value();
  if (!result.is_private) json["private"] = false;
  if (const std::string weak = WeakWarning(result); !weak.empty()) json["warning"] = weak;
  if (ledger) json["ledger"] = ledger.ToJson();
  // A column's name may hold any bytes; what is not UTF-8 is replaced rather than refused now.
  PrintReport(json);
}

// As many decimals as the noise leaves meaning to, and one more.
std::string Readable(double value, double noise) {
  if (!(noise > 0) || !std::isfinite(noise)) return fmt::format("{:.6g}", value);
  const int decimals = std::clamp(1 - static_cast<int>(std::floor(std::log10(noise))), 0, 9);
  return fmt::format("{:.{}f}", value, decimals);
}

// "city=rome, sex=f"
std::string GroupText(const TableRequest& request, const NamedRelease& named) {
  std::string text;
  for (std::size_t i = 0; i < named.group.size(); ++i) {
    if (i > 0) text += ", ";
    text += fmt::format("{}={}", request.group_by[i].column, named.group[i]);
  }
  return text;
}

// To which norm rows were clipped; a mean with bounds has none.
void PrintClipNorms(const TableResult& result) {
  std::string before;
  for (const NamedRelease& named : result.releases) {
    const std::string name = named.statistic + " " + named.column;
    if (!named.clip_norm || name == before) continue;
    std::cout << ShownText(fmt::format("{}: rows were clipped to {} {:.6g}", name,
                                       named.columns.empty() ? "the size" : "the norm",
                                       *named.clip_norm))
              << '\n';
    before = name;
  }
}

void PrintText(const TableResult& result, const TableRequest& request, ReleaseLedger& ledger) {
  std::vector<std::vector<std::string>> rows;
  rows.push_back({"statistic", "value", fmt::format("{:g}% interval", 100 * request.confidence),
                  "noise", "epsilon", "delta"});
  for (const NamedRelease& named : result.releases) {
    const Release& release = named.release;
    std::string name = named.statistic;
    if (!named.column.empty() && named.columns.empty()) name += " " + named.column;
    if (named.quantile) name += fmt::format(":{:g}", *named.quantile);
    if (!named.group.empty()) name += fmt::format(" [{}]", GroupText(request, named));
    // The noise of a quantile is counted in rows and says nothing about its decimals.
    const double noise = named.quantile ? 0 : release.noise_scale;
    for (std::size_t i = 0; i < release.values.size(); ++i) {
      const Interval& range = release.intervals[i];
      rows.push_back(
          {!named.bins.empty()      ? name + " " + named.bins[i]
           : !named.columns.empty() ? name + " " + named.columns[i]
                                    : name,
           Readable(release.values[i], noise),
           fmt::format("{} to {}", Readable(range.lower, noise), Readable(range.upper, noise)),
           fmt::format("{:.4g}{}", release.noise_scale, named.quantile ? " rows" : ""),
           fmt::format("{:g}", release.epsilon.value()),
           fmt::format("{:g}", release.delta.value())});
    }
  }
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line = fmt::format("{:<{}}", row[0], widths[0]);
    for (std::size_t i = 1; i < row.size(); ++i) {
      line += fmt::format("  {:>{}}", row[i], widths[i]);
    }
    std::cout << ShownText(line) << '\n';
  }
  std::cout << fmt::format(
      "total: epsilon {:g}, delta {:g}, {} one {}\n", result.epsilon.value(), result.delta.value(),
      request.adjacency == Adjacency::kReplaceOne ? "replacing" : "adding or removing",
      request.user_column.empty()
          ? std::string("row")
          : fmt::format("user ({} rows of each count)", request.rows_per_user));
  PrintClipNorms(result);
  if (ledger) std::cout << ledger.ToText();
  if (!result.is_private) std::cout << "not private: the noise comes from --insecure-seed\n";
}

// What would be released and charged. No data are read.
void PrintDryRun(const ReleaseOptions& options, const ReleaseLedger& ledger) {
  const RunDeclaration& run = ledger.declaration();
  const double delta = options.delta.value_or(0);
  const double epsilon = SpentEpsilon(run.plan, Delta(delta), run.failure).upper;
  if (options.json) {
    Json json = NewReport();
    json["dry_run"] = true;
    json["what"] = run.what;
    json["event"] = run.plan.ToString();
    json["failure"] = run.failure;
    json["epsilon"] = NumberJson(epsilon);
    json["delta"] = delta;
    if (ledger) {
      json["ledger"] = ForecastJson(ledger.after());
      json["ledger"]["file"] = ledger.file().string();
    }
    PrintReport(json);
    return;
  }
  std::vector<std::vector<std::string>> rows = {
      {"what", OneLine(run.what)},
      {"event", run.plan.ToString()},
      {"epsilon", fmt::format("{} at delta {:g}", UpperText(epsilon), delta)}};
  if (ledger) {
    rows.push_back(
        {"ledger", fmt::format("{}: {}", ledger.file().string(), ForecastText(ledger.after()))});
  }
  std::cout << AlignedTable(rows, 1) << "nothing was read, charged or released\n";
}

// More than one thing that a release needs and does not have. What else is wrong is told later.
void RefuseMissing(const ReleaseOptions& o) {
  std::vector<MissingSetting> missing;
  if (o.file.empty()) missing.push_back({"the table", "visits.csv", "or - for the input"});
  const bool asks = o.count || !o.sums.empty() || !o.means.empty() || !o.variances.empty() ||
                    !o.histograms.empty() || !o.quantiles.empty();
  if (!asks) {
    missing.push_back({"what to release", "--count",
                       "or --sum, --mean, --variance, --histogram, "
                       "--quantile"});
  }
  std::vector<std::string> bounded = o.sums;
  bounded.insert(bounded.end(), o.means.begin(), o.means.end());
  bounded.insert(bounded.end(), o.variances.begin(), o.variances.end());
  if (o.schema.empty() && o.bounds.empty() && !bounded.empty()) {
    missing.push_back({fmt::format("the bounds of '{}'", bounded.front()),
                       fmt::format("--bounds {}=0,100", bounded.front()), "or --schema"});
  }
  if (!o.epsilon && o.spend.empty()) missing.push_back({"the budget", "--epsilon 0.5"});
  if (missing.size() > 1 || o.file.empty()) throw Error(MissingSentence(missing, GivenLine()));
}

void Run(const ReleaseOptions& options) {
  RefuseMissing(options);
  const TableRequest request = MakeTableRequest(options);
  TableRelease release(request);
  const ReleaseRecord record(options);
  ReleaseLedger ledger(options, request, release);
  if (options.dry_run) return PrintDryRun(options, ledger);
  std::unique_ptr<Generator> generator;
  if (options.insecure_seed) {
    generator = std::make_unique<InsecureSeededGenerator>(*options.insecure_seed);
    std::cerr << "sordino: --insecure-seed makes the noise predictable; the result is not "
                 "private.\n";
  } else {
    generator = std::make_unique<SecureGenerator>();
  }
  const StopGuard guard;
  // What was read of the file itself, which may be compressed.
  std::uint64_t stored = 0;
  ByteSource file = [&stored, source = OpenFile(options.file)](std::span<char> buffer) {
    const std::size_t got = source(buffer);
    stored += got;
    return got;
  };
  CsvReader reader = OpenTableFile(options.file, request.layout, std::move(file));
  const std::uint64_t size = FileSize(options.file);
  std::unique_ptr<Progress> progress;
  if (size >= kBytesWorthABar) progress = std::make_unique<Progress>("reading", size);
  const TableResult result = ReleaseCsv(
      reader, release, *generator,
      [&](std::uint64_t) {
        if (progress) progress->Update(stored);
        return !StopGuard::Requested();
      },
      [&ledger](const Event& event) { ledger.Charge(event); });
  if (progress) progress->Finish();
  if (const std::string weak = WeakWarning(result); !weak.empty()) {
    std::cerr << "sordino: " << weak << '\n';
  }
  if (options.show_skipped) {
    std::cerr << fmt::format(
        "sordino: {} malformed rows were skipped{}; this number is about the private data, keep "
        "it to yourself.\n",
        result.skipped_rows,
        result.skipped_rows == 0
            ? ""
            : fmt::format(", the first on line {}", result.first_skipped_line));
  }
  if (options.json) {
    PrintJson(result, request, ledger);
  } else {
    PrintText(result, request, ledger);
  }
  // Last: what was paid for is told, whatever becomes of the file.
  record.Write(request, release, result);
}

CLI::Option* AddList(CLI::App& command, const std::string& flag, std::vector<std::string>& list,
                     const std::string& type, const std::string& help) {
  // One value for each flag: a greedy list would swallow the name of the file.
  return command.add_option(flag, list, help)->type_name(type)->allow_extra_args(false);
}

}  // namespace

void AddReleaseCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "release", "Private statistics of a CSV file: counts, sums, means, histograms, quantiles.");
  const auto options = std::make_shared<ReleaseOptions>();
  ReleaseOptions& o = *options;
  AddValue(*command, "file", o.file, "FILE",
           "CSV file whose first line names the columns, also .gz or .xz; - reads input");
  command->add_flag("--count", o.count, "The number of rows");
  AddList(*command, "--sum", o.sums, "COL", "The sum of a column");
  AddList(*command, "--mean", o.means, "COL", "The mean of a column");
  AddList(*command, "--variance", o.variances, "COL", "The population variance of a column");
  AddList(*command, "--vector-mean", o.vector_means, "COL,COL,...",
          "The mean of several columns as one vector");
  AddList(*command, "--histogram", o.histograms, "COL", "Rows in declared bins or categories");
  AddList(*command, "--quantile", o.quantiles, "COL:Q", "A quantile; Q is 0.5 for the median");
  AddList(*command, "--bounds", o.bounds, "[COL=]LOW,HIGH",
          "The range to which a column is clamped; declare it without looking at the data");
  AddList(*command, "--clip-norm", o.clip_norms, "[COLS=]NORM",
          "The L2 norm to which the rows of a vector mean are clipped; not from the data");
  AddList(*command, "--second-moment", o.second_moments, "[COL=]S",
          "A mean without bounds, or a vector mean: E x^2 is at most S^2; not from the data");
  command
      ->add_option("--expected-records", o.expected_records,
                   "About how many rows there are, for --second-moment; not from the data")
      ->type_name("N");
  AddList(*command, "--bins", o.bins, "[COL=]N|EDGES",
          "Bins of a histogram: a number of equal ones within the bounds, or edges");
  AddList(*command, "--categories", o.categories, "[COL=]A,B,...", "Categories of a histogram");
  AddList(*command, "--group-by", o.group_by, "COL[=A,B,...]",
          "Every statistic for each declared group; given twice, for each combination");
  AddValue(*command, "--schema", o.schema, "FILE",
           "Bounds, values, user and layout from a schema file; flags win over it");
  command->add_flag("--no-header", o.no_header,
                    "The first line is a row; the columns are called 1, 2, ...");
  SetChoices(*AddValue(*command, "--encoding", o.encoding, "NAME",
                       "Of the file: " + OneOf(EncodingNames()) + "; utf-8 if left out"),
             EncodingNames());
  AddValue(*command, "--delimiter", o.delimiter, "C", "Between fields: one character, or tab");
  AddValue(*command, "--quote", o.quote, "C",
           "Around fields with delimiters in them: \", ' or none");
  AddValue(*command, "--missing", o.missing, "A,B,...", "Cells without a value, such as '?,\"\"'");
  command->add_option("--epsilon", o.epsilon, "The total to spend, split evenly");
  AddList(*command, "--spend", o.spend, "STAT[:COL]=EPS", "The epsilon of one statistic");
  command->add_option("--delta", o.delta, "The total delta; asks for Gaussian noise");
  AddValue(*command, "--noise", o.noise, "NAME", "laplace or gaussian");
  AddValue(*command, "--adjacency", o.adjacency, "NAME", "add-remove or replace-one")
      ->capture_default_str();
  AddValue(*command, "--user", o.user, "COL",
           "Column that tells users apart: protect users, not rows");
  command->add_option("--rows-per-user", o.rows_per_user, "How many rows of each user count");
  AddValue(*command, "--on-error", o.on_error, "NAME", "Malformed rows: refuse or skip")
      ->capture_default_str();
  command->add_flag("--show-skipped", o.show_skipped,
                    "Say on standard error how many rows were skipped; the number is not private");
  command->add_option("--confidence", o.confidence, "Of the intervals (0.95)");
  AddValue(*command, "--ledger", o.ledger, "FILE",
           "Ledger that the release is charged to; the data's description may name it");
  command->add_flag("--whole", o.whole,
                    "Let the release take all of the ledger's budget where nothing else admits it");
  command->add_flag("--dry-run", o.dry_run,
                    "Say what would be charged and what would be left; read and release nothing");
  AddValue(*command, "--record", o.record, "FILE",
           "Write a record of the release for registries of deployments");
  AddPurposeFlags(*command, o.purpose);
  AddForceFlag(*command, o.force);
  command->add_flag("--json", o.json, "One JSON object on standard output");
  AddShowPrivate(*command, o.show_private);
  command->add_option("--insecure-seed", o.insecure_seed,
                      "Predictable noise, for tests; the result is marked not private");
  command->footer(
      "Examples:\n"
      "  sordino release visits.csv --mean age --bounds 0,120 --epsilon 0.5\n"
      "  sordino release visits.csv --vector-mean age,stay --clip-norm 90 --epsilon 1 --delta "
      "1e-6\n"
      "  sordino release census.csv --histogram income --categories '<=50K,>50K' --epsilon 0.5\n"
      "A value with a comma or an equals sign stands in double quotes: --categories '\"a,b\",c'.");
  command->callback(
      [options] { ReportPrivateDetails(options->show_private, [&] { Run(*options); }); });
}

}  // namespace sordino
