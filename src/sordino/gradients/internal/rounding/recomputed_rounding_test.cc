// Gradients that are computed once for their norm and once more for the sum, with rows that cancel:
// what the float32 sum over the rows of one example loses in one computation it may keep in the
// other. Against exact arithmetic, with data that is chosen to round badly.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sordino/gradients/clipper.h"
#include "sordino/gradients/internal/rounding/rounding.h"
#include "sordino/gradients/internal/rounding/sum_plan.h"
#include "sordino/gradients/internal/terms/term.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/testing/gradients_test_support.h"

namespace sordino {
namespace {

constexpr std::int64_t kImageSide = 32;
constexpr std::size_t kPositionsOfTerms = kImageSide * kImageSide;

// The terms of one entry of a gradient. The first is a little above a power of two, the last takes
// it away again, and those between are a little less than half a unit in its last place: a float32
// sum loses all of them. Times a factor a little below 1 the first falls below the power of two,
// its last place is half as large, and each of the others is rounded up instead.
std::vector<float> CancellingTerms(float first, float rest) {
  const float between = 0.49F * std::ldexp(1.0F, std::ilogb(first) - 23);
  std::vector<float> rows(kPositionsOfTerms, between);
  rows.front() = first;
  rows.back() = rest - first;
  return rows;
}

float ScaledSum(const std::vector<float>& rows, float factor) {
  float sum = 0;
  for (const float row : rows) sum += factor * row;
  return sum;
}

// A term as the product of two factors of about the same size, both exact.
struct FactorsOfTerms {
  std::vector<float> left;
  std::vector<float> right;
};

FactorsOfTerms Factored(const std::vector<float>& terms) {
  FactorsOfTerms factors;
  for (const float term : terms) {
    factors.left.push_back(std::ldexp(1.0F, std::ilogb(term) / 2));
    factors.right.push_back(term / factors.left.back());
  }
  return factors;
}

// A depthwise convolution, whose sums run over the positions in their order, finds norms and sums
// of its gradients by two such sums.
TEST(RecomputedProducts, RowsThatCancelStayWithinTheSensitivity) {
  const TestModel model = MakeModel(
      [](ModelMaker& m) {
        const at::Tensor w = m.Parameter("w", {2, 1, 1, 1});
        return [=](const Batch& b) {
          return (at::conv2d(b[0], w, /*bias=*/{}, /*stride=*/{1, 1},
                             /*padding=*/at::IntArrayRef{0, 0}, /*dilation=*/{1, 1}, /*groups=*/2) *
                  b[1])
              .sum(at::IntArrayRef{1, 2, 3});
        };
      },
      at::kFloat);
  for (const float first : {0x1.000008p12F, 0x1.000008p10F, 0x1.000008p8F, 0x1.000008p6F}) {
    const FactorsOfTerms factors = Factored(CancellingTerms(first, 1.001F));
    const auto images = [](const std::vector<float>& pixels) {
      at::Tensor both = at::zeros({2, 2, kImageSide, kImageSide});
      both.select(0, 0).select(0, 0).copy_(at::tensor(pixels).view({kImageSide, kImageSide}));
      return both;
    };
    Clipper clipper(model.parameters, {.norms = NormMethod::kGhost, .checked_examples = 0},
                    {.largest_batch = 64});
    const BoundedSum sum = clipper.ClippedSum(
        model.loss, {images(factors.left), images(factors.right)}, FlatClipping(ClipNorm(1)));
    // The other example has no gradient, so this is what one example moves a sum by.
    EXPECT_LE(sum.gradients[0].norm().item<double>(), sum.sensitivity.value()) << first;
  }
}

// The same without a model: at the limit that a plan sets on the cancellation of such rows, what
// they add stays within the slack of the plan.
TEST(RecomputedProducts, APlanCountsTheRoundingOfBothProducts) {
  for (const std::int64_t features : {0, 32}) {
    SumShape shape;
    shape.largest_batch = 256;
    shape.recomputed_features = features;
    shape.recomputed_rows = kPositionsOfTerms;
    const SumPlan plan = PlanSum(shape, 0.01);
    EXPECT_GT(plan.cancellation, 10);
    // As large as the limit allows beside a bound of 1.
    const float first = std::ldexp(0x1.000008p0F, std::ilogb(plan.cancellation / 2));
    const std::vector<float> rows = CancellingTerms(first, 1.001F);
    const float norm = ScaledSum(rows, 1);
    EXPECT_GT(norm, 1);
    EXPECT_LE(ScaledSum(rows, 1 / norm), 1 + plan.slack);
    // The other way round, and both at once, are counted too.
    RoundingModel model;
    model.sum_roundoff = kFloat64Roundoff;
    model.features = features;
    model.rows = kPositionsOfTerms;
    model.cancellation = plan.cancellation;
    EXPECT_GE(RoundingSlack(model),
              2 * Gamma(kPositionsOfTerms, kFloat32Roundoff) * plan.cancellation);
    // A limit that does not count these roundings is far beyond.
    const std::vector<float> beyond = CancellingTerms(0x1.000008p12F, 1.001F);
    EXPECT_GT(ScaledSum(beyond, 1 / ScaledSum(beyond, 1)), 1.2F);
  }
}

// Sums over fewer rows in float32 leave more room, and shorter examples do.
TEST(RecomputedProducts, ShorterProductsLeaveMoreRoomForCancellation) {
  SumShape shape;
  shape.recomputed_rows = 4096;
  const double whole = PlanSum(shape, 0.01).cancellation;
  shape.recomputed_product_rows = 512;
  const double in_parts = PlanSum(shape, 0.01).cancellation;
  EXPECT_GT(in_parts, 4 * whole);
  shape.recomputed_rows = 512;
  shape.recomputed_product_rows = 0;
  EXPECT_GE(PlanSum(shape, 0.01).cancellation, in_parts);
}

// Two rows that cancel but for small entries. A float32 sum over all features that has the square
// of the 1 loses those of the others, even where a product is taken of a few hundred at a time.
TEST(GramNorms, OfWideRowsAreAddedUpInFloat64) {
  constexpr std::int64_t kWidth = 1 << 22;
  constexpr float kSmall = 0x1p-17F;
  Term term{.kind = TermKind::kOuter, .layout = {1, 1, 2}, .sizes = {kWidth, 1}};
  term.a = at::full({2, kWidth}, kSmall);
  term.a[0][0] = 1;
  term.a[1][0] = -1;
  term.b = at::ones({2, 1});
  const at::Tensor squared = at::zeros({1}, at::TensorOptions(at::kDouble));
  AddSquaredNorms(term, NormForm::kGram, squared);
  const double small = static_cast<double>(kSmall);
  const double others = small * small * static_cast<double>(kWidth - 1);
  const double kappa = 2 * std::sqrt(1 + others);
  const double limit = Gamma(kFeaturesPerGram + 2, kFloat32Roundoff) * kappa * kappa;
  EXPECT_NEAR(squared.item<double>(), 4 * others, limit);
  // Those that a float32 sum loses are more.
  EXPECT_GT(2 * others, 3 * limit);
}

// Rows of one example that are unlike each other are several times larger than their sum, which is
// no reason to clip it further, however many features they have.
TEST(GramNorms, LeaveAWideLayerItsGradient) {
  at::manual_seed(8);
  const TestModel model = MakeModel(
      [](ModelMaker& m) {
        const at::Tensor w = m.Parameter("w", {3, 16384});
        return [=](const Batch& b) {
          return (at::linear(b[0], w) * b[1]).sum(at::IntArrayRef{1, 2});
        };
      },
      at::kFloat);
  const Batch batch = {at::randn({3, 64, 16384}), at::randn({3, 64, 3})};
  Clipper clipper(model.parameters, {.norms = NormMethod::kGhost}, {});
  const auto norm_of = [&](std::int64_t example) {
    const Batch one = {batch[0].narrow(0, example, 1), batch[1].narrow(0, example, 1)};
    return clipper.ClippedSum(model.loss, one, FlatClipping(ClipNorm(1)))
        .gradients[0]
        .norm()
        .item<double>();
  };
  for (std::int64_t example = 0; example < 3; ++example) EXPECT_NEAR(norm_of(example), 1, 1e-3);
}

}  // namespace
}  // namespace sordino
