#include "sordino/accounting/renyi.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <memory>
#include <utility>

#include "sordino/accounting/internal/outcomes.h"
#include "sordino/accounting/internal/poisson_guarantees.h"
#include "sordino/accounting/internal/renyi_bounds.h"
#include "sordino/accounting/internal/renyi_gaussian.h"
#include "sordino/accounting/internal/renyi_moments.h"
#include "sordino/base/check.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

using Kind = Event::Kind;

// Below this noise the quadrature's steps are too many, and the unsampled bound, which then differs
// by little, takes over.
constexpr double kMinSampledNoise = 0.01;
constexpr double kMinNoise = 1e-100;
// Beyond these the atoms of a loss would fill memory; the pure bound takes over.
constexpr double kMaxLaplaceLambda = 2000;
constexpr double kMaxDiscreteAtoms = 100000;

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

template <typename Moments, typename... Args>
RenyiFunction FromMoments(Args&&... args) {
  auto shared = std::make_shared<Moments>(std::forward<Args>(args)...);
  return [shared](double order) { return shared->Renyi(order); };
}

// The atoms of a mechanism whose loss has a symmetric dominating pair; empty where there is none.
std::optional<LossAtoms> SymmetricAtoms(const Event& event) {
  const std::vector<double>& n = event.numbers();
  switch (event.kind()) {
    case Kind::kLaplace: {
      const double lambda = 1 / n[0];
      return lambda <= kMaxLaplaceLambda ? LaplaceAtoms(lambda) : PureAtoms(lambda);
    }
    case Kind::kDiscreteLaplace: {
      if (n[1] > kMaxDiscreteAtoms) return PureAtoms(n[1] / n[0]);
      return DiscreteLaplaceAtoms(n[0], static_cast<std::uint64_t>(n[1]));
    }
    case Kind::kPure:
      if (std::isinf(n[0])) return std::nullopt;
      return PureAtoms(n[0]);
    case Kind::kApproximate:
      if (std::isinf(n[0]) || n[1] > 0) return std::nullopt;
      return PureAtoms(n[0]);
    case Kind::kRandomizedResponse: {
      const double p = n[0];
      const double k = n[1];
      // Own bucket 1 - p + p/k, any other p/k.
      if (event.adjacency() == Adjacency::kReplaceOne) {
        const double log_other = std::log(p) - std::log(k);
        const double loss = std::log1p((1 - p) * k / p);
        return LossAtoms{{log_other, loss}, {log_other + loss, -loss}};
      }
      // Against a uniform report the pair is not symmetric; its larger loss bounds both.
      return PureAtoms(std::max(std::log1p((1 - p) * (k - 1)), -std::log(p)));
    }
    default:
      return std::nullopt;
  }
}

RenyiFunction MakeRenyi(const Event& event);

RenyiFunction MakeZeroOutResponse(double p, double k) {
  // Own report against a uniform one: losses log(k (1-p) + p) and log p.
  const double high = std::log1p((1 - p) * (k - 1));
  const double low = std::log(p);
  const double log_one = -std::log(k);
  const double log_rest = std::log1p(-1 / k);
  return Larger(
      FromNodes({MakeLossNode(log_one, high), MakeLossNode(log_rest, low)}),
      FromNodes({MakeLossNode(log_one + high, -high), MakeLossNode(log_rest + low, -low)}));
}

RenyiFunction MakePoissonReplaced(double q, const Event& child) {
  if (const std::optional<double> sigma = EquivalentGaussian(child)) {
    if (q == 1) return Linear(4 / (2 * *sigma * *sigma));
    return FromMoments<ReplacedGaussian>(q, *sigma);
  }
  const std::vector<double>& n = child.numbers();
  if (child.kind() == Kind::kDiscreteGaussian) {
    const double noise = n[0] / n[1];
    if (q == 1) return Linear(4 / (2 * noise * noise));
    return FromMoments<ReplacedGaussian>(q, noise, 1 / n[0]);
  }
  if (child.kind() == Kind::kDiscreteLaplace && n[1] <= kMaxDiscreteAtoms) {
    if (const auto outcomes = DiscreteLaplaceOutcomes(n[0], n[1], q, q)) {
      std::vector<LossNode> nodes;
      nodes.reserve(outcomes->size());
      for (const Outcome& o : *outcomes) nodes.push_back(MakeLossNode(o.log_q, o.loss));
      return FromNodes(std::move(nodes));
    }
  }
  if (child.kind() == Kind::kLaplace && 1 / n[0] <= kMaxLaplaceLambda) {
    return FromNodes(ReplacedLaplaceNodes(1 / n[0], q));
  }
  const Event doubled = DoubledReach(child);
  if (const std::optional<LossAtoms> atoms = SymmetricAtoms(doubled)) {
    return FromNodes(HalfProfileNodes(*atoms, q));
  }
  return FixedRenyiBound(q, MakeRenyi(doubled));
}

RenyiFunction MakePoisson(double q, const Event& child) {
  if (q == 0) return Linear(0);
  if (child.kind() == Kind::kPoisson) {
    const Event merged = MergedSamplers(Event::Poisson(SamplingRate(q), child));
    return MakePoisson(merged.numbers()[0], merged.children()[0].first);
  }
  if (child.adjacency() == Adjacency::kReplaceOne) return MakePoissonReplaced(q, child);
  if (const std::optional<double> sigma = EquivalentGaussian(child)) {
    if (q == 1 || *sigma < kMinSampledNoise) return Linear(1 / (2 * *sigma * *sigma));
    return FromMoments<SampledGaussian>(q, *sigma);
  }
  if (child.kind() == Kind::kDiscreteGaussian) {
    const double noise = child.numbers()[0] / child.numbers()[1];
    if (q == 1 || noise < kMinSampledNoise) return Linear(1 / (2 * noise * noise));
    return FromMoments<SampledGaussian>(q, noise, 1 / child.numbers()[0]);
  }
  if (child.kind() == Kind::kMixtureGaussian) {
    std::vector<std::pair<double, double>> parts = MixtureParts(child);
    for (auto& [shift, probability] : parts) probability *= q;
    parts.emplace_back(0, 1 - q);
    return FromMoments<MixtureGaussianMoments>(child.numbers()[0], std::move(parts));
  }
  const auto both = [q](const LossAtoms& atoms) {
    return Larger(FromNodes(PoissonNodes(atoms, q, false)),
                  FromNodes(PoissonNodes(atoms, q, true)));
  };
  if (const std::optional<LossAtoms> atoms = SymmetricAtoms(child)) return both(*atoms);
  RenyiFunction bound = PoissonRenyiBound(q, MakeRenyi(child));
  if (child.kind() != Kind::kExponential) return bound;
  return Smaller(std::move(bound), both(PureAtoms(child.numbers()[0])));
}

RenyiFunction MakeFixed(double q, const Event& sampled) {
  if (q == 0) return Linear(0);
  const Event child = FixedReach(sampled);
  if (q == 1) return MakeRenyi(child);
  if (const std::optional<double> sigma = EquivalentGaussian(child)) {
    return FromMoments<HalfProfileGaussian>(q, *sigma);
  }
  if (const std::optional<LossAtoms> atoms = SymmetricAtoms(child)) {
    return FromNodes(HalfProfileNodes(*atoms, q));
  }
  return FixedRenyiBound(q, MakeRenyi(child));
}

// Poisson batches cut to `cap` records, as dominating_pair.h describes them. Whether the others
// fill the batch is drawn alike for both neighbours, and the moment E_Q[(P/Q)^alpha] is jointly
// convex, so it is at most its mean over both cases. A batch that is not full is one without a cap.
// In a full one the record pushes another one out: two units, at a rate that is no larger than q.
RenyiFunction MakeTruncatedPoisson(const Event& event) {
  const double dataset = event.numbers()[0];
  const double q = event.numbers()[1];
  const double cap = event.numbers()[2];
  const double sigma = event.children()[0].first.numbers()[0];
  if (q == 0) return Linear(0);
  const Event plain = Event::Gaussian(NoiseMultiplier(sigma), event.adjacency());
  RenyiFunction one = MakePoisson(q, plain);
  RenyiFunction two;
  if (event.adjacency() == Adjacency::kAddRemove) {
    two = MakePoisson(q, Event::Gaussian(NoiseMultiplier(sigma / 2), event.adjacency()));
  } else if (q == 1 || sigma / 2 < kMinSampledNoise) {
    two = Linear(4 / (2 * sigma * sigma));
  } else {
    two = FromMoments<HalfProfileGaussian>(q, sigma / 2);
  }
  const double full = cap > dataset ? 0 : boost::math::ibeta(cap, dataset - cap + 1, q);
  if (full == 0) return one;
  const double log_full = std::min(0.0, std::log(full) + 1e-9);
  return [one, two, log_full](double order) {
    const double a = order - 1;
    const double small = one(order);
    const double large = std::max(small, two(order));
    if (a == 0) return small + std::exp(log_full) * (large - small);
    // log((1 - f) e^(a small) + f e^(a large)) / a.
    const double gap = a * (large - small);
    const double mixed =
        gap > 600 ? log_full + gap : std::log1p(std::exp(log_full) * std::expm1(gap));
    return std::min(large, small + std::max(0.0, mixed) / a * (1 + 1e-12));
  };
}

RenyiFunction MakeRenyi(const Event& event) {
  const std::vector<double>& n = event.numbers();
  if (const std::optional<double> sigma = EquivalentGaussian(event)) {
    return Linear(1 / (2 * *sigma * *sigma));
  }
  switch (event.kind()) {
    case Kind::kDiscreteGaussian:
      return Linear(n[1] * n[1] / (2 * n[0] * n[0]));
    case Kind::kZcdp:
      return Linear(n[0]);
    case Kind::kExponential:
      return [epsilon = n[0]](double order) { return BoundedRangeRenyi(epsilon, order); };
    case Kind::kMixtureGaussian:
      return FromMoments<MixtureGaussianMoments>(n[0], MixtureParts(event));
    case Kind::kRandomizedResponse:
      if (event.adjacency() != Adjacency::kReplaceOne) return MakeZeroOutResponse(n[0], n[1]);
      break;
    case Kind::kPoisson:
      return MakePoisson(n[0], event.children()[0].first);
    case Kind::kFixed:
      return MakeFixed(n[0], event.children()[0].first);
    case Kind::kTruncatedPoisson:
      return MakeTruncatedPoisson(event);
    case Kind::kAllocation:  // the record's place told, one step is left
      return MakeRenyi(event.children()[0].first);
    case Kind::kCompose: {
      auto curve = std::make_shared<RenyiCurve>(event);
      return [curve](double order) { return (*curve)(order); };
    }
    case Kind::kParallel: {
      RenyiFunction worst = Linear(0);
      for (const auto& [part, count] : event.children()) {
        worst = Larger(std::move(worst), MakeRenyi(part));
      }
      return worst;
    }
    default:
      break;
  }
  if (const std::optional<LossAtoms> atoms = SymmetricAtoms(event)) {
    return FromNodes(PlainNodes(*atoms));
  }
  return event.kind() == Kind::kNone ? Linear(0) : Infinite();
}

}  // namespace

std::string RenyiInapplicable(const Event& event) {
  if (event.kind() == Kind::kApproximate && event.numbers()[1] > 0) {
    return fmt::format(
        "an approximate event with delta {} has no finite Renyi divergence at any order",
        event.numbers()[1]);
  }
  const bool pure_leaf = event.kind() == Kind::kPure || event.kind() == Kind::kApproximate ||
                         event.kind() == Kind::kExponential;
  if (pure_leaf && std::isinf(event.numbers()[0])) {
    return "an event with infinite epsilon has no finite Renyi divergence";
  }
  const bool scaled_leaf = event.kind() == Kind::kGaussian || event.kind() == Kind::kTree ||
                           event.kind() == Kind::kDiscreteGaussian ||
                           event.kind() == Kind::kMixtureGaussian ||
                           event.kind() == Kind::kLaplace || event.kind() == Kind::kDiscreteLaplace;
  if (scaled_leaf && event.numbers()[0] < kMinNoise) {
    return fmt::format("noise of {} is too small for a finite Renyi divergence in doubles",
                       event.numbers()[0]);
  }
  if ((event.kind() == Kind::kPoisson || event.kind() == Kind::kFixed) && event.numbers()[0] == 0) {
    return "";
  }
  for (const auto& [child, count] : event.children()) {
    std::string reason = RenyiInapplicable(child);
    if (!reason.empty()) return reason;
  }
  return "";
}

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
      terms_.push_back({times, MakeRenyi(part)});
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
