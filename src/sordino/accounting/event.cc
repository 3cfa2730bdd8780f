#include "sordino/accounting/event.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

#include "sordino/accounting/internal/event_kind.h"
#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/sha256.h"

namespace sordino {
namespace {

constexpr int kMaxDepth = 64;

// The finaliser of splitmix64.
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace

Event::Event(Adjacency adjacency, Node node) : adjacency_(adjacency) {
  std::uint64_t hash = Mix(node.kind->id() * 4 + static_cast<std::uint64_t>(adjacency) + 1);
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

std::string_view Event::name() const { return kind().name(); }
bool Event::IsNone() const { return node_->kind == &NoneEvent(); }
bool Event::IsComposition() const { return node_->kind == &ComposeEvent(); }
bool Event::IsParallel() const { return node_->kind == &ParallelEvent(); }

double Event::number(std::string_view field) const { return node_->numbers[kind().PlaceOf(field)]; }

std::vector<double> Event::numbers(std::string_view field) const {
  std::vector<double> found;
  for (std::size_t i = kind().PlaceOf(field); i < node_->numbers.size(); i += kind().repeating()) {
    found.push_back(node_->numbers[i]);
    if (kind().repeating() == 0) break;
  }
  return found;
}

void Event::AppendTo(std::string* text) const {
  const bool repeated = IsComposition() && children().size() == 1;
  if (!repeated) {
    text->append(name());
    if (IsNone()) return;
    text->push_back('(');
  }
  bool first = true;
  const auto separate = [&] {
    if (!first) text->append(", ");
    first = false;
  };
  for (const double number : node_->numbers) {
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
  if (IsNone()) return {};
  if (IsComposition()) return children();
  std::vector<std::pair<Event, std::uint64_t>> one;
  one.emplace_back(*this, 1);
  return one;
}

std::uint64_t Event::TotalCount() const {
  if (IsNone()) return 0;
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

}  // namespace sordino
