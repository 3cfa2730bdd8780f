// The text form of a schedule: what is parsed can be printed, parsed again, and evaluated.
#include <cmath>

#include "fuzz_target.h"
#include "sordino/schedules/schedule.h"

using namespace sordino;  // NOLINT: a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::Run([&] {
    const Schedule schedule = Schedule::Parse(fuzz::AsText(data, size));
    fuzz::Require(Schedule::Parse(schedule.ToString()) == schedule,
                  "the printed schedule is another one");
    for (const std::int64_t step : {0, 1, 7, 998, 999}) {
      const double factor = schedule.Factor(step, 1000);
      fuzz::Require(std::isfinite(factor) && factor >= 0, "a factor is negative or not finite");
    }
  });
}
