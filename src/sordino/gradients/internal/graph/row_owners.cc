#include "sordino/gradients/internal/graph/row_owners.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "sordino/device/parallel_shares.h"
#include "sordino/device/precision.h"
#include "sordino/gradients/internal/isolation/bfloat16_products.h"

namespace sordino {
namespace {

// Entries of rows that a GPU looks at together.
constexpr std::int64_t kEntriesAtOnce = std::int64_t{1} << 25;
// Of the largest row.
constexpr double kFaint = 0.25;

// The relative misfit of a row that one example owns alone: rounding commutes with the weights, but
// kernels that add in no fixed order (CUDA) do not. What differs there in the last of 24 bits may
// round to another number of 11 bits in the next product.
double OwnershipTolerance(at::ScalarType type, at::Device device) {
  if (type == at::kDouble) return 1e-10;
  if (type != at::kFloat) return 3e-2;
  return device.is_cuda() && UsedPrecision() == Precision::kTf32 ? 1e-2 : 1e-4;
}

// A row below this may lose digits to the end of the number range.
double Smallest(at::ScalarType type) {
  if (type == at::kDouble) return 1e-280;
  return type == at::kHalf ? 1e-4 : 1e-30;
}

double ToleranceOf(const at::Tensor& rows) {
  return OwnershipTolerance(isolated::RoundingType(rows.scalar_type()), rows.device());
}

// A contiguous copy in float32 or float64.
at::Tensor Readable(const at::Tensor& rows) {
  return rows.to(rows.scalar_type() == at::kDouble ? at::kDouble : at::kFloat).contiguous();
}

// By which power of two the weights of a pass multiplied each row: the exponent of its unit,
// kUnknownOwner or kMixedOwner. x: rows without weights, y: with them.
struct RowReader {
  std::int64_t levels;
  double tolerance;
  double smallest;

  template <typename T>
  std::int64_t Digit(const T* x, const T* y, std::int64_t width) const;
  at::Tensor DigitsOnDevice(const at::Tensor& x, const at::Tensor& y) const;
  std::vector<std::int64_t> Digits(const at::Tensor& x, const at::Tensor& y, bool on_device) const;
};

template <typename T>
std::int64_t RowReader::Digit(const T* x, const T* y, std::int64_t width) const {
  std::int64_t at = 0;
  double largest_scaled = 0;
  for (std::int64_t k = 0; k < width; ++k) {
    if (std::abs(x[k]) > std::abs(x[at])) at = k;
    largest_scaled = std::max(largest_scaled, std::abs(static_cast<double>(y[k])));
  }
  if (width == 0 || !std::isfinite(x[at]) || !std::isfinite(largest_scaled)) return kUnknownOwner;
  const double largest = std::abs(static_cast<double>(x[at]));
  if (largest < smallest) {
    // Zero alone but not under weights: contributions that cancelled were weighted apart.
    const bool cancelled = largest_scaled > 1e6 * smallest;
    return cancelled ? kMixedOwner : kUnknownOwner;
  }
  const double exponent = std::round(std::log2(std::abs(static_cast<double>(y[at])) / largest));
  const double factor = std::exp2(exponent);
  double misfit = 0;
  for (std::int64_t k = 0; k < width; ++k) {
    const double exact = factor * static_cast<double>(x[k]);
    misfit = std::max(misfit, std::abs(static_cast<double>(y[k]) - exact));
  }
  const bool is_one = exponent >= 0 && exponent < static_cast<double>(levels) &&
                      misfit <= tolerance * factor * largest;
  return is_one ? static_cast<std::int64_t>(exponent) : kMixedOwner;
}

// The same by operations of libtorch.
at::Tensor RowReader::DigitsOnDevice(const at::Tensor& x, const at::Tensor& y) const {
  const at::Tensor at = x.abs().argmax(1, /*keepdim=*/true);
  const at::Tensor largest = x.gather(1, at).abs();
  const at::Tensor largest_scaled = y.abs().amax(1, /*keepdim=*/true);
  const at::Tensor exponent =
      (y.gather(1, at).abs().to(at::kDouble) / largest.to(at::kDouble)).log2().round();
  const at::Tensor factor = exponent.exp2().to(x.scalar_type());
  const at::Tensor misfit = (y - factor * x).abs().amax(1, /*keepdim=*/true);
  const at::Tensor is_one = exponent.ge(0)
                                .logical_and(exponent.lt(static_cast<double>(levels)))
                                .logical_and(misfit <= tolerance * factor * largest)
                                .logical_and(largest >= smallest);
  const at::Tensor digits =
      at::where(is_one, exponent, at::full_like(exponent, static_cast<double>(kMixedOwner)));
  const at::Tensor is_zero = (largest < smallest).logical_and(largest_scaled <= 1e6 * smallest);
  const at::Tensor is_infinite =
      largest.isfinite().logical_and(largest_scaled.isfinite()).logical_not();
  digits.masked_fill_(is_zero.logical_or(is_infinite), static_cast<double>(kUnknownOwner));
  return digits.squeeze(1).to(at::kLong);
}

std::vector<std::int64_t> RowReader::Digits(const at::Tensor& x, const at::Tensor& y,
                                            bool on_device) const {
  const std::int64_t rows = x.size(0);
  const std::int64_t width = x.size(1);
  std::vector<std::int64_t> digits(static_cast<std::size_t>(rows), kUnknownOwner);
  if (width == 0) return digits;
  if (on_device) {
    const std::int64_t each = std::max<std::int64_t>(kEntriesAtOnce / width, 1);
    for (std::int64_t begin = 0; begin < rows; begin += each) {
      const std::int64_t count = std::min(each, rows - begin);
      const at::Tensor part =
          DigitsOnDevice(x.narrow(0, begin, count), y.narrow(0, begin, count)).cpu();
      std::copy_n(part.const_data_ptr<std::int64_t>(), count, digits.begin() + begin);
    }
    return digits;
  }
  const auto read = [&](const auto* of_x, const auto* of_y) {
    ParallelShares(rows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        digits[static_cast<std::size_t>(row)] =
            Digit(of_x + row * width, of_y + row * width, width);
      }
    });
  };
  if (x.scalar_type() == at::kDouble) {
    read(x.const_data_ptr<double>(), y.const_data_ptr<double>());
  } else {
    read(x.const_data_ptr<float>(), y.const_data_ptr<float>());
  }
  return digits;
}

bool Fits(const ExampleLayout& layout, const std::vector<std::int64_t>& owner) {
  for (std::size_t row = 0; row < owner.size(); ++row) {
    const std::int64_t expected = static_cast<std::int64_t>(row) / layout.inner % layout.examples;
    if (owner[row] != kUnknownOwner && owner[row] != expected) return false;
  }
  return true;
}

// Rows that lie unit by unit come first: where zeros leave several layouts open, it is that of all
// operations but recurrent layers.
LayoutFit FitLayout(const std::vector<std::int64_t>& owner, std::int64_t units) {
  LayoutFit fit;
  const auto rows = static_cast<std::int64_t>(owner.size());
  if (rows % units != 0) return fit;
  const std::int64_t each = rows / units;
  for (std::int64_t inner = each; inner >= 1; --inner) {
    if (each % inner != 0) continue;
    const ExampleLayout layout{each / inner, units, inner};
    if (!Fits(layout, owner)) continue;
    if (fit.layout) return {fit.layout, false};
    fit.layout = layout;
  }
  return fit;
}

bool Any(const std::vector<std::int64_t>& owner, std::int64_t state) {
  return std::find(owner.begin(), owner.end(), state) != owner.end();
}

// Whether every row is what the weights of its unit in the layout make of it, up to the tolerance
// of the largest row of the unit.
bool AreOfTheirUnits(const ExampleLayout& layout, const UnitCode& code, const at::Tensor& plain,
                     const std::vector<at::Tensor>& weighted) {
  const auto by_unit = [&](const at::Tensor& rows) {
    return Readable(rows).view({layout.outer, layout.examples, layout.inner, rows.size(1)});
  };
  const at::Tensor x = by_unit(plain);
  const at::Tensor allowed = x.abs().amax({0, 2, 3}, /*keepdim=*/true) * ToleranceOf(plain);
  for (std::size_t pass = 0; pass < weighted.size(); ++pass) {
    const auto& exponents = code.exponent[pass];
    const at::Tensor factors =
        at::tensor(exponents).to(x.scalar_type()).exp2().to(x.device()).view({1, -1, 1, 1});
    const at::Tensor misfit = (by_unit(weighted[pass]) - factors * x).abs();
    // Not a number says nothing, as above.
    if ((misfit > factors * allowed).any().item<bool>()) return false;
  }
  return true;
}

}  // namespace

UnitCode::UnitCode(std::int64_t units, bool narrow_exponent) : levels(narrow_exponent ? 4 : 16) {
  std::int64_t codes = 1;
  std::size_t passes = 0;
  while (codes < units || passes == 0) {
    codes *= levels;
    ++passes;
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(codes));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 engine(std::random_device{}());
  std::shuffle(order.begin(), order.end(), engine);
  unit_of.assign(static_cast<std::size_t>(codes), kMixedOwner);
  exponent.assign(passes, std::vector<std::int64_t>(static_cast<std::size_t>(units)));
  for (std::size_t unit = 0; unit < static_cast<std::size_t>(units); ++unit) {
    std::int64_t digits = order[unit];
    unit_of[static_cast<std::size_t>(digits)] = static_cast<std::int64_t>(unit);
    for (auto& pass : exponent) {
      pass[unit] = digits % levels;
      digits /= levels;
    }
  }
}

at::Tensor UnitCode::Weights(std::size_t pass, const at::Tensor& losses) const {
  const auto& exponents = exponent[pass];
  const auto units = static_cast<std::int64_t>(exponents.size());
  const std::int64_t width = losses.numel() / units;
  at::Tensor weights = at::empty({losses.numel()}, at::TensorOptions().dtype(at::kDouble));
  auto* value = weights.mutable_data_ptr<double>();
  for (std::int64_t k = 0; k < losses.numel(); ++k) {
    value[k] = std::ldexp(1.0, static_cast<int>(exponents[static_cast<std::size_t>(k / width)]));
  }
  return weights.to(losses.options()).view(losses.sizes());
}

std::vector<std::int64_t> RowOwners(const UnitCode& code, const at::Tensor& plain,
                                    const std::vector<at::Tensor>& weighted,
                                    const RowArithmetic& arithmetic) {
  const RowReader reader{.levels = code.levels,
                         .tolerance = ToleranceOf(plain),
                         .smallest = Smallest(plain.scalar_type())};
  const at::Tensor base = Readable(plain);
  std::vector<std::int64_t> digits(static_cast<std::size_t>(base.size(0)), 0);
  std::vector<std::int64_t> owner(digits.size(), 0);
  std::int64_t place = 1;
  for (const at::Tensor& gradient : weighted) {
    const std::vector<std::int64_t> of_pass =
        reader.Digits(base, Readable(gradient), arithmetic.on_device);
    for (std::size_t row = 0; row < owner.size(); ++row) {
      if (owner[row] < 0) continue;
      if (of_pass[row] < 0) owner[row] = of_pass[row];
      digits[row] += std::max<std::int64_t>(of_pass[row], 0) * place;
    }
    place *= code.levels;
  }
  for (std::size_t row = 0; row < owner.size(); ++row) {
    if (owner[row] == 0) owner[row] = code.unit_of[static_cast<std::size_t>(digits[row])];
  }
  return owner;
}

LayoutFit FitRows(const UnitCode& code, const at::Tensor& plain,
                  const std::vector<at::Tensor>& weighted, std::int64_t units,
                  const RowArithmetic& arithmetic) {
  std::vector<std::int64_t> owner = RowOwners(code, plain, weighted, arithmetic);
  LayoutFit fit = Any(owner, kMixedOwner) ? LayoutFit{} : FitLayout(owner, units);
  if (fit.layout || arithmetic.fixed_order) return fit;
  const at::Tensor largest = Readable(plain).abs().amax(1).cpu().to(at::kDouble);
  const double faint = kFaint * largest.nan_to_num(0, 0, 0).max().item<double>();
  for (std::size_t row = 0; row < owner.size(); ++row) {
    if (largest.const_data_ptr<double>()[row] < faint) owner[row] = kUnknownOwner;
  }
  if (Any(owner, kMixedOwner)) return {};
  fit = FitLayout(owner, units);
  if (fit.layout && !AreOfTheirUnits(*fit.layout, code, plain, weighted)) return {};
  return fit;
}

}  // namespace sordino
