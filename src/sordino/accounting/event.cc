#include "sordino/accounting/event.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <unordered_map>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/sha256.h"

namespace sordino {
namespace {

constexpr int kMaxDepth = 64;
// Integers are stored as doubles, which hold every integer up to here.
constexpr std::uint64_t kMaxExactInteger = std::uint64_t{1} << 53;

// The finaliser of splitmix64.
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

std::uint64_t Multiply(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) {
    throw Error(fmt::format(
        "the event repeats {} times {} releases; counts must stay below 2^64, use fewer.", a, b));
  }
  return a * b;
}

std::uint64_t Add(std::uint64_t a, std::uint64_t b) {
  if (a > std::numeric_limits<std::uint64_t>::max() - b) {
    throw Error(fmt::format(
        "the event repeats {} and {} releases; counts must stay below 2^64, use fewer.", a, b));
  }
  return a + b;
}

double CheckedInteger(std::string_view name, std::uint64_t value) {
  if (value < 1 || value > kMaxExactInteger) {
    throw Error(fmt::format("{} is {}; it must be at least 1 and at most 2^53.", name, value));
  }
  return static_cast<double>(value);
}

void CheckSameAdjacency(Adjacency wanted, Adjacency given) {
  if (wanted == given) return;
  throw Error(fmt::format(
      "an event under {} was combined with one under {}; their epsilons do not compose, so "
      "describe both under one adjacency.",
      AdjacencyName(wanted), AdjacencyName(given)));
}

}  // namespace

Event::Event(Adjacency adjacency, Node node) : adjacency_(adjacency) {
  std::uint64_t hash =
      Mix(static_cast<std::uint64_t>(node.kind) * 4 + static_cast<std::uint64_t>(adjacency) + 1);
  for (double& number : node.numbers) {
    SORDINO_CHECK(!std::isnan(number), "an event holds a number that is not one");
    number += 0.0;  // -0 would print and compare differently from 0
    hash = Mix(hash ^ std::bit_cast<std::uint64_t>(number));
  }
  for (const auto& [child, count] : node.children) {
    hash = Mix(hash ^ child.node_->fingerprint);
    hash = Mix(hash ^ count);
    node.depth = std::max(node.depth, child.node_->depth + 1);
  }
  if (node.depth > kMaxDepth) {
    throw Error(fmt::format("the event is nested {} levels deep; at most {} are allowed.",
                            node.depth, kMaxDepth));
  }
  node.fingerprint = hash;
  node_ = std::make_shared<const Node>(std::move(node));
}

Event Event::Leaf(Kind kind, Adjacency adjacency, std::vector<double> numbers) {
  return Event(adjacency, Node{kind, std::move(numbers), {}});
}

Event Event::Sampled(Kind kind, std::vector<double> numbers, Event child) {
  const Adjacency adjacency = child.adjacency();
  if (child.kind() == Kind::kNone) return child;
  std::vector<std::pair<Event, std::uint64_t>> children;
  children.emplace_back(std::move(child), 1);
  return Event(adjacency, Node{kind, std::move(numbers), std::move(children)});
}

Event Event::None(Adjacency adjacency) { return Leaf(Kind::kNone, adjacency, {}); }

Event Event::Gaussian(NoiseMultiplier noise, Adjacency adjacency) {
  return Leaf(Kind::kGaussian, adjacency, {noise.value()});
}

Event Event::Laplace(NoiseMultiplier noise, Adjacency adjacency) {
  return Leaf(Kind::kLaplace, adjacency, {noise.value()});
}

Event Event::DiscreteGaussian(double sigma, std::uint64_t sensitivity, Adjacency adjacency) {
  CheckRange("the sigma of a discrete Gaussian", sigma, 0, true, kInfinity, true);
  return Leaf(Kind::kDiscreteGaussian, adjacency,
              {sigma, CheckedInteger("the sensitivity of a discrete Gaussian", sensitivity)});
}

Event Event::DiscreteLaplace(double scale, std::uint64_t sensitivity, Adjacency adjacency) {
  CheckRange("the scale of a discrete Laplace", scale, 0, true, kInfinity, true);
  return Leaf(Kind::kDiscreteLaplace, adjacency,
              {scale, CheckedInteger("the sensitivity of a discrete Laplace", sensitivity)});
}

Event Event::Pure(Epsilon epsilon, Adjacency adjacency) {
  return Leaf(Kind::kPure, adjacency, {epsilon.value()});
}

Event Event::Approximate(Epsilon epsilon, Delta delta, Adjacency adjacency) {
  return Leaf(Kind::kApproximate, adjacency, {epsilon.value(), delta.value()});
}

Event Event::Zcdp(Rho rho, Adjacency adjacency) {
  return Leaf(Kind::kZcdp, adjacency, {rho.value()});
}

Event Event::RandomizedResponse(double p, std::uint32_t buckets, Adjacency adjacency) {
  CheckRange("the probability of a uniform report", p, 0, true, 1, false);
  if (buckets < 2) {
    throw Error(
        fmt::format("randomised response was given {} buckets; it must have at least 2.", buckets));
  }
  if (adjacency == Adjacency::kAddRemove) {
    throw Error(
        "randomised response was given add-remove adjacency; it must be replace-one or zero-out, "
        "because the number of reports is visible.");
  }
  return Leaf(Kind::kRandomizedResponse, adjacency, {p, static_cast<double>(buckets)});
}

Event Event::Exponential(Epsilon epsilon, Adjacency adjacency) {
  return Leaf(Kind::kExponential, adjacency, {epsilon.value()});
}

Event Event::Tree(NoiseMultiplier noise, std::uint64_t steps, Adjacency adjacency) {
  return Leaf(Kind::kTree, adjacency,
              {noise.value(), CheckedInteger("the number of steps of a tree", steps)});
}

Event Event::MixtureGaussian(NoiseMultiplier noise,
                             const std::vector<std::pair<double, double>>& parts,
                             Adjacency adjacency) {
  if (parts.empty()) {
    throw Error("a mixture of Gaussians was given no parts; name at least one shift.");
  }
  std::vector<double> numbers = {noise.value()};
  double total = 0;
  for (const auto& [shift, probability] : parts) {
    CheckRange("a shift of a mixture of Gaussians", shift, 0, false, kInfinity, true);
    CheckRange("a probability of a mixture of Gaussians", probability, 0, false, 1, false);
    numbers.push_back(shift);
    numbers.push_back(probability);
    total += probability;
  }
  if (!(std::abs(total - 1) <= 1e-9)) {
    throw Error(fmt::format(
        "the probabilities of a mixture of Gaussians sum to {}; they must sum to 1.", total));
  }
  return Leaf(Kind::kMixtureGaussian, adjacency, std::move(numbers));
}

Event Event::Poisson(SamplingRate rate, Event child) {
  return Sampled(Kind::kPoisson, {rate.value()}, std::move(child));
}

Event Event::Fixed(SamplingRate rate, Event child) {
  return Sampled(Kind::kFixed, {rate.value()}, std::move(child));
}

Event Event::TruncatedPoisson(std::uint64_t dataset, SamplingRate rate, std::uint64_t cap,
                              Event gaussian) {
  if (gaussian.kind() != Kind::kGaussian) {
    throw Error(
        fmt::format("a truncated Poisson batch was given the mechanism '{}'; it must be "
                    "'gaussian'.",
                    EventKindName(gaussian.kind())));
  }
  return Sampled(Kind::kTruncatedPoisson,
                 {CheckedInteger("the size of the dataset", dataset), rate.value(),
                  CheckedInteger("the cap on the batch", cap)},
                 std::move(gaussian));
}

Event Event::Allocation(std::uint64_t batches, Event gaussian) {
  const double number = CheckedInteger("the number of batches of a random allocation", batches);
  if (gaussian.adjacency() == Adjacency::kReplaceOne) {
    throw Error(
        "random allocation was given replace-one adjacency; it must be add-remove or zero-out, "
        "because no bound is proven for replacing a record.");
  }
  for (const auto& [part, count] : gaussian.Flatten()) {
    if (part.kind() == Kind::kGaussian || part.kind() == Kind::kTree) continue;
    throw Error(
        fmt::format("random allocation was given the mechanism '{}'; it must be 'gaussian'.",
                    EventKindName(part.kind())));
  }
  if (batches == 1) return gaussian;
  return Sampled(Kind::kAllocation, {number}, std::move(gaussian));
}

std::vector<std::pair<Event, std::uint64_t>> Event::Merge(
    const std::vector<std::pair<Event, std::uint64_t>>& children) {
  std::vector<std::pair<Event, std::uint64_t>> merged;
  merged.reserve(children.size());
  std::unordered_multimap<std::uint64_t, std::size_t> places;
  places.reserve(children.size());
  const auto add = [&](const Event& event, std::uint64_t count) {
    if (count == 0 || event.kind() == Kind::kNone) return;
    const auto [first, last] = places.equal_range(event.node_->fingerprint);
    for (auto it = first; it != last; ++it) {
      if (merged[it->second].first == event) {
        merged[it->second].second = Add(merged[it->second].second, count);
        return;
      }
    }
    places.emplace(event.node_->fingerprint, merged.size());
    merged.emplace_back(event, count);
  };
  for (const auto& [child, count] : children) {
    if (child.kind() == Kind::kCompose) {
      for (const auto& [grandchild, inner] : child.children()) {
        add(grandchild, Multiply(count, inner));
      }
    } else {
      add(child, count);
    }
  }
  return merged;
}

Event Event::Compose(std::vector<std::pair<Event, std::uint64_t>> children,
                     std::optional<Adjacency> adjacency) {
  const Adjacency common = adjacency.value_or(
      children.empty() ? Adjacency::kAddRemove : children.front().first.adjacency());
  for (const auto& [child, count] : children) CheckSameAdjacency(common, child.adjacency());
  std::vector<std::pair<Event, std::uint64_t>> merged = Merge(children);
  if (merged.empty()) return None(common);
  if (merged.size() == 1 && merged.front().second == 1) return merged.front().first;
  return Event(common, Node{Kind::kCompose, {}, std::move(merged)});
}

Event Event::Compose(std::vector<Event> children, std::optional<Adjacency> adjacency) {
  std::vector<std::pair<Event, std::uint64_t>> counted;
  counted.reserve(children.size());
  for (Event& child : children) counted.emplace_back(std::move(child), 1);
  return Compose(std::move(counted), adjacency);
}

Event Event::Repeat(Event child, std::uint64_t count) {
  std::vector<std::pair<Event, std::uint64_t>> children;
  children.emplace_back(std::move(child), count);
  return Compose(std::move(children));
}

Event Event::Parallel(std::vector<Event> children, std::optional<Adjacency> adjacency) {
  const Adjacency common =
      adjacency.value_or(children.empty() ? Adjacency::kAddRemove : children.front().adjacency());
  std::vector<std::pair<Event, std::uint64_t>> parts;
  std::unordered_multimap<std::uint64_t, std::size_t> places;
  for (Event& child : children) {
    CheckSameAdjacency(common, child.adjacency());
    if (child.kind() == Kind::kNone) continue;
    const auto [first, last] = places.equal_range(child.node_->fingerprint);
    if (std::any_of(first, last,
                    [&](const auto& place) { return parts[place.second].first == child; })) {
      continue;
    }
    places.emplace(child.node_->fingerprint, parts.size());
    parts.emplace_back(std::move(child), 1);
  }
  if (parts.empty()) return None(common);
  if (parts.size() == 1) return parts.front().first;
  return Event(common, Node{Kind::kParallel, {}, std::move(parts)});
}

void Event::AppendTo(std::string* text) const {
  const bool repeated = kind() == Kind::kCompose && children().size() == 1;
  if (!repeated) {
    text->append(EventKindName(kind()));
    if (kind() == Kind::kNone) return;
    text->push_back('(');
  }
  bool first = true;
  const auto separate = [&] {
    if (!first) text->append(", ");
    first = false;
  };
  for (const double number : numbers()) {
    separate();
    fmt::format_to(std::back_inserter(*text), "{}", number);
  }
  for (const auto& [child, count] : children()) {
    separate();
    if (count != 1) fmt::format_to(std::back_inserter(*text), "{}*", count);
    child.AppendTo(text);
  }
  if (!repeated) text->push_back(')');
}

std::string Event::ToString() const {
  std::string text(AdjacencyName(adjacency_));
  text += ": ";
  AppendTo(&text);
  return text;
}

std::string Event::Hash() const { return Sha256Hex(ToString()); }

bool operator==(const Event& a, const Event& b) {
  if (a.adjacency_ != b.adjacency_) return false;
  if (a.node_ == b.node_) return true;
  return a.node_->fingerprint == b.node_->fingerprint && a.node_->kind == b.node_->kind &&
         a.node_->numbers == b.node_->numbers && a.node_->children == b.node_->children;
}

std::vector<std::pair<Event, std::uint64_t>> Event::Flatten() const {
  if (kind() == Kind::kNone) return {};
  if (kind() == Kind::kCompose) return children();
  std::vector<std::pair<Event, std::uint64_t>> one;
  one.emplace_back(*this, 1);
  return one;
}

std::uint64_t Event::TotalCount() const {
  if (kind() == Kind::kNone) return 0;
  if (children().empty()) return 1;
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t total = 0;
  for (const auto& [child, count] : children()) {
    const std::uint64_t inner = child.TotalCount();
    const std::uint64_t part = inner > kMax / count ? kMax : inner * count;
    total = total > kMax - part ? kMax : total + part;
  }
  return total;
}

std::string_view EventKindName(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::kNone:
      return "none";
    case Event::Kind::kGaussian:
      return "gaussian";
    case Event::Kind::kLaplace:
      return "laplace";
    case Event::Kind::kDiscreteGaussian:
      return "discrete-gaussian";
    case Event::Kind::kDiscreteLaplace:
      return "discrete-laplace";
    case Event::Kind::kPure:
      return "pure";
    case Event::Kind::kApproximate:
      return "approximate";
    case Event::Kind::kZcdp:
      return "zcdp";
    case Event::Kind::kRandomizedResponse:
      return "randomized-response";
    case Event::Kind::kExponential:
      return "exponential";
    case Event::Kind::kTree:
      return "tree";
    case Event::Kind::kMixtureGaussian:
      return "mixture-gaussian";
    case Event::Kind::kPoisson:
      return "poisson";
    case Event::Kind::kFixed:
      return "fixed";
    case Event::Kind::kTruncatedPoisson:
      return "truncated-poisson";
    case Event::Kind::kAllocation:
      return "allocation";
    case Event::Kind::kCompose:
      return "compose";
    case Event::Kind::kParallel:
      return "parallel";
  }
  return "unknown";
}

}  // namespace sordino
