// What is read from the output of a cell.
#ifndef SORDINO_EXPERIMENTS_MEASURED_VALUE_H_
#define SORDINO_EXPERIMENTS_MEASURED_VALUE_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/experiments/experiment.h"

namespace sordino {

// A number, or a series of them. NaN stands for null, which commands print for infinity.
struct MeasuredValue {
  bool is_series = false;
  double number = 0;
  std::vector<double> x;
  std::vector<double> y;
};

// The measures of the part, in their order, from what the command printed and from its run folder.
// Throws Error where the output does not have what a measure asks for.
std::vector<MeasuredValue> ReadMeasures(const Part& part, std::string_view output,
                                        const std::filesystem::path& run);

}  // namespace sordino

#endif  // SORDINO_EXPERIMENTS_MEASURED_VALUE_H_
