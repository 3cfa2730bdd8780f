// Rates of this machine for the choice of NormMethod::kAutomatic on a CPU.
//
// Which form of a norm is the fastest depends on how fast matrix products are beside memory. The
// constants of the cost model (internal/terms/norm_cost.h) are those of one processor. The rates of
// another one are measured with made-up matrices, in a tenth of a second, and kept in a file.
//
// A form that is faster may round differently: with measured rates two runs agree to rounding, and
// not bit for bit. So they are used only where somebody asks for them in this process, which a run
// that has to be repeatable (with a seed, or by several processes) does not. The sensitivity holds
// for every form, and rates depend on no data.
#ifndef SORDINO_GRADIENTS_MEASURED_RATES_H_
#define SORDINO_GRADIENTS_MEASURED_RATES_H_

#include <filesystem>

namespace sordino {

// $XDG_CACHE_HOME/sordino/norm_rates.txt, or below ~/.cache; empty where neither variable is set.
std::filesystem::path RatesFile();

// Reads the file, and where it is not there, not readable or of another machine or number of
// threads, measures and writes it. Where it cannot be written nothing is kept. All Clippers of the
// process use the rates from then on; call it before the first one, after the number of threads is
// set.
void UseMeasuredRates(const std::filesystem::path& file = RatesFile());

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_MEASURED_RATES_H_
