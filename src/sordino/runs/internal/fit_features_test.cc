#include "sordino/runs/internal/fit_features.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace sordino::internal {
namespace {

using ::testing::ElementsAre;

const std::vector<std::string> kMixed = {"age:numeric:0:120", "city:categorical:Bern|Basel|Chur|*",
                                         "sick:label:no|yes", "id:user"};

TEST(FitFeatures, NamesAndCentreFollowTheDeclaration) {
  EXPECT_THAT(ColumnFeatureNames(kMixed),
              ElementsAre("age", "city=Bern", "city=Basel", "city=Chur", "city=*", "intercept"));
  EXPECT_THAT(ColumnCentre(kMixed), ElementsAre(0.5, 0.25, 0.25, 0.25, 0.25));
}

// All corners of what the columns allow, and rows between them.
TEST(FitFeatures, NoRowOfTheColumnsIsLongerThanTheBound) {
  DatasetDeclaration declaration;
  declaration.kind = InputKind::kFeatures;
  const double bound = DefaultRowBound(declaration, kMixed);
  EXPECT_NEAR(bound, std::sqrt(1 + 0.25 + 0.75), 1e-9);
  const std::vector<double> centre = ColumnCentre(kMixed);
  double largest = 0;
  for (const double age : {0.0, 0.3, 1.0}) {
    for (std::size_t city = 1; city <= 4; ++city) {
      double squares = 1;
      for (std::size_t j = 0; j < centre.size(); ++j) {
        const double x = j == 0 ? age : j == city ? 1 : 0;
        squares += (x - centre[j]) * (x - centre[j]);
      }
      EXPECT_LE(std::sqrt(squares), bound);
      largest = std::max(largest, std::sqrt(squares));
    }
  }
  EXPECT_NEAR(largest, bound, 1e-9);
}

TEST(FitFeatures, BlankRowsStayZero) {
  Dataset data;
  data.declaration.kind = InputKind::kFeatures;
  data.declaration.shape = {5};
  data.inputs = at::ones({3, 5});
  const at::Tensor features = FitFeatures(data, 2, ColumnCentre(kMixed));
  EXPECT_EQ(features.sizes(), (std::vector<std::int64_t>{5, 5}));
  EXPECT_EQ(features.slice(0, 3).abs().sum().item<double>(), 0);
  EXPECT_FLOAT_EQ(features[2][0].item<float>(), 0.5F);
  EXPECT_FLOAT_EQ(features[2][1].item<float>(), 0.75F);
}

// The same scores, and the noise of the sum on the intercept.
TEST(FitFeatures, CoefficientsAreMovedBack) {
  at::manual_seed(4);
  const std::vector<double> centre = ColumnCentre(kMixed);
  const at::Tensor c = at::tensor(centre, at::TensorOptions(at::kDouble));
  const at::Tensor x = at::rand({10, 5}, at::kDouble);
  const at::Tensor ones = at::ones({10, 1}, at::kDouble);
  FitResult fit;
  fit.coefficients = at::randn({6, 2}, at::kDouble);
  fit.deviation = at::full({6, 2}, 2.0, at::kDouble);
  const at::Tensor scores = at::cat({x.sub(c), ones}, 1).mm(fit.coefficients);
  MoveBack(fit, centre);
  EXPECT_LT(at::cat({x, ones}, 1).mm(fit.coefficients).sub(scores).abs().max().item<double>(),
            1e-12);
  EXPECT_EQ(fit.deviation[4][1].item<double>(), 2);
  EXPECT_NEAR(fit.deviation[5][1].item<double>(), 2 * std::sqrt(1 + 0.25 + 4 * 0.0625), 1e-12);
  FitResult plain;
  plain.coefficients = at::ones({6, 1}, at::kDouble);
  MoveBack(plain, {});
  EXPECT_EQ(plain.coefficients[5][0].item<double>(), 1);
}

}  // namespace
}  // namespace sordino::internal
