// sordino._core: the tier without libtorch.
#include <pybind11/pybind11.h>

#include "errors.h"
#include "sordino/accounting/event.h"

namespace py = pybind11;

PYBIND11_MODULE(_core, module) {
  sordino::python::TranslateErrors();
  py::class_<sordino::Event>(module, "Event")
      .def(py::init([](const std::string& text) { return sordino::Event::Parse(text); }))
      .def("__str__", &sordino::Event::ToString);
}
