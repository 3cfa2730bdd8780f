#include "sordino/device/precision.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "sordino/base/error.h"

namespace sordino {
namespace {

TEST(Precision, IsThatOfBothLibraries) {
  for (const Precision precision : {Precision::kTf32, Precision::kBfloat16, Precision::kFloat32}) {
    UsePrecision(precision);
    EXPECT_EQ(UsedPrecision(), precision);
    EXPECT_EQ(at::globalContext().allowTF32CuBLAS(), precision != Precision::kFloat32);
    EXPECT_EQ(at::globalContext().allowTF32CuDNN(), precision != Precision::kFloat32);
  }
}

TEST(Precision, HasNames) {
  EXPECT_EQ(ParsePrecision("--precision", "float32"), Precision::kFloat32);
  EXPECT_EQ(ParsePrecision("--precision", "tf32"), Precision::kTf32);
  EXPECT_THROW(ParsePrecision("--precision", "tf23"), Error);
  EXPECT_EQ(ParsePrecision("--precision", "bfloat16"), Precision::kBfloat16);
}

TEST(OrdinaryPrecision, ConvertsFactorsInItsScope) {
  const at::Tensor x = at::ones({2, 3});
  const at::Tensor w = at::ones({3, 2});
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    UsePrecision(precision);
    const bool narrow = precision == Precision::kBfloat16;
    {
      const OrdinaryPrecision scope(at::kCPU);
      EXPECT_EQ(x.mm(w).scalar_type(), narrow ? at::kBFloat16 : at::kFloat);
      EXPECT_EQ(at::autocast::is_autocast_cache_enabled(), !narrow);
    }
    EXPECT_EQ(x.mm(w).scalar_type(), at::kFloat);
    EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
  }
  UsePrecision(Precision::kFloat32);
}

}  // namespace
}  // namespace sordino
