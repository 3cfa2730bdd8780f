#include "sordino/cli/account_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/best_of.h"
#include "sordino/accounting/epsilon_formulas.h"
#include "sordino/accounting/renyi.h"
#include "sordino/accounting/tradeoff.h"
#include "sordino/base/error.h"
#include "sordino/base/output_file.h"
#include "sordino/base/progress.h"
#include "sordino/cli/curve_picture.h"
#include "sordino/cli/epsilon_curve.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/schedule_file.h"
#include "sordino/cli/value_flag.h"
#include "sordino/report/tradeoff_picture.h"
#include "sordino/tables/text_file.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

struct AccountOptions {
  EventOptions event;
  std::optional<std::string> delta;
  std::optional<std::string> epsilon;
  std::optional<std::string> text;  // --event
  std::optional<std::string> event_file;
  std::optional<std::string> schedule;
  std::optional<std::string> orders;
  std::optional<std::string> picture;
  std::optional<std::string> tradeoff;
  bool curve = false;
  bool force = false;
  bool json = false;
};

struct AccountAnswer {
  Event event;
  bool asks_delta;
  double given;  // the delta of the question, or its epsilon
  AccountReport report;
  std::vector<std::pair<double, double>> rdp_curve;
  std::string rdp_reason;  // why the Renyi curve is infinite
  std::vector<CurvePoint> curve;

  const char* asked() const { return asks_delta ? "delta" : "epsilon"; }
  const char* held() const { return asks_delta ? "epsilon" : "delta"; }
};

StepSequence ParseEventFlag(const AccountOptions& options) {
  const EventOptions& flags = options.event;
  if (options.schedule || flags.rate || flags.noise || flags.sampling || flags.adjacency ||
      flags.mechanism || flags.sensitivity || flags.correlation || flags.separation ||
      flags.participations) {
    throw Error(
        fmt::format("{} says everything about the mechanism; besides it only --steps may be given, "
                    "to repeat the whole event.",
                    options.text ? "--event" : "--event-file"));
  }
  if (options.text && options.event_file) {
    throw Error("--event and --event-file were both given; leave out one of the two.");
  }
  const std::string text =
      options.text
          ? *options.text
          : ReadTextFile(*options.event_file,
                         "write equal releases as one with a count, such as 10*gaussian(1)");
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw Error(fmt::format("{} holds no event; give one such as add-remove: gaussian(4).",
                            options.text ? "--event" : '\'' + *options.event_file + '\''));
  }
  Event event = Event::Parse(text);
  const std::uint64_t steps = flags.steps ? ParseWhole("--steps", *flags.steps) : 1;
  const Adjacency adjacency = event.adjacency();
  // The curve counts the copies of a single release one by one, and anything else as a whole.
  if (const Event whole = Event::Repeat(event, steps);
      whole.IsComposition() && whole.children().size() == 1) {
    return {adjacency, {whole.children().front()}};
  }
  return {adjacency, {{std::move(event), steps}}};
}

StepSequence MakeSequence(const AccountOptions& options) {
  const EventOptions& flags = options.event;
  if (options.text || options.event_file) return ParseEventFlag(options);
  if (options.schedule) return ReadSchedule(*options.schedule, flags);
  if (!flags.noise) {
    throw Error(
        "--noise is missing: the standard deviation or scale of the noise over the sensitivity; "
        "--schedule or --event may say it too.");
  }
  const StepShape shape = ShapeOf(flags, flags.rate.has_value());
  const NoiseMultiplier noise(ParseReal("--noise", *flags.noise));
  const SamplingRate rate(flags.rate ? ParseReal("--rate", *flags.rate) : 1);
  const std::uint64_t steps = flags.steps ? ParseWhole("--steps", *flags.steps) : 1;
  return {shape.adjacency, {{shape.Step(noise, rate), shape.CountOf(steps, rate)}}};
}

std::vector<double> ParseOrders(const std::string& text) {
  std::vector<double> orders;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const double order = ParseReal("--orders", text.substr(begin, comma - begin));
    if (order < 1) {
      throw Error(fmt::format("'{:g}' in --orders is below 1; Renyi orders start at 1.", order));
    }
    orders.push_back(order);
    begin = comma + 1;
  }
  return orders;
}

AccountAnswer Solve(const AccountOptions& options) {
  if (options.delta.has_value() == options.epsilon.has_value()) {
    throw Error(
        options.delta
            ? "--delta and --epsilon were both given; leave out the one that you want to learn."
            : "give --delta to learn epsilon, or --epsilon to learn delta.");
  }
  const bool asks_delta = options.epsilon.has_value();
  const bool wants_curve = options.curve || options.picture;
  if (wants_curve && asks_delta) {
    throw Error("--curve shows epsilon against steps and needs --delta instead of --epsilon.");
  }
  if (wants_curve && options.event.select) {
    throw Error(
        "--curve shows epsilon against steps, and --select releases nothing before the last one; "
        "leave out one of the two.");
  }
  const double given = asks_delta ? Epsilon(ParseReal("--epsilon", *options.epsilon)).value()
                                  : Delta(ParseReal("--delta", *options.delta)).value();
  const std::vector<double> orders =
      options.orders ? ParseOrders(*options.orders) : std::vector<double>();
  const StepSequence sequence = MakeSequence(options);
  Event event = sequence.Prefix(sequence.TotalSteps());
  if (options.event.select) event = BestOf(*options.event.select, std::move(event));
  AccountReport report =
      asks_delta ? AccountDelta(event, Epsilon(given)) : Account(event, Delta(given));
  AccountAnswer answer{std::move(event), asks_delta, given, std::move(report), {}, "", {}};
  if (!orders.empty()) {
    answer.rdp_curve = RenyiTable(answer.event, orders);
    answer.rdp_reason = RenyiInapplicable(answer.event);
  }
  if (wants_curve) answer.curve = EpsilonCurve(sequence, Delta(given), answer.report.value);
  return answer;
}

// The event for a person: a long schedule is cut.
std::string ShortenedEvent(const Event& event) {
  constexpr std::size_t kLongest = 96;
  std::string text = event.ToString();
  if (text.size() <= kLongest) return text;
  text.resize(kLongest);
  return fmt::format("{}... ({} releases)", text, event.TotalCount());
}

std::vector<EpsilonFormula> PublishedForms(const AccountAnswer& answer) {
  if (!answer.asks_delta) return EpsilonFormulas(answer.event, Delta(answer.given));
  return {};
}

void PrintJson(const AccountAnswer& answer) {
  const AccountReport& report = answer.report;
  Json json = NewReport();
  json[answer.held()] = answer.given;
  json[answer.asked()] = IntervalJson(report.value, report.reason);
  json["methods"] = MethodsJson(report, answer.asked());
  json["skipped"] = Json::object();
  for (const auto& [name, why] : report.skipped) json["skipped"][name] = why;
  json["decided_by"] = report.decided_by.empty() ? Json(nullptr) : Json(report.decided_by);
  for (const EpsilonFormula& formula : PublishedForms(answer)) {
    json["published"][std::string(formula.name)] = {{"form", formula.form},
                                                    {"epsilon", formula.epsilon}};
  }
  json["event"] = answer.event.ToString();
  if (const std::string note = UnitNote(answer.event); !note.empty()) json["unit"] = note;
  if (!answer.rdp_curve.empty()) {
    json["rdp_curve"] = Json::array();
    for (const auto& [order, epsilon] : answer.rdp_curve) {
      Json point = {{"order", order}, {"epsilon", NumberJson(epsilon)}};
      if (!std::isfinite(epsilon)) {
        point["reason"] = answer.rdp_reason.empty() ? "it exceeds every double" : answer.rdp_reason;
      }
      json["rdp_curve"].push_back(std::move(point));
    }
  }
  if (!answer.curve.empty()) {
    json["curve"] = Json::array();
    for (const CurvePoint& point : answer.curve) {
      Json entry = {{"steps", point.steps}};
      entry.update(IntervalJson(point.epsilon, report.reason));
      json["curve"].push_back(std::move(entry));
    }
  }
  PrintReport(json);
}

std::string CertifiedSentence(const AccountAnswer& answer) {
  const Interval& value = answer.report.value;
  if (answer.event.IsNone()) {
    return fmt::format("Nothing was released: {} is 0 at {} {:g}.", answer.asked(), answer.held(),
                       answer.given);
  }
  if (std::isinf(value.upper)) {
    return fmt::format("No finite epsilon {} at delta {:g}: {}.{}",
                       std::isinf(value.lower) ? "holds" : "is known to hold", answer.given,
                       answer.report.reason,
                       value.lower > 0 && std::isfinite(value.lower)
                           ? fmt::format(" It is at least {}.", LowerText(value.lower))
                           : "");
  }
  return fmt::format(
      "At {} {:g}, {} is certified to lie between {} and {}; the upper end is what is spent.{}",
      answer.held(), answer.given, answer.asked(), LowerText(value.lower), UpperText(value.upper),
      answer.report.reason.empty() ? ""
                                   : fmt::format(" It says nothing: {}.", answer.report.reason));
}

std::string MethodNote(const MethodReport& method, const std::string& decided_by) {
  std::string note;
  const auto add = [&note](const std::string& part) {
    if (!note.empty()) note += "; ";
    note += part;
  };
  if (method.name == decided_by) add("decides");
  if (!method.sound) add("an estimate, not a bound");
  if (method.lower) add(fmt::format("at least {}", LowerText(*method.lower)));
  if (!method.engine.empty()) add(method.engine);
  if (method.order && std::isfinite(*method.order)) {
    add(fmt::format("{} {:.4g}", method.name == "moments" ? "lambda" : "order", *method.order));
  }
  return note;
}

void PrintText(const AccountAnswer& answer) {
  const AccountReport& report = answer.report;
  std::string text = CertifiedSentence(answer) + '\n' + ShortenedEvent(answer.event) + '\n';
  if (const std::string note = UnitNote(answer.event); !note.empty()) text += note + '\n';

  std::vector<std::vector<std::string>> rows = {{"method", answer.asked(), "sound", "note"}};
  for (const MethodReport& method : report.methods) {
    rows.push_back({method.name, UpperText(method.value), method.sound ? "yes" : "no",
                    MethodNote(method, report.decided_by)});
  }
  if (!report.methods.empty()) text += '\n' + AlignedTable(rows, 2);
  if (const std::vector<EpsilonFormula> forms = PublishedForms(answer); !forms.empty()) {
    text += "\npublished closed forms for steps that are (e, d)-private (no guarantees)\n";
    rows = {{"form", "epsilon", "over certified"}};
    for (const EpsilonFormula& formula : forms) {
      rows.push_back({std::string(formula.form), fmt::format("{:.4g}", formula.epsilon),
                      fmt::format("{:.4g}", formula.epsilon / report.value.upper)});
    }
    text += AlignedTable(rows, 3);
  }
  if (!report.skipped.empty()) {
    text += "\nskipped\n";
    rows.clear();
    for (const auto& [name, why] : report.skipped) rows.push_back({"  " + name, why});
    text += AlignedTable(rows, 1);
  }
  if (!answer.rdp_curve.empty()) {
    rows = {{"order", "Renyi epsilon"}};
    for (const auto& [order, epsilon] : answer.rdp_curve) {
      rows.push_back({fmt::format("{:g}", order), UpperText(epsilon)});
    }
    text += '\n' + AlignedTable(rows, 2);
    if (!answer.rdp_reason.empty()) text += answer.rdp_reason + '\n';
  }
  if (!answer.curve.empty()) text += '\n' + CurveText(answer.curve);
  std::cout << text;
}

std::string TradeoffPicture(const AccountAnswer& answer) {
  constexpr int kLines = 40;
  constexpr int kPoints = 200;
  // A bar where it takes long enough for one.
  std::optional<Progress> progress;
  const auto start = std::chrono::steady_clock::now();
  std::vector<PrivacyLine> profile = PrivacyProfile(answer.event, kLines, [&](int done) {
    if (!progress && std::chrono::steady_clock::now() - start > std::chrono::seconds(1)) {
      progress.emplace("trade-off", kLines);
    }
    if (progress) progress->Update(static_cast<std::uint64_t>(done));
  });
  if (progress) progress->Finish();
  const double answered = answer.report.value.upper;
  const PrivacyLine claim =
      answer.asks_delta ? PrivacyLine{answer.given, answered} : PrivacyLine{answered, answer.given};
  profile.push_back(claim);
  std::vector<double> type_one;  // most of them near 0, where the curve falls
  for (int i = 0; i <= kPoints; ++i) {
    const double share = static_cast<double>(i) / kPoints;
    type_one.push_back(share * share * share);
  }
  const auto curve = TradeoffCurve([&](double x) { return ProfileTradeoff(profile, x); }, type_one);
  return TradeoffSvg(curve, claim, ShortenedEvent(answer.event));
}

void Run(const AccountOptions& options) {
  std::vector<std::filesystem::path> taken;
  std::optional<OutputFile> picture;
  std::optional<OutputFile> tradeoff;
  if (options.schedule) taken.emplace_back(*options.schedule);
  if (options.event_file) taken.emplace_back(*options.event_file);
  if (options.picture) {
    picture.emplace(OutputRequest{"--picture", *options.picture, kSvgPicture, options.force},
                    taken);
    taken.emplace_back(*options.picture);
  }
  if (options.tradeoff) {
    tradeoff.emplace(OutputRequest{"--tradeoff", *options.tradeoff, kSvgPicture, options.force},
                     taken);
  }
  const AccountAnswer answer = Solve(options);
  // Before anything is printed: a picture that cannot be written leaves standard output empty.
  if (picture) picture->Write(CurveSvg(answer.curve, ShortenedEvent(answer.event), answer.given));
  if (tradeoff) tradeoff->Write(TradeoffPicture(answer));
  if (options.json) {
    PrintJson(answer);
  } else {
    PrintText(answer);
  }
}

}  // namespace

void AddAccountCommand(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("account", "How much privacy was spent, by every accounting method.");
  const auto options = std::make_shared<AccountOptions>();
  AccountOptions& o = *options;
  AddEventFlags(*command, o.event);
  AddValue(*command, "--delta", o.delta, "0..1", "The delta at which epsilon is asked for");
  AddValue(*command, "--epsilon", o.epsilon, "NUMBER", "The epsilon at which delta is asked for");
  AddValue(*command, "--schedule", o.schedule, "FILE",
           "CSV file with a line for each step: rate, noise, steps, clip; - reads input");
  AddValue(*command, "--event", o.text, "TEXT",
           "What was done in the text form of events, instead of flags");
  AddValue(*command, "--event-file", o.event_file, "FILE",
           "The same in a file, for long events; - reads input");
  AddValue(*command, "--orders", o.orders, "LIST",
           "Renyi orders to show the curve at, such as 1.5,2,64");
  command->add_flag("--curve", o.curve, "Epsilon against the number of steps");
  AddValue(*command, "--picture", o.picture, "FILE", "Write the curve to this SVG file");
  AddValue(*command, "--tradeoff", o.tradeoff, "FILE",
           "Write the trade-off curve, and the claimed line below it, to this SVG file");
  AddForceFlag(*command, o.force);
  command->add_flag("--json", o.json, "One JSON object on standard output");
  command->footer("Example:\n  sordino account --rate 0.01 --noise 4 --steps 10000 --delta 1e-5");
  command->callback([options] { Run(*options); });
}

}  // namespace sordino
