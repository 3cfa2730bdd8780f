#include "sordino/accounting/renyi.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/internal/renyi/renyi_moments.h"
#include "sordino/base/check.h"

namespace sordino {

RenyiFunction Linear(double slope) {
  return [slope](double order) { return slope * order; };
}

RenyiFunction Infinite() {
  return [](double) { return kInfinity; };
}

RenyiFunction FromNodes(std::vector<LossNode> nodes) {
  auto shared = std::make_shared<const std::vector<LossNode>>(std::move(nodes));
  return [shared](double order) { return RenyiFromNodes(*shared, order); };
}

RenyiFunction Larger(RenyiFunction a, RenyiFunction b) {
  return
      [a = std::move(a), b = std::move(b)](double order) { return std::max(a(order), b(order)); };
}

RenyiFunction Smaller(RenyiFunction a, RenyiFunction b) {
  return
      [a = std::move(a), b = std::move(b)](double order) { return std::min(a(order), b(order)); };
}

RenyiFunction FromAtoms(const std::optional<LossAtoms>& atoms) {
  return atoms ? FromNodes(PlainNodes(*atoms)) : Infinite();
}

RenyiFunction SampledAtoms(const LossAtoms& atoms, double q) {
  return Larger(FromNodes(PoissonNodes(atoms, q, false)), FromNodes(PoissonNodes(atoms, q, true)));
}

RenyiFunction RenyiOf(const Event& event) {
  if (const std::optional<double> sigma = EquivalentGaussian(event)) {
    return Linear(1 / (2 * *sigma * *sigma));
  }
  return event.kind().Renyi(event);
}

std::string RenyiReasonOfEpsilon(double epsilon) {
  return std::isinf(epsilon) ? "an event with infinite epsilon has no finite Renyi divergence" : "";
}

std::string RenyiInapplicable(const Event& event) { return event.kind().RenyiReason(event); }

// So many terms of a long curve choose an order for all of them; a shorter one has its best order.
constexpr std::size_t kFewTerms = 48;
constexpr std::size_t kManyTerms = 512;

RenyiCurve::RenyiCurve(const Event& event) : reason_(RenyiInapplicable(event)) {
  if (!reason_.empty()) return;
  const bool many = event.children().size() > kManySteps;
  for (const auto& [part, count] : (many ? CoarsenNoise(event, kFinePoints) : event).Flatten()) {
    const double times = static_cast<double>(count);
    if (const std::optional<double> sigma = EquivalentGaussian(part)) {
      gaussian_slope_ += times / (2 * *sigma * *sigma);
    } else {
      terms_.push_back({times, RenyiOf(part)});
    }
  }
}

double RenyiCurve::operator()(double order) {
  CheckRange("the Renyi order", order, 1, false, kInfinity, true);
  if (!reason_.empty()) return kInfinity;
  double total = gaussian_slope_ * order;
  for (const Term& term : terms_) {
    total += term.count * term.rdp(order);
    if (std::isinf(total)) break;
  }
  SORDINO_CHECK(total >= 0, "a Renyi divergence is negative or not a number");
  return total;
}

double RenyiCurve::Rough(double order) const {
  const std::size_t stride = (terms_.size() + kFewTerms - 1) / kFewTerms;
  double sum = 0;
  double seen = 0;
  double all = 0;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    all += terms_[i].count;
    if (i % stride != 0) continue;
    sum += terms_[i].count * terms_[i].rdp(order);
    seen += terms_[i].count;
  }
  return gaussian_slope_ * order + sum * (all / seen);
}

RenyiEpsilonResult RenyiCurve::ToEpsilon(double log_delta, RenyiConversion conversion) {
  if (terms_.empty() && gaussian_slope_ == 0 && reason_.empty()) return {0, 2};
  if (reason_.empty() && terms_.size() > kManyTerms && log_delta < 0) {
    const auto rough = [this](double order) { return Rough(order); };
    const double order = MinimizeEpsilon(rough, log_delta, conversion).order;
    if (order > 1 && order < kInfinity) {
      const double epsilon = EpsilonFromRenyi((*this)(order), order, log_delta, conversion);
      if (epsilon < kInfinity) return {epsilon, order};
    }
  }
  return MinimizeEpsilon([this](double order) { return (*this)(order); }, log_delta, conversion);
}

RenyiDeltaResult RenyiCurve::ToDelta(double epsilon) {
  if (terms_.empty() && gaussian_slope_ == 0 && reason_.empty()) return {-kInfinity, 2};
  if (reason_.empty() && terms_.size() > kManyTerms) {
    const auto rough = [this](double order) { return Rough(order); };
    const double order = MinimizeDelta(rough, epsilon).order;
    if (order > 1 && order < kInfinity) {
      const double rdp = (*this)(order);
      if (rdp < kInfinity) return {LogDeltaFromRenyi(rdp, order, epsilon), order};
    }
  }
  return MinimizeDelta([this](double order) { return (*this)(order); }, epsilon);
}

std::vector<std::pair<double, double>> RenyiTable(const Event& event,
                                                  std::span<const double> orders) {
  RenyiCurve curve(event);
  std::vector<std::pair<double, double>> table;
  table.reserve(orders.size());
  for (const double order : orders) table.emplace_back(order, curve(order));
  return table;
}

}  // namespace sordino
