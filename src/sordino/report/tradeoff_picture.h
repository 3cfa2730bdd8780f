// A picture of a trade-off curve (accounting/tradeoff.h): how well anybody can tell from a release
// whether one record was in the data. Any test for that record lies on the curve or above it.
#ifndef SORDINO_REPORT_TRADEOFF_PICTURE_H_
#define SORDINO_REPORT_TRADEOFF_PICTURE_H_

#include <optional>
#include <span>
#include <string>

#include "sordino/accounting/tradeoff.h"

namespace sordino {

// A self-contained SVG that follows the reader's choice of light or dark: the curve, the diagonal
// of perfect privacy, and the line of the (epsilon, delta) that is claimed, where there is one.
// Points stand in the order of their type I error. The caption may hold any text.
std::string TradeoffSvg(std::span<const TradeoffPoint> curve, std::optional<PrivacyLine> claim,
                        const std::string& caption);

}  // namespace sordino

#endif  // SORDINO_REPORT_TRADEOFF_PICTURE_H_
