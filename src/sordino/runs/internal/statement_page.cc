#include "sordino/runs/internal/statement_page.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <sstream>

namespace sordino::internal {
namespace {

constexpr std::size_t kColumns = 80;

std::string Directed(double value, bool up) {
  if (!std::isfinite(value)) return "infinity";
  std::string text = fmt::format("{:.4g}", value);
  double shown = 0;
  std::from_chars(text.data(), text.data() + text.size(), shown);
  if ((up ? shown >= value : shown <= value) || value <= 0) return text;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 3);
  return fmt::format("{:.4g}", up ? shown + unit : shown - unit);
}

}  // namespace

void Page::Heading(std::string_view text) {
  if (!text_.empty()) text_ += '\n';
  text_ += fmt::format("{}\n{}\n", text, std::string(text.size(), '-'));
}

void Page::Verbatim(std::string_view text) { text_ += fmt::format("{}\n", text); }

void Page::Wrap(std::string_view first, std::string_view rest, std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string line(first);
  bool empty = true;
  for (std::string word; in >> word;) {
    if (!empty && line.size() + 1 + word.size() > kColumns) {
      text_ += line + '\n';
      line = rest;
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
  }
  text_ += line + '\n';
}

std::string UpTo(double value) { return Directed(value, true); }
std::string DownTo(double value) { return Directed(value, false); }

std::string Sentence(const std::string& text) {
  return text.empty() || text.back() == '.' ? text : text + '.';
}

void WritePurpose(Page& page, const ReleasePurpose& purpose) {
  const std::string sentence = PurposeSentence(purpose);
  if (!sentence.empty()) page.Paragraph(sentence);
}

std::string Chance(double delta) {
  return delta > 0 ? fmt::format("{:g} (one in {:.6g})", delta, 1 / delta) : "0";
}

std::string ChangeOf(Adjacency adjacency, const std::string& unit) {
  switch (adjacency) {
    case Adjacency::kAddRemove:
      return fmt::format("adding or removing {}", unit);
    case Adjacency::kReplaceOne:
      return fmt::format("replacing {} by any other", unit);
    case Adjacency::kZeroOut:
      return fmt::format("blanking out {}", unit);
  }
  return unit;
}

void WriteComparison(Page& page, const std::string& data, const std::string& change,
                     Adjacency adjacency) {
  page.Paragraph(fmt::format(
      "The guarantee compares {} with the same data after {} ({} adjacency).{}", data, change,
      AdjacencyName(adjacency),
      adjacency == Adjacency::kAddRemove
          ? " So it also hides whether somebody is in the data at all."
          : " It hides what a record says; the number of records is taken to be known."));
}

void WriteStrength(Page& page, const StrengthText& text) {
  page.Heading("How strongly");
  page.Paragraph(fmt::format("Epsilon {} {}, delta {:g}.", text.is_planned ? "would be" : "is",
                             UpTo(text.epsilon.upper), text.delta));
  page.Paragraph(fmt::format(
      "In words: whoever sees the trained model and everything that was written beside it, and "
      "knows all other records, can tell which of the two cases is true at odds of at most "
      "e^epsilon = {} times what they were before, except with probability at most delta = {}.",
      UpTo(std::exp(text.epsilon.upper)), Chance(text.delta)));
  if (text.of.empty()) return;
  page.Paragraph(fmt::format(
      "Epsilon is an upper bound that was computed with directed rounding; no accountant can prove "
      "less than {} for {}.",
      DownTo(text.epsilon.lower), text.of));
}

void WriteAllReleases(Page& page, const LedgerText& text) {
  if (text.file.empty()) return;
  page.Heading("All releases together");
  page.Paragraph(fmt::format(
      "The {} is charged to the ledger '{}', whose budget for everything that is ever released "
      "from the data is epsilon {:g} at delta {:g}. The ledger keeps to it whatever was chosen "
      "after what was seen.",
      text.what, text.file, text.budget.epsilon.value(), text.budget.delta.value()));
  if (text.is_planned) return;
  page.Paragraph(fmt::format(
      "With this {}, all that was charged composes to epsilon {} (exact if all of it had been "
      "fixed in advance). The last entry of the ledger was then:",
      text.what, UpTo(text.epsilon.upper)));
  page.Verbatim(text.head);
  if (text.seeded == 0) return;
  page.Paragraph(fmt::format(
      "NOT PRIVATE: the noise of {} of the runs in this ledger came from a typed seed. Whoever "
      "knows the seed knows what they were computed from, and no epsilon bounds all releases.",
      text.seeded));
}

}  // namespace sordino::internal
