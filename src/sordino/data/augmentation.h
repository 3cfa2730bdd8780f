// Random changes to an image that leave its label: mirrored left to right, shifted by a few pixels.
//
// Augmentation multiplicity (De, Berrada, Hayes, Smith, Balle, arXiv 2204.13650): with K copies of
// an example its loss is the mean of the losses of the copies, so their gradients are averaged
// before they are clipped, and the sensitivity stays that of one example.
//
// The seed must be secret and fresh for each batch. Copies are drawn by place in the batch, so a
// record that is missing gives all later ones other copies. Where nobody knows the draws, that
// changes nothing: each example's copies have the same distribution at every place, the draws of
// the common examples of two neighbouring datasets can be matched, and what is left is one example.
// Draws that can be computed from a public seed would make all later gradients differ.
#ifndef SORDINO_DATA_AUGMENTATION_H_
#define SORDINO_DATA_AUGMENTATION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sordino {

struct AugmentationOptions {
  bool flip = false;              // mirrored with probability 1/2
  std::int64_t shift = 0;         // shifted by up to this many pixels each way, edges reflected
  std::int64_t multiplicity = 1;  // K copies of each example, each drawn anew

  bool Changes() const { return flip || shift > 0 || multiplicity > 1; }
};

// Throws Error for a shift that is negative or not smaller than the images, and for K below 1.
void CheckAugmentation(const AugmentationOptions& options, std::int64_t height, std::int64_t width);

// uint8 [n, c, h, w] on a CPU to [n, K, c, h, w] when K > 1, else [n, c, h, w]. The same seed gives
// the same copies whatever the number of threads.
at::Tensor Augment(const at::Tensor& images, const AugmentationOptions& options,
                   std::uint64_t seed);

}  // namespace sordino

#endif  // SORDINO_DATA_AUGMENTATION_H_
