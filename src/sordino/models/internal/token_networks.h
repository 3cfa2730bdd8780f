// Networks on sentences of token ids, where 0 is padding:
//
//   lstm         Embedding(vocabulary, width), LSTM(width, width), the mean of its outputs over the
//                tokens that are not padding, Linear(width, classes); width 100
//   transformer  Embedding plus learned positions, two pre-norm layers with 4 heads and a
//                feed-forward width of 4 times the width, a last norm, the mean over the tokens
//                that are not padding, Linear(width, classes); width 128, ReLU
//
// No token looks at padding, so an example's logits do not depend on how much of it stands
// after the sentence.
#ifndef SORDINO_MODELS_INTERNAL_TOKEN_NETWORKS_H_
#define SORDINO_MODELS_INTERNAL_TOKEN_NETWORKS_H_

#include "sordino/models/internal/network.h"

namespace sordino::internal {

NetworkPointer MakeLstm(const ModelShape& shape, const ModelOptions& options);
NetworkPointer MakeTransformer(const ModelShape& shape, const ModelOptions& options);

}  // namespace sordino::internal

#endif  // SORDINO_MODELS_INTERNAL_TOKEN_NETWORKS_H_
