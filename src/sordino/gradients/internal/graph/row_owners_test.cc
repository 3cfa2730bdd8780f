// Rows of made-up gradients: what a loop reads, operations of libtorch read too, and rounding
// errors of kernels without a fixed order hide no mixing.
#include "sordino/gradients/internal/graph/row_owners.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace sordino {
namespace {

constexpr std::int64_t kUnits = 18;  // more than one pass tells apart
constexpr std::int64_t kEach = 6;
constexpr RowArithmetic kLoop = {.fixed_order = true, .on_device = false};
constexpr RowArithmetic kGpu = {.fixed_order = false, .on_device = true};

// Rows of units one after another, and what the weights make of them.
struct ProbedRows {
  UnitCode code{kUnits, false};
  at::Tensor plain;
  std::vector<at::Tensor> weighted;

  explicit ProbedRows(std::int64_t width, at::ScalarType type = at::kFloat) {
    at::manual_seed(3);
    plain = at::randn({kUnits * kEach, width}, at::kDouble).to(type);
    for (std::size_t pass = 0; pass < code.exponent.size(); ++pass) {
      weighted.push_back(plain * Factors(pass).to(type));
    }
  }
  // Of each row.
  at::Tensor Factors(std::size_t pass) const {
    return at::tensor(code.exponent[pass])
        .to(at::kDouble)
        .exp2()
        .repeat_interleave(kEach)
        .unsqueeze(1);
  }
  static std::int64_t RowOf(std::int64_t unit, std::int64_t k) { return unit * kEach + k; }

  // A row that is below others, with an error of its own in each pass, as large as rounding leaves
  // it in other rows of its unit.
  void MakeFaint(std::int64_t row, double size, double error) {
    const at::Tensor noise = at::randn_like(plain[row]);
    plain[row].mul_(size).add_(noise, error);
    for (std::size_t pass = 0; pass < weighted.size(); ++pass) {
      const double factor = Factors(pass)[row].item<double>();
      weighted[pass][row].mul_(size).add_(at::randn_like(noise), error * factor);
    }
  }
  LayoutFit Fit(const RowArithmetic& arithmetic) const {
    return FitRows(code, plain, weighted, kUnits, arithmetic);
  }
};

TEST(RowOwners, AreReadAlikeByALoopAndByOperations) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    for (const std::int64_t width : {1, 5}) {
      ProbedRows rows(width, type);
      rows.plain[3].zero_();
      for (at::Tensor& weighted : rows.weighted) weighted[3].zero_();
      rows.plain[8].zero_();  // cancelled
      rows.plain[20].fill_(std::numeric_limits<double>::infinity());
      rows.weighted[0][30].fill_(std::numeric_limits<double>::quiet_NaN());
      rows.weighted[1][40].mul_(1.25);
      rows.weighted[0][50].mul_(0x1p-20);
      const auto looped = RowOwners(rows.code, rows.plain, rows.weighted, kLoop);
      const auto operated =
          RowOwners(rows.code, rows.plain, rows.weighted, {.fixed_order = true, .on_device = true});
      for (std::size_t row = 0; row < looped.size(); ++row) {
        if (row == 30) continue;  // the loop passes over what is not a number
        EXPECT_EQ(looped[row], operated[row]) << "row " << row << " of width " << width;
      }
      EXPECT_EQ(operated[3], kUnknownOwner);
      EXPECT_EQ(operated[8], kMixedOwner);
      EXPECT_EQ(operated[20], kUnknownOwner);
      EXPECT_EQ(operated[30], kUnknownOwner);
      EXPECT_EQ(operated[40], kMixedOwner);
      EXPECT_EQ(operated[50], kMixedOwner);
      EXPECT_EQ(operated[60], 60 / kEach);
    }
  }
}

TEST(RowOwners, OfFaintRowsAreThoseOfTheLayoutWhereSumsHaveNoFixedOrder) {
  for (const std::int64_t width : {1, 5}) {
    ProbedRows rows(width);
    for (std::int64_t unit = 0; unit < kUnits; ++unit) {
      rows.MakeFaint(ProbedRows::RowOf(unit, 0), 0, 3e-7);
      rows.MakeFaint(ProbedRows::RowOf(unit, 2), 1e-4, 3e-7);
    }
    EXPECT_FALSE(rows.Fit(kLoop).layout);
    const LayoutFit fit = rows.Fit(kGpu);
    ASSERT_TRUE(fit.layout);
    EXPECT_EQ(fit.layout->inner, kEach);
    EXPECT_TRUE(fit.unique);
  }
}

// A unit of which every row is below those of others.
TEST(RowOwners, OfAUnitOfSmallGradientsAreStillItsOwn) {
  ProbedRows rows(5);
  for (std::int64_t k = 0; k < kEach; ++k) rows.MakeFaint(ProbedRows::RowOf(4, k), 1e-5, 1e-12);
  EXPECT_TRUE(rows.Fit(kGpu).layout);
  rows.MakeFaint(ProbedRows::RowOf(4, 1), 1e-2, 1e-12);
  EXPECT_TRUE(rows.Fit(kGpu).layout);
  // An error of the size that other units have, not its own.
  rows.MakeFaint(ProbedRows::RowOf(4, 1), 1, 1e-8);
  EXPECT_FALSE(rows.Fit(kGpu).layout);
}

TEST(RowOwners, OfRowsThatMixUnitsAreOfNoLayout) {
  const auto mixed = [](std::int64_t row, std::int64_t other_unit, double size, double share) {
    ProbedRows rows(5);
    rows.MakeFaint(row, size, 0);
    const at::Tensor more = share * at::randn({5});
    rows.plain[row].add_(more);
    for (std::size_t pass = 0; pass < rows.weighted.size(); ++pass) {
      const double factor = rows.Factors(pass)[ProbedRows::RowOf(other_unit, 0)].item<double>();
      rows.weighted[pass][row].add_(more, factor);
    }
    return rows.Fit(kGpu);
  };
  for (const double share : {1.0, 1e-2, 1e-3}) {
    EXPECT_FALSE(mixed(ProbedRows::RowOf(2, 1), 9, 1, share).layout) << share;
    EXPECT_FALSE(mixed(ProbedRows::RowOf(2, 1), 9, 0, share).layout) << share;
  }
}

TEST(RowOwners, OfRowsInAnotherOrderAreOfNoLayout) {
  ProbedRows rows(5);
  for (at::Tensor& weighted : rows.weighted) {
    const at::Tensor row = weighted[7].clone();
    weighted[7].copy_(weighted[13]);
    weighted[13].copy_(row);
  }
  const at::Tensor row = rows.plain[7].clone();
  rows.plain[7].copy_(rows.plain[13]);
  rows.plain[13].copy_(row);
  EXPECT_FALSE(rows.Fit(kLoop).layout);
  EXPECT_FALSE(rows.Fit(kGpu).layout);
}

}  // namespace
}  // namespace sordino
