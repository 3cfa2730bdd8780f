// Draws of the records that make up a batch.
//
//   Poisson     every record enters independently with the probability EffectiveRate(rate)
//   fixed-size  a uniform subset of `batch` records without replacement, in uniform random order
//   allocation  every record enters one of the next `batches` batches, chosen uniformly and
//               independently of all others; then records are allocated anew
//
// The indices are private: they are drawn from a cryptographic generator, because amplification by
// subsampling holds only against those who cannot tell who was sampled.
#ifndef SORDINO_SAMPLING_SAMPLER_H_
#define SORDINO_SAMPLING_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/random/generator.h"

namespace sordino {

// Increasing indices below `records`; may be empty.
std::vector<std::uint64_t> SamplePoisson(Generator& generator, SamplingRate rate,
                                         std::uint64_t records);

// `batch` distinct indices below `records` in random order: every ordered selection is equally
// likely, without rounding. Throws Error when batch > records.
std::vector<std::uint64_t> SampleFixedSize(Generator& generator, std::uint64_t batch,
                                           std::uint64_t records);

// The t of allocations whose batches hold a record with probability 1 / t. Throws Error when the
// rate is not one over a whole number.
std::int64_t AllocationBatches(SamplingRate rate);

// One random allocation (accounting/allocation.h): `batches` lists of increasing indices below
// `records`, in which every index stands once, at a uniform place without rounding. Lists may be
// empty, and their sizes are as private as the indices. An allocation of which a batch was used
// must not be used again after a crash: the charge is for one pass over it. Throws Error when
// batches is 0.
std::vector<std::vector<std::uint64_t>> SampleAllocation(Generator& generator,
                                                         std::uint64_t batches,
                                                         std::uint64_t records);

}  // namespace sordino

#endif  // SORDINO_SAMPLING_SAMPLER_H_
