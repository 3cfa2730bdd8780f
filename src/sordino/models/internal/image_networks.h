// Networks on images (or, for the first two, on anything with numbers):
//
//   logistic   flatten, Linear(inputs, classes)
//   mlp        flatten, Linear(inputs, width) act Linear(width, width) act Linear(width, classes);
//              width 256, ReLU
//   cnn-mnist  the network of Papernot et al. (arXiv 2007.14191) and Tramer and Boneh (2011.11660):
//              Conv(c,16,8x8,stride 2,pad 3) act MaxPool(2,stride 1) Conv(16,32,4x4,stride 2) act
//              MaxPool(2,stride 1) Linear(512,32) act Linear(32,classes) for 28x28 images; ReLU
//   cnn-cifar  the network of the same two papers for colour images: 3x3 convolutions of 32, 32,
//              64, 64, 128, 128, 256 and `classes` channels, averages over 2x2 after each pair, the
//              mean over positions at the end; ReLU
//   wrn-16-4   the wide residual network of Zagoruyko and Komodakis (1605.07146) with group norm in
//              the place of batch norm and standardised weights, as De et al. (2204.13650) train it
//              privately; ReLU
#ifndef SORDINO_MODELS_INTERNAL_IMAGE_NETWORKS_H_
#define SORDINO_MODELS_INTERNAL_IMAGE_NETWORKS_H_

#include "sordino/models/internal/network.h"

namespace sordino::internal {

NetworkPointer MakeLogistic(const ModelShape& shape, const ModelOptions& options);
NetworkPointer MakeMlp(const ModelShape& shape, const ModelOptions& options);
NetworkPointer MakeCnnMnist(const ModelShape& shape, const ModelOptions& options);
NetworkPointer MakeCnnCifar(const ModelShape& shape, const ModelOptions& options);
NetworkPointer MakeWideResNet(const ModelShape& shape, const ModelOptions& options);

}  // namespace sordino::internal

#endif  // SORDINO_MODELS_INTERNAL_IMAGE_NETWORKS_H_
