// The bins of a histogram: their checks, their names, and which of them a value falls into.
#ifndef SORDINO_MECHANISMS_INTERNAL_HISTOGRAM_BINS_H_
#define SORDINO_MECHANISMS_INTERNAL_HISTOGRAM_BINS_H_

#include <string>
#include <vector>

#include "sordino/mechanisms/table_release.h"

namespace sordino::internal {

// Throws Error unless there are two bins or more, whose edges increase or whose categories differ.
void CheckBins(const std::string& column, const HistogramBins& bins);
// The bin of a value between edges, or -1.
double EdgeBin(const std::vector<double>& edges, double value);
// The categories, or "[0,18)", "[18,65]".
std::vector<std::string> BinNames(const HistogramBins& bins);

}  // namespace sordino::internal

#endif  // SORDINO_MECHANISMS_INTERNAL_HISTOGRAM_BINS_H_
