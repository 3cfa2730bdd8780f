// matrix(noise, sensitivity) in every accountant. Mutations: tools/mutate accounting.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/calibration.h"
#include "sordino/accounting/event.h"
#include "sordino/accounting/renyi.h"
#include "sordino/accounting/zcdp.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

const Delta kMatrixDelta(1e-6);

std::string Text(const std::string& form, const std::string& release) {
  std::string text = form;
  text.replace(text.find('@'), 1, release);
  return text;
}

TEST(MatrixEvent, IsTheGaussianOfItsNoiseOverItsSensitivity) {
  for (const char* const form :
       {"add-remove: @", "add-remove: 40*@", "replace-one: @", "zero-out: 3*@",
        "add-remove: 25*poisson(0.16, @)", "zero-out: 25*poisson(0.16, @)",
        "replace-one: 25*poisson(0.16, @)", "add-remove: compose(poisson(0.1, @), 4*laplace(3))",
        "add-remove: allocation(16, @)"}) {
    const Event matrix = Event::Parse(Text(form, "matrix(3, 1.5)"));
    const Event gaussian = Event::Parse(Text(form, "gaussian(2)"));
    EXPECT_EQ(Event::Parse(matrix.ToString()), matrix);
    EXPECT_NE(matrix, gaussian);
    const Interval seen = SpentEpsilon(matrix, kMatrixDelta);
    const Interval wanted = SpentEpsilon(gaussian, kMatrixDelta);
    EXPECT_NEAR(seen.lower, wanted.lower, 1e-9 * wanted.lower) << form;
    EXPECT_NEAR(seen.upper, wanted.upper, 1e-9 * wanted.upper) << form;
    RenyiCurve curve(matrix);
    RenyiCurve of_gaussian(gaussian);
    for (const double order : {1.5, 4.0, 32.0}) {
      EXPECT_NEAR(curve(order), of_gaussian(order), 1e-9 * of_gaussian(order)) << form;
    }
  }
}

// Twice the reach of a record is twice its sensitivity.
TEST(MatrixEvent, CountsAReplacedRecordTwiceBelowPoissonSampling) {
  const Event replaced = Event::Parse("replace-one: poisson(1, matrix(3, 1.5))");
  EXPECT_NEAR(SpentEpsilon(replaced, kMatrixDelta).upper,
              SpentEpsilon(Event::Gaussian(NoiseMultiplier(1)), kMatrixDelta).upper, 1e-6);
}

TEST(MatrixEvent, ATreeIsOneOfItsCases) {
  for (const std::uint64_t steps : {1U, 2U, 7U, 8U, 1000U, 1600U, 2048U}) {
    const double height = std::ceil(std::log2(static_cast<double>(steps) + 1));
    const double tree = SpentEpsilon(Event::Tree(NoiseMultiplier(5), steps), kMatrixDelta).upper;
    const Event matrix = Event::Matrix(NoiseMultiplier(5), std::sqrt(height));
    EXPECT_NEAR(SpentEpsilon(matrix, kMatrixDelta).upper, tree, 1e-9 * tree) << steps;
  }
}

TEST(MatrixEvent, RefusesWhatIsNoSensitivity) {
  for (const char* const text :
       {"matrix(1, 0)", "matrix(1, -1)", "matrix(1, inf)", "matrix(1, nan)", "matrix(0, 1)",
        "matrix(1)", "matrix(1, 2, 3)"}) {
    EXPECT_THROW(Event::Parse(std::string("add-remove: ") + text), Error) << text;
  }
}

}  // namespace
}  // namespace sordino
