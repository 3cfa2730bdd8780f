// What samplers whose batches have a random size share.
#ifndef SORDINO_SAMPLING_INTERNAL_RANDOM_BATCH_SIZE_H_
#define SORDINO_SAMPLING_INTERNAL_RANDOM_BATCH_SIZE_H_

#include <cstdint>
#include <string>

#include "sordino/sampling/sampler_component.h"

namespace sordino::internal {

// The probability that is paid for batches that are too large.
double RandomOverflow();

// The largest batch where every record enters independently with the probability `rate`: exceeded
// with the probability RandomOverflow() at most.
std::int64_t MaxRandomBatch(const SamplingPlan& plan, double rate);

// Batch or rate, where one follows from the other and the number of records.
void CompleteBatchOrRate(SamplingPlan& plan);

// Throws Error with the sentence unless the condition holds.
void Require(bool condition, const std::string& sentence);

}  // namespace sordino::internal

#endif  // SORDINO_SAMPLING_INTERNAL_RANDOM_BATCH_SIZE_H_
