#include "sordino/kernels/row_sums.h"

#include <ATen/Dispatch.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/threshold.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "sordino/base/check.h"
#include "sordino/base/quantity.h"
#include "sordino/base/vector_clones.h"
#include "sordino/device/parallel_shares.h"
#include "sordino/kernels/row_operations.h"

namespace sordino {

// Sixteen sums at a time: the compiler keeps them in vector registers, and the order of the sum
// does not depend on the machine. Squares are added in their own type over kSquaresPerSum entries
// and in float64 beyond, which keeps the relative error below kNormRoundings units.
template <typename Scalar>
double SquaredNorm(const Scalar* values, std::int64_t count) {
  constexpr std::int64_t kLanes = 16;
  constexpr std::int64_t kBlock = kLanes * kSquaresPerSum;
  double sum = 0;
  std::int64_t begin = 0;
  while (begin < count) {
    const std::int64_t end = std::min(begin + kBlock, count);
    std::array<Scalar, kLanes> sums{};
    std::int64_t k = begin;
    for (; k + kLanes <= end; k += kLanes) {
      for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        sums[static_cast<std::size_t>(lane)] += values[k + lane] * values[k + lane];
      }
    }
    for (; k < end; ++k) {
      sum += static_cast<double>(values[k]) * static_cast<double>(values[k]);
    }
    for (const Scalar lane : sums) sum += static_cast<double>(lane);
    begin = end;
  }
  return sum;
}

template double SquaredNorm<float>(const float* values, std::int64_t count);
template double SquaredNorm<double>(const double* values, std::int64_t count);

namespace {

// sums += factor * values.
template <typename Scalar>
[[gnu::always_inline]] inline void AddProducts(double factor, const Scalar* values,
                                               std::int64_t count, double* sums) {
  for (std::int64_t k = 0; k < count; ++k) sums[k] += factor * static_cast<double>(values[k]);
}
SORDINO_VECTOR_CLONES void AddScaled(double factor, const float* values, std::int64_t count,
                                     double* sums) {
  AddProducts(factor, values, count, sums);
}
SORDINO_VECTOR_CLONES void AddScaled(double factor, const double* values, std::int64_t count,
                                     double* sums) {
  AddProducts(factor, values, count, sums);
}

// Below this many elements a second thread costs more than it brings.
constexpr std::int64_t kGrain = 1 << 15;

template <typename Work>
void Share(std::int64_t n, std::int64_t elements, const Work& work) {
  if (elements < kGrain) {
    work(std::int64_t{0}, n);
  } else {
    ParallelShares(n, work);
  }
}

// In eight sums: the order depends on nothing but the number of values.
template <typename Scalar>
double Total(const Scalar* values, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::int64_t k = 0;
  for (; k + kLanes <= count; k += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      sums[static_cast<std::size_t>(lane)] += static_cast<double>(values[k + lane]);
    }
  }
  double sum = 0;
  for (; k < count; ++k) sum += static_cast<double>(values[k]);
  for (const double lane : sums) sum += lane;
  return sum;
}

template <typename Scalar>
at::Tensor SumsOfExamples(const at::Tensor& rows, const ExampleLayout& layout) {
  const at::Tensor packed = rows.contiguous();
  const std::int64_t width = rows.size(1);
  at::Tensor result = at::empty({layout.examples, width}, rows.options());
  const auto* values = packed.const_data_ptr<Scalar>();
  auto* out = result.mutable_data_ptr<Scalar>();
  Share(layout.examples, rows.numel(), [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> sums(static_cast<std::size_t>(width));
    for (std::int64_t example = begin; example < end; ++example) {
      if (width == 1 && layout.outer == 1) {
        out[example] = static_cast<Scalar>(Total(values + example * layout.inner, layout.inner));
        continue;
      }
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::int64_t outer = 0; outer < layout.outer; ++outer) {
        const Scalar* row = values + (outer * layout.examples + example) * layout.inner * width;
        for (std::int64_t inner = 0; inner < layout.inner; ++inner, row += width) {
          AddScaled(1, row, width, sums.data());
        }
      }
      std::transform(sums.begin(), sums.end(), out + example * width,
                     [](double sum) { return static_cast<Scalar>(sum); });
    }
  });
  return result;
}

// Rows of one example in the order in which they lie in memory.
class ExampleRows {
 public:
  explicit ExampleRows(const LookupRows& lookup) : layout_(lookup.layout) {
    if (!lookup.owners.defined()) return;
    const at::Tensor owners = lookup.owners.contiguous();
    const auto* owner = owners.const_data_ptr<std::int64_t>();
    explicit_.resize(static_cast<std::size_t>(layout_.examples));
    for (std::int64_t row = 0; row < owners.numel(); ++row) {
      explicit_[static_cast<std::size_t>(owner[row])].push_back(row);
    }
  }

  template <typename Visit>
  void ForEach(std::int64_t example, const Visit& visit) const {
    if (!explicit_.empty()) {
      for (const std::int64_t row : explicit_[static_cast<std::size_t>(example)]) visit(row);
      return;
    }
    for (std::int64_t outer = 0; outer < layout_.outer; ++outer) {
      const std::int64_t first = (outer * layout_.examples + example) * layout_.inner;
      for (std::int64_t inner = 0; inner < layout_.inner; ++inner) visit(first + inner);
    }
  }

 private:
  ExampleLayout layout_;
  std::vector<std::vector<std::int64_t>> explicit_;
};

template <typename Scalar>
void AddNorms(const LookupRows& lookup, double* squared) {
  const at::Tensor index = lookup.index.to(at::kLong).contiguous();
  const at::Tensor gradient = lookup.gradient.contiguous();
  const auto* entry_of = index.const_data_ptr<std::int64_t>();
  const auto* values = gradient.const_data_ptr<Scalar>();
  const std::int64_t width = gradient.size(1);
  const std::int64_t rows = index.numel();
  const ExampleRows example_rows(lookup);
  const std::int64_t examples = lookup.layout.examples;
  Share(examples, rows * width, [&](std::int64_t begin, std::int64_t end) {
    // seen[entry] is the slot of an entry in this example, where stamp[entry] is the example.
    std::vector<std::int64_t> stamp(static_cast<std::size_t>(lookup.vocabulary), -1);
    std::vector<std::int64_t> slot_of(static_cast<std::size_t>(lookup.vocabulary));
    std::vector<double> sums;
    for (std::int64_t example = begin; example < end; ++example) {
      sums.clear();
      example_rows.ForEach(example, [&](std::int64_t row) {
        const std::int64_t entry = entry_of[row];
        if (entry == lookup.padding_index) return;
        const Scalar* value = values + row * width;
        auto& stamped = stamp[static_cast<std::size_t>(entry)];
        auto& slot = slot_of[static_cast<std::size_t>(entry)];
        if (stamped != example) {
          stamped = example;
          slot = static_cast<std::int64_t>(sums.size());
          sums.insert(sums.end(), value, value + width);
          return;
        }
        AddScaled(1, value, width, sums.data() + slot);
      });
      squared[example] += SquaredNorm(sums.data(), static_cast<std::int64_t>(sums.size()));
    }
  });
}

// Rows of one example that look up the same entry of a range, added up in float64.
class RepeatedRows {
 public:
  RepeatedRows(std::int64_t begin, std::int64_t end, std::int64_t width)
      : begin_(begin),
        width_(width),
        seen_(static_cast<std::size_t>(end - begin), -1),
        repeated_(static_cast<std::size_t>(end - begin), -1),
        slot_(static_cast<std::size_t>(end - begin), 0) {}

  // All rows of an example are announced before any of them is asked for.
  void Announce(std::int64_t example, std::int64_t entry) {
    const auto at = static_cast<std::size_t>(entry - begin_);
    if (seen_[at] == example && repeated_[at] != example) {
      repeated_[at] = example;
      slot_[at] = static_cast<std::int64_t>(sums_.size());
      sums_.resize(sums_.size() + static_cast<std::size_t>(width_));
      entries_.push_back(entry);
    }
    seen_[at] = example;
  }
  bool Has(std::int64_t example, std::int64_t entry) const {
    return repeated_[static_cast<std::size_t>(entry - begin_)] == example;
  }
  template <typename Scalar>
  void Add(std::int64_t entry, const Scalar* row) {
    AddScaled(1, row, width_, sums_.data() + slot_[static_cast<std::size_t>(entry - begin_)]);
  }
  // Calls visit(entry, sum) and forgets the example.
  template <typename Visit>
  void Take(const Visit& visit) {
    for (std::size_t k = 0; k < entries_.size(); ++k) {
      visit(entries_[k], sums_.data() + k * static_cast<std::size_t>(width_));
    }
    entries_.clear();
    sums_.clear();
  }

 private:
  std::int64_t begin_;
  std::int64_t width_;
  std::vector<std::int64_t> seen_;      // the last example with this entry
  std::vector<std::int64_t> repeated_;  // the last one that has it more than once
  std::vector<std::int64_t> slot_;
  std::vector<std::int64_t> entries_;
  std::vector<double> sums_;
};

template <typename Scalar, typename Result>
at::Tensor Sum(const LookupRows& lookup, const at::Tensor& factors) {
  const at::Tensor index = lookup.index.to(at::kLong).contiguous();
  const at::Tensor gradient = lookup.gradient.contiguous();
  const at::Tensor weights = factors.to(at::kDouble).contiguous();
  const auto* entry_of = index.const_data_ptr<std::int64_t>();
  const auto* values = gradient.const_data_ptr<Scalar>();
  const auto* weight = weights.const_data_ptr<double>();
  const std::int64_t width = gradient.size(1);
  const std::int64_t rows = index.numel();
  const ExampleRows example_rows(lookup);
  at::Tensor result = at::zeros({lookup.vocabulary, width},
                                gradient.options().dtype(c10::CppTypeToScalarType<Result>::value));
  auto* out = result.mutable_data_ptr<Result>();
  // Each thread owns a range of entries and walks over all rows: no two threads meet, and the
  // order of a sum does not depend on their number.
  Share(lookup.vocabulary, rows * width, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> sums;             // of the entries that were looked up
    std::vector<std::int64_t> looked_up;  // in the order of their sums
    std::vector<std::int64_t> place(static_cast<std::size_t>(end - begin), -1);
    const auto add = [&](std::int64_t entry, double factor, const auto* value) {
      std::int64_t& first = place[static_cast<std::size_t>(entry - begin)];
      if (first < 0) {
        first = static_cast<std::int64_t>(sums.size());
        sums.resize(sums.size() + static_cast<std::size_t>(width));
        looked_up.push_back(entry);
      }
      AddScaled(factor, value, width, sums.data() + first);
    };
    const auto is_own = [&](std::int64_t entry) {
      return entry >= begin && entry < end && entry != lookup.padding_index;
    };
    RepeatedRows repeated(begin, end, width);
    for (std::int64_t example = 0; example < lookup.layout.examples; ++example) {
      const double factor = weight[example];
      if (factor == 0) continue;
      example_rows.ForEach(example, [&](std::int64_t row) {
        if (is_own(entry_of[row])) repeated.Announce(example, entry_of[row]);
      });
      example_rows.ForEach(example, [&](std::int64_t row) {
        const std::int64_t entry = entry_of[row];
        if (!is_own(entry)) return;
        if (repeated.Has(example, entry)) {
          repeated.Add(entry, values + row * width);
        } else {
          add(entry, factor, values + row * width);
        }
      });
      repeated.Take([&](std::int64_t entry, const double* sum) { add(entry, factor, sum); });
    }
    auto sum = sums.begin();
    for (const std::int64_t entry : looked_up) {
      std::transform(sum, sum + width, out + entry * width,
                     [](double value) { return static_cast<Result>(value); });
      sum += width;
    }
  });
  return result;
}

template <typename Scalar, typename Result>
at::Tensor RowSum(const at::Tensor& rows, const at::Tensor& factors) {
  const std::int64_t count = rows.size(0);
  const std::int64_t width = rows.size(1);
  const at::Tensor packed = width <= 1 || rows.stride(1) == 1 ? rows : rows.contiguous();
  const at::Tensor weights = factors.contiguous();
  const auto* weight = weights.const_data_ptr<double>();
  at::Tensor result =
      at::empty({width}, rows.options().dtype(c10::CppTypeToScalarType<Result>::value));
  const std::int64_t stride = packed.stride(0);
  const auto* values = packed.const_data_ptr<Scalar>();
  auto* out = result.mutable_data_ptr<Result>();
  Share(width, count * width, [&](std::int64_t begin, std::int64_t end) {
    // A strip of columns at a time: its sums stay in the first-level cache.
    constexpr std::int64_t kStrip = 1024;
    std::array<double, kStrip> sums;
    for (std::int64_t first = begin; first < end; first += kStrip) {
      const std::int64_t strip = std::min(kStrip, end - first);
      std::fill_n(sums.begin(), strip, 0.0);
      for (std::int64_t row = 0; row < count; ++row) {
        const double factor = weight[row];
        if (factor == 0) continue;
        AddScaled(factor, values + row * stride + first, strip, sums.data());
      }
      std::transform(sums.begin(), sums.begin() + strip, out + first,
                     [](double sum) { return static_cast<Result>(sum); });
    }
  });
  return result;
}

}  // namespace

at::Tensor RowSquaredNorms(const at::Tensor& rows) {
  if (HasRowOperations(rows) && rows.numel() > 0) return DeviceSquaredNorms({rows})[0];
  const bool plain =
      rows.is_cpu() && (rows.scalar_type() == at::kFloat || rows.scalar_type() == at::kDouble);
  if (!plain) {
    const at::Tensor norms =
        at::linalg_vector_norm(rows, 2, at::IntArrayRef{1}, /*keepdim=*/false, at::kDouble);
    return norms.square();
  }
  const std::int64_t count = rows.size(0);
  const std::int64_t width = rows.size(1);
  const at::Tensor packed = width <= 1 || rows.stride(1) == 1 ? rows : rows.contiguous();
  at::Tensor squared = at::empty({count}, rows.options().dtype(at::kDouble));
  auto* out = squared.mutable_data_ptr<double>();
  const std::int64_t stride = packed.stride(0);
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "RowSquaredNorms", [&] {
    const auto* values = packed.const_data_ptr<scalar_t>();
    const auto run = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        out[row] = SquaredNorm(values + row * stride, width);
      }
    };
    Share(count, count * width, run);
  });
  return squared;
}

void AddOneRowSquaredNorms(const at::Tensor& a, const at::Tensor& b, double limit,
                           const at::Tensor& squared) {
  const at::Tensor left = RowSquaredNorms(a);
  const at::Tensor right = RowSquaredNorms(b);
  if (!left.is_cpu()) {
    const at::Tensor beyond = at::maximum(left, right) > limit;
    squared.add_((left * right).masked_fill_(beyond, kInfinity));
    return;
  }
  const auto* x = left.const_data_ptr<double>();
  const auto* y = right.const_data_ptr<double>();
  auto* out = squared.mutable_data_ptr<double>();
  for (std::int64_t row = 0; row < left.numel(); ++row) {
    out[row] += x[row] > limit || y[row] > limit ? kInfinity : x[row] * y[row];
  }
}

Roots RootsWithin(const at::Tensor& squared, double limit) {
  const at::Tensor packed = squared.contiguous();
  const auto* value = packed.const_data_ptr<double>();
  Roots result{at::empty(squared.sizes(), squared.options()), true};
  auto* root = result.roots.mutable_data_ptr<double>();
  for (std::int64_t k = 0; k < packed.numel(); ++k) {
    root[k] = std::sqrt(value[k]);
    result.within = result.within && root[k] <= limit;
  }
  return result;
}

at::Tensor FactorsWithin(const at::Tensor& norms, const at::Tensor& bounds) {
  if (!norms.is_cpu()) {
    at::Tensor factors = at::div(bounds, norms).clamp_max_(1.0);
    return at::threshold_(factors, std::numeric_limits<double>::min(), 0.0);
  }
  const at::Tensor packed = norms.contiguous();
  at::Tensor factors = at::empty_like(packed);
  const auto* norm = packed.const_data_ptr<double>();
  const auto* bound = bounds.const_data_ptr<double>();
  auto* factor = factors.mutable_data_ptr<double>();
  for (std::int64_t row = 0; row < norms.size(0); ++row) {
    for (std::int64_t k = row * norms.size(1); k < (row + 1) * norms.size(1); ++k) {
      const double whole = bound[row] / norm[k];
      const double clipped = whole > 1 ? 1 : whole;
      factor[k] = clipped <= std::numeric_limits<double>::min() ? 0 : clipped;
    }
  }
  return factors;
}

at::Tensor CountAbove(const at::Tensor& values, const std::vector<double>& limits) {
  const at::Tensor packed = values.contiguous();
  const auto* value = packed.const_data_ptr<double>();
  at::Tensor counts = at::empty({values.size(0)}, values.options().dtype(at::kLong));
  auto* count = counts.mutable_data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < values.size(0); ++row) {
    const double limit = limits[static_cast<std::size_t>(row)];
    count[row] = std::count_if(value + row * values.size(1), value + (row + 1) * values.size(1),
                               [&](double x) { return !(x <= limit); });
  }
  return counts;
}

at::Tensor WeightedRowSum(const at::Tensor& rows, const at::Tensor& factors, bool wide) {
  at::Tensor sum;
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "WeightedRowSum", [&] {
    sum =
        wide ? RowSum<scalar_t, double>(rows, factors) : RowSum<scalar_t, scalar_t>(rows, factors);
  });
  return sum;
}

at::Tensor ExampleSums(const at::Tensor& rows, const ExampleLayout& layout) {
  SORDINO_CHECK(rows.is_cpu() && rows.size(0) == layout.rows(), "rows of examples on the CPU");
  at::Tensor sums;
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "ExampleSums",
                             [&] { sums = SumsOfExamples<scalar_t>(rows, layout); });
  return sums;
}

bool OneRowSumIsSmall(const at::Tensor& a, const at::Tensor& b) {
  constexpr std::int64_t kSmallWork = 1 << 17;
  const bool plain = a.is_cpu() && a.scalar_type() == b.scalar_type() &&
                     (a.scalar_type() == at::kFloat || a.scalar_type() == at::kDouble);
  return plain && a.size(0) * a.size(1) * b.size(1) <= kSmallWork;
}

at::Tensor OneRowSum(const at::Tensor& a, const at::Tensor& b, const at::Tensor& factors) {
  const at::Tensor left = a.contiguous();
  const at::Tensor right = b.contiguous();
  const at::Tensor weights = factors.contiguous();
  const auto* weight = weights.const_data_ptr<double>();
  const std::int64_t rows = a.size(0);
  const std::int64_t p = a.size(1);
  const std::int64_t q = b.size(1);
  at::Tensor result = at::empty({p, q}, a.options());
  AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "OneRowSum", [&] {
    const auto* x = left.const_data_ptr<scalar_t>();
    const auto* y = right.const_data_ptr<scalar_t>();
    std::vector<double> total(static_cast<std::size_t>(p * q));
    std::vector<scalar_t> sums(static_cast<std::size_t>(p * q));
    for (std::int64_t begin = 0; begin < rows; begin += kRowsPerSmallSum) {
      const std::int64_t end = std::min(begin + kRowsPerSmallSum, rows);
      std::fill(sums.begin(), sums.end(), scalar_t{0});
      for (std::int64_t row = begin; row < end; ++row) {
        if (weight[row] == 0) continue;
        const auto factor = static_cast<scalar_t>(weight[row]);
        // The longer of the two runs in the inner loop.
        if (p <= q) {
          for (std::int64_t j = 0; j < p; ++j) {
            const scalar_t value = factor * x[row * p + j];
            scalar_t* sum = sums.data() + j * q;
            for (std::int64_t k = 0; k < q; ++k) sum[k] += value * y[row * q + k];
          }
        } else {
          for (std::int64_t k = 0; k < q; ++k) {
            const scalar_t value = factor * y[row * q + k];
            scalar_t* sum = sums.data() + k * p;
            for (std::int64_t j = 0; j < p; ++j) sum[j] += value * x[row * p + j];
          }
        }
      }
      std::transform(sums.begin(), sums.end(), total.begin(), total.begin(),
                     [](scalar_t more, double sum) { return sum + static_cast<double>(more); });
    }
    auto* out = result.mutable_data_ptr<scalar_t>();
    for (std::int64_t j = 0; j < p; ++j) {
      for (std::int64_t k = 0; k < q; ++k) {
        const std::int64_t at = p <= q ? j * q + k : k * p + j;
        out[j * q + k] = static_cast<scalar_t>(total[static_cast<std::size_t>(at)]);
      }
    }
  });
  return result;
}

void AddLookupSquaredNorms(const LookupRows& lookup, const at::Tensor& squared) {
  SORDINO_CHECK(squared.is_contiguous() && squared.numel() == lookup.layout.examples,
                "one squared norm for each example");
  AT_DISPATCH_FLOATING_TYPES(lookup.gradient.scalar_type(), "AddLookupSquaredNorms", [&] {
    AddNorms<scalar_t>(lookup, squared.mutable_data_ptr<double>());
  });
}

at::Tensor LookupWeightedSum(const LookupRows& lookup, const at::Tensor& factors, bool wide) {
  at::Tensor sum;
  AT_DISPATCH_FLOATING_TYPES(lookup.gradient.scalar_type(), "LookupWeightedSum", [&] {
    sum = wide ? Sum<scalar_t, double>(lookup, factors) : Sum<scalar_t, scalar_t>(lookup, factors);
  });
  return sum;
}

}  // namespace sordino
