#include "sordino/gradients/internal/isolation/own_tensors.h"

#include <ATen/core/function_schema.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/custom_operator.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "sordino/gradients/internal/isolation/pure_operations.h"
#include "sordino/gradients/own_tensor.h"

namespace sordino {
namespace {

namespace jit = torch::jit;

constexpr const char* kOwnName = "sordino::own";

void RegisterOwn() {
  static const jit::RegisterOperators registered({jit::Operator(
      "sordino::own(Tensor tensor) -> Tensor",
      [](jit::Stack& stack) { stack.back() = OwnTensor(stack.back().toTensor()); },
      c10::AliasAnalysisKind::FROM_SCHEMA)});
}

// The values of a graph that may hold values of a record.
class OfRecords {
 public:
  OfRecords(jit::Graph& graph, std::size_t data_inputs) {
    for (std::size_t k = 0; k < data_inputs; ++k) Add(graph.inputs()[k]);
    do {
      has_grown_ = false;
      Visit(graph.block());
    } while (has_grown_);
  }

  bool Has(const jit::Value* value) const { return values_.contains(value); }

  // Inputs that a node writes values of records to, and which are none so far.
  std::vector<const jit::Value*> NewlyWritten(const jit::Node* node) const {
    std::vector<const jit::Value*> written = WrittenBy(node);
    std::erase_if(written, [&](const jit::Value* value) {
      const bool has_others = std::any_of(node->inputs().begin(), node->inputs().end(),
                                          [&](const jit::Value* other) { return Has(other); });
      return Has(value) || !has_others;
    });
    return written;
  }

 private:
  static std::vector<const jit::Value*> WrittenBy(const jit::Node* node) {
    std::vector<const jit::Value*> written;
    const c10::FunctionSchema* schema = node->maybeSchema();
    if (schema == nullptr) return written;
    const std::size_t named = std::min(node->inputs().size(), schema->arguments().size());
    for (std::size_t k = 0; k < named; ++k) {
      const at::AliasInfo* alias = schema->arguments()[k].alias_info();
      if (alias != nullptr && alias->isWrite()) written.push_back(node->input(k));
    }
    return written;
  }

  void Add(const jit::Value* value) {
    if (!IsScriptData(value->type(), /*with_tensors=*/false) && values_.insert(value).second)
      has_grown_ = true;
  }

  void Visit(const jit::Block* block) {
    for (const jit::Node* node : block->nodes()) VisitNode(node);
  }

  void VisitNode(const jit::Node* node) {
    for (const jit::Block* inner : node->blocks()) Visit(inner);
    if (node->kind() == c10::prim::If) {
      for (const jit::Block* inner : node->blocks()) Carry(inner->outputs(), 0, node->outputs(), 0);
      return;
    }
    if (node->kind() == c10::prim::Loop) {  // of a count and a condition, and what it carries
      const jit::Block* body = node->blocks()[0];
      Carry(node->inputs(), 2, body->inputs(), 1);
      Carry(body->outputs(), 1, body->inputs(), 1);
      Carry(body->outputs(), 1, node->outputs(), 0);
      Carry(node->inputs(), 2, node->outputs(), 0);
      return;
    }
    const bool takes = std::any_of(node->inputs().begin(), node->inputs().end(),
                                   [this](const jit::Value* value) { return Has(value); });
    const bool is_own = node->kind() == c10::Symbol::fromQualString(kOwnName);
    if (!takes && !is_own && !node->isNondeterministic()) return;
    for (const jit::Value* output : node->outputs()) Add(output);
    // A list that a value is put into.
    for (const jit::Value* written : WrittenBy(node)) {
      if (!written->type()->isSubtypeOf(*c10::TensorType::get())) Add(written);
    }
  }

  template <typename From, typename To>
  void Carry(const From& from, std::size_t first, const To& to, std::size_t start) {
    for (std::size_t k = 0; first + k < from.size() && start + k < to.size(); ++k) {
      if (Has(from[first + k])) Add(to[start + k]);
    }
  }

  std::unordered_set<const jit::Value*> values_;
  bool has_grown_ = false;
};

bool IsNew(const jit::Node* node, std::size_t output) {
  const c10::FunctionSchema* schema = node->maybeSchema();
  return schema != nullptr && node->kind().is_aten() && output < schema->returns().size() &&
         schema->returns()[output].alias_info() == nullptr;
}

// Whether a value is a new tensor, or one of a new list of them (a chunk of a copy), which shares
// memory with nothing that was there before.
bool IsNewTensor(const jit::Value* value) {
  if (!value->type()->isSubtypeOf(*c10::TensorType::get())) return false;
  const jit::Node* node = value->node();
  if (node->kind() != c10::prim::ListUnpack) return IsNew(node, value->offset());
  const jit::Value* list = node->input();
  return IsNew(list->node(), list->offset());
}

void AddNodes(jit::Block* block, std::vector<jit::Node*>& nodes) {
  for (jit::Node* node : block->nodes()) {
    nodes.push_back(node);
    for (jit::Block* inner : node->blocks()) AddNodes(inner, nodes);
  }
}

void InsertOwn(jit::Graph& graph, jit::Value* made) {
  jit::Node* own = graph.create(c10::Symbol::fromQualString(kOwnName), /*num_outputs=*/1);
  own->insertAfter(made->node());
  own->setSourceRange(made->node()->sourceRange());
  own->output()->setType(made->type());
  made->replaceAllUsesWith(own->output());
  own->addInput(made);
}

bool HasOwn(const jit::Value* made) {
  const auto& uses = made->uses();
  return std::all_of(uses.begin(), uses.end(), [](const jit::Use& use) {
    return use.user->kind() == c10::Symbol::fromQualString(kOwnName);
  });
}

// New tensors that values of records are written to, and that hold none yet.
std::vector<jit::Value*> SharedTensors(const std::shared_ptr<jit::Graph>& graph,
                                       std::size_t data_inputs) {
  const OfRecords of_records(*graph, data_inputs);
  std::vector<jit::Node*> nodes;
  AddNodes(graph->block(), nodes);
  std::unordered_set<const jit::Value*> written;
  for (const jit::Node* node : nodes) {
    for (const jit::Value* value : of_records.NewlyWritten(node)) written.insert(value);
  }
  std::vector<jit::Value*> shared;
  if (written.empty()) return shared;
  const jit::AliasDb aliases(graph);
  for (jit::Node* node : nodes) {
    for (jit::Value* output : node->outputs()) {
      if (!IsNewTensor(output) || of_records.Has(output) || HasOwn(output)) continue;
      if (std::any_of(written.begin(), written.end(),
                      [&](const jit::Value* value) { return aliases.mayAlias(output, value); })) {
        shared.push_back(output);
      }
    }
  }
  return shared;
}

}  // namespace

void MakeOwnTensors(const std::shared_ptr<jit::Graph>& graph, std::size_t data_inputs) {
  RegisterOwn();
  // What is written of one tensor may make another one hold values of records.
  while (true) {
    const std::vector<jit::Value*> shared = SharedTensors(graph, data_inputs);
    if (shared.empty()) return;
    for (jit::Value* made : shared) InsertOwn(*graph, made);
  }
}

}  // namespace sordino
