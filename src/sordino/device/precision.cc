#include "sordino/device/precision.h"

#include <ATen/Context.h>

#include <string>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"

namespace sordino {

void UsePrecision(Precision precision) {
  const bool tf32 = precision == Precision::kTf32;
  at::globalContext().setAllowTF32CuBLAS(tf32);
  at::globalContext().setAllowTF32CuDNN(tf32);
}

Precision ParsePrecision(std::string_view what, std::string_view name) {
  if (name == "bfloat16") {
    throw Error(std::string(what) +
                " is bfloat16, which is not supported yet: a weight that is converted for every "
                "use has its gradients written out for each example; use tf32.");
  }
  return static_cast<Precision>(IndexOfName(what, name, kPrecisionNames));
}

}  // namespace sordino
