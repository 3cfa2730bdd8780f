// What the files of sordino._core share: arguments of Python as quantities of the library.
//
// The module hands over numbers, texts, tuples and dicts; the package makes them into the objects
// that users see.
#ifndef SORDINO_PYTHON_CORE_H_
#define SORDINO_PYTHON_CORE_H_

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sordino/accounting/event.h"
#include "sordino/base/quantity.h"

namespace sordino::python {

using Text = std::optional<std::string>;
using Number = std::optional<double>;

// Throws Error for what is not finite, and for subnormal numbers, which have lost digits.
double Finite(std::string_view name, double value);
// A whole number from 0 to 2^53; Python may write it as 1e6.
std::uint64_t Whole(std::string_view name, double value);
// That of the library where none is named.
Adjacency AdjacencyOf(const Text& name);
pybind11::tuple Pair(const Interval& interval);

void BindRelease(pybind11::module_& module);
void BindLedger(pybind11::module_& module);
void BindAudit(pybind11::module_& module);
void BindPlan(pybind11::module_& module);
void BindNoisePlan(pybind11::module_& module);

}  // namespace sordino::python

#endif  // SORDINO_PYTHON_CORE_H_
