// The parser of the text form: recursive descent over
//   text  := adjacency ':' term
//   term  := [count '*'] node
//   node  := 'none' | name '(' argument { ',' argument } ')'
// where each kind knows how many numbers and how many terms it takes.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "sordino/accounting/event.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr std::size_t kMany = std::numeric_limits<std::size_t>::max();
// Deeper than the 64 levels of an event, because 'compose' around one release adds none; it
// bounds the stack on hostile text.
constexpr int kMaxNesting = 200;

struct Shape {
  Event::Kind kind;
  std::size_t numbers;  // kMany: one or more
  std::size_t terms;    // kMany: any number
};

constexpr std::array<Shape, 18> kShapes = {{{Event::Kind::kNone, 0, 0},
                                            {Event::Kind::kGaussian, 1, 0},
                                            {Event::Kind::kLaplace, 1, 0},
                                            {Event::Kind::kDiscreteGaussian, 2, 0},
                                            {Event::Kind::kDiscreteLaplace, 2, 0},
                                            {Event::Kind::kPure, 1, 0},
                                            {Event::Kind::kApproximate, 2, 0},
                                            {Event::Kind::kZcdp, 1, 0},
                                            {Event::Kind::kRandomizedResponse, 2, 0},
                                            {Event::Kind::kExponential, 1, 0},
                                            {Event::Kind::kTree, 2, 0},
                                            {Event::Kind::kMixtureGaussian, kMany, 0},
                                            {Event::Kind::kPoisson, 1, 1},
                                            {Event::Kind::kFixed, 1, 1},
                                            {Event::Kind::kTruncatedPoisson, 3, 1},
                                            {Event::Kind::kAllocation, 1, 1},
                                            {Event::Kind::kCompose, 0, kMany},
                                            {Event::Kind::kParallel, 0, kMany}}};

bool IsNameCharacter(char c) { return (c >= 'a' && c <= 'z') || c == '-'; }
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::uint64_t WholeNumber(std::string_view name, double value, double most) {
  if (!(value >= 0 && value <= most) || std::floor(value) != value) {
    throw Error(
        fmt::format("{} is {}; it must be a whole number of at most {}.", name, value, most));
  }
  return static_cast<std::uint64_t>(value);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Event Parse() {
    SkipSpace();
    const std::size_t start = at_;
    const std::string_view name = Name();
    try {
      adjacency_ = ParseAdjacency(name);
    } catch (const Error& error) {
      Fail(start, error.what());
    }
    Expect(':');
    const auto [event, count] = Term(0);
    SkipSpace();
    if (at_ != text_.size()) Fail(at_, "there is text behind the event; remove it.");
    return Event::Repeat(event, count);
  }

 private:
  [[noreturn]] void Fail(std::size_t place, std::string_view reason) const {
    throw Error(fmt::format("the event's text is wrong at character {}: {}", place + 1, reason));
  }

  void SkipSpace() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  }

  bool Accept(char c) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void Expect(char c) {
    if (!Accept(c)) Fail(at_, fmt::format("'{}' must stand here.", c));
  }

  std::string_view Name() {
    const std::size_t start = at_;
    while (at_ < text_.size() && IsNameCharacter(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  double Number() {
    SkipSpace();
    double value = 0;
    const char* const end = text_.data() + text_.size();
    const auto [rest, error] = std::from_chars(text_.data() + at_, end, value);
    if (error == std::errc::result_out_of_range) {
      Fail(at_, "the number is outside the range of a double; use one between 1e-308 and 1e308.");
    }
    if (error != std::errc() || std::isnan(value)) Fail(at_, "a number must stand here.");
    at_ = static_cast<std::size_t>(rest - text_.data());
    return value;
  }

  std::pair<Event, std::uint64_t> Term(int nesting) {
    if (nesting > kMaxNesting) Fail(at_, "the event is nested too deeply; at most 64 levels.");
    SkipSpace();
    std::uint64_t count = 1;
    if (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      const auto [rest, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), count);
      if (error != std::errc()) Fail(at_, "the count is too large; it must be below 2^64.");
      at_ = static_cast<std::size_t>(rest - text_.data());
      Expect('*');
      SkipSpace();
    }
    return {NodeAt(nesting), count};
  }

  Event NodeAt(int nesting) {
    const std::size_t start = at_;
    const std::string_view name = Name();
    const Shape* shape = nullptr;
    for (const Shape& candidate : kShapes) {
      if (EventKindName(candidate.kind) == name) shape = &candidate;
    }
    if (shape == nullptr) FailUnknown(start, name);
    if (shape->kind == Event::Kind::kNone) return Event::None(adjacency_);

    Expect('(');
    std::vector<double> numbers;
    std::vector<std::pair<Event, std::uint64_t>> terms;
    bool first = true;
    while (numbers.size() < shape->numbers) {
      if (shape->numbers == kMany && !first && !Peek(',')) break;
      if (!first) Expect(',');
      first = false;
      numbers.push_back(Number());
    }
    while (terms.size() < shape->terms && !(shape->terms == kMany && Peek(')'))) {
      if (!first) Expect(',');
      first = false;
      terms.push_back(Term(nesting + 1));
    }
    Expect(')');
    try {
      return Build(shape->kind, numbers, std::move(terms));
    } catch (const Error& error) {
      Fail(start, error.what());
    }
  }

  bool Peek(char c) {
    SkipSpace();
    return at_ < text_.size() && text_[at_] == c;
  }

  [[noreturn]] void FailUnknown(std::size_t place, std::string_view name) const {
    std::vector<std::string_view> known;
    known.reserve(std::size(kShapes));
    for (const Shape& shape : kShapes) known.push_back(EventKindName(shape.kind));
    if (name.empty()) Fail(place, "the name of an event must stand here, such as 'gaussian'.");
    const std::string nearest = NearestName(name.substr(0, 40), known);
    Fail(place, fmt::format("'{}' is no event{}", name.substr(0, 40),
                            nearest.empty() ? "; use one such as 'gaussian' or 'compose'."
                                            : fmt::format("; did you mean '{}'?", nearest)));
  }

  Event Build(Event::Kind kind, const std::vector<double>& numbers,
              std::vector<std::pair<Event, std::uint64_t>> terms) const {
    constexpr double kMost32 = std::numeric_limits<std::uint32_t>::max();
    constexpr double kMost53 = 9007199254740992;
    const auto whole32 = [&](std::string_view name, std::size_t i) {
      return static_cast<std::uint32_t>(WholeNumber(name, numbers[i], kMost32));
    };
    const auto child = [&] { return Event::Repeat(std::move(terms[0].first), terms[0].second); };
    switch (kind) {
      case Event::Kind::kNone:
        break;
      case Event::Kind::kGaussian:
        return Event::Gaussian(NoiseMultiplier(numbers[0]), adjacency_);
      case Event::Kind::kLaplace:
        return Event::Laplace(NoiseMultiplier(numbers[0]), adjacency_);
      case Event::Kind::kDiscreteGaussian:
        return Event::DiscreteGaussian(
            numbers[0], WholeNumber("the sensitivity", numbers[1], kMost53), adjacency_);
      case Event::Kind::kDiscreteLaplace:
        return Event::DiscreteLaplace(
            numbers[0], WholeNumber("the sensitivity", numbers[1], kMost53), adjacency_);
      case Event::Kind::kPure:
        return Event::Pure(Epsilon(numbers[0]), adjacency_);
      case Event::Kind::kApproximate:
        return Event::Approximate(Epsilon(numbers[0]), Delta(numbers[1]), adjacency_);
      case Event::Kind::kZcdp:
        return Event::Zcdp(Rho(numbers[0]), adjacency_);
      case Event::Kind::kRandomizedResponse:
        return Event::RandomizedResponse(numbers[0], whole32("the number of buckets", 1),
                                         adjacency_);
      case Event::Kind::kExponential:
        return Event::Exponential(Epsilon(numbers[0]), adjacency_);
      case Event::Kind::kTree:
        return Event::Tree(NoiseMultiplier(numbers[0]),
                           WholeNumber("the number of steps", numbers[1], kMost53), adjacency_);
      case Event::Kind::kMixtureGaussian: {
        if (numbers.size() % 2 == 0) {
          throw Error(
              "a mixture of Gaussians was given a shift without its probability; name both.");
        }
        std::vector<std::pair<double, double>> parts;
        for (std::size_t i = 1; i < numbers.size(); i += 2) {
          parts.emplace_back(numbers[i], numbers[i + 1]);
        }
        return Event::MixtureGaussian(NoiseMultiplier(numbers[0]), parts, adjacency_);
      }
      case Event::Kind::kPoisson:
        return Event::Poisson(SamplingRate(numbers[0]), child());
      case Event::Kind::kFixed:
        return Event::Fixed(SamplingRate(numbers[0]), child());
      case Event::Kind::kTruncatedPoisson:
        return Event::TruncatedPoisson(
            WholeNumber("the size of the dataset", numbers[0], kMost53), SamplingRate(numbers[1]),
            WholeNumber("the cap on the batch", numbers[2], kMost53), child());
      case Event::Kind::kAllocation:
        return Event::Allocation(WholeNumber("the number of batches", numbers[0], kMost53),
                                 child());
      case Event::Kind::kCompose:
        return Event::Compose(std::move(terms), adjacency_);
      case Event::Kind::kParallel: {
        std::vector<Event> parts;
        parts.reserve(terms.size());
        for (auto& [part, count] : terms) parts.push_back(Event::Repeat(std::move(part), count));
        return Event::Parallel(std::move(parts), adjacency_);
      }
    }
    return Event::None(adjacency_);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Adjacency adjacency_ = Adjacency::kAddRemove;
};

}  // namespace

Event Event::Parse(std::string_view text) { return Parser(text).Parse(); }

}  // namespace sordino
