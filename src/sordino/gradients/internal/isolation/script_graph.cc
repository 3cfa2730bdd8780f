#include "sordino/gradients/internal/isolation/script_graph.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/inline_fork_wait.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/lower_tuples.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/gradients/internal/isolation/own_tensors.h"
#include "sordino/gradients/internal/isolation/pure_operations.h"

namespace sordino {
namespace {

namespace jit = torch::jit;
using ObjectPtr = c10::intrusive_ptr<c10::ivalue::Object>;

// Calls visit(node) for all nodes, also those in blocks; a node may be destroyed by its visit.
void ForEachNode(jit::Block* block, const std::function<void(jit::Node*)>& visit) {
  const std::vector<jit::Node*> nodes(block->nodes().begin(), block->nodes().end());
  for (jit::Node* node : nodes) {
    for (jit::Block* inner : node->blocks()) ForEachNode(inner, visit);
    visit(node);
  }
}

bool HasNode(jit::Graph& graph, c10::Symbol kind) {
  bool found = false;
  ForEachNode(graph.block(), [&](jit::Node* node) { found = found || node->kind() == kind; });
  return found;
}

std::string NameOf(const jit::Node* node) {
  const std::string kind = node->kind().toQualString();
  return kind.starts_with("aten::") ? kind.substr(6) : kind;
}

// " (line '3' of the script: 'return x.stride(0)')". In quotes, because numbers elsewhere could be
// private.
std::string LineOf(const jit::Node* node) {
  const jit::SourceRange range = node->sourceRange();
  if (!range.source()) return "";
  const std::size_t line = range.source()->lineno_for_offset(range.start());
  std::string text = range.source()->get_line(line).str();
  std::replace(text.begin(), text.end(), '\'', '"');
  text.erase(std::remove(text.begin(), text.end(), '\n'), text.end());
  text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
  return " (line '" + std::to_string(line + 1) + "' of the script: '" + text + "')";
}

[[noreturn]] void RefuseOperation(const jit::Node* node) {
  throw Error("the script calls '" + NameOf(node) + "'" + LineOf(node) +
              ", which is not known to depend on its inputs alone; " +
              WayOutOf(node->kind().toQualString()) + ".");
}

// A with statement calls methods that are not in the graph.
void CallWithMethods(jit::Graph& graph) {
  ForEachNode(graph.block(), [&](jit::Node* node) {
    const bool enters = node->kind() == c10::prim::Enter;
    if (!enters && node->kind() != c10::prim::Exit) return;
    const jit::WithInsertPoint at(node);
    jit::Node* call = graph.create(c10::prim::CallMethod, {node->input(0)});
    call->s_(c10::attr::name, enters ? "__enter__" : "__exit__");
    if (!enters) {
      for (int k = 0; k < 3; ++k) call->addInput(graph.insertConstant(c10::IValue()));
    }
    call->insertBefore(node);
    call->setSourceRange(node->sourceRange());
    if (!node->outputs().empty()) {
      call->output()->setType(node->output()->type());
      node->output()->replaceAllUsesWith(call->output());
    }
    node->destroy();
  });
}

std::shared_ptr<jit::Graph> Inlined(const jit::Module& module) {
  std::shared_ptr<jit::Graph> graph = module.get_method("forward").graph()->copy();
  constexpr int kMostRounds = 64;  // forks and with statements inside of each other
  for (int round = 0; round < kMostRounds; ++round) {
    CallWithMethods(*graph);
    jit::Inline(*graph);
    if (HasNode(*graph, c10::prim::fork)) {
      jit::InlineForkWait(graph);
    } else if (!HasNode(*graph, c10::prim::Enter) && !HasNode(*graph, c10::prim::Exit)) {
      break;
    }
  }
  return graph;
}

class Lowering {
 public:
  Lowering(const jit::Module& module, std::shared_ptr<jit::Graph> graph)
      : graph_(std::move(graph)) {
    for (const auto& part : module.named_modules()) {
      names_[part.value._ivalue().get()] = part.name.empty() ? "" : part.name + ".";
    }
    LowerModule(module._ivalue());
    ForEachNode(graph_->block(), [this](jit::Node* node) { LiftConstant(node); });
  }

  std::vector<CapturedValue> Take() { return std::move(captured_); }

 private:
  // What the graph reads of a module becomes an input.
  void LowerModule(const ObjectPtr& self) {
    std::vector<std::pair<jit::Value*, ObjectPtr>> modules = {{graph_->inputs()[0], self}};
    std::vector<jit::Node*> read;
    while (!modules.empty()) {
      const auto [value, object] = modules.back();
      modules.pop_back();
      const std::vector<jit::Use> uses = value->uses();
      for (const jit::Use& use : uses) {
        jit::Node* node = use.user;
        CheckUse(node, use.offset, *object);
        const std::size_t slot = object->type()->getAttributeSlot(node->s(c10::attr::name));
        const c10::IValue& content = object->getSlot(slot);
        if (content.isModule()) {
          modules.emplace_back(node->output(), content.toObject());
        } else {
          node->output()->replaceAllUsesWith(InputOf(object, slot, node));
        }
        read.push_back(node);
      }
    }
    for (auto node = read.rbegin(); node != read.rend(); ++node) (*node)->destroy();
    graph_->eraseInput(0);
  }

  void CheckUse(const jit::Node* node, std::size_t offset, const c10::ivalue::Object& object) {
    if (node->kind() == c10::prim::SetAttr && offset == 0) {
      throw Error("the script assigns to its attribute '" + PrefixOf(object) +
                  node->s(c10::attr::name) + "'" + LineOf(node) + "; keep no state between calls.");
    }
    if (node->kind() == c10::prim::CallMethod) RefuseOperation(node);
    if (node->kind() != c10::prim::GetAttr) {
      throw Error("the script uses one of its modules as a value" + LineOf(node) +
                  "; call the module where it is used.");
    }
  }

  std::string PrefixOf(const c10::ivalue::Object& object) const {
    const auto found = names_.find(&object);
    return found == names_.end() ? "" : found->second;
  }

  jit::Value* InputOf(const ObjectPtr& object, std::size_t slot, const jit::Node* node) {
    jit::Value*& input = inputs_[{object.get(), slot}];
    if (input != nullptr) return input;
    const c10::TypePtr type = object->type()->getAttribute(slot);
    const std::string name = PrefixOf(*object) + object->type()->getAttributeName(slot);
    if (!IsScriptData(type, /*with_tensors=*/true)) {
      throw Error("the script has an object of the type '" + type->annotation_str() +
                  "' as its attribute '" + name + "'" + LineOf(node) +
                  ", which could keep a state; use tensors, numbers, lists and dictionaries, or "
                  "make the object in the forward method.");
    }
    input = graph_->addInput();
    input->setType(type);
    captured_.push_back({.name = name,
                         .object = object,
                         .slot = slot,
                         .is_parameter = object->type()->is_parameter(slot)});
    return input;
  }

  // Tensors, lists and dictionaries could be written to, and would keep it.
  void LiftConstant(jit::Node* node) {
    if (node->kind() != c10::prim::Constant) return;
    const std::optional<c10::IValue> value = jit::toIValue(node->output());
    if (!value || !(value->isTensor() || value->isList() || value->isGenericDict() ||
                    value->isTuple() || value->isObject())) {
      return;
    }
    if (!IsScriptData(node->output()->type(), /*with_tensors=*/true)) RefuseOperation(node);
    jit::Value* input = graph_->addInput();
    input->setType(node->output()->type());
    node->output()->replaceAllUsesWith(input);
    captured_.push_back({.name = "", .constant = *value});
    node->destroy();
  }

  std::shared_ptr<jit::Graph> graph_;
  std::unordered_map<const c10::ivalue::Object*, std::string> names_;
  std::map<std::pair<const c10::ivalue::Object*, std::size_t>, jit::Value*> inputs_;
  std::vector<CapturedValue> captured_;
};

// Branches that are decided by whether an argument is given: a function may write to an output that
// its caller may give, and nobody does.
void TakeKnownBranches(jit::Block* block) {
  const std::vector<jit::Node*> nodes(block->nodes().begin(), block->nodes().end());
  for (jit::Node* node : nodes) {
    for (jit::Block* inner : node->blocks()) TakeKnownBranches(inner);
    if (node->kind() != c10::prim::If) continue;
    const jit::Node* question = node->input()->node();
    const bool is_negated = question->kind() == c10::aten::__isnot__;
    if (!is_negated && question->kind() != c10::aten::__is__) continue;
    const jit::Value* one = question->input(0);
    const jit::Value* other = question->input(1);
    const bool are_both = one->mustBeNone() && other->mustBeNone();
    const bool is_one = (one->mustBeNone() && other->mustNotBeNone()) ||
                        (one->mustNotBeNone() && other->mustBeNone());
    if (!are_both && !is_one) continue;
    jit::Block* taken = node->blocks()[are_both != is_negated ? 0 : 1];
    const std::vector<jit::Node*> moved(taken->nodes().begin(), taken->nodes().end());
    for (jit::Node* each : moved) each->moveBefore(node);
    for (std::size_t k = 0; k < node->outputs().size(); ++k) {
      node->output(k)->replaceAllUsesWith(taken->outputs()[k]);
    }
    node->destroy();
  }
}

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
      {"aten::data", {"aten::detach", 1}},
      {"prim::data", {"aten::detach", 1}},
  };
  return replacements;
}

void Replace(jit::Node* node, const Replacement& by) {
  const bool in_place = std::string_view(node->kind().toUnqualString()).ends_with('_');
  jit::Node* replacement =
      node->owningGraph()->create(c10::Symbol::fromQualString(by.name), /*num_outputs=*/1);
  for (std::size_t k = 0; k < by.inputs; ++k) replacement->addInput(node->input(k));
  replacement->insertBefore(node);
  replacement->setSourceRange(node->sourceRange());
  replacement->output()->setType(node->output()->type());
  node->output()->replaceAllUsesWith(replacement->output());
  if (in_place) node->input(0)->replaceAllUsesAfterNodeWith(node, replacement->output());
  node->destroy();
}

void ZeroOutputsFrom(jit::Graph& graph, jit::Node* node, std::size_t first) {
  jit::Node* last = node;
  for (std::size_t k = first; k < node->outputs().size(); ++k) {
    if (node->output(k)->uses().empty()) continue;
    const jit::WithInsertPoint at(last->next());
    jit::Value* zeros = graph.insert(c10::aten::zeros_like, {node->output(k)});
    node->output(k)->replaceAllUsesAfterNodeWith(zeros->node(), zeros);
    last = zeros->node();
  }
}

void RewriteNode(jit::Graph& graph, jit::Node* node) {
  const std::string kind = node->kind().toQualString();
  if (kind == "prim::Print" || kind == "aten::warn") {
    node->destroy();
    return;
  }
  if (kind == "prim::RaiseException" && node->input(0)->node()->kind() != c10::prim::Constant) {
    const jit::WithInsertPoint at(node);
    node->replaceInput(0, graph.insertConstant("the script raises an error of its own"));
  }
  if (kind == "aten::embedding_bag") ZeroOutputsFrom(graph, node, 1);
  const auto found = Replacements().find(kind);
  if (found == Replacements().end() || node->inputs().size() < found->second.inputs) return;
  // The probability of a tensor has no form out of place with the same arguments.
  if (kind == "aten::bernoulli_" && node->input(1)->type()->isSubtypeOf(*c10::TensorType::get())) {
    return;
  }
  Replace(node, found->second);
}

using Values = std::unordered_set<const jit::Value*>;

// Adds to `written` the inputs of the graph that a value may be, if it is one of `allowed` or none.
bool AddInputs(const jit::Value* value, const Values& allowed, Values& written) {
  if (value->mustBeNone()) return true;
  if (allowed.contains(value)) {
    written.insert(value);
    return true;
  }
  const jit::Node* node = value->node();
  if (node->kind() == c10::prim::If) {
    return std::all_of(node->blocks().begin(), node->blocks().end(), [&](const jit::Block* block) {
      return AddInputs(block->outputs()[value->offset()], allowed, written);
    });
  }
  const bool is_cast = node->kind() == c10::prim::unchecked_cast ||
                       node->kind() == c10::prim::unchecked_unwrap_optional ||
                       node->kind() == c10::aten::_unwrap_optional;
  return is_cast && AddInputs(node->input(0), allowed, written);
}

// libtorch writes to running statistics without a word in the schema, and does not count the write.
// Those that are `allowed` are added to `written`; of others, a copy is written to.
void KeepStatistics(jit::Graph& graph, jit::Node* node, const Values& allowed, Values& written) {
  const std::string kind = node->kind().toQualString();
  if (kind != "aten::batch_norm" && kind != "aten::instance_norm") return;
  for (const std::size_t k : {3, 4}) {  // mean and variance
    jit::Value* value = node->input(k);
    if (AddInputs(value, allowed, written)) continue;
    if (!value->mustNotBeNone()) {
      throw Error("the script gives '" + NameOf(node) + "' running statistics that are no buffers" +
                  LineOf(node) + "; give buffers of the module, or none.");
    }
    const jit::WithInsertPoint at(node);
    node->replaceInput(k, graph.insert(c10::aten::clone, {value}));
  }
}

bool TakesGenerator(const c10::Argument& argument) {
  const c10::TypePtr& type = argument.type();
  if (type->kind() == c10::TypeKind::GeneratorType) return true;
  const auto optional = type->cast<c10::OptionalType>();
  return optional && optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
}

void CheckNode(jit::Node* node) {
  const std::string kind = node->kind().toQualString();
  if (!IsPureOperation(kind)) RefuseOperation(node);
  // The text of a tensor holds the values of all examples; an order of objects calls their methods.
  const bool makes_text = kind == "aten::format" || kind == "aten::str" ||
                          kind == "aten::percentFormat" || kind == "aten::join";
  const bool makes_order = kind == "aten::sort" || kind == "aten::sorted";
  for (const jit::Value* input : node->inputs()) {
    if ((makes_text || makes_order) && !IsScriptData(input->type(), makes_order)) {
      throw Error("the script calls '" + NameOf(node) + "' for a value of the type '" +
                  input->type()->annotation_str() + "'" + LineOf(node) +
                  "; use it for numbers and strings only.");
    }
  }
  const c10::FunctionSchema* schema = node->maybeSchema();
  if (schema == nullptr) return;
  const std::size_t named = std::min(node->inputs().size(), schema->arguments().size());
  for (std::size_t k = 0; k < named; ++k) {
    const c10::Argument& argument = schema->arguments()[k];
    const bool is_out = argument.kwarg_only() && argument.alias_info() != nullptr &&
                        argument.alias_info()->isWrite();
    if (is_out) {
      throw Error("the script gives '" + NameOf(node) + "' a tensor to write to" + LineOf(node) +
                  "; take what it returns.");
    }
    if (TakesGenerator(argument) && !node->input(k)->mustBeNone()) {
      throw Error("the script draws random numbers from a generator of its own" + LineOf(node) +
                  "; leave the generator out: random numbers are drawn for each example apart.");
    }
  }
}

}  // namespace

ScriptGraph MakeScriptGraph(const jit::Module& module) {
  if (!module.find_method("forward")) {
    throw Error("the script has no forward method; give a module that has one.");
  }
  ScriptGraph result;
  result.graph = Inlined(module);
  jit::Graph& graph = *result.graph;
  result.captured = Lowering(module, result.graph).Take();
  jit::LowerSimpleTuples(result.graph);
  TakeKnownBranches(graph.block());
  const std::size_t own = graph.inputs().size() - result.captured.size();
  Values no_parameters;
  for (std::size_t k = 0; k < graph.inputs().size(); ++k) {
    const bool is_parameter = k >= own && result.captured[k - own].is_parameter;
    if (!is_parameter) no_parameters.insert(graph.inputs()[k]);
  }
  Values statistics;
  ForEachNode(graph.block(), [&](jit::Node* node) {
    KeepStatistics(graph, node, no_parameters, statistics);
    RewriteNode(graph, node);
  });
  // What was computed for a print or a warning.
  jit::EliminateDeadCode(result.graph);
  ForEachNode(graph.block(), CheckNode);
  jit::ConstantPropagationImmutableTypes(result.graph);
  jit::EliminateDeadCode(result.graph);
  MakeOwnTensors(result.graph, own);
  const jit::AliasDb aliases(result.graph);
  for (std::size_t k = 0; k < graph.inputs().size(); ++k) {
    const jit::Value* input = graph.inputs()[k];
    const bool is_container = !input->type()->isSubtypeOf(*c10::TensorType::get());
    const bool may_write = is_container || statistics.contains(input) || aliases.hasWriters(input);
    if (k < own) {
      result.may_write_input.push_back(may_write);
    } else {
      result.captured[k - own].may_be_written = may_write;
    }
  }
  return result;
}

}  // namespace sordino
