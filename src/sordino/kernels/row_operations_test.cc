// Beside operations of libtorch. Skipped without a GPU.
#include "sordino/kernels/row_operations.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "sordino/base/testing/not_a_number.h"
#include "sordino/kernels/row_sums.h"

namespace sordino {
namespace {

class RowOperationsCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (at::getNumGPUs() == 0) GTEST_SKIP() << "no CUDA device";
    if (!HasRowOperations(at::zeros({1}, options_))) GTEST_SKIP() << "built without nvcc";
    at::manual_seed(3);
  }

  // More than one launch takes, of all widths.
  std::vector<at::Tensor> Matrices(std::int64_t rows) const {
    std::vector<at::Tensor> matrices;
    for (std::int64_t k = 0; k < 60; ++k) {
      matrices.push_back(at::randn({rows, 1 + (k * k) % 700}, options_));
    }
    return matrices;
  }

  const at::TensorOptions options_ = at::TensorOptions(at::Device(at::kCUDA, 0)).dtype(at::kFloat);
};

TEST(SpansOfColumns, CoverEachColumnOnce) {
  kernels::RowMatrices all;
  const std::vector<std::int64_t> widths = {0,    1,      4095,    4096,    4097,    8192,
                                            8193, 100003, 1048576, 1048577, 2359296, 38597376};
  for (const std::int64_t width : widths) all.matrices[all.count++].width = width;
  const int spans = kernels::CountSpans(all);
  for (int m = 0; m < all.count; ++m) {
    const int first = all.matrices[m].first_span;
    const int last = m + 1 < all.count ? all.matrices[m + 1].first_span : spans;
    EXPECT_EQ(m == 0, first == 0);
    ASSERT_GT(last, first);
    EXPECT_LE(last - first, kernels::kMostSpans);
    std::int64_t covered = 0;
    for (int span = first; span < last; ++span) {
      const auto columns = kernels::ColumnsOfSpan(all.matrices[m].width, span - first);
      EXPECT_EQ(columns.begin, covered);
      EXPECT_TRUE(columns.end > columns.begin || all.matrices[m].width == 0);
      covered = columns.end;
    }
    EXPECT_EQ(covered, all.matrices[m].width);
  }
}

TEST_F(RowOperationsCuda, SquaredNormsArePerRow) {
  const auto matrices = Matrices(37);
  const at::Tensor found = DeviceSquaredNorms(matrices);
  for (std::size_t k = 0; k < matrices.size(); ++k) {
    const at::Tensor expected = matrices[k].to(at::kDouble).square().sum(1);
    EXPECT_TRUE(found[static_cast<std::int64_t>(k)].allclose(expected, 1e-14, 0)) << k;
  }
  EXPECT_TRUE(found.equal(DeviceSquaredNorms(matrices)));
}

// By blocks of threads that each take a span of the columns.
TEST_F(RowOperationsCuda, WideRowsHaveTheBitsThatTheyHaveAlone) {
  std::vector<at::Tensor> matrices;
  for (const std::int64_t width : {3, 4096, 4097, 100'003, 2'500'000}) {
    matrices.push_back(at::randn({5, width}, options_));
  }
  const at::Tensor found = DeviceSquaredNorms(matrices);
  for (std::int64_t k = 0; k < found.size(0); ++k) {
    const at::Tensor& matrix = matrices[static_cast<std::size_t>(k)];
    EXPECT_TRUE(found[k].allclose(matrix.to(at::kDouble).square().sum(1), 1e-13, 0)) << k;
    EXPECT_TRUE(found[k][3].equal(DeviceSquaredNorms({matrix.narrow(0, 3, 1)})[0][0])) << k;
  }
}

TEST_F(RowOperationsCuda, PiecesAddUpByGroup) {
  const at::Tensor squared = at::rand({4, 9}, options_.dtype(at::kDouble));
  squared[2][5] = 100;
  const at::Tensor total = at::ones({2, 9}, squared.options());
  DeviceAddPieces({{.first = 0, .second = -1, .group = 0},
                   {.first = 1, .second = 2, .group = 1},
                   {.first = 3, .second = -1, .group = 1}},
                  squared, /*limit=*/50, total);
  EXPECT_TRUE(total[0].equal(squared[0] + 1));
  at::Tensor expected = (squared[1] * squared[2] + 1) + squared[3];
  expected[5] = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(total[1].equal(expected));
}

// Widths of whole fours and not, more rows than a block has, one block of rows an example and more.
struct SummedRows {
  ExampleLayout layout;
  std::int64_t width;
};
const std::vector<SummedRows>& ManyRows() {
  static const std::vector<SummedRows> all = {
      {{1, 5, 128}, 256}, {{1, 3, 1000}, 130}, {{7, 4, 1}, 64},   {{6, 3, 5}, 7},
      {{1, 300, 2}, 1},   {{2, 1, 65}, 33},    {{1, 2, 9}, 1024}, {{1, 40, 785}, 1}};
  return all;
}

// Of the rows of one example, in their order.
at::Tensor OfExample(const at::Tensor& rows, const ExampleLayout& layout, std::int64_t example) {
  return rows.reshape({layout.outer, layout.examples, layout.inner, -1})
      .select(1, example)
      .reshape({layout.rows_per_example(), -1})
      .clone();
}

TEST_F(RowOperationsCuda, SumsOfExamplesAreThoseOfTheirRows) {
  for (const auto& [layout, width] : ManyRows()) {
    SCOPED_TRACE(testing::Message() << layout.rows() << " x " << width);
    const at::Tensor rows = at::randn({layout.rows(), width}, options_);
    const NormalisedRows normalised{at::randn({layout.rows(), width}, options_) + 3,
                                    at::randn({layout.rows(), 1}, options_),
                                    at::rand({layout.rows(), 1}, options_)};
    const at::Tensor sums = DeviceExampleSums(rows, layout);
    const at::Tensor scaled = DeviceNormalisedSums(rows, normalised, layout);
    const at::Tensor products = rows.to(at::kDouble) *
                                (normalised.input.to(at::kDouble) - normalised.mean) *
                                normalised.deviation;
    const at::Tensor largest = products.abs().sum() / static_cast<double>(layout.examples);
    for (std::int64_t example = 0; example < layout.examples; ++example) {
      const at::Tensor own = OfExample(rows, layout, example);
      EXPECT_TRUE(sums[example].to(at::kDouble).allclose(own.to(at::kDouble).sum(0), 1e-6, 1e-4));
      const at::Tensor expected = OfExample(products, layout, example).sum(0);
      EXPECT_LE((scaled[example] - expected).abs().max().item<double>(),
                1e-6 * largest.item<double>());
      // The bits that it has alone.
      const ExampleLayout alone{1, 1, layout.rows_per_example()};
      EXPECT_TRUE(sums[example].equal(DeviceExampleSums(own, alone)[0]));
      const NormalisedRows its{OfExample(normalised.input, layout, example),
                               OfExample(normalised.mean, layout, example),
                               OfExample(normalised.deviation, layout, example)};
      EXPECT_TRUE(scaled[example].equal(DeviceNormalisedSums(own, its, alone)[0]));
    }
  }
}

// In one launch or in two, by the widths.
TEST_F(RowOperationsCuda, NormsAndPiecesAtOnce) {
  for (const std::int64_t widest : {1000, 3000}) {
    std::vector<at::Tensor> matrices;
    for (const std::int64_t width :
         {std::int64_t{1}, std::int64_t{104}, std::int64_t{50}, widest}) {
      matrices.push_back(at::randn({77, width}, options_));
    }
    matrices[1][3][3] = 1e10;
    const std::vector<kernels::NormPiece> pieces = {{.first = 0, .second = -1, .group = 0},
                                                    {.first = 1, .second = 2, .group = 1},
                                                    {.first = 3, .second = -1, .group = 1}};
    const at::Tensor total = at::ones({2, 77}, options_.dtype(at::kDouble));
    const at::Tensor expected = total.clone();
    DeviceAddPieces(pieces, DeviceSquaredNorms(matrices), 1e15, expected);
    EXPECT_TRUE(at::isinf(expected[1][3]).item<bool>());
    DeviceAddRowNorms(matrices, pieces, 1e15, total);
    EXPECT_TRUE(total.allclose(expected, 1e-14, 0));
    const at::Tensor again = at::ones_like(total);
    DeviceAddRowNorms(matrices, pieces, 1e15, again);
    EXPECT_TRUE(again.equal(total));
  }
}

// The bits of the operations that it stands for.
TEST_F(RowOperationsCuda, ClipToBoundIsThatOfThePolicy) {
  at::Tensor squared = at::rand({3, 1000}, options_.dtype(at::kDouble)).pow(3) * 4;
  squared[0][7] = kNan;
  squared[1][8] = 1e60;
  squared[2][9] = std::numeric_limits<double>::infinity();
  squared[2][10] = 0;
  squared[1][11] = 1e36;  // a subnormal factor
  const at::Tensor below = at::tensor({0.5, 1e-300, 0.7}, at::kDouble).unsqueeze(1).to(at::kCUDA);
  const at::Tensor bounds = at::full({3, 1}, 0.5, squared.options());
  const at::Tensor mask = at::rand({1000}, squared.options()) < 0.7;
  mask.narrow(0, 7, 5).fill_(true);
  const DeviceClipped found = DeviceClipToBound(squared, below, bounds, mask, 1e20);
  const at::Tensor norms = squared.sqrt();
  const DeviceFactors expected =
      DeviceClip(norms, FactorsWithin(norms, below).contiguous(), bounds, mask, 1e20);
  EXPECT_TRUE(found.factors.float64.equal(expected.float64));
  EXPECT_TRUE(found.factors.float32.equal(expected.float32));
  EXPECT_EQ(found.factors.float64[1][11].item<double>(), 0);
  EXPECT_TRUE(found.factors.above.equal(expected.above));
  EXPECT_TRUE(at::equal(found.norms.nan_to_num(-1), norms.nan_to_num(-1)));
}

TEST_F(RowOperationsCuda, SmallProductsAreThoseOfFloat64) {
  for (const std::int64_t rows : {2, 64, 100, 256}) {
    std::vector<FactoredProduct> all;
    for (const auto& [p, q] : {std::pair(104, 50), std::pair(1, 104), std::pair(16, 16),
                               std::pair(33, 2), std::pair(0, 200), std::pair(0, 1)}) {
      all.push_back({p == 0 ? at::Tensor() : at::randn({rows, p}, options_),
                     at::randn({rows, q}, options_), p % 2});
    }
    at::Tensor factors = at::rand({2, rows}, options_.dtype(at::kDouble));
    factors.select(1, 1).fill_(0);
    all[0].left[1][5] = kNan;
    all[1].right[1][5] = kNan;
    ASSERT_TRUE(AreSmallProducts(all, rows));
    const std::vector<at::Tensor> found = DeviceRowProducts(all, factors);
    const std::vector<at::Tensor> again = DeviceRowProducts(all, factors);
    for (std::size_t k = 0; k < all.size(); ++k) {
      const at::Tensor own = factors[all[k].group].unsqueeze(1);
      const at::Tensor right = all[k].right.to(at::kDouble).nan_to_num(0);
      const at::Tensor scaled =
          all[k].left.defined() ? all[k].left.to(at::kDouble).nan_to_num(0) * own : own;
      const at::Tensor expected = at::matmul(scaled.t(), right).reshape(found[k].sizes());
      EXPECT_LE((found[k].to(at::kDouble) - expected).abs().max().item<double>(),
                1e-7 * expected.abs().max().item<double>())
          << k;
      EXPECT_TRUE(found[k].equal(again[k]));
    }
  }
}

TEST_F(RowOperationsCuda, ClipLeavesOutPaddingAndWhatIsOutOfRange) {
  at::Tensor norms = at::rand({3, 1000}, options_.dtype(at::kDouble));
  norms[0][7] = kNan;
  norms[1][8] = 1e30;
  const at::Tensor factors = at::rand({3, 1000}, norms.options());
  const at::Tensor bounds = at::full({3, 1}, 0.5, norms.options());
  const at::Tensor mask = at::rand({1000}, norms.options()) < 0.7;
  mask.narrow(0, 7, 2).fill_(true);
  for (const bool masked : {true, false}) {
    const DeviceFactors found =
        DeviceClip(norms, factors, bounds, masked ? mask : at::Tensor(), 1e20);
    const at::Tensor counts = masked ? mask : at::ones_like(mask);
    at::Tensor usable = (norms <= 1e20).all(0).logical_and(counts);
    EXPECT_TRUE(found.float64.equal(factors.masked_fill(usable.logical_not(), 0)));
    EXPECT_TRUE(found.float32.equal(found.float64.to(at::kFloat)));
    const at::Tensor above = (norms <= bounds).logical_not().logical_and(counts).sum(1);
    EXPECT_TRUE(found.above.equal(above));
  }
}

TEST_F(RowOperationsCuda, ScaledRowsAndSumsLeaveOutRowsOfFactorZero) {
  auto matrices = Matrices(37);
  for (at::Tensor& matrix : matrices) matrix[3].fill_(kNan);
  at::Tensor factors = at::rand({2, 37}, options_.dtype(at::kDouble));
  factors.select(1, 3).fill_(0);
  std::vector<FactoredRows> all;
  for (std::size_t k = 0; k < matrices.size(); ++k) {
    all.push_back({matrices[k], static_cast<std::int64_t>(k % 2), k % 3 != 0});
  }
  const auto scaled = DeviceScaledRows(all, factors.to(at::kFloat));
  const auto sums = DeviceRowSums(all, factors);
  const auto wide_sums = DeviceRowSums(all, factors, /*wide=*/true);
  for (std::size_t k = 0; k < matrices.size(); ++k) {
    const at::Tensor own = factors[all[k].group].unsqueeze(1);
    const at::Tensor none = own == 0;
    const at::Tensor by = all[k].scales ? own.to(at::kFloat) : at::ones_like(own).to(at::kFloat);
    EXPECT_TRUE(scaled[k].equal((matrices[k] * by).masked_fill(none, 0))) << k;
    const at::Tensor sum = (matrices[k].to(at::kDouble) * own).masked_fill(none, 0).sum(0);
    EXPECT_TRUE(sums[k].allclose(sum.to(at::kFloat), 1e-6, 1e-7)) << k;
    EXPECT_TRUE(wide_sums[k].allclose(sum, 1e-12, 1e-13)) << k;
  }
}

// What an example adds does not depend on the others.
TEST_F(RowOperationsCuda, ARowIsItsOwn) {
  const auto few = Matrices(8);
  std::vector<at::Tensor> many;
  many.reserve(few.size());
  for (const at::Tensor& matrix : few) many.push_back(at::cat({matrix, at::randn_like(matrix)}));
  EXPECT_TRUE(DeviceSquaredNorms(few).equal(DeviceSquaredNorms(many).narrow(1, 0, 8)));
}

TEST_F(RowOperationsCuda, LookupsAddUpRowsOfOneEntry) {
  for (const auto& [outer, inner, width, entries] :
       std::vector<std::array<std::int64_t, 4>>{{1, 256, 16, 40}, {7, 3, 300, 5}, {1, 1, 5, 9}}) {
    constexpr std::int64_t kExamples = 11;
    LookupRows lookup;
    lookup.layout = {outer, kExamples, inner};
    lookup.index = at::randint(0, entries, {lookup.layout.rows()}, options_.dtype(at::kLong));
    lookup.gradient = at::randn({lookup.layout.rows(), width}, options_);
    lookup.vocabulary = entries;
    lookup.padding_index = 2;
    ASSERT_TRUE(HasLookupOperations(lookup));
    const at::Tensor found = at::ones({kExamples}, options_.dtype(at::kDouble));
    DeviceAddLookupNorms(lookup, found);
    LookupRows on_cpu = lookup;
    on_cpu.index = lookup.index.cpu();
    on_cpu.gradient = lookup.gradient.cpu();
    const at::Tensor expected = at::ones({kExamples}, at::kDouble);
    AddLookupSquaredNorms(on_cpu, expected);
    EXPECT_TRUE(found.cpu().allclose(expected, 1e-5, 0));
    at::Tensor factors = at::rand({kExamples}, options_.dtype(at::kDouble));
    factors[4] = 0;
    lookup.gradient.view({outer, kExamples, inner, width}).select(1, 4).fill_(kNan);
    const at::Tensor sum = DeviceLookupSum(lookup, factors);
    on_cpu.gradient = lookup.gradient.cpu();
    EXPECT_TRUE(sum.cpu().allclose(LookupWeightedSum(on_cpu, factors.cpu()), 1e-5, 1e-6));
    const at::Tensor wide = DeviceLookupSum(lookup, factors, /*wide=*/true);
    EXPECT_TRUE(
        wide.cpu().allclose(LookupWeightedSum(on_cpu, factors.cpu(), /*wide=*/true), 1e-12, 1e-12));
  }
}

}  // namespace
}  // namespace sordino
