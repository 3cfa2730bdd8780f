// Rules for the recurrent operations that are one node of a graph.
//
//   layers of an isolated pass     a node for each layer and direction (recurrent_node.h): a
//                                  stand-in runs its backward pass once for all its parameters
//   LSTM and GRU cells on CUDA     the products with the weights are nodes of their own; what is
//                                  left are the biases, whose gradients per example are the rows of
//                                  the gradients of the gates
//   oneDNN's and cuDNN's layers    called with what recurrent_node.h does not take (packed
//                                  sequences, projections): refused, with the way out
#ifndef SORDINO_GRADIENTS_INTERNAL_TERMS_RECURRENT_RULE_H_
#define SORDINO_GRADIENTS_INTERNAL_TERMS_RECURRENT_RULE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "sordino/gradients/internal/graph/tape.h"
#include "sordino/gradients/internal/terms/use_rule.h"

namespace sordino {

// The backward pass of a layer, run once for all the parameters that enter it.
class RecurrentLayerPass;

// The layers of one tape, by node.
using RecurrentPasses =
    std::unordered_map<const torch::autograd::Node*, std::shared_ptr<RecurrentLayerPass>>;

// The rule for a weight or bias of a RecurrentLayerBackward node; null for other inputs.
std::unique_ptr<UseRule> MakeRecurrentLayerRule(const TapeNode& node, std::size_t slot,
                                                std::vector<std::int64_t> sizes,
                                                RecurrentPasses& passes);

// The rule for a bias of a ThnnFusedLstmCellBackward0 or ThnnFusedGruCellBackward0 node; null for
// other inputs.
std::unique_ptr<UseRule> MakeFusedCellRule(const TapeNode& node, std::size_t slot);

[[noreturn]] void RefuseFusedLayers(const std::string& what);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_TERMS_RECURRENT_RULE_H_
