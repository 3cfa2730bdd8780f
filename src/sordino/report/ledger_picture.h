// A picture of a ledger: how much of a dataset's budget was used, charge by charge.
#ifndef SORDINO_REPORT_LEDGER_PICTURE_H_
#define SORDINO_REPORT_LEDGER_PICTURE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace sordino {

struct LedgerPoint {
  std::int64_t time = 0;  // milliseconds since 1970, UTC
  std::string run;        // what people call it; equal texts are one run
  double used = 0;        // part of the budget that is used after it, in [0, 1]
  // Composed epsilon after it, upper bound; left out where it was not computed.
  std::optional<double> epsilon;
};

// What stands around the picture, and where its budget lies.
struct LedgerPictureText {
  std::string title;
  std::string caption;
  std::string warning;  // in red above everything; empty: none
  double epsilon = 0;   // of the whole budget; infinite: there is none
};

// A self-contained SVG that follows the reader's choice of light or dark: the used part as a
// staircase below the line of the whole budget, one colour a run, in the order of the charges. The
// composed epsilon has the axis on the right, on which the budget is the same line. Without a
// budget there is the composed epsilon only.
std::string LedgerSvg(std::span<const LedgerPoint> points, const LedgerPictureText& text);

}  // namespace sordino

#endif  // SORDINO_REPORT_LEDGER_PICTURE_H_
