#include "sordino/gradients/internal/rounding/rounding.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "sordino/base/error.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

double Count(std::int64_t number) { return static_cast<double>(number); }

void CheckAtLeast(const char* name, std::int64_t value, std::int64_t least) {
  if (value < least) {
    throw Error(std::string(name) + " is " + std::to_string(value) + "; it must be at least " +
                std::to_string(least) + " for the rounding bound of a clipped sum.");
  }
}

void Check(const RoundingModel& model) {
  CheckRange("the roundoff of products", model.product_roundoff, 0, false, 0.01, false);
  CheckRange("the roundoff of norms", model.norm_roundoff, 0, false, 0.01, false);
  CheckRange("the roundoff of sums", model.sum_roundoff, 0, false, 0.01, false);
  CheckRange("the roundoff of inputs", model.input_roundoff, 0, false, 0.01, false);
  CheckRange("the roundoff of the result", model.result_roundoff, 0, false, 0.01, false);
  CheckRange("the cancellation limit", model.cancellation, 1, false, kInfinity, true);
  CheckRange("the largest factor", model.largest_factor, 0, false, kInfinity, true);
  CheckRange("the smallest clipping bound", model.smallest_bound, kSmallestBound, false, kInfinity,
             true);
  CheckRange("the underflow unit", model.underflow, 0, false, 0x1p-100, false);
  CheckAtLeast("the number of rows in one sum", model.rows_per_sum, 1);
  CheckAtLeast("the largest batch", model.largest_batch, 1);
  CheckAtLeast("the number of examples beside one in a sum", model.beside, 0);
  CheckAtLeast("the number of features", model.features, 0);
  CheckAtLeast("the number of roundings of a norm", model.norm_roundings, 0);
  CheckAtLeast("the number of rows of an example", model.rows, 1);
  CheckAtLeast("the number of rows of a product", model.product_rows, 0);
  CheckAtLeast("the number of float64 additions", model.additions, 0);
  CheckAtLeast("the number of coordinates", model.coordinates, 1);
  CheckAtLeast("the number of uses", model.uses, 1);
  const double norm_terms = Count(model.features) + Count(model.rows) + 4;
  if (!(Count(model.rows_per_sum) * model.sum_roundoff < 0.5 &&
        norm_terms * model.norm_roundoff < 0.5)) {
    throw Error("sums over " + std::to_string(model.rows_per_sum) + " rows with " +
                std::to_string(model.features) + " features and " + std::to_string(model.rows) +
                " rows an example are too long for the rounding bound; sum fewer rows at once or "
                "in float64.");
  }
}

// Step 1.
double KappaLimit(const RoundingModel& model) {
  const double features = Count(model.features);
  const double rows = Count(model.rows);
  const double relative = Gamma(features + rows + 4, model.norm_roundoff) +
                          Gamma(features * rows + 4, kFloat64Roundoff);
  const double absolute = 4 * model.largest_factor * Count(model.uses) * kMaxRowsNorm *
                          std::sqrt(rows * features * model.underflow);
  return model.cancellation / (1 - relative) + absolute / model.smallest_bound;
}

// tau of step 2.
double ProductError(const RoundingModel& model) {
  const double input = 2 * std::log1p(model.input_roundoff);
  const bool in_parts = model.product_rows > 0 && model.product_rows < model.rows;
  const double roundings = in_parts ? Count(model.product_rows) + 1 : Count(model.rows);
  return std::expm1(input + std::log1p(Gamma(roundings, model.norm_roundoff)) +
                    std::log1p(Gamma(Count(model.rows), kFloat64Roundoff)));
}

// Step 2.
double NormFactor(const RoundingModel& model) {
  const double features = Count(model.features);
  const double rows = Count(model.rows);
  const double input = std::log1p(model.input_roundoff);
  const double kappa = KappaLimit(model);
  // Twice the coordinates: the sum over uses has fewer terms than there are parameters.
  double theta = Gamma(2 * Count(model.coordinates) + 4, kFloat64Roundoff);
  double underflow = 0;
  if (features > 0) {
    const double roundings = model.norm_roundings > 0 ? Count(model.norm_roundings) : features + 1;
    theta += std::expm1(4 * input + std::log1p(Gamma(roundings, model.norm_roundoff)) +
                        std::log1p(Gamma(features + rows * rows, kFloat64Roundoff)));
    const double hidden = model.largest_factor / model.smallest_bound;
    underflow = hidden * hidden * 2 * Count(model.uses) * model.underflow *
                (rows * features * kMaxRowsNorm * kMaxRowsNorm + rows * rows);
  }
  const double recomputed = model.rows > 1 ? ProductError(model) : 0;
  return std::sqrt(1 + theta * kappa * kappa + underflow) + recomputed * kappa;
}

// The formulas above take fewer than a hundred float64 operations, none of which cancels.
double RoundUp(double value) { return value * (1 + 0x1p-40); }

}  // namespace

double Gamma(double n, double u) { return n * u < 1 ? n * u / (1 - n * u) : kInfinity; }

double GhostNormFactor(const RoundingModel& model) {
  Check(model);
  return RoundUp(NormFactor(model));
}

double RoundingSlack(const RoundingModel& model) {
  Check(model);
  const double kappa = KappaLimit(model);
  const double norm = NormFactor(model);
  const double batch = Count(model.largest_batch);
  const double rows = Count(model.rows);
  const double lost = model.underflow / model.smallest_bound;
  const double width = std::sqrt(Count(model.coordinates));

  const double pi =
      std::expm1(2 * std::log1p(model.product_roundoff) + 2 * std::log1p(model.input_roundoff));
  const double own = model.rows > 1 ? ProductError(model) * (1 + pi) : 0;
  const double rho =
      norm + (pi + own) * kappa +
      lost * (4 * Count(model.uses) * kMaxRowsNorm * std::sqrt(rows * Count(model.features)) +
              (4 + 2 * rows) * width);

  const double product = Gamma(Count(model.rows_per_sum), model.sum_roundoff);
  const double additions = model.additions == 0 ? batch * rows : Count(model.additions);
  const double blocks = Gamma(additions, kFloat64Roundoff);
  const double epsilon = (1 + pi) * kappa * product;
  const double added = (1 + pi) * kappa * blocks * (1 + product) + lost * (2 * rows + 1) * width;
  const double phi = added + model.result_roundoff * (rho + epsilon + added);
  const double beside = model.beside == 0 ? batch : std::min(batch, Count(model.beside));
  // rho - 1 cancels; its error is that of rho, an ulp of a number near 1.
  return RoundUp(rho - 1 + 2 * beside * epsilon + 2 * batch * phi) + 0x1p-48;
}

std::int64_t LongestSum(RoundingModel model, double slack) {
  const auto fits = [&](std::int64_t rows) {
    model.rows_per_sum = rows;
    return RoundingSlack(model) <= slack;
  };
  if (!fits(1)) {
    return 0;
  }
  std::int64_t longest = 1;
  for (std::int64_t step = std::int64_t{1} << 19; step > 0; step /= 2) {
    if (longest + step <= std::int64_t{1} << 20 && fits(longest + step)) {
      longest += step;
    }
  }
  return longest;
}

}  // namespace sordino
