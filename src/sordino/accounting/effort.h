// How fine the engines resolve a loss. Every bound holds at either effort; a quick one is wider. It
// decides most steps of a search (calibration.cc) and asks many questions of a test in little time.
#ifndef SORDINO_ACCOUNTING_EFFORT_H_
#define SORDINO_ACCOUNTING_EFFORT_H_

#include <cstdint>

namespace sordino {

enum class Effort : std::uint8_t { kFull, kQuick };

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_EFFORT_H_
