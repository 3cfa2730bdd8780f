// What lstm_launches.cu is called by. A stream is a cudaStream_t, and the result a cudaError_t.
#ifndef SORDINO_GRADIENTS_INTERNAL_TERMS_LSTM_LAUNCHES_H_
#define SORDINO_GRADIENTS_INTERNAL_TERMS_LSTM_LAUNCHES_H_

#include <cstdint>

#include "sordino/gradients/internal/terms/lstm_entries.h"

namespace sordino {

int LaunchLstmOpen(const LstmEntries<float>& entries, void* stream);
int LaunchLstmOpen(const LstmEntries<double>& entries, void* stream);
int LaunchLstmStepBack(const LstmEntries<float>& entries, std::int64_t place, void* stream);
int LaunchLstmStepBack(const LstmEntries<double>& entries, std::int64_t place, void* stream);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_TERMS_LSTM_LAUNCHES_H_
