// Private linear models of tables that Python holds: those of `sordino fit`.
#ifndef SORDINO_PYTHON_FITS_H_
#define SORDINO_PYTHON_FITS_H_

#include <pybind11/pybind11.h>

namespace sordino::python {

void BindFits(pybind11::module_& module);

}  // namespace sordino::python

#endif  // SORDINO_PYTHON_FITS_H_
