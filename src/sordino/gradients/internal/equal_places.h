// Parts in which the place of an example does not show.
//
// libtorch's kernels for processors take the entries of a tensor in blocks of two vectors (64
// entries of bfloat16 with AVX-512, fewer of other types), and what is left at the end by other
// code, which rounds differently. Of t threads each has 1/t of the entries, and t grows with their
// number up to the threads that there are. With at most two threads, in a part of a multiple of 128
// examples, no share of a thread has anything left at its end, whatever an example has: the code
// that an entry meets does not depend on the example's place. What works on rows (products,
// convolutions, norms, sums) sees the same sizes in all parts, and no row at the edge of a block
// that is narrower than the others (EqualPlaces.* goes over the operations of a script).
//
// So all parts have one size, a function of public numbers, and the last one is padded.
#ifndef SORDINO_GRADIENTS_INTERNAL_EQUAL_PLACES_H_
#define SORDINO_GRADIENTS_INTERNAL_EQUAL_PLACES_H_

#include <c10/core/Device.h>

#include <cstdint>

#include "sordino/gradients/clipper.h"
#include "sordino/gradients/loss_function.h"

namespace sordino {

// What the size of a part is a multiple of. On other devices entries are computed alike, and a part
// has one size for the sake of the kernels that are chosen by it.
std::int64_t PlacesOfPart(c10::Device device);

// Throws Error where this process has more threads than places are equal for.
void CheckEqualPlaces(c10::Device device);

// The least multiple of PlacesOfPart, in whole units, of at least so many examples, and not above
// `most` where that allows one.
std::int64_t EqualPlacesPart(c10::Device device, std::int64_t examples, std::int64_t most,
                             std::int64_t micro_batch);

// The batch, and copies of its first example after it; a copy of the batch in any case, so that it
// lies in memory as all others do.
Batch Padded(const Batch& batch, std::int64_t examples);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_EQUAL_PLACES_H_
