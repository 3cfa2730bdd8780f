// mobilenet: the MobileNetV2 of Sandler et al. (arXiv 1801.04381) at half width, with the batch
// norms folded into the convolutions, and a linear classifier.
//
// Images come as pixels in [0, 1] and are seen as 2x - 1; grey images are seen as colour images.
// One with fewer than 128 pixels on a side is resized to 128x128 (bilinear); larger ones are taken
// as they are. Padding is TensorFlow's SAME: at stride 2 the border of an even side goes to the
// right and the bottom. The backbone ends in the mean over positions of 1,280 channels, and each
// example's row of them is centred and scaled to the norm 5, so the gradient of the classifier is
// bounded before it is clipped. The input of its bias is 1: beside features of norm 1 it would take
// half of a clipped gradient's squared norm, beside these it takes 4 %.
//
// When the whole backbone is frozen these rows are the features of the model.
#ifndef SORDINO_MODELS_INTERNAL_MOBILENET_H_
#define SORDINO_MODELS_INTERNAL_MOBILENET_H_

#include "sordino/models/internal/network.h"

namespace sordino::internal {

inline constexpr std::int64_t kMobileNetFeatures = 1280;
inline constexpr std::int64_t kMobileNetPixels = 128;
inline constexpr double kMobileNetNorm = 5;

// Takes weights under its own names, or under those of the feature vector of TensorFlow Hub
// (imagenet/mobilenet_v2_050_224: "expanded_conv_1/expand/weights", height, width, in, out).
NetworkPointer MakeMobileNet(const ModelShape& shape, const ModelOptions& options);

}  // namespace sordino::internal

#endif  // SORDINO_MODELS_INTERNAL_MOBILENET_H_
