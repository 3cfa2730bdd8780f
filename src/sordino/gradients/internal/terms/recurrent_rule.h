// Rules for the recurrent operations that libtorch runs as one node.
//
//   LSTM layer on the CPU (oneDNN)    a node for each layer and direction: our own backward pass
//                                     (recurrent_layer.h) takes the place of oneDNN's, which hands
//                                     out nothing but sums over the batch
//   LSTM and GRU cells on CUDA        the products with the weights are nodes of their own; what
//                                     is left are the biases, whose gradients per example are the
//                                     rows of the gradients of the gates
//   cuDNN                             a node for all layers: refused, with the way out
#ifndef SORDINO_GRADIENTS_INTERNAL_TERMS_RECURRENT_RULE_H_
#define SORDINO_GRADIENTS_INTERNAL_TERMS_RECURRENT_RULE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>

#include "sordino/gradients/internal/graph/tape.h"
#include "sordino/gradients/internal/terms/use_rule.h"

namespace sordino {

// The backward pass of a layer, run once for all the parameters that enter it.
class LstmLayerPass;

// The layers of one tape, by node.
using LstmLayers = std::unordered_map<const torch::autograd::Node*, std::shared_ptr<LstmLayerPass>>;

// The rule for a weight or bias of a MkldnnRnnLayerBackward0 node; null for an input that has none.
// `what` names the parameter and the operation.
std::unique_ptr<UseRule> MakeLstmLayerRule(const Tape& tape, const TapeNode& node, std::size_t slot,
                                           const std::string& what, LstmLayers& layers);

// The rule for a bias of a ThnnFusedLstmCellBackward0 or ThnnFusedGruCellBackward0 node; null for
// other inputs.
std::unique_ptr<UseRule> MakeFusedCellRule(const TapeNode& node, std::size_t slot);

[[noreturn]] void RefuseCudnnLayers(const std::string& what);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_TERMS_RECURRENT_RULE_H_
