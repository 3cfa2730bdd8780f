#include "sordino/gradients/internal/graph/ownership.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones_like.h>
#include <c10/util/Exception.h>
#include <c10/util/env.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/device/parallel_shares.h"
#include "sordino/device/precision.h"
#include "sordino/gradients/internal/isolation/bfloat16_products.h"

namespace sordino {
namespace {

namespace ag = torch::autograd;

constexpr std::int64_t kUnknown = -1;
constexpr std::int64_t kMixed = -2;

// The weights of one probe: pass p multiplies unit u by 2^exponent[p][u].
struct Code {
  std::vector<std::vector<std::int64_t>> exponent;
  std::int64_t levels = 16;
  std::vector<std::int64_t> unit_of;  // of the digits read as a number, or kMixed

  // Digits are given to units in a random order, so that no structure of a model can agree with
  // them twice.
  Code(std::int64_t units, bool narrow_exponent) {
    if (narrow_exponent) levels = 4;
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
    unit_of.assign(static_cast<std::size_t>(codes), kMixed);
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

  at::Tensor Weights(std::size_t pass, const at::Tensor& losses) const {
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
};

std::vector<at::Tensor> Backward(const at::Tensor& losses, const at::Tensor& weights,
                                 const ag::edge_list& outputs) {
  return ag::Engine::get_default_engine().execute({ag::impl::gradient_edge(losses)}, {weights},
                                                  /*keep_graph=*/true, /*create_graph=*/false,
                                                  /*accumulate_grad=*/false, outputs);
}

// Gradients that arrive at some outputs, plain and under the weights of each pass.
struct Captured {
  std::vector<at::Tensor> plain;
  std::vector<std::vector<at::Tensor>> weighted;  // by pass
};

Captured Capture(const at::Tensor& losses, const Code& code, const ag::edge_list& outputs) {
  Captured captured;
  captured.plain = Backward(losses, at::ones_like(losses), outputs);
  for (std::size_t pass = 0; pass < code.exponent.size(); ++pass) {
    captured.weighted.push_back(Backward(losses, code.Weights(pass, losses), outputs));
  }
  return captured;
}

// The same for what the rules take at each use.
Captured CaptureAtUses(const at::Tensor& losses, const Code& code, const Tape& tape,
                       const std::vector<std::unique_ptr<UseRule>>& rules) {
  ag::edge_list outputs;
  for (const ParameterUse& use : tape.uses) {
    const TapeNode& node = tape.graph.nodes[use.node];
    for (std::uint32_t k = 0; k < node->num_inputs(); ++k) outputs.emplace_back(node, k);
  }
  Captured captured = Capture(losses, code, outputs);
  const auto arriving = [&](std::vector<at::Tensor>& gradients) {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> at_uses;
    auto first = gradients.begin();
    for (std::size_t k = 0; k < tape.uses.size(); ++k) {
      const auto last = first + tape.graph.nodes[tape.uses[k].node]->num_inputs();
      at_uses.push_back(rules[k]->Arriving({first, last}));
      first = last;
    }
    gradients = std::move(at_uses);
  };
  arriving(captured.plain);
  for (auto& pass : captured.weighted) arriving(pass);
  return captured;
}

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

// A contiguous copy on the CPU, float32 or float64.
at::Tensor Readable(const at::Tensor& rows) {
  const at::ScalarType type = rows.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return rows.to(at::kCPU, type).contiguous();
}

// By which power of two the weights of a pass multiplied a row: the exponent of its unit, kUnknown
// or kMixed. `x` is the row without weights, `y` with them.
template <typename T>
std::int64_t Digit(const T* x, const T* y, std::int64_t width, std::int64_t levels,
                   double tolerance, double smallest) {
  std::int64_t at = 0;
  double largest_scaled = 0;
  for (std::int64_t k = 0; k < width; ++k) {
    if (std::abs(x[k]) > std::abs(x[at])) at = k;
    largest_scaled = std::max(largest_scaled, std::abs(static_cast<double>(y[k])));
  }
  if (width == 0 || !std::isfinite(x[at]) || !std::isfinite(largest_scaled)) return kUnknown;
  const double largest = std::abs(static_cast<double>(x[at]));
  if (largest < smallest) {
    // Zero alone but not under weights: contributions that cancelled were weighted apart.
    const bool cancelled = largest_scaled > 1e6 * smallest;
    return cancelled ? kMixed : kUnknown;
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
  return is_one ? static_cast<std::int64_t>(exponent) : kMixed;
}

// The unit that owns each row of [rows, features], kUnknown or kMixed.
std::vector<std::int64_t> Owners(const Code& code, const at::Tensor& plain,
                                 const std::vector<at::Tensor>& weighted) {
  const at::ScalarType type = plain.scalar_type();
  const at::Tensor base = Readable(plain);
  const std::int64_t width = base.size(1);
  std::vector<std::int64_t> digits(static_cast<std::size_t>(base.size(0)), 0);
  std::vector<std::int64_t> owner(digits.size(), 0);
  const double tolerance = OwnershipTolerance(isolated::RoundingType(type), plain.device());
  std::int64_t place = 1;
  for (const at::Tensor& gradient : weighted) {
    const at::Tensor scaled = Readable(gradient);
    const auto read = [&](const auto* x, const auto* y) {
      ParallelShares(base.size(0), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const auto at = static_cast<std::size_t>(row);
          if (owner[at] < 0) continue;
          const std::int64_t digit = Digit(x + row * width, y + row * width, width, code.levels,
                                           tolerance, Smallest(type));
          if (digit < 0) owner[at] = digit;
          digits[at] += std::max<std::int64_t>(digit, 0) * place;
        }
      });
    };
    if (base.scalar_type() == at::kDouble) {
      read(base.const_data_ptr<double>(), scaled.const_data_ptr<double>());
    } else {
      read(base.const_data_ptr<float>(), scaled.const_data_ptr<float>());
    }
    place *= code.levels;
  }
  for (std::size_t row = 0; row < owner.size(); ++row) {
    if (owner[row] == 0) owner[row] = code.unit_of[static_cast<std::size_t>(digits[row])];
  }
  return owner;
}

bool Fits(const ExampleLayout& layout, const std::vector<std::int64_t>& owner) {
  for (std::size_t row = 0; row < owner.size(); ++row) {
    const std::int64_t expected = static_cast<std::int64_t>(row) / layout.inner % layout.examples;
    if (owner[row] != kUnknown && owner[row] != expected) return false;
  }
  return true;
}

struct Fit {
  std::optional<ExampleLayout> layout;
  bool unique = true;
};

// Rows that lie unit by unit come first: where zeros leave several layouts open, it is that of all
// operations but recurrent layers.
Fit FitLayout(const std::vector<std::int64_t>& owner, std::int64_t units) {
  Fit fit;
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

// In its scope operations of a GPU add in a fixed order; those that cannot throw.
class FixedOrder {
 public:
  FixedOrder() {
    // Read by libtorch before each product of cuBLAS.
    c10::utils::set_env("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/false);
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  }
  ~FixedOrder() { at::globalContext().setDeterministicAlgorithms(was_fixed_, only_warned_); }
  FixedOrder(const FixedOrder&) = delete;
  FixedOrder& operator=(const FixedOrder&) = delete;

 private:
  const bool was_fixed_ = at::globalContext().deterministicAlgorithms();
  const bool only_warned_ = at::globalContext().deterministicAlgorithmsWarnOnly();
};

Ownership Find(const at::Tensor& losses, std::int64_t units, const Tape& tape,
               const std::vector<std::unique_ptr<UseRule>>& rules,
               const std::vector<NamedParameter>& parameters) {
  const Code code(units, losses.scalar_type() == at::kHalf);
  const Captured captured = CaptureAtUses(losses, code, tape, rules);

  Ownership ownership;
  for (std::size_t k = 0; k < tape.uses.size(); ++k) {
    const std::string& name = RootName(tape, tape.uses[k].root, parameters);
    if (!captured.plain[k].defined() || captured.plain[k].numel() == 0) {
      ownership.layouts.push_back({0, units, 0});
      ownership.settled = false;
      continue;
    }
    const at::Tensor plain = rules[k]->Rows(captured.plain[k]);
    if (units == 1) {
      ownership.layouts.push_back({1, 1, plain.size(0)});
      ownership.settled = false;
      continue;
    }
    std::vector<at::Tensor> weighted;
    for (const auto& pass : captured.weighted) weighted.push_back(rules[k]->Rows(pass[k]));
    const auto owner = Owners(code, plain, weighted);
    const Fit fit = Any(owner, kMixed) ? Fit{} : FitLayout(owner, units);
    if (!fit.layout) {
      throw DifferentValues("the rows of the operation '" +
                            OperationName(*tape.graph.nodes[tape.uses[k].node]) +
                            "' of the parameter '" + name +
                            "' are not as many, or not in the same order, for every example; "
                            "pad the examples to one size and keep their order.");
    }
    ownership.layouts.push_back(*fit.layout);
    ownership.settled = ownership.settled && fit.unique;
  }
  return ownership;
}

}  // namespace

Ownership FindOwnership(const at::Tensor& losses, std::int64_t units, const Tape& tape,
                        const std::vector<std::unique_ptr<UseRule>>& rules,
                        const std::vector<NamedParameter>& parameters) {
  try {
    return Find(losses, units, tape, rules, parameters);
  } catch (const DifferentValues&) {
    if (!losses.is_cuda()) throw;
    // Rows that are zero but for rounding, such as those of the first query of causal attention,
    // are other rows each time where sums have no fixed order.
    try {
      const FixedOrder scope;
      return Find(losses, units, tape, rules, parameters);
    } catch (const c10::Error&) {
      // An operation has no such order.
    }
    throw;
  }
}

}  // namespace sordino
