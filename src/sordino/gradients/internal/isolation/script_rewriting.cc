#include "sordino/gradients/internal/isolation/script_rewriting.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <cstddef>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

namespace jit = torch::jit;

struct Replacement {
  const char* name;
  std::size_t inputs;  // that are kept
};

// The same arguments, but for the last one of empty, its memory format.
const std::unordered_map<std::string, Replacement>& Replacements() {
  static const std::unordered_map<std::string, Replacement> replacements = {
      {"aten::bernoulli_", {"aten::bernoulli", 3}},
      {"aten::uniform_", {"aten::uniform", 4}},
      {"aten::normal_", {"aten::normal_functional", 4}},
      {"aten::exponential_", {"aten::exponential", 3}},
      {"aten::empty", {"aten::zeros", 5}},
      {"aten::empty_like", {"aten::zeros_like", 6}},
      {"aten::new_empty", {"aten::new_zeros", 6}},
  };
  return replacements;
}

const std::unordered_set<std::string>& Refused() {
  static const std::unordered_set<std::string> refused = {
      "aten::empty_strided", "aten::new_empty_strided", "aten::resize_", "aten::resize_as_",
      "aten::set_",          "aten::from_file",         "aten::save",    "aten::as_strided_"};
  return refused;
}

using Seen = std::unordered_set<const jit::Graph*>;

void Rewrite(jit::Block* block, Seen& seen);

void Rewrite(jit::Graph& graph, Seen& seen) {
  if (seen.insert(&graph).second) Rewrite(graph.block(), seen);
}

void Rewrite(jit::Block* block, Seen& seen) {
  std::vector<jit::Node*> nodes(block->nodes().begin(), block->nodes().end());
  for (jit::Node* node : nodes) {
    for (jit::Block* inner : node->blocks()) Rewrite(inner, seen);
    if (node->kind() == c10::prim::CallFunction) {
      jit::Function* function = node->input(0)->type()->expectRef<c10::FunctionType>().function();
      if (auto* with_graph = jit::tryToGraphFunction(*function)) {
        Rewrite(*with_graph->graph(), seen);
      }
    }
    const std::string kind = node->kind().toQualString();
    if (Refused().contains(kind)) {
      throw Error("the script calls " + kind.substr(kind.find("::") + 2) +
                  ", which can reach memory or files outside of an example; write it in another "
                  "way.");
    }
    const auto found = Replacements().find(kind);
    if (found == Replacements().end() || node->inputs().size() < found->second.inputs) continue;
    const bool in_place = kind.back() == '_';
    // The probability of a tensor has no form out of place with the same arguments.
    if (kind == "aten::bernoulli_" &&
        node->input(1)->type()->isSubtypeOf(*c10::TensorType::get())) {
      continue;
    }
    jit::Node* replacement =
        node->owningGraph()->create(c10::Symbol::fromQualString(found->second.name), 1);
    for (std::size_t k = 0; k < found->second.inputs; ++k) replacement->addInput(node->input(k));
    replacement->insertBefore(node);
    replacement->output()->setType(node->output()->type());
    node->output()->replaceAllUsesWith(replacement->output());
    if (in_place) node->input(0)->replaceAllUsesAfterNodeWith(node, replacement->output());
    node->destroy();
  }
}

}  // namespace

void RewriteForIsolation(const jit::Module& module) {
  Seen seen;
  for (const jit::Module& part : module.modules()) {
    for (const jit::Method& method : part.get_methods()) Rewrite(*method.graph(), seen);
  }
}

}  // namespace sordino
