// Padded copies word by word on the processor, and by the kernel.
#include "sordino/kernels/padded_copy.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <vector>

#include "sordino/kernels/launch.h"

namespace sordino {
namespace {

// Of every width of words, one of them at an odd address.
std::vector<at::Tensor> SomeInputs(std::int64_t examples) {
  return {at::randn({examples, 3, 4}), at::randint(0, 9, {examples}, at::kLong),
          at::randn({examples, 5}), at::randint(0, 255, {examples, 3}, at::kByte),
          at::randint(0, 255, {examples * 4 + 1}, at::kByte)
              .narrow(0, 1, examples * 4)
              .view({examples, 4})};
}

std::vector<at::Tensor> InputsFor(const std::vector<at::Tensor>& batch, std::int64_t size) {
  std::vector<at::Tensor> inputs;
  for (const at::Tensor& tensor : batch) {
    std::vector<std::int64_t> sizes = tensor.sizes().vec();
    sizes.front() = size;
    inputs.push_back(at::empty(sizes, tensor.options()));
  }
  return inputs;
}

void ExpectPadded(const std::vector<at::Tensor>& inputs, const at::Tensor& mask,
                  const std::vector<at::Tensor>& batch, std::int64_t real_units) {
  const std::int64_t examples = batch.front().size(0);
  for (std::size_t k = 0; k < batch.size(); ++k) {
    EXPECT_TRUE(inputs[k].narrow(0, 0, examples).equal(batch[k])) << k;
    for (std::int64_t i = examples; i < inputs[k].size(0); ++i) {
      EXPECT_TRUE(inputs[k].select(0, i).equal(batch[k].select(0, 0))) << k;
    }
  }
  EXPECT_EQ(mask.sum().item<std::int64_t>(), real_units);
  EXPECT_EQ(mask.narrow(0, 0, real_units).sum().item<std::int64_t>(), real_units);
}

TEST(PaddedCopy, CopiesEveryWord) {
  for (const std::int64_t examples : {1, 2, 7, 8}) {
    const std::vector<at::Tensor> batch = SomeInputs(examples);
    const std::vector<at::Tensor> inputs = InputsFor(batch, 8);
    const at::Tensor mask = at::empty({8}, at::kBool);
    ASSERT_TRUE(CanCopyPadded(batch, inputs));
    const kernels::PaddedTensors all = PaddedTensorsOf(batch, inputs, mask, examples);
    for (int k = 0; k <= all.count; ++k) {
      for (std::int64_t at = 0; at < kernels::WordsOf(all, k); ++at)
        kernels::CopyPadded(all, k, at);
    }
    ExpectPadded(inputs, mask, batch, examples);
  }
}

TEST(PaddedCopy, RefusesWhatIsNotPlainMemory) {
  const std::vector<at::Tensor> batch = SomeInputs(4);
  const std::vector<at::Tensor> inputs = InputsFor(batch, 8);
  std::vector<at::Tensor> strided = batch;
  strided[0] = at::randn({4, 4, 3}).transpose(1, 2);
  EXPECT_FALSE(CanCopyPadded(strided, inputs));
  std::vector<at::Tensor> other = batch;
  other[0] = other[0].to(at::kDouble);
  EXPECT_FALSE(CanCopyPadded(other, inputs));
  EXPECT_FALSE(CanCopyPadded(SomeInputs(0), inputs));
}

TEST(PaddedCopyCuda, IsThatOfTheProcessor) {
  if (at::getNumGPUs() == 0) GTEST_SKIP() << "no CUDA device";
  if (!kKernelsAreBuilt) GTEST_SKIP() << "kernels are not built";
  for (const std::int64_t examples : {1, 100, 1000}) {
    std::vector<at::Tensor> batch = SomeInputs(examples);
    for (at::Tensor& tensor : batch) tensor = tensor.to(at::kCUDA);
    batch.push_back(at::randn({examples, 999}, at::kCUDA));
    const std::vector<at::Tensor> inputs = InputsFor(batch, 1000);
    const at::Tensor mask = at::empty({500}, at::TensorOptions(at::kCUDA).dtype(at::kBool));
    ASSERT_TRUE(CanCopyPadded(batch, inputs));
    DevicePaddedCopy(PaddedTensorsOf(batch, inputs, mask, examples / 2), mask);
    ExpectPadded(inputs, mask, batch, examples / 2);
  }
}

}  // namespace
}  // namespace sordino
