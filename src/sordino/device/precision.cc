#include "sordino/device/precision.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

#include <atomic>

#include "sordino/base/known_name.h"

namespace sordino {
namespace {

std::atomic<Precision> used_precision{Precision::kFloat32};

}  // namespace

void UsePrecision(Precision precision) {
  const bool tf32 = precision != Precision::kFloat32;
  at::globalContext().setAllowTF32CuBLAS(tf32);
  at::globalContext().setAllowTF32CuDNN(tf32);
  used_precision = precision;
}

Precision UsedPrecision() { return used_precision; }

ScopedPrecision::ScopedPrecision(Precision precision)
    : before_(UsedPrecision()),
      had_tf32_products_(at::globalContext().allowTF32CuBLAS()),
      had_tf32_convolutions_(at::globalContext().allowTF32CuDNN()) {
  UsePrecision(precision);
}

ScopedPrecision::~ScopedPrecision() {
  used_precision = before_;
  at::globalContext().setAllowTF32CuBLAS(had_tf32_products_);
  at::globalContext().setAllowTF32CuDNN(had_tf32_convolutions_);
}

Precision ParsePrecision(std::string_view what, std::string_view name) {
  return static_cast<Precision>(IndexOfName(what, name, kPrecisionNames));
}

OrdinaryPrecision::OrdinaryPrecision(at::Device device)
    : device_(device.type()),
      was_enabled_(at::autocast::is_autocast_enabled(device_)),
      had_cache_(at::autocast::is_autocast_cache_enabled()),
      type_(at::autocast::get_autocast_dtype(device_)) {
  if (UsedPrecision() != Precision::kBfloat16) return;
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_, at::kBFloat16);
  at::autocast::set_autocast_cache_enabled(false);
}

OrdinaryPrecision::~OrdinaryPrecision() {
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, type_);
  at::autocast::set_autocast_cache_enabled(had_cache_);
}

}  // namespace sordino
