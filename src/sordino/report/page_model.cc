
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "sordino/base/shown_text.h"
#include "sordino/base/weak_guarantee.h"
#include "sordino/report/page.h"

namespace sordino {
namespace {

using PageJson = nlohmann::ordered_json;

constexpr std::size_t kMaxPoints = 1000;  // of a curve; more cannot be told apart

PageJson Finite(double value) { return std::isfinite(value) ? PageJson(value) : PageJson(nullptr); }
PageJson Maybe(const std::optional<double>& value) {
  return value ? Finite(*value) : PageJson(nullptr);
}

PageJson TextPairs(const std::vector<std::pair<std::string, std::string>>& pairs) {
  PageJson list = PageJson::array();
  for (const auto& [name, value] : pairs) list.push_back({name, value});
  return list;
}

PageJson CurveJson(const std::vector<TradeoffPoint>& points) {
  PageJson list = PageJson::array();
  for (const TradeoffPoint& point : points) list.push_back({point.type_one, point.type_two});
  return list;
}

PageJson PairsJson(const std::vector<std::pair<double, double>>& points) {
  PageJson list = PageJson::array();
  for (const auto& [x, y] : points) list.push_back({x, y});
  return list;
}

PageJson PointsJson(const std::vector<ReportPoint>& points) {
  const std::size_t stride = points.size() / kMaxPoints + 1;
  PageJson list = PageJson::array();
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i % stride != 0 && i + 1 != points.size()) continue;
    PageJson row = {{"step", points[i].step}};
    for (const ReportMeasure& measure : ReportMeasures()) {
      row[std::string(measure.name)] = Maybe(points[i].*measure.field);
    }
    list.push_back(std::move(row));
  }
  return list;
}

PageJson GuaranteeJson(const Guarantee& guarantee) {
  return {{"epsilon", Finite(guarantee.epsilon)},
          {"delta", guarantee.delta},
          {"weak", WeakGuarantee(guarantee.epsilon, guarantee.delta, 0)},
          {"attack_accuracy", guarantee.attack_accuracy},
          {"recognised", CurveJson(guarantee.recognised)},
          {"beliefs", PairsJson(guarantee.beliefs)},
          {"curve", CurveJson(guarantee.curve)}};
}

PageJson AuditReportJson(const ReportAudit& audit) {
  PageJson attackers = PageJson::array();
  for (const ReportAttacker& attacker : audit.attackers) {
    PageJson bounds = PageJson::object();
    for (const auto& [method, bound] : attacker.epsilon_lower) bounds[method] = bound;
    attackers.push_back({{"name", attacker.name},
                         {"guesses", attacker.guesses},
                         {"correct", attacker.correct},
                         {"epsilon_lower", std::move(bounds)},
                         {"curve", PairsJson(attacker.curve)}});
  }
  return {{"canaries", audit.canaries},           {"delta", audit.delta},
          {"confidence", audit.confidence},       {"epsilon_claimed", audit.epsilon_claimed},
          {"contradiction", audit.contradiction}, {"attackers", std::move(attackers)}};
}

PageJson PredictionsPageJson(const ReportPredictions& predictions) {
  return PageJson::parse(PredictionsJson(predictions));
}

PageJson EstimatePageJson(const ReportEstimate& estimate) {
  return {{"value", estimate.value}, {"lower", estimate.lower}, {"upper", estimate.upper}};
}

PageJson MembershipJsonOf(const ReportMembership& membership) {
  PageJson attacks = PageJson::array();
  for (const ReportAttack& attack : membership.attacks) {
    PageJson rates = PageJson::array();
    for (const auto& [rate, estimate] : attack.rates) {
      rates.push_back({{"false", rate}, {"true", EstimatePageJson(estimate)}});
    }
    attacks.push_back({{"name", attack.name},
                       {"area", EstimatePageJson(attack.area)},
                       {"rates", std::move(rates)},
                       {"curve", PairsJson(attack.curve)}});
  }
  PageJson classes = PageJson::array();
  for (const auto& [name, area] : membership.classes) classes.push_back({name, area});
  return {{"name", membership.name},
          {"run", membership.run},
          {"members", membership.members},
          {"others", membership.others},
          {"shadows", membership.shadows},
          {"confidence", membership.confidence},
          {"best", membership.best},
          {"attacks", std::move(attacks)},
          {"limits", PairsJson(membership.limits)},
          {"limit_curve", PairsJson(membership.limit_curve)},
          {"classes", std::move(classes)}};
}

PageJson CoefficientsJson(const std::vector<ReportCoefficient>& coefficients) {
  PageJson list = PageJson::array();
  for (const ReportCoefficient& one : coefficients) {
    list.push_back({{"feature", one.feature},
                    {"class", one.score},
                    {"value", one.value},
                    {"noise", Maybe(one.deviation)},
                    {"lower", Maybe(one.lower)},
                    {"upper", Maybe(one.upper)}});
  }
  return list;
}

PageJson RunJsonOf(const ReportRun& run) {
  return {
      {"name", run.name},
      {"kind", run.kind == ReportKind::kFit ? "fit" : "training"},
      {"private", run.is_private},
      {"without_privacy", run.without_privacy},
      {"ended", run.has_ended},
      {"data", run.data},
      {"model", run.model},
      {"target_epsilon", Maybe(run.target_epsilon)},
      {"delta", Maybe(run.delta)},
      {"settings", TextPairs(run.settings)},
      {"points", PointsJson(run.points)},
      {"evaluations", run.points.size()},
      {"event", run.event},
      {"statement", run.statement},
      {"record", TextPairs(run.record)},
      {"hashes", TextPairs(run.hashes)},
      {"guarantee", run.guarantee ? GuaranteeJson(*run.guarantee) : PageJson(nullptr)},
      {"audit", run.audit ? AuditReportJson(*run.audit) : PageJson(nullptr)},
      {"coefficients", CoefficientsJson(run.coefficients)},
      {"predictions", run.predictions ? PredictionsPageJson(*run.predictions) : PageJson(nullptr)}};
}

PageJson ExperimentJsonOf(const ReportExperiment& experiment) {
  PageJson axes = PageJson::array();
  for (const ReportAxis& axis : experiment.axes) {
    axes.push_back({{"name", axis.name}, {"values", axis.values}});
  }
  PageJson cells = PageJson::array();
  for (const ReportCell& cell : experiment.cells) {
    PageJson values = PageJson::object();
    for (const auto& [name, value] : cell.values) values[name] = Finite(value);
    cells.push_back({{"settings", cell.settings}, {"values", std::move(values)}});
  }
  PageJson pictures = PageJson::array();
  for (const ReportPicture& picture : experiment.pictures) {
    pictures.push_back({{"name", picture.name}, {"svg", picture.svg}});
  }
  return {{"name", experiment.name},         {"title", experiment.title},
          {"source", experiment.source},     {"about", experiment.about},
          {"public", experiment.is_public},  {"axes", std::move(axes)},
          {"measures", experiment.measures}, {"measures_left_out", experiment.measures_left_out},
          {"cells", std::move(cells)},       {"pictures", std::move(pictures)}};
}

PageJson LedgerJsonOf(const ReportLedger& ledger) {
  PageJson runs = PageJson::array();
  for (const ReportCharge& run : ledger.runs) {
    runs.push_back({{"time", run.time},
                    {"who", run.who},
                    {"what", run.what},
                    {"event", run.event},
                    {"epsilon", Finite(run.epsilon)},
                    {"releases", run.releases},
                    {"returned", run.returned},
                    {"whole", run.counts_whole},
                    {"private", run.is_private}});
  }
  PageJson points = PageJson::array();
  const std::size_t stride = ledger.points.size() / kMaxPoints + 1;
  for (std::size_t i = 0; i < ledger.points.size(); ++i) {
    if (i % stride != 0 && i + 1 != ledger.points.size()) continue;
    const ReportLedger::Point& point = ledger.points[i];
    points.push_back({{"time", point.time},
                      {"run", point.run},
                      {"used", Finite(point.used)},
                      {"epsilon", Maybe(point.epsilon)}});
  }
  return {{"name", ledger.name},
          {"budget", ledger.budget},
          {"epsilon", Finite(ledger.epsilon)},
          {"delta", ledger.delta},
          {"used", Finite(ledger.used)},
          {"left", ledger.left},
          {"composed",
           {{"lower", Finite(ledger.composed.lower)}, {"upper", Finite(ledger.composed.upper)}}},
          {"runs", std::move(runs)},
          {"points", std::move(points)}};
}

// Names, notes and statements are texts of files. Nothing here is deep: the content is built above.
PageJson PageTexts(const PageJson& json) {
  if (json.is_string()) return ShownLines(json.get_ref<const std::string&>());
  if (!json.is_structured()) return json;
  PageJson shown = json.is_object() ? PageJson::object() : PageJson::array();
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) {
      shown[ShownText(key)] = PageTexts(value);
    } else {
      shown.push_back(PageTexts(value));
    }
  }
  return shown;
}

}  // namespace

std::string ReportJson(const ReportContent& content) {
  PageJson json = {{"version", content.version}};
  json["runs"] = PageJson::array();
  for (const ReportRun& run : content.runs) json["runs"].push_back(RunJsonOf(run));
  json["experiments"] = PageJson::array();
  for (const auto& experiment : content.experiments) {
    json["experiments"].push_back(ExperimentJsonOf(experiment));
  }
  json["ledgers"] = PageJson::array();
  for (const ReportLedger& ledger : content.ledgers) {
    json["ledgers"].push_back(LedgerJsonOf(ledger));
  }
  json["memberships"] = PageJson::array();
  for (const ReportMembership& membership : content.memberships) {
    json["memberships"].push_back(MembershipJsonOf(membership));
  }
  json["records"] = PageJson::array();
  for (const ReportRecord& record : content.records) {
    json["records"].push_back({{"name", record.name},
                               {"private", record.is_private},
                               {"fields", TextPairs(record.fields)}});
  }
  return PageTexts(json).dump();
}

}  // namespace sordino
