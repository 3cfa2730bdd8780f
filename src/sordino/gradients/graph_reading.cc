#include "sordino/gradients/graph_reading.h"

#include <utility>

#include "sordino/gradients/ownership.h"

namespace sordino {
namespace {

// Models whose graph changes with the data (sequences of every length) would fill the memory.
constexpr std::size_t kMostGraphs = 64;

std::vector<ParameterPlan> Plans(const GraphReading& reading,
                                 const std::vector<NamedParameter>& parameters) {
  std::vector<TermKind> kinds;
  for (const auto& rule : reading.rules) kinds.push_back(rule->kind());
  return PlanParameters(reading.tape, kinds, parameters);
}

}  // namespace

std::optional<GraphReading> GraphMemory::Recall(
    const at::Tensor& losses, std::int64_t units,
    const std::vector<NamedParameter>& parameters) const {
  GraphReading reading;
  const std::vector<bool>* read_with = nullptr;
  // The newest first: training repeats its last step.
  for (auto known = graphs_.rbegin(); known != graphs_.rend(); ++known) {
    if (known->examples / known->units != losses.numel() / units) continue;
    if (read_with == nullptr || *read_with != known->expansions_in_path) {
      reading.tape = ReadTape(losses, parameters, known->expansions_in_path);
      read_with = &known->expansions_in_path;
    }
    if (reading.tape.moves_rows_by_value) return std::nullopt;
    if (!SameStructure(known->structure, known->examples, reading.tape, losses.numel())) continue;
    reading.rules = MakeRules(reading.tape, parameters);
    reading.facts = known->facts;
    reading.layouts = known->facts->layouts;
    for (ExampleLayout& layout : reading.layouts) layout.examples = units;
    return reading;
  }
  return std::nullopt;
}

GraphReading GraphMemory::Learn(const at::Tensor& losses, std::int64_t units,
                                const std::vector<NamedParameter>& parameters, bool probe) {
  GraphReading reading;
  std::vector<bool> expansions_in_path;
  Ownership ownership;
  while (true) {
    reading.tape = ReadTape(losses, parameters, expansions_in_path);
    reading.rules = MakeRules(reading.tape, parameters);
    if (!probe || units == 1) {
      ownership.layouts.assign(reading.tape.uses.size(), {1, units, 0});
      ownership.settled = !probe;
      break;
    }
    ownership = FindOwnership(losses, units, reading.tape, reading.rules, parameters);
    if (!ownership.expansion_over_no_examples) break;
    expansions_in_path.resize(reading.tape.expansions, false);
    expansions_in_path[*ownership.expansion_over_no_examples] = true;
  }
  reading.layouts = ownership.layouts;
  reading.facts =
      std::make_shared<const GraphFacts>(GraphFacts{ownership.layouts, Plans(reading, parameters)});
  if (ownership.settled && !reading.tape.moves_rows_by_value) {
    Known known;
    known.structure.topology = reading.tape.topology;
    known.structure.sizes = reading.tape.sizes;
    known.examples = losses.numel();
    known.units = units;
    known.expansions_in_path = expansions_in_path;
    known.facts = reading.facts;
    if (graphs_.size() >= kMostGraphs) graphs_.erase(graphs_.begin());
    graphs_.push_back(std::move(known));
  }
  return reading;
}

}  // namespace sordino
