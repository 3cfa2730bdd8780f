#include "sordino/gradients/internal/terms/fused_terms.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/gradients/internal/convolution/convolution_shape.h"
#include "sordino/gradients/internal/terms/term_rows.h"
#include "sordino/kernels/alignment.h"
#include "sordino/kernels/fused_plan.h"
#include "sordino/kernels/fused_product.h"
#include "sordino/kernels/fused_rows.h"
#include "sordino/kernels/fused_windows.h"
#include "sordino/kernels/launch.h"

namespace sordino {
namespace {

constexpr std::int64_t kMostEntries = std::numeric_limits<std::int32_t>::max();
// Of the grid: tiles times chunks.
constexpr std::int64_t kMostBlocks = 1 << 30;

bool IsFloat32(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return kKernelsAreBuilt && tensor.is_cuda() &&
         (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf);
}

int Int(std::int64_t number) {
  SORDINO_CHECK(number >= 0 && number <= kMostEntries, "a size that a kernel can count");
  return static_cast<int>(number);
}

// The operands of a term, which live as long as the kernels are asked for.
struct RowsOperands {
  at::Tensor left;
  at::Tensor right;
  RowsSource source;
};

RowsSource::Matrix MatrixOf(const at::Tensor& rows) {
  RowsSource::Matrix matrix;
  matrix.values = rows.const_data_ptr<float>();
  matrix.example = rows.stride(0);
  matrix.row = rows.stride(1);
  matrix.fours = kernels::IsAligned(matrix.values) && matrix.example % 4 == 0 &&
                 matrix.row % 4 == 0 && rows.size(2) % 4 == 0;
  return matrix;
}

RowsOperands OperandsOfRows(const Term& term) {
  const auto by_example = [&](const at::Tensor& rows) {
    at::Tensor own = ByExample(Wide(rows), term.layout, 0, term.layout.examples);
    return own.stride(2) == 1 || own.size(2) == 1 ? own : own.contiguous();
  };
  RowsOperands operands{by_example(term.a), by_example(term.b), {}};
  operands.source.left = MatrixOf(operands.left);
  operands.source.right = MatrixOf(operands.right);
  operands.source.examples = Int(term.layout.examples);
  operands.source.rows = Int(term.layout.rows_per_example());
  operands.source.m = Int(term.a.size(1));
  operands.source.n = Int(term.b.size(1));
  return operands;
}

struct WindowOperands {
  at::Tensor image;
  at::Tensor signal;
  WindowSource source;
  FusedPlan plan;
};

WindowSource::Steps5 StepsOf(const at::Tensor& images) {
  const at::IntArrayRef strides = images.strides();
  return {strides[0], Int(strides[1]), Int(strides[2]), Int(strides[3]), Int(strides[4])};
}

// As Wide gives it, with whatever the memory holds: for a look at sizes, steps and addresses.
at::Tensor WideWithoutValues(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat) return tensor;
  return at::empty_like(tensor, tensor.options().dtype(at::kFloat));
}

WindowOperands OperandsOfWindows(const Term& term, at::Tensor (*wide)(const at::Tensor&) = Wide) {
  const ConvolutionOperands both = MakeOperands(term.convolution, term.a, term.b, term.layout);
  const ConvolutionShape& shape = both.shape;
  WindowOperands operands{wide(both.image), wide(both.signal), {}, {}};
  WindowSource& source = operands.source;
  source.image = operands.image.const_data_ptr<float>();
  source.signal = operands.signal.const_data_ptr<float>();
  source.image_step = StepsOf(operands.image);
  source.signal_step = StepsOf(operands.signal);
  source.outer = Int(term.layout.outer);
  source.examples = Int(term.layout.examples);
  source.inner = Int(term.layout.inner);
  source.m = Int(shape.signal_channels_per_group());
  source.channels = Int(shape.image_channels_per_group());
  source.n = Int(shape.columns());
  for (std::size_t d = 0; d < 3; ++d) {
    source.kernel[d] = Int(shape.kernel[d]);
    source.stride[d] = Int(shape.stride[d]);
    source.padding[d] = Int(shape.padding[d]);
    source.dilation[d] = Int(shape.dilation[d]);
    source.extent[d] = Int(shape.image[d]);
    source.positions[d] = Int(shape.positions[d]);
  }
  operands.plan = PlanWindows(source, Int(shape.groups));
  return operands;
}

// Sizes that the kernels count in 32 bits, of an example and not of the batch.
bool RowsFit(const Term& term) {
  const std::int64_t entries = term.a.size(1) * term.b.size(1);
  return term.layout.rows_per_example() > 1 && term.layout.examples <= kMostEntries / 2 &&
         term.layout.rows_per_example() <= kMostEntries / 2 && entries > 0 &&
         entries <= kMostEntries / 2 && term.layout.examples * (entries / 1024 + 1) < kMostBlocks;
}

bool WindowsFit(const Term& term) {
  const ConvolutionOperands both = MakeOperands(term.convolution, term.a, term.b, term.layout);
  const ConvolutionShape& shape = both.shape;
  const std::int64_t pixels = Volume(shape.padded()) * shape.image_channels;
  const std::int64_t signals = Volume(shape.positions) * shape.signal_channels;
  // One image channel a group is no matrix product.
  if (shape.depthwise() || shape.weights() == 0 || signals == 0 || pixels == 0) return false;
  if (pixels > kMostEntries / 2 || signals > kMostEntries / 2) return false;
  if (shape.weights() > kMostEntries / 2 || shape.rows_per_example() > kMostEntries / 2 ||
      term.layout.examples * (shape.weights() / 512 + shape.groups) >= kMostBlocks) {
    return false;
  }
  for (const at::Tensor& images : {both.image, both.signal}) {
    for (std::int64_t d = 1; d < images.dim(); ++d) {
      if (images.stride(d) > kMostEntries / images.size(d)) return false;
    }
  }
  return OperandsOfWindows(term, WideWithoutValues).plan.choice >= 0;
}

FusedPrecision PrecisionOf(const Term& term) {
  SORDINO_CHECK(term.fused != FusedUse::kNone, "a term that the kernels compute");
  return term.fused == FusedUse::kTf32 ? FusedPrecision::kTf32 : FusedPrecision::kFloat32;
}

void CheckLaunch(const char* error) {
  if (error == nullptr) return;
  throw Error(std::string("the GPU refused a kernel of per-example gradients (") + error +
              "); find norms by --norms materialise, which needs none.");
}

at::Tensor Workspace(const at::Tensor& like, std::int64_t numbers) {
  return at::empty({numbers}, like.options().dtype(at::kDouble));
}

template <typename Source>
void AddNormsOf(const Term& term, const Source& source, const FusedPlan& plan,
                const at::Tensor& squared) {
  const at::Tensor workspace = Workspace(term.b, plan.NormWorkspace(source.examples));
  OnDeviceOf(term.b, [&](auto stream) {
    CheckLaunch(AddFusedNorms(source, plan, PrecisionOf(term), workspace.mutable_data_ptr<double>(),
                              squared.mutable_data_ptr<double>(), stream));
  });
}

template <typename Source>
at::Tensor GradientsOf(const Term& term, const Source& source, const FusedPlan& plan) {
  at::Tensor gradients =
      at::empty({source.examples, std::int64_t{plan.groups} * source.m * source.n},
                term.b.options().dtype(at::kFloat));
  OnDeviceOf(term.b, [&](auto stream) {
    CheckLaunch(FusedGradients(source, plan, PrecisionOf(term), gradients.mutable_data_ptr<float>(),
                               stream));
  });
  return gradients;
}

template <typename Source>
at::Tensor SumOf(const Term& term, const Source& source, const FusedPlan& plan,
                 const at::Tensor& factors, bool wide) {
  const at::Tensor workspace = Workspace(term.b, plan.SumWorkspace(source.m, source.n));
  at::Tensor sum = at::empty(term.sizes, term.b.options().dtype(wide ? at::kDouble : at::kFloat));
  FusedResult result;
  if (wide) {
    result.float64 = sum.mutable_data_ptr<double>();
  } else {
    result.float32 = sum.mutable_data_ptr<float>();
  }
  SORDINO_CHECK(sum.numel() == std::int64_t{plan.groups} * source.m * source.n,
                "a sum has the entries of what it is the gradient of");
  OnDeviceOf(term.b, [&](auto stream) {
    CheckLaunch(FusedSum(source, plan, PrecisionOf(term), factors.const_data_ptr<double>(),
                         workspace.mutable_data_ptr<double>(), result, stream));
  });
  return sum;
}

void CheckPerExampleValues(const Term& term, const at::Tensor& values) {
  SORDINO_CHECK(values.scalar_type() == at::kDouble && values.is_contiguous() &&
                    values.numel() == term.layout.examples && values.device() == term.b.device(),
                "norms and factors of a fused term are one float64 an example, beside it");
}

}  // namespace

FusedUse FusedUseOf(const Term& term) {
  if (term.kind != TermKind::kOuter && term.kind != TermKind::kConvolution) return FusedUse::kNone;
  if (!IsFloat32(term.a) || !IsFloat32(term.b)) return FusedUse::kNone;
  if (!(term.kind == TermKind::kOuter ? RowsFit(term) : WindowsFit(term))) return FusedUse::kNone;
  return at::globalContext().allowTF32CuBLAS() ? FusedUse::kTf32 : FusedUse::kFloat32;
}

void AddFusedSquaredNorms(const Term& term, const at::Tensor& squared) {
  CheckPerExampleValues(term, squared);
  if (term.kind == TermKind::kOuter) {
    const RowsOperands operands = OperandsOfRows(term);
    AddNormsOf(term, operands.source, PlanRows(operands.source), squared);
  } else {
    const WindowOperands operands = OperandsOfWindows(term);
    AddNormsOf(term, operands.source, operands.plan, squared);
  }
}

at::Tensor FusedMaterialise(const Term& term) {
  if (term.kind == TermKind::kOuter) {
    const RowsOperands operands = OperandsOfRows(term);
    return GradientsOf(term, operands.source, PlanRows(operands.source));
  }
  WindowOperands operands = OperandsOfWindows(term);
  const FusedPlan plan = PlanWindowGradients(operands.source, operands.plan);
  return GradientsOf(term, operands.source, plan);
}

at::Tensor FusedWeightedSum(const Term& term, const at::Tensor& factors, bool wide) {
  CheckPerExampleValues(term, factors);
  if (term.kind == TermKind::kOuter) {
    const RowsOperands operands = OperandsOfRows(term);
    return SumOf(term, operands.source, PlanRows(operands.source), factors, wide);
  }
  const WindowOperands operands = OperandsOfWindows(term);
  return SumOf(term, operands.source, operands.plan, factors, wide);
}

}  // namespace sordino
