// A graph with all that was found out about it, and the memory of graphs that were seen before.
//
// Reading a graph is cheap, the ownership probe is not. A training step has the same graph as the
// step before it up to the number of examples, so what the probe found is kept with the structure
// of the graph and used again where the structure is the same. It is not kept when rows are moved
// about by values (an index, a sort), or when zeros left the layout open.
#ifndef SORDINO_GRADIENTS_GRAPH_READING_H_
#define SORDINO_GRADIENTS_GRAPH_READING_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sordino/gradients/example_layout.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/gradients/parameter_plan.h"
#include "sordino/gradients/tape.h"
#include "sordino/gradients/use_rule.h"

namespace sordino {

// What stays the same when a graph comes again.
struct GraphFacts {
  std::vector<ExampleLayout> layouts;  // of each use, for `units`
  std::vector<ParameterPlan> plans;    // of each parameter
};

struct GraphReading {
  Tape tape;
  std::vector<std::unique_ptr<UseRule>> rules;  // of each use
  std::vector<ExampleLayout> layouts;           // of each use
  std::shared_ptr<const GraphFacts> facts;
};

class GraphMemory {
 public:
  // Reads the graph behind `losses`, whose examples form `units` units of equal size, if it was
  // seen before.
  std::optional<GraphReading> Recall(const at::Tensor& losses, std::int64_t units,
                                     const std::vector<NamedParameter>& parameters) const;

  // Reads a graph that is not remembered. With `probe` it is probed, else rows are taken to lie
  // unit by unit. Throws NotPerExample.
  GraphReading Learn(const at::Tensor& losses, std::int64_t units,
                     const std::vector<NamedParameter>& parameters, bool probe);

  // Forgets everything: a layout turned out to be of another graph.
  void Clear() { graphs_.clear(); }

 private:
  struct Known {
    Tape structure;  // topology and sizes only
    std::int64_t examples = 0;
    std::int64_t units = 0;
    std::vector<bool> expansions_in_path;
    std::shared_ptr<const GraphFacts> facts;
  };

  std::vector<Known> graphs_;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_GRAPH_READING_H_
