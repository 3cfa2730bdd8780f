#include "sordino/base/noise_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sordino/base/error.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;

TEST(NoiseKind, ParsesItsOwnNames) {
  EXPECT_EQ(NoiseKindName(NoiseKind::kGaussian), "gaussian");
  EXPECT_EQ(NoiseKindName(NoiseKind::kLaplace), "laplace");
  for (const NoiseKind kind : {NoiseKind::kGaussian, NoiseKind::kLaplace}) {
    EXPECT_EQ(ParseNoiseKind(NoiseKindName(kind)), kind);
  }
}

TEST(NoiseKind, NamesWhatItCanBe) {
  try {
    ParseNoiseKind("laplac");
    FAIL() << "a name that is not known was parsed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'laplac'"));
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'laplace'?"));
    EXPECT_THAT(error.what(), HasSubstr("gaussian or laplace"));
  }
}

}  // namespace
}  // namespace sordino
