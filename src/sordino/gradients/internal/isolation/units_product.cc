#include "sordino/gradients/internal/isolation/units_product.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <memory>
#include <mutex>
#include <vector>

#include "sordino/gradients/internal/isolation/isolated_units.h"

namespace sordino {
namespace {

namespace ag = torch::autograd;
using isolated::HasForwardDerivative;

at::Tensor Rows(const at::Tensor& tensor) { return tensor.reshape({-1, tensor.size(-1)}); }

at::Tensor WithRowsOf(const at::Tensor& like, const at::Tensor& rows) {
  std::vector<std::int64_t> sizes = like.sizes().vec();
  sizes.back() = rows.size(1);
  return rows.view(sizes);
}

bool NeedsGradient(const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); }

}  // namespace

ag::variable_list UnitsProductBackward::apply(ag::variable_list&& gradients) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ag::variable_list result(3);
  if (!gradients[0].defined()) return result;
  const at::Tensor& gradient = gradients[0];
  const at::Tensor rows = Rows(gradient);
  if (task_should_compute_output(0)) {
    const at::Tensor matrix = matrix_.unpack();
    result[0] = WithRowsOf(gradient, rows.mm(is_turned_ ? matrix : matrix.t()));
  }
  if (task_should_compute_output(1)) {
    const at::Tensor input = Rows(input_.unpack());
    result[1] = is_turned_ ? rows.t().mm(input) : input.t().mm(rows);
  }
  if (task_should_compute_output(2)) result[2] = rows.sum(0);
  return result;
}

void UnitsProductBackward::release_variables() {
  const std::lock_guard<std::mutex> lock(mutex_);
  input_.reset_data();
  matrix_.reset_data();
}

bool HasUnitsProduct(const at::Tensor& input, const at::Tensor& matrix, const at::Tensor& bias) {
  return input.numel() > 0 && matrix.dim() == 2 && input.is_floating_point() &&
         input.layout() == at::kStrided && matrix.layout() == at::kStrided &&
         matrix.scalar_type() == input.scalar_type() && !HasForwardDerivative(input) &&
         !HasForwardDerivative(matrix) &&
         (!bias.defined() || (bias.dim() == 1 && bias.scalar_type() == input.scalar_type() &&
                              !HasForwardDerivative(bias)));
}

at::Tensor UnitsProduct(const at::Tensor& input, const at::Tensor& matrix, const at::Tensor& bias,
                        bool is_turned) {
  at::Tensor result;
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const at::Tensor rows = Rows(input);
    const at::Tensor factor = is_turned ? matrix.t() : matrix;
    result = WithRowsOf(input, bias.defined() ? at::addmm(bias, rows, factor) : rows.mm(factor));
  }
  const bool records = at::GradMode::is_enabled() &&
                       (NeedsGradient(input) || NeedsGradient(matrix) || NeedsGradient(bias));
  if (!records) return result;
  const std::shared_ptr<UnitsProductBackward> node(new UnitsProductBackward, ag::deleteNode);
  node->is_turned_ = is_turned;
  node->input_ = ag::SavedVariable(input, /*is_output=*/false);
  node->matrix_ = ag::SavedVariable(matrix, /*is_output=*/false);
  node->set_next_edges(ag::collect_next_edges(input, matrix, bias));
  ag::set_history(result, node);
  return result;
}

}  // namespace sordino
