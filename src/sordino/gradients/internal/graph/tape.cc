#include "sordino/gradients/internal/graph/tape.h"

#include <torch/csrc/autograd/generated/Functions.h>

#include <algorithm>
#include <optional>
#include <typeindex>
#include <unordered_set>
#include <utility>

namespace sordino {
namespace {

namespace generated = torch::autograd::generated;

template <typename... Nodes>
std::unordered_set<std::type_index> Types() {
  return {std::type_index(typeid(Nodes))...};
}

// One input, linear, each entry of the output is one of the input: what a path is made of.
bool IsPathStep(const torch::autograd::Node& node) {
  static const auto types =
      Types<generated::TBackward0, generated::TransposeBackward0, generated::PermuteBackward0,
            generated::ViewBackward0, generated::UnsafeViewBackward0,
            generated::ReshapeAliasBackward0, generated::SliceBackward0, generated::SelectBackward0,
            generated::SplitBackward0, generated::SplitWithSizesBackward0,
            generated::UnsafeSplitBackward0, generated::UnsafeSplitWithSizesBackward0,
            generated::UnbindBackward0, generated::SqueezeBackward0, generated::SqueezeBackward1,
            generated::SqueezeBackward2, generated::UnsqueezeBackward0, generated::AliasBackward0,
            generated::CloneBackward0, generated::ExpandBackward0, generated::RepeatBackward0>();
  return types.contains(std::type_index(typeid(node)));
}

bool IsCast(const torch::autograd::Node& node) {
  return typeid(node) == typeid(generated::ToCopyBackward0);
}

class NodeMaker {
 public:
  NodeMaker(Graph graph, std::vector<bool> shared, std::size_t parameters) {
    tape_.graph = std::move(graph);
    tape_.shared = std::move(shared);
    tape_.parameters = parameters;
    tape_.consumers.resize(tape_.graph.nodes.size());
    tape_.leads_to_use.resize(tape_.graph.nodes.size(), false);
  }

  Tape Make() {
    std::vector<bool> uses(tape_.graph.nodes.size(), false);
    // Behind first, so that what lies behind a node is known.
    for (const std::size_t node : tape_.graph.finished) {
      if (tape_.shared[node]) continue;
      for (const GraphEdge& edge : tape_.graph.edges[node]) {
        if (tape_.shared[edge.child]) {
          if (AddUse(node, edge)) uses[node] = true;
          continue;
        }
        tape_.consumers[edge.child].push_back(node);
        if (uses[edge.child] || tape_.leads_to_use[edge.child]) tape_.leads_to_use[node] = true;
      }
    }
    return std::move(tape_);
  }

 private:
  bool AddUse(std::size_t node, const GraphEdge& edge) {
    ParameterUse use;
    use.node = node;
    use.slot = edge.slot;
    use.sizes = OutputSizes(*tape_.graph.nodes[edge.child], edge.output);
    const std::optional<GraphEdge> entering = WithoutCasts(edge);
    std::optional<GraphEdge> next = entering;
    while (next && IsPathStep(*tape_.graph.nodes[next->child])) {
      use.path.push_back({tape_.graph.nodes[next->child], next->output});
      next = WithoutCasts(Behind(*next));
    }
    if (!next) return false;
    const GraphEdge& at = *next;
    if (tape_.graph.is_leaf[at.child]) {
      if (!tape_.graph.parameter[at.child]) return false;
      use.root = *tape_.graph.parameter[at.child];
    } else {
      const std::optional<std::size_t> derived = Derived(*entering);
      if (!derived) return false;
      use.root = tape_.parameters + *derived;
      use.path.clear();
    }
    tape_.uses.push_back(std::move(use));
    return true;
  }

  // The edge that a node of one input leads on with.
  std::optional<GraphEdge> Behind(const GraphEdge& edge) const {
    const auto& edges = tape_.graph.edges[edge.child];
    return edges.empty() ? std::nullopt : std::optional<GraphEdge>(edges.front());
  }

  // A cast changes no entry but for rounding, and gradients are summed in float32 or float64
  // whatever type the parameter is used in.
  std::optional<GraphEdge> WithoutCasts(std::optional<GraphEdge> edge) const {
    while (edge && IsCast(*tape_.graph.nodes[edge->child])) edge = Behind(*edge);
    return edge;
  }

  std::optional<std::size_t> Derived(const GraphEdge& edge) {
    for (std::size_t k = 0; k < tape_.derived.size(); ++k) {
      if (tape_.derived[k].node == edge.child && tape_.derived[k].output == edge.output) return k;
    }
    DerivedTensor derived{
        edge.child, edge.output, OutputSizes(*tape_.graph.nodes[edge.child], edge.output), {}};
    std::vector<std::size_t> pending{edge.child};
    std::unordered_set<std::size_t> seen{edge.child};
    while (!pending.empty()) {
      const std::size_t node = pending.back();
      pending.pop_back();
      if (tape_.graph.parameter[node]) derived.parameters.push_back(*tape_.graph.parameter[node]);
      for (const GraphEdge& behind : tape_.graph.edges[node]) {
        if (seen.insert(behind.child).second) pending.push_back(behind.child);
      }
    }
    if (derived.parameters.empty()) return std::nullopt;
    std::sort(derived.parameters.begin(), derived.parameters.end());
    tape_.derived.push_back(std::move(derived));
    return tape_.derived.size() - 1;
  }

  Tape tape_;
};

}  // namespace

Tape MakeTape(Graph graph, std::vector<bool> shared,
              const std::vector<NamedParameter>& parameters) {
  return NodeMaker(std::move(graph), std::move(shared), parameters.size()).Make();
}

at::IntArrayRef RootSizes(const Tape& tape, std::size_t root,
                          const std::vector<NamedParameter>& parameters) {
  if (root < tape.parameters) return parameters[root].value.sizes();
  return tape.derived[root - tape.parameters].sizes;
}

const std::string& RootName(const Tape& tape, std::size_t root,
                            const std::vector<NamedParameter>& parameters) {
  if (root < tape.parameters) return parameters[root].name;
  return parameters[tape.derived[root - tape.parameters].parameters.front()].name;
}

}  // namespace sordino
