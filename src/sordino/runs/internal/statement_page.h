// What statements are written with.
#ifndef SORDINO_RUNS_INTERNAL_STATEMENT_PAGE_H_
#define SORDINO_RUNS_INTERNAL_STATEMENT_PAGE_H_

#include <string>
#include <string_view>
#include <utility>

#include "sordino/base/quantity.h"
#include "sordino/ledger/budget.h"
#include "sordino/report/deployment_record.h"

namespace sordino::internal {

// Paragraphs and points, wrapped at 80 columns.
class Page {
 public:
  void Heading(std::string_view text);
  void Paragraph(std::string_view text) { Wrap("", "", text); }
  void Point(std::string_view text) { Wrap("- ", "  ", text); }
  void Break() { text_ += '\n'; }
  // A line that may be longer than the page: it is for machines.
  void Verbatim(std::string_view text);

  std::string text() && { return std::move(text_); }

 private:
  void Wrap(std::string_view first, std::string_view rest, std::string_view text);

  std::string text_;
};

// Four digits on the safe side of the value, so that what is read still holds.
std::string UpTo(double value);
std::string DownTo(double value);

// With a full stop.
std::string Sentence(const std::string& text);

// Who answers for the release and what it is for, where that was said.
void WritePurpose(Page& page, const ReleasePurpose& purpose);

// "adding or removing one record"
std::string ChangeOf(Adjacency adjacency, const std::string& unit);
// The paragraph that says which data are compared; `data` is "the training data" or the like.
void WriteComparison(Page& page, const std::string& data, const std::string& change,
                     Adjacency adjacency);

// How strongly: epsilon and delta, in words too.
struct StrengthText {
  bool is_planned = false;
  Interval epsilon;
  double delta = 0;
  std::string of;  // what no accountant can prove less for: "these steps"; empty: not said
};
void WriteStrength(Page& page, const StrengthText& text);

// All releases together, where a ledger was named.
struct LedgerText {
  std::string what;  // "run", "fit"
  std::string file;
  Budget budget;
  bool is_planned = false;
  Interval epsilon;  // composed, of everything
  std::string head;
  std::size_t seeded = 0;  // runs in it whose noise came from a typed seed
};
void WriteAllReleases(Page& page, const LedgerText& text);

// One over delta, where it is a number that says something.
std::string Chance(double delta);

}  // namespace sordino::internal

#endif  // SORDINO_RUNS_INTERNAL_STATEMENT_PAGE_H_
