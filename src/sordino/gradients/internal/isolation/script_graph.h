// The forward method of a script as one closed graph.
//
// Methods of modules and of classes, functions and forks are inlined; what the script reads of its
// module, and every tensor, list and dictionary among its constants, becomes an input of the graph.
// What is left are operations of pure_operations.h on these inputs, and anything else is refused:
// the graph is a function of its inputs, whatever the script was written to do. Some operations are
// replaced by others that mean the same for a record:
//
//   x.bernoulli_(p), uniform_, normal_, exponential_   out of place: in place, a tensor that all
//                                                      examples share would hold one draw
//   empty, empty_like, new_empty                       zeros
//   x.data                                             detach, whose writes are counted
//   print, warnings.warn                               nothing
//   embedding_bag(...)[1 ...]                          zeros: libtorch leaves them unwritten
//   raise with a text that is computed                 a fixed text
//   a new tensor that values of a record are written   one for each record (own_tensors.h)
//   to
#ifndef SORDINO_GRADIENTS_INTERNAL_ISOLATION_SCRIPT_GRAPH_H_
#define SORDINO_GRADIENTS_INTERNAL_ISOLATION_SCRIPT_GRAPH_H_

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace torch::jit {
struct Graph;
struct Module;
}  // namespace torch::jit

namespace sordino {

// An input of the graph behind those of the forward method.
struct CapturedValue {
  std::string name;  // "encoder.0.weight"; empty: a constant of the code
  c10::intrusive_ptr<c10::ivalue::Object> object = {};  // null: a constant
  std::size_t slot = 0;
  c10::IValue constant = {};
  bool is_parameter = false;
  bool may_be_written = false;

  const c10::IValue& Value() const { return object ? object->getSlot(slot) : constant; }
};

struct ScriptGraph {
  std::shared_ptr<torch::jit::Graph> graph;
  std::vector<bool> may_write_input;  // of each input of the forward method, without the module
  std::vector<CapturedValue> captured;
};

// Throws Error with the operation, the line of the script and a way out. The module is not changed.
ScriptGraph MakeScriptGraph(const torch::jit::Module& module);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ISOLATION_SCRIPT_GRAPH_H_
