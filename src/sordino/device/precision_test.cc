#include "sordino/device/precision.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "sordino/base/error.h"

namespace sordino {
namespace {

TEST(Precision, IsThatOfBothLibraries) {
  for (const Precision precision : {Precision::kTf32, Precision::kFloat32}) {
    UsePrecision(precision);
    EXPECT_EQ(at::globalContext().allowTF32CuBLAS(), precision == Precision::kTf32);
    EXPECT_EQ(at::globalContext().allowTF32CuDNN(), precision == Precision::kTf32);
  }
}

TEST(Precision, HasNames) {
  EXPECT_EQ(ParsePrecision("--precision", "float32"), Precision::kFloat32);
  EXPECT_EQ(ParsePrecision("--precision", "tf32"), Precision::kTf32);
  EXPECT_THROW(ParsePrecision("--precision", "tf23"), Error);
  EXPECT_THROW(ParsePrecision("--precision", "bfloat16"), Error);
}

}  // namespace
}  // namespace sordino
