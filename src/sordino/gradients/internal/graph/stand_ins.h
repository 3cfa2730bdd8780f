// Nodes that take the places of others in an autograd graph for the time of a backward pass.
#ifndef SORDINO_GRADIENTS_INTERNAL_GRAPH_STAND_INS_H_
#define SORDINO_GRADIENTS_INTERNAL_GRAPH_STAND_INS_H_

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "sordino/gradients/internal/graph/tape.h"

namespace sordino {

// Stand-ins for nodes of a graph, in their places until the end of the scope.
class StandIns {
 public:
  explicit StandIns(const Tape& tape) : tape_(tape), of_(tape.graph.nodes.size()) {}
  ~StandIns() {
    for (const auto& [edge, node] : changed_) edge->function = node;
  }
  StandIns(const StandIns&) = delete;
  StandIns& operator=(const StandIns&) = delete;

  void Add(std::size_t node, TapeNode stand_in) { of_[node] = std::move(stand_in); }

  const TapeNode& Of(std::size_t node) const {
    return of_[node] != nullptr ? of_[node] : tape_.graph.nodes[node];
  }

  // Leads the edges to the nodes over to their stand-ins.
  void TakeOver() {
    for (std::size_t node = 0; node < of_.size(); ++node) {
      if (of_[node] == nullptr) continue;
      for (const std::size_t consumer : tape_.consumers[node]) {
        for (torch::autograd::Edge& edge : Of(consumer)->next_edges()) {
          if (edge.function != tape_.graph.nodes[node]) continue;
          edge.function = of_[node];
          changed_.emplace_back(&edge, tape_.graph.nodes[node]);
        }
      }
    }
  }

 private:
  const Tape& tape_;
  std::vector<TapeNode> of_;
  std::vector<std::pair<torch::autograd::Edge*, TapeNode>> changed_;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_GRAPH_STAND_INS_H_
