#include "sordino/gradients/loss_function.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sordino/base/error.h"

namespace sordino {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Examples, CountsTheFirstDimensionOfEveryTensor) {
  EXPECT_EQ(Examples({at::zeros({3, 2}), at::zeros({3})}), 3);
  EXPECT_EQ(Examples({at::zeros({0, 2})}), 0);
}

TEST(Examples, RefusesABatchWhoseTensorsDisagree) {
  EXPECT_THAT(
      [] {
        Examples({at::zeros({3, 2}), at::zeros({4})});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("3"), HasSubstr("tensor 1 holds 4"))));
}

TEST(Examples, RefusesTensorsWithoutExamples) {
  EXPECT_THROW(Examples({}), Error);
  EXPECT_THROW(Examples({at::Tensor()}), Error);
  EXPECT_THAT(
      [] {
        Examples({at::zeros({3}), at::scalar_tensor(1.0)});
      },
      ThrowsMessage<Error>(HasSubstr("Tensor 1 of the batch has no dimension")));
}

TEST(Slice, IsAViewOfTheAskedExamples) {
  const Batch batch{at::arange(12).reshape({4, 3}), at::arange(4)};
  const Batch slice = Slice(batch, 1, 3);
  ASSERT_EQ(Examples(slice), 2);
  EXPECT_TRUE(slice[0].equal(batch[0].narrow(0, 1, 2)));
  EXPECT_TRUE(slice[1].is_alias_of(batch[1]));
  EXPECT_EQ(slice[1][0].item<std::int64_t>(), 1);
  EXPECT_EQ(Examples(Slice(batch, 4, 4)), 0);
}

TEST(Slice, RefusesExamplesOutsideTheBatch) {
  const Batch batch{at::zeros({4, 3})};
  EXPECT_THROW(Slice(batch, 2, 5), Error);
  EXPECT_THROW(Slice(batch, -1, 2), Error);
  EXPECT_THROW(Slice(batch, 3, 2), Error);
}

}  // namespace
}  // namespace sordino
