// The kernels of fused_product.h on a GPU, against float64 products. Skipped without a GPU.
#include "sordino/gradients/internal/terms/fused_terms.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sordino/base/testing/not_a_number.h"
#include "sordino/gradients/internal/terms/term.h"

namespace sordino {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

class FusedTerms : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (at::getNumGPUs() == 0) GTEST_SKIP() << "no GPU";
    allowed_ = at::globalContext().allowTF32CuBLAS();
    at::globalContext().setAllowTF32CuBLAS(GetParam());
    if (FusedUseOf(Rows({1, 2, 2}, 3, 4)) == FusedUse::kNone) GTEST_SKIP() << "no CUDA compiler";
  }
  void TearDown() override {
    if (at::getNumGPUs() > 0) at::globalContext().setAllowTF32CuBLAS(allowed_);
  }

  std::int64_t Between(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }

  static at::Tensor Random(const std::vector<std::int64_t>& sizes) {
    return at::randn(sizes, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
  }

  static Term Rows(const ExampleLayout& layout, std::int64_t p, std::int64_t q) {
    return {.kind = TermKind::kOuter,
            .a = Random({layout.rows(), p}),
            .b = Random({layout.rows(), q}),
            .layout = layout,
            .sizes = {p, q}};
  }

  // A convolution of one to three spatial dimensions.
  Term RandomConvolution() {
    const std::int64_t spatial = Between(1, 3);
    Term term;
    term.kind = TermKind::kConvolution;
    term.layout = {Between(1, 2), Between(1, 5), Between(1, 2)};
    Convolution& c = term.convolution;
    c.transposed = Between(0, 2) == 0;
    c.groups = Between(1, 2);
    const std::int64_t in = c.groups * Between(2, 20);
    const std::int64_t out = c.groups * Between(1, 20);
    c.weight = c.transposed ? std::vector<std::int64_t>{in, out / c.groups}
                            : std::vector<std::int64_t>{out, in / c.groups};
    std::vector<std::int64_t> sizes = {term.layout.rows(), in};
    for (std::int64_t d = 0; d < spatial; ++d) {
      c.weight.push_back(Between(1, 4));
      c.stride.push_back(Between(1, 3));
      c.dilation.push_back(Between(1, 2));
      c.padding.push_back(Between(0, c.weight.back() - 1));
      const std::int64_t reach = (c.weight.back() - 1) * c.dilation.back() + 1;
      sizes.push_back(reach + Between(0, 12));
    }
    term.a = Random(sizes);
    term.sizes = c.weight;
    const at::Tensor output =
        at::convolution(term.a, Random(c.weight), {}, c.stride, c.padding, c.dilation, c.transposed,
                        std::vector<std::int64_t>(static_cast<std::size_t>(spatial), 0), c.groups);
    term.b = Random(output.sizes().vec());
    return term;
  }

  Term RandomTerm() {
    if (Between(0, 1) == 0) return RandomConvolution();
    ExampleLayout layout{Between(1, 6), Between(1, 9), Between(1, 60)};
    if (layout.rows_per_example() == 1) layout.inner = 2;
    return Rows(layout, Between(1, 200), Between(1, 200));
  }

  std::mt19937_64 random_{5};

 private:
  bool allowed_ = false;
};

// Relative to what a gradient is made of: TF32 cuts inputs off at 2^-10.
double Tolerance(const Term& term) { return term.fused == FusedUse::kTf32 ? 4e-3 : 2e-5; }

at::Tensor Squared(const Term& term) {
  at::Tensor squared = at::zeros({term.layout.examples}, term.b.options().dtype(at::kDouble));
  AddFusedSquaredNorms(term, squared);
  return squared;
}

// [examples, entries] in float64, on the CPU.
at::Tensor Exact(const Term& term) {
  Term wide = term;
  wide.fused = FusedUse::kNone;
  wide.a = term.a.to(at::kCPU, at::kDouble);
  wide.b = term.b.to(at::kCPU, at::kDouble);
  return Materialise(wide, 0, term.layout.examples).reshape({term.layout.examples, -1});
}

at::Tensor OneHot(const Term& term, std::int64_t example) {
  at::Tensor factors = at::zeros({term.layout.examples}, term.b.options().dtype(at::kDouble));
  factors[example] = 1;
  return factors;
}

// Writes `value` into all rows of all examples but one.
void Spoil(Term& term, std::int64_t kept, double value) {
  for (at::Tensor* operand : {&term.a, &term.b}) {
    *operand = operand->clone();
    const at::Tensor rows =
        operand->unflatten(0, {term.layout.outer, term.layout.examples, term.layout.inner});
    if (kept > 0) rows.narrow(1, 0, kept).fill_(value);
    const std::int64_t behind = term.layout.examples - kept - 1;
    if (behind > 0) rows.narrow(1, kept + 1, behind).fill_(value);
  }
}

TEST_P(FusedTerms, AreTheProductsOfTheExamples) {
  for (int trial = 0; trial < 80; ++trial) {
    Term term = RandomTerm();
    term.fused = FusedUseOf(term);
    SCOPED_TRACE(testing::Message() << trial << ": " << term.a.sizes() << " " << term.b.sizes()
                                    << " " << at::IntArrayRef(term.sizes));
    ASSERT_NE(term.fused, FusedUse::kNone);
    const at::Tensor exact = Exact(term);
    const double tolerance = Tolerance(term);
    const at::Tensor squared = exact.square().sum(1);
    const at::Tensor found = Squared(term).cpu();
    EXPECT_LE(((found - squared).abs() - 2 * tolerance * squared.max()).max().item<double>(), 0);
    const at::Tensor factors =
        at::rand({term.layout.examples}, term.b.options().dtype(at::kDouble));
    factors[0] = 0;
    const ExampleFactors by_example(factors, /*all_finite=*/false);
    const at::Tensor sum = WeightedSum(term, by_example, {});
    EXPECT_EQ(sum.sizes(), at::IntArrayRef(term.sizes));
    const at::Tensor expected = factors.cpu().unsqueeze(0).mm(exact).reshape(term.sizes);
    const double scale = exact.square().sum(1).sqrt().sum().item<double>() /
                         std::sqrt(static_cast<double>(exact.size(1)));
    EXPECT_LE((sum.cpu() - expected).square().mean().sqrt().item<double>(), tolerance * scale);
    if (term.kind == TermKind::kOuter) {
      EXPECT_TRUE(at::equal(TransposedWeightedSum(term, by_example, {}), sum.t()));
    }
  }
}

TEST_P(FusedTerms, AreTheSameBitsInNormsAndSumsAndInEveryRun) {
  for (int trial = 0; trial < 30; ++trial) {
    Term term = RandomTerm();
    term.fused = FusedUseOf(term);
    const at::Tensor squared = Squared(term);
    const at::Tensor factors =
        at::rand({term.layout.examples}, term.b.options().dtype(at::kDouble));
    const at::Tensor sum = FusedWeightedSum(term, factors);
    for (int run = 0; run < 3; ++run) {
      EXPECT_TRUE(at::equal(Squared(term), squared));
      EXPECT_TRUE(at::equal(FusedWeightedSum(term, factors), sum));
    }
    const at::Tensor wide = FusedWeightedSum(term, factors, /*wide=*/true);
    EXPECT_EQ(wide.scalar_type(), at::kDouble);
    EXPECT_TRUE(at::equal(wide.to(at::kFloat), sum));
    EXPECT_FALSE(at::equal(wide, sum.to(at::kDouble)));
    const std::int64_t example = Between(0, term.layout.examples - 1);
    const at::Tensor own = FusedWeightedSum(term, OneHot(term, example));
    EXPECT_TRUE(at::equal(Materialise(term, example, example + 1).reshape(term.sizes), own));
    EXPECT_TRUE(at::equal(FusedMaterialise(term)[example].reshape(term.sizes), own));
    // What 32 squares lose in float32 (kSquaresPerSum).
    EXPECT_NEAR(own.to(at::kDouble).square().sum().item<double>(), squared[example].item<double>(),
                3e-6 * squared[example].item<double>());
  }
}

TEST_P(FusedTerms, OfAnExampleDependOnNoOther) {
  for (int trial = 0; trial < 30; ++trial) {
    Term term = RandomTerm();
    term.fused = FusedUseOf(term);
    const std::int64_t example = Between(0, term.layout.examples - 1);
    const at::Tensor squared = Squared(term)[example];
    const at::Tensor own = FusedWeightedSum(term, OneHot(term, example));
    for (const double value : {0.0, 7.0, kNan, kInfinite}) {
      Term other = term;
      Spoil(other, example, value);
      EXPECT_TRUE(at::equal(Squared(other)[example], squared)) << value;
      EXPECT_TRUE(at::equal(FusedWeightedSum(other, OneHot(other, example)), own)) << value;
    }
    // In a batch of another size.
    Term padded = term;
    padded.layout.examples += 70;
    for (at::Tensor* operand : {&padded.a, &padded.b}) {
      const at::Tensor rows =
          operand->unflatten(0, {term.layout.outer, term.layout.examples, term.layout.inner});
      std::vector<std::int64_t> more = rows.sizes().vec();
      more[1] = 70;
      *operand = at::cat({rows, at::full(more, 3.0, rows.options())}, 1).flatten(0, 2);
    }
    EXPECT_TRUE(at::equal(Squared(padded)[example], squared));
    EXPECT_TRUE(at::equal(FusedWeightedSum(padded, OneHot(padded, example)), own));
  }
}

TEST_P(FusedTerms, ThatAreNotFiniteHaveSuchNorms) {
  for (const double value : {kNan, kInfinite}) {
    Term rows = Rows({1, 4, 33}, 70, 90);
    rows.fused = FusedUseOf(rows);
    rows.a[33 + 5][69] = value;
    Term images = RandomConvolution();
    images.layout = {1, images.layout.rows(), 1};
    images.fused = FusedUseOf(images);
    images.b.flatten(1)[0][-1] = value;
    EXPECT_FALSE(std::isfinite(Squared(rows)[1].item<double>()));
    EXPECT_TRUE(std::isfinite(Squared(rows)[2].item<double>()));
    EXPECT_FALSE(std::isfinite(Squared(images)[0].item<double>()));
  }
}

INSTANTIATE_TEST_SUITE_P(Precision, FusedTerms, testing::Bool(), [](const auto& precision) {
  return std::string(precision.param ? "Tf32" : "Float32");
});

}  // namespace
}  // namespace sordino
