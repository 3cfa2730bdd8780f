// The features of a fit: their names, the public point that they are measured from, the model that
// computes them again for `predict`, and the table of numbers that the library sees.
//
// Centring. A linear model with an intercept is the same model whatever constant is subtracted from
// a feature: score = sum_j theta_j (x_j - c_j) + b = sum_j theta_j x_j + (b - sum_j theta_j c_j).
// But rows are shorter about the middle of what was declared, and noise follows the norm of a row.
// So numbers in [0, 1] are fitted about 1/2, at most 1/2 away, and the m places of a category about
// 1/m, a distance of sqrt(1 - 1/m); c follows from the declaration and from no row. What is
// released is moved back, which is post-processing.
#ifndef SORDINO_RUNS_INTERNAL_FIT_FEATURES_H_
#define SORDINO_RUNS_INTERNAL_FIT_FEATURES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/data/dataset.h"
#include "sordino/models/model.h"
#include "sordino/runs/fit_run.h"

namespace sordino::internal {

// "age", "sex=Female", ..., "intercept"; empty where no column is declared.
std::vector<std::string> ColumnFeatureNames(const std::vector<std::string>& declared);
// c, without the intercept.
std::vector<double> ColumnCentre(const std::vector<std::string>& declared);

// Throws Error for features that are not known, or not of these data.
void CheckFitFeatures(const FitSettings& settings, const DatasetDeclaration& declaration);
// Without the intercept.
std::int64_t FitFeatureCount(const FitSettings& settings, const DatasetDeclaration& declaration);

// What a fit is applied by: a linear layer of models/model.h, after the features that were asked
// for.
std::string_view FitModelName(const FitSettings& settings);
std::unique_ptr<Model> MakeFitModel(const FitSettings& settings,
                                    const DatasetDeclaration& declaration);

// Numbers in a line for each row, less the centre where there is one; the tensor of the reader
// itself, which the data lose, where that will do. Blank rows of zeros follow.
at::Tensor FitFeatures(Dataset& data, std::int64_t blank, const std::vector<double>& centre);
// Coefficients of features less the centre to those of the features, with the noise on them.
void MoveBack(FitResult& result, const std::vector<double>& centre);

}  // namespace sordino::internal

#endif  // SORDINO_RUNS_INTERNAL_FIT_FEATURES_H_
