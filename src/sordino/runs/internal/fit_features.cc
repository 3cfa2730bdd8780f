#include "sordino/runs/internal/fit_features.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/accumulate.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/data/batch_loader.h"
#include "sordino/runs/train_config.h"
#include "sordino/tables/table_columns.h"

namespace sordino {
namespace {

constexpr std::int64_t kFeatureBlockRows = 4096;
constexpr std::array<std::string_view, 1> kFitFeatures = {"scattering"};

// What a column adds at most to the square of a row's norm about the centre.
double LargestSquare(const TableColumn& column) {
  if (column.role == ColumnRole::kNumeric) return 0.25;
  if (column.role == ColumnRole::kText) return 1;  // the norm of hashed words
  if (column.role != ColumnRole::kCategorical) return 0;
  return 1 - 1 / static_cast<double>(column.values.size());
}

at::Tensor CentreTensor(const std::vector<double>& centre) {
  return at::tensor(centre, at::TensorOptions(at::kDouble));
}

}  // namespace

std::span<const std::string_view> FitFeatureNames() { return kFitFeatures; }

std::vector<std::string> internal::ColumnFeatureNames(const std::vector<std::string>& declared) {
  std::vector<std::string> names;
  for (const TableColumn& column : ParseColumns(declared)) {
    if (column.role == ColumnRole::kNumeric) names.push_back(column.name);
    for (std::int64_t i = 0; i < column.buckets; ++i) {
      names.push_back(fmt::format("{}#{}", column.name, i));
    }
    if (column.role != ColumnRole::kCategorical) continue;
    for (const std::string& value : column.values) names.push_back(column.name + '=' + value);
  }
  if (!names.empty()) names.emplace_back("intercept");
  return names;
}

std::vector<double> internal::ColumnCentre(const std::vector<std::string>& declared) {
  std::vector<double> centre;
  for (const TableColumn& column : ParseColumns(declared)) {
    if (column.role == ColumnRole::kNumeric) centre.push_back(0.5);
    centre.insert(centre.end(), static_cast<std::size_t>(column.buckets), 0);
    if (column.role != ColumnRole::kCategorical) continue;
    centre.insert(centre.end(), column.values.size(),
                  1 / static_cast<double>(column.values.size()));
  }
  return centre;
}

std::int64_t internal::FitFeatureCount(const FitSettings& settings,
                                       const DatasetDeclaration& declaration) {
  if (!settings.features.empty()) {
    for (const auto& [name, value] : MakeFitModel(settings, declaration)->Parameters()) {
      if (!name.ends_with("bias")) return value.size(1);
    }
  }
  std::int64_t features = 1;
  for (const std::int64_t side : declaration.shape) features *= side;
  return features;
}

void internal::CheckFitFeatures(const FitSettings& settings,
                                const DatasetDeclaration& declaration) {
  if (settings.features.empty()) return;
  IndexOfName("--features", settings.features, kFitFeatures);
  if (declaration.kind != InputKind::kImage) {
    throw Error("--features are those of images, and the data are none; leave it out.");
  }
}

std::string_view internal::FitModelName(const FitSettings& settings) {
  return settings.features.empty() ? "logistic" : "scatternet-linear";
}

std::unique_ptr<Model> internal::MakeFitModel(const FitSettings& settings,
                                              const DatasetDeclaration& declaration) {
  return MakeModel(std::string(FitModelName(settings)), ModelShapeOf(declaration), {}, c10::kCPU);
}

double DefaultRowBound(const DatasetDeclaration& declaration,
                       const std::vector<std::string>& columns) {
  if (declaration.kind == InputKind::kImage) {
    double pixels = 1;
    for (const std::int64_t side : declaration.shape) pixels *= static_cast<double>(side);
    return std::sqrt(pixels) / 4;
  }
  if (columns.empty() || !declaration.normalisation.mean.empty()) {
    throw Error(
        "the largest norm of a row does not follow from what was declared; give --row-bound, the "
        "norm to which rows are scaled down, the 1 of the intercept included.");
  }
  double squares = 1;
  for (const TableColumn& column : ParseColumns(columns)) squares += LargestSquare(column);
  return std::sqrt(squares) * (1 + 0x1p-40);
}

at::Tensor internal::FitFeatures(Dataset& data, std::int64_t blank,
                                 const std::vector<double>& centre) {
  const at::NoGradGuard no_grad;
  const std::int64_t rows = data.inputs.size(0);
  const std::int64_t columns = c10::multiply_integers(data.declaration.shape);
  const at::Tensor inputs = std::exchange(data.inputs, at::Tensor());
  const bool is_plain =
      inputs.scalar_type() == at::kFloat && data.declaration.normalisation.mean.empty();
  at::Tensor features;
  if (is_plain && blank == 0) {
    features = inputs.reshape({rows, columns});
  } else {
    features = at::zeros({rows + blank, columns}, at::kFloat);
    for (std::int64_t begin = 0; begin < rows; begin += kFeatureBlockRows) {
      const std::int64_t end = std::min(rows, begin + kFeatureBlockRows);
      features.slice(0, begin, end)
          .copy_(Normalise(data.declaration, inputs.slice(0, begin, end)).flatten(1));
    }
  }
  if (!centre.empty()) features.slice(0, 0, rows).sub_(CentreTensor(centre).to(at::kFloat));
  return features;
}

void internal::MoveBack(FitResult& result, const std::vector<double>& centre) {
  if (centre.empty()) return;
  const at::Tensor weights = at::cat({CentreTensor(centre).neg_(), at::ones({1}, at::kDouble)});
  if (result.deviation.defined()) {
    const at::Tensor noise = NoiseOfSum(result, weights);
    result.deviation.select(0, result.deviation.size(0) - 1).copy_(noise);
    result.noise_factor = at::Tensor();
  }
  const at::Tensor intercepts = result.coefficients.t().mv(weights);
  result.coefficients.select(0, result.coefficients.size(0) - 1).copy_(intercepts);
}

}  // namespace sordino
