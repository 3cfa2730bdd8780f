#include "sordino/gradients/internal/terms/lstm_launches.h"

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
int Open(const LstmEntries<Real>& entries, void* stream) {
  OpenEntries<<<Blocks(entries), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(entries);
  return static_cast<int>(cudaGetLastError());
}

template <typename Real>
int StepBack(const LstmEntries<Real>& entries, std::int64_t place, void* stream) {
  StepEntriesBack<<<Blocks(entries), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(entries,
                                                                                       place);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

int LaunchLstmOpen(const LstmEntries<float>& entries, void* stream) {
  return Open(entries, stream);
}
int LaunchLstmOpen(const LstmEntries<double>& entries, void* stream) {
  return Open(entries, stream);
}
int LaunchLstmStepBack(const LstmEntries<float>& entries, std::int64_t place, void* stream) {
  return StepBack(entries, place, stream);
}
int LaunchLstmStepBack(const LstmEntries<double>& entries, std::int64_t place, void* stream) {
  return StepBack(entries, place, stream);
}

}  // namespace sordino
