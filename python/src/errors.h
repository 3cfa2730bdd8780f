// Errors of the library in Python, for each extension module.
//
// sordino::Error becomes sordino.Error with the same sentence, and Stopped KeyboardInterrupt;
// another std::exception, such as that of a full disk, becomes RuntimeError (pybind11's rule).
#ifndef SORDINO_PYTHON_ERRORS_H_
#define SORDINO_PYTHON_ERRORS_H_

#include <pybind11/pybind11.h>

#include "sordino/base/error.h"
#include "sordino/base/stop.h"

namespace sordino::python {

// Call once in the body of each PYBIND11_MODULE.
inline void TranslateErrors() {
  pybind11::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Stopped& stopped) {
      PyErr_SetString(PyExc_KeyboardInterrupt, stopped.what());
    } catch (const Error& error) {
      const pybind11::object type = pybind11::module_::import("sordino._error").attr("Error");
      PyErr_SetString(type.ptr(), error.what());
    }
  });
}

}  // namespace sordino::python

#endif  // SORDINO_PYTHON_ERRORS_H_
