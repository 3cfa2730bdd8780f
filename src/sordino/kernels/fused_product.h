// Norms and weighted sums of products of examples on a CUDA device, without writing the products to
// memory, unless they are asked for.
//
// For g_e = sum over the rows t of example e of left_t right_t^T, two kernels compute g_e tile by
// tile, with the same instructions in the same order, so that both see the same bits: one adds up
// its squares, the other f_e g_e in float64 (rounding.h, form (f)). Nothing here waits for the
// device or reads from it, and what is launched follows from shapes.
#ifndef SORDINO_KERNELS_FUSED_PRODUCT_H_
#define SORDINO_KERNELS_FUSED_PRODUCT_H_

#include <cstdint>

#include "sordino/kernels/fused_plan.h"
#include "sordino/kernels/fused_rows.h"
#include "sordino/kernels/fused_windows.h"

namespace sordino {

enum class FusedPrecision : std::uint8_t { kFloat32, kTf32 };

// A CUDA stream.
using DeviceStream = void*;

// Adds |g_e|^2 to squared [examples]. `workspace` has plan.NormWorkspace(examples) numbers. All
// pointers are of the device. The name of an error of CUDA, or null.
const char* AddFusedNorms(const RowsSource& source, const FusedPlan& plan, FusedPrecision precision,
                          double* workspace, double* squared, DeviceStream stream);
const char* AddFusedNorms(const WindowSource& source, const FusedPlan& plan,
                          FusedPrecision precision, double* workspace, double* squared,
                          DeviceStream stream);

// result [examples, groups * m, n] = g_e, of the same bits.
const char* FusedGradients(const RowsSource& source, const FusedPlan& plan,
                           FusedPrecision precision, float* result, DeviceStream stream);
const char* FusedGradients(const WindowSource& source, const FusedPlan& plan,
                           FusedPrecision precision, float* result, DeviceStream stream);

// Where a sum goes: one of the two, the other is null.
struct FusedResult {
  float* float32 = nullptr;
  double* float64 = nullptr;
};

// result [groups * m, n] = sum_e factors[e] g_e, added up in float64 and rounded once; an example
// of factor 0 is left out, whatever its values; one with values that are not finite must have it.
// `workspace` has plan.SumWorkspace(m, n) numbers.
const char* FusedSum(const RowsSource& source, const FusedPlan& plan, FusedPrecision precision,
                     const double* factors, double* workspace, const FusedResult& result,
                     DeviceStream stream);
const char* FusedSum(const WindowSource& source, const FusedPlan& plan, FusedPrecision precision,
                     const double* factors, double* workspace, const FusedResult& result,
                     DeviceStream stream);

}  // namespace sordino

#endif  // SORDINO_KERNELS_FUSED_PRODUCT_H_
