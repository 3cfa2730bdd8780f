// The operations that a script may be made of (script_graph.h).
//
// Each is a function of its inputs by its schema: it returns fresh values or views of its inputs,
// writes nothing but an input that it is named to write to (add_, append), and sees no stride,
// address, version, file, clock, generator or memory that was not written. What is not named here
// is refused, so a new operation of libtorch is refused until somebody has looked at it.
#ifndef SORDINO_GRADIENTS_INTERNAL_ISOLATION_PURE_OPERATIONS_H_
#define SORDINO_GRADIENTS_INTERNAL_ISOLATION_PURE_OPERATIONS_H_

#include <ATen/core/jit_type_base.h>

#include <string>
#include <string_view>

namespace sordino {

// "aten::add", "aten::add_" (in place where the operation itself is pure), "prim::If".
bool IsPureOperation(std::string_view kind);

// What to do instead of an operation that is refused, a clause: "use sizes instead of strides".
std::string WayOutOf(std::string_view kind);

// Whether values of a type are numbers, strings and containers of them, and with_tensors: tensors.
bool IsScriptData(const c10::TypePtr& type, bool with_tensors);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ISOLATION_PURE_OPERATIONS_H_
