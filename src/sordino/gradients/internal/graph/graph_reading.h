// A graph with all that was found out about it, and the memory of graphs that were seen before.
//
// Reading a graph is cheap; finding its shared nodes and the owners of its rows is not. A training
// step has the same graph as the step before it up to the number of examples, so what was found is
// kept with the structure of the graph and used again where the structure is the same. In an
// isolated pass (isolation.h) no value can move rows between examples, so equal structure means
// equal ownership. It is not kept when zeros left the layout open.
#ifndef SORDINO_GRADIENTS_INTERNAL_GRAPH_GRAPH_READING_H_
#define SORDINO_GRADIENTS_INTERNAL_GRAPH_GRAPH_READING_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sordino/gradients/internal/graph/parameter_plan.h"
#include "sordino/gradients/internal/graph/tape.h"
#include "sordino/gradients/internal/terms/use_rule.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/kernels/example_layout.h"

namespace sordino {

// What stays the same when a graph comes again.
struct GraphFacts {
  std::vector<ExampleLayout> layouts;  // of each use, for `units`
  GradientPlan plan;
  GradientPlan written_out;  // with all parameters in families
};

struct GraphReading {
  Tape tape;
  std::vector<std::unique_ptr<UseRule>> rules;  // of each use
  std::vector<ExampleLayout> layouts;           // of each use
  std::shared_ptr<const GraphFacts> facts;
};

class GraphMemory {
 public:
  // Makes a reading of a graph whose examples form `units` units of equal size, if one of the same
  // structure was seen before; the graph is moved from then.
  std::optional<GraphReading> Recall(Graph& graph, std::int64_t examples, std::int64_t units,
                                     const std::vector<NamedParameter>& parameters) const;

  // Makes a reading of a graph that is not remembered. With `probe` the owners of rows are found
  // out, else rows are taken to lie unit by unit. Throws NotPerExample.
  GraphReading Learn(Graph graph, std::vector<bool> shared, const at::Tensor& losses,
                     std::int64_t units, const std::vector<NamedParameter>& parameters, bool probe);

  // Forgets everything: a layout turned out to be of another graph.
  void Clear() { graphs_.clear(); }
  bool IsEmpty() const { return graphs_.empty(); }

 private:
  struct Known {
    Graph structure;  // topology and sizes only
    std::vector<bool> shared;
    std::int64_t examples = 0;
    std::int64_t units = 0;
    std::shared_ptr<const GraphFacts> facts;
  };

  std::vector<Known> graphs_;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_GRAPH_GRAPH_READING_H_
