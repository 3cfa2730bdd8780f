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

std::string Chance(double delta) {
  return delta > 0 ? fmt::format("{:g} (one in {:.6g})", delta, 1 / delta) : "0";
}

}  // namespace sordino::internal
