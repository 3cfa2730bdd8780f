#include "sordino/accounting/accountant.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "sordino/accounting/composition.h"
#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/gdp.h"
#include "sordino/accounting/internal/engines/contradiction.h"
#include "sordino/accounting/internal/event_kind.h"
#include "sordino/accounting/moments.h"
#include "sordino/accounting/renyi.h"
#include "sordino/accounting/zcdp.h"

namespace sordino {
namespace {

// e^x as an upper or a lower end: an e^x that underflows is not zero.
double ExpUp(double x) {
  if (x == -kInfinity) return 0;
  return std::min(
      1.0, std::max(std::nextafter(std::exp(x), 1.0), std::numeric_limits<double>::denorm_min()));
}
double ExpDown(double x) { return std::max(0.0, std::nextafter(std::exp(x), 0.0)); }

class ReportBuilder {
 public:
  void Add(MethodReport method) { report_.methods.push_back(std::move(method)); }
  void Skip(const std::string& name, const std::string& why) {
    report_.skipped.emplace_back(name, why);
  }
  // A method that gives one upper bound, or a reason why it has none.
  void AddOrSkip(const std::string& name, double value, const std::string& reason,
                 std::optional<double> order = std::nullopt, bool sound = true) {
    if (!reason.empty()) {
      Skip(name, reason);
    } else if (std::isnan(value)) {
      Skip(name, "its value is not a number for these parameters");
    } else {
      Add({name, value, std::nullopt, order, sound, ""});
    }
  }

  // The intersection of what the sound methods prove; `lower` comes from pld. A sound method whose
  // bound is below it contradicts it, and nothing is reported.
  AccountReport Finish(double lower, double nothing, const Event& event) {
    report_.value = {lower, nothing};
    for (const MethodReport& method : report_.methods) {
      if (!method.sound || !(method.value < report_.value.upper)) continue;
      report_.value.upper = method.value;
      report_.decided_by = method.name;
    }
    report_.value.lower = ConsistentLower(
        report_.value, {"the lower end of pld", report_.decided_by}, event.ToString());
    return std::move(report_);
  }

  AccountReport& report() { return report_; }

 private:
  AccountReport report_;
};

}  // namespace

AccountReport Account(const Event& event, Delta delta, Effort effort) {
  const double log_delta = std::log(delta.value());
  ReportBuilder builder;
  const Certified pld = CertifiedEpsilon(event, log_delta, effort);
  if (std::isfinite(pld.value.upper) || pld.reason.empty()) {
    builder.Add({"pld", pld.value.upper, pld.value.lower, std::nullopt, true, pld.engine});
  } else {
    builder.Skip("pld", pld.reason);
  }
  if (log_delta == -kInfinity) {
    for (const char* name : {"rdp", "moments", "zcdp", "gdp", "advanced"}) {
      builder.Skip(name, "it needs a delta above 0");
    }
  } else if (log_delta >= 0) {
    for (const char* name : {"rdp", "moments", "zcdp", "gdp", "advanced"}) {
      builder.Skip(name, "a delta of 1 promises nothing, and epsilon is 0");
    }
  } else {
    RenyiCurve curve(event);
    const RenyiEpsilonResult rdp = curve.ToEpsilon(log_delta);
    builder.AddOrSkip("rdp", rdp.epsilon, curve.reason(), rdp.order);
    const MomentsResult moments = MomentsAccountant(event, log_delta, curve);
    builder.AddOrSkip("moments", moments.epsilon, moments.reason, moments.lambda);
    const ZcdpResult zcdp = ZcdpOf(event);
    if (zcdp.reason.empty()) {
      const RenyiEpsilonResult converted = ZcdpEpsilon(zcdp.rho, log_delta);
      builder.AddOrSkip("zcdp", converted.epsilon, "", converted.order);
    } else {
      builder.Skip("zcdp", zcdp.reason);
    }
    const GdpResult gdp = GdpOf(event);
    builder.AddOrSkip("gdp", gdp.reason.empty() ? GaussianEpsilon(gdp.mu, log_delta) : kInfinity,
                      gdp.reason, std::nullopt, gdp.sound);
    const MethodResult advanced = AdvancedComposition(event, log_delta);
    builder.AddOrSkip("advanced", advanced.epsilon, advanced.reason);
  }
  const MethodResult optimal = OptimalComposition(event, log_delta);
  builder.AddOrSkip("optimal", optimal.epsilon, optimal.reason);
  MethodResult basic = BasicComposition(event, log_delta);
  if (!basic.reason.empty()) {
    const auto own = event.kind().EpsilonAtOwnDelta(event, delta.value(), std::nullopt);
    if (own) basic = {*own, ""};
  }
  builder.AddOrSkip("basic", basic.epsilon, basic.reason);
  AccountReport report = builder.Finish(pld.value.lower, kInfinity, event);
  if (std::isinf(report.value.upper)) {
    report.reason = pld.reason.empty() ? "no method bounds the loss at this delta" : pld.reason;
  }
  return report;
}

AccountReport AccountDelta(const Event& event, Epsilon epsilon, Effort effort) {
  ReportBuilder builder;
  const Certified pld = CertifiedLogDelta(event, epsilon.value(), effort);
  const double lower = ExpDown(pld.value.lower);
  if (pld.value.upper < 0 || pld.reason.empty()) {
    builder.Add({"pld", ExpUp(pld.value.upper), lower, std::nullopt, true, pld.engine});
  } else {
    builder.Skip("pld", pld.reason);
  }
  RenyiCurve curve(event);
  const RenyiDeltaResult rdp = curve.ToDelta(epsilon.value());
  builder.AddOrSkip("rdp", ExpUp(rdp.log_delta), curve.reason(), rdp.order);
  const GdpResult gdp = GdpOf(event);
  builder.AddOrSkip("gdp",
                    gdp.reason.empty() ? ExpUp(GaussianLogDelta(gdp.mu, epsilon.value())) : 1.0,
                    gdp.reason, std::nullopt, gdp.sound);
  for (const char* name : {"moments", "zcdp", "advanced", "optimal", "basic"}) {
    builder.Skip(name, "it is asked for epsilon at a delta, not the other way round");
  }
  AccountReport report = builder.Finish(lower, 1, event);
  if (report.value.upper == 1 && report.value.lower < 0.5) {
    report.reason = pld.reason.empty() ? "no method bounds delta at this epsilon" : pld.reason;
  }
  return report;
}

}  // namespace sordino
