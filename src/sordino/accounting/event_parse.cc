// The parser of the text form: recursive descent over
//   text  := adjacency ':' term
//   term  := [count '*'] node
//   node  := 'none' | name '(' argument { ',' argument } ')'
// where each kind knows how many numbers and how many terms it takes.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>

#include "sordino/accounting/event.h"
#include "sordino/accounting/internal/event_kind.h"
#include "sordino/base/error.h"
#include "sordino/base/known_meaning.h"

namespace sordino {
namespace {

constexpr std::size_t kMany = EventKind::kMany;
// Deeper than the 64 levels of an event, because 'compose' around one release adds none; it
// bounds the stack on hostile text.
constexpr int kMaxNesting = 200;

bool IsNameCharacter(char c) { return (c >= 'a' && c <= 'z') || c == '-'; }
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

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
    const EventKind* kind = nullptr;
    for (const EventKind* candidate : EventKinds()) {
      if (candidate->name() == name) kind = candidate;
    }
    if (kind == nullptr) FailUnknown(start, name);
    if (kind->numbers() == 0 && kind->terms() == 0) return kind->New({adjacency_, {}});

    Expect('(');
    std::vector<double> numbers;
    EventTerms terms;
    bool first = true;
    while (numbers.size() < kind->numbers()) {
      if (kind->numbers() == kMany && !first && !Peek(',')) break;
      if (!first) Expect(',');
      first = false;
      numbers.push_back(Number());
    }
    while (terms.size() < kind->terms() && !(kind->terms() == kMany && Peek(')'))) {
      if (!first) Expect(',');
      first = false;
      terms.push_back(Term(nesting + 1));
    }
    Expect(')');
    try {
      return kind->New({adjacency_, std::move(numbers), std::move(terms)});
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
    for (const EventKind* kind : EventKinds()) known.push_back(kind->name());
    if (name.empty()) Fail(place, "the name of an event must stand here, such as 'gaussian'.");
    const std::string nearest = LikelyName(name.substr(0, 40), known);
    Fail(place, fmt::format("'{}' is no event{}", name.substr(0, 40),
                            nearest.empty() ? "; use one such as 'gaussian' or 'compose'."
                                            : fmt::format("; did you mean '{}'?", nearest)));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Adjacency adjacency_ = Adjacency::kAddRemove;
};

}  // namespace

Event Event::Parse(std::string_view text) { return Parser(text).Parse(); }

}  // namespace sordino
