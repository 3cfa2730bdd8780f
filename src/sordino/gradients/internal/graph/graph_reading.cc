#include "sordino/gradients/internal/graph/graph_reading.h"

#include <utility>

#include "sordino/gradients/internal/graph/ownership.h"

namespace sordino {
namespace {

// Models whose graph changes with the data (sequences of every length) would fill the memory.
constexpr std::size_t kMaxGraphs = 64;

GraphFacts FactsOf(const GraphReading& reading, const std::vector<NamedParameter>& parameters) {
  std::vector<TermKind> kinds;
  for (const auto& rule : reading.rules) kinds.push_back(rule->kind());
  return {reading.layouts, PlanGradients(reading.tape, kinds, parameters, false),
          PlanGradients(reading.tape, kinds, parameters, true)};
}

}  // namespace

std::optional<GraphReading> GraphMemory::Recall(
    Graph& graph, std::int64_t examples, std::int64_t units,
    const std::vector<NamedParameter>& parameters) const {
  // The newest first: training repeats its last step.
  for (auto known = graphs_.rbegin(); known != graphs_.rend(); ++known) {
    if (known->examples / known->units != examples / units) continue;
    if (!SameStructure(known->structure, known->examples, graph, examples)) continue;
    GraphReading reading;
    reading.tape = MakeTape(std::move(graph), known->shared, parameters);
    reading.rules = MakeRules(reading.tape, parameters);
    reading.facts = known->facts;
    reading.layouts = known->facts->layouts;
    for (ExampleLayout& layout : reading.layouts) layout.examples = units;
    return reading;
  }
  return std::nullopt;
}

GraphReading GraphMemory::Learn(Graph graph, std::vector<bool> shared, const at::Tensor& losses,
                                std::int64_t units, const std::vector<NamedParameter>& parameters,
                                bool probe) {
  Known known;
  known.structure.topology = graph.topology;
  known.structure.sizes = graph.sizes;
  known.shared = shared;
  known.examples = losses.numel();
  known.units = units;

  GraphReading reading;
  reading.tape = MakeTape(std::move(graph), std::move(shared), parameters);
  reading.rules = MakeRules(reading.tape, parameters);
  bool settled = !probe;
  if (!probe || units == 1) {
    reading.layouts.assign(reading.tape.uses.size(), {1, units, 0});
  } else {
    Ownership ownership = FindOwnership(losses, units, reading.tape, reading.rules, parameters);
    reading.layouts = std::move(ownership.layouts);
    settled = ownership.settled;
  }
  reading.facts = std::make_shared<const GraphFacts>(FactsOf(reading, parameters));
  if (settled) {
    known.facts = reading.facts;
    if (graphs_.size() >= kMaxGraphs) graphs_.erase(graphs_.begin());
    graphs_.push_back(std::move(known));
  }
  return reading;
}

}  // namespace sordino
