// The card of a run: a model card and a record for data protection as one JSON object, for people
// who file them. It holds what the page of the same content shows, and nothing else.
#ifndef SORDINO_REPORT_RUN_CARD_H_
#define SORDINO_REPORT_RUN_CARD_H_

#include <string>

#include "sordino/report/page.h"

namespace sordino {

// Ends in a line break. Throws Error where the content has not exactly one run.
std::string RunCard(const ReportContent& content);

}  // namespace sordino

#endif  // SORDINO_REPORT_RUN_CARD_H_
