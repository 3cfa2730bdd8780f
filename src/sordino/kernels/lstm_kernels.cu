#include "sordino/kernels/lstm_entries.h"

#include <cuda_runtime_api.h>

namespace sordino {
namespace {

constexpr int kThreads = 128;

template <typename Real>
__device__ bool Entry(const LstmEntries<Real>& entries, std::int64_t& sequence, std::int64_t& k) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  sequence = index / entries.hidden;
  k = index % entries.hidden;
  return sequence < entries.batch;
}

template <typename Real>
__global__ void OpenEntries(const LstmEntries<Real> entries) {
  std::int64_t sequence;
  std::int64_t k;
  if (Entry(entries, sequence, k)) entries.Open(sequence, k);
}

template <typename Real>
__global__ void StepEntriesBack(const LstmEntries<Real> entries, std::int64_t place) {
  std::int64_t sequence;
  std::int64_t k;
  if (Entry(entries, sequence, k)) entries.StepBack(sequence, k, place);
}

template <typename Real>
unsigned Blocks(const LstmEntries<Real>& entries) {
  return static_cast<unsigned>((entries.batch * entries.hidden + kThreads - 1) / kThreads);
}

template <typename Real>
void Open(const LstmEntries<Real>& entries, void* stream) {
  OpenEntries<<<Blocks(entries), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(entries);
}

template <typename Real>
void StepBack(const LstmEntries<Real>& entries, std::int64_t place, void* stream) {
  StepEntriesBack<<<Blocks(entries), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(entries,
                                                                                       place);
}

}  // namespace

void LaunchLstmOpen(const LstmEntries<float>& entries, void* stream) {
  Open(entries, stream);
}
void LaunchLstmOpen(const LstmEntries<double>& entries, void* stream) {
  Open(entries, stream);
}
void LaunchLstmStepBack(const LstmEntries<float>& entries, std::int64_t place, void* stream) {
  StepBack(entries, place, stream);
}
void LaunchLstmStepBack(const LstmEntries<double>& entries, std::int64_t place, void* stream) {
  StepBack(entries, place, stream);
}

}  // namespace sordino
