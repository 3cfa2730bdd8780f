// The kernel read off the tape, held against the Jacobian written out by ordinary autograd, row by
// row.
#include "sordino/gradients/tangent_kernel.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/clipping_groups.h"
#include "sordino/gradients/testing/gradients_test_support.h"

namespace sordino {
namespace {

struct KernelCase {
  std::string name;
  std::function<OutputFunction(ModelMaker&)> make;
};

// [K n, entries of the parameters of a layer], by K n backward passes.
at::Tensor Jacobian(const std::vector<NamedParameter>& parameters,
                    const std::vector<std::int64_t>& groups, std::int64_t group,
                    const at::Tensor& outputs) {
  std::vector<at::Tensor> chosen;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (groups[p] == group) chosen.push_back(parameters[p].value);
  }
  std::vector<at::Tensor> rows;
  for (std::int64_t k = 0; k < outputs.size(1); ++k) {
    for (std::int64_t i = 0; i < outputs.size(0); ++i) {
      const auto gradients = torch::autograd::grad({outputs[i][k]}, chosen, {}, true, false, true);
      std::vector<at::Tensor> row;
      for (std::size_t p = 0; p < chosen.size(); ++p) {
        row.push_back(
            (gradients[p].defined() ? gradients[p] : at::zeros_like(chosen[p])).reshape({-1}));
      }
      rows.push_back(at::cat(row));
    }
  }
  return at::stack(rows).detach();
}

void ExpectNearTensor(const at::Tensor& seen, const at::Tensor& wanted, double tolerance,
                      const std::string& what) {
  ASSERT_EQ(seen.sizes(), wanted.sizes()) << what;
  const double scale = wanted.abs().max().item<double>();
  EXPECT_LE((seen - wanted).abs().max().item<double>(), tolerance * scale) << what;
}

std::vector<KernelCase> KernelCases() {
  std::vector<KernelCase> cases;
  cases.push_back({"Mlp", [](ModelMaker& m) -> OutputFunction {
                     const at::Tensor w = m.Parameter("first.weight", {6, 5});
                     const at::Tensor b = m.Parameter("first.bias", {6});
                     const at::Tensor v = m.Parameter("second.weight", {3, 6});
                     const at::Tensor c = m.Parameter("second.bias", {3});
                     m.Input({5});
                     return [=](const Batch& x) {
                       return at::linear(at::linear(x[0], w, b).tanh(), v, c);
                     };
                   }});
  cases.push_back({"Cnn", [](ModelMaker& m) -> OutputFunction {
                     const at::Tensor w = m.Parameter("conv1.weight", {4, 2, 3, 3});
                     const at::Tensor b = m.Parameter("conv1.bias", {4});
                     const at::Tensor w2 = m.Parameter("conv2.weight", {3, 4, 2, 2});
                     const at::Tensor v = m.Parameter("last.weight", {3, 27});
                     m.Input({2, 7, 7});
                     return [=](const Batch& x) {
                       const at::Tensor first = at::conv2d(x[0], w, b, 2).tanh();
                       const at::Tensor second = at::conv2d(first, w2, {}, 1, 1).tanh();
                       return at::linear(second.flatten(1).slice(1, 0, 27), v);
                     };
                   }});
  cases.push_back({"SharedOverPositions", [](ModelMaker& m) -> OutputFunction {
                     const at::Tensor w = m.Parameter("token.weight", {4, 5});
                     const at::Tensor b = m.Parameter("token.bias", {4});
                     const at::Tensor v = m.Parameter("last.weight", {2, 4});
                     m.Input({3, 5});
                     return [=](const Batch& x) {
                       return at::linear(at::linear(x[0], w, b).tanh().sum(1), v);
                     };
                   }});
  cases.push_back({"TiedAndEmbedded", [](ModelMaker& m) -> OutputFunction {
                     const at::Tensor e = m.Parameter("embedding.weight", {7, 4});
                     const at::Tensor w = m.Parameter("mix.weight", {4, 4});
                     m.Tokens(7, {5});
                     return [=](const Batch& x) {
                       const at::Tensor h = at::linear(at::embedding(e, x[0]).mean(1), w).tanh();
                       return at::linear(at::linear(h, w).tanh(), e);
                     };
                   }});
  cases.push_back({"OutputsOfDifferentParts", [](ModelMaker& m) -> OutputFunction {
                     const at::Tensor w = m.Parameter("left.weight", {1, 4});
                     const at::Tensor v = m.Parameter("right.weight", {1, 4});
                     m.Input({4});
                     return [=](const Batch& x) {
                       return at::cat({at::linear(x[0], w).tanh(), at::linear(x[0], v).sin()}, 1);
                     };
                   }});
  return cases;
}

class TangentKernelCases : public testing::TestWithParam<KernelCase> {};

TEST_P(TangentKernelCases, IsTheGramMatrixOfTheJacobian) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    at::manual_seed(3);
    ModelMaker maker(type);
    const OutputFunction outputs = GetParam().make(maker);
    const Batch batch = maker.MakeBatch(5);
    const TangentKernel kernel(maker.parameters(), outputs, batch);
    const double tolerance = type == at::kDouble ? 1e-12 : 1e-5;
    const at::Tensor values = outputs(batch);
    ExpectNearTensor(kernel.outputs(), values.detach().t(), tolerance, "outputs");
    const ClippingGroups layers = ClippingGroups::ByLayer(maker.parameters());
    ASSERT_EQ(kernel.layers(), layers.layers());
    at::Tensor sum;
    for (std::size_t r = 0; r < kernel.layers().size(); ++r) {
      const at::Tensor j = Jacobian(maker.parameters(), layers.Assign(maker.parameters()),
                                    static_cast<std::int64_t>(r), values);
      const at::Tensor wanted = at::mm(j, j.t());
      const at::Tensor seen = kernel.Layer(r);
      ExpectNearTensor(seen, wanted, tolerance, kernel.layers()[r]);
      EXPECT_TRUE(at::equal(seen, seen.t())) << kernel.layers()[r];
      // Every range of rows, also such that cut an output.
      for (std::int64_t begin = 0; begin < seen.size(0); ++begin) {
        for (std::int64_t end = begin + 1; end <= seen.size(0); ++end) {
          ExpectNearTensor(kernel.LayerRows(r, begin, end),
                           wanted.slice(0, begin, end).slice(1, 0, end), tolerance,
                           kernel.layers()[r]);
        }
      }
      sum = sum.defined() ? sum + wanted : wanted;
    }
    ExpectNearTensor(kernel.Whole(), sum, tolerance, "whole");
  }
}

INSTANTIATE_TEST_SUITE_P(All, TangentKernelCases, testing::ValuesIn(KernelCases()),
                         [](const auto& tested) { return tested.param.name; });

// A layer that is too large to be written out at once: blocks of a few examples.
TEST(TangentKernel, IsTheSameInSeveralBlocks) {
  at::manual_seed(4);
  constexpr std::int64_t kWidth = 1500;  // two rows an example: written out, 18 MB each
  ModelMaker maker(at::kDouble);
  const at::Tensor w = maker.Parameter("wide.weight", {kWidth, kWidth}, 0.02);
  maker.Input({2, kWidth});
  const OutputFunction outputs = [=](const Batch& x) {
    return at::linear(x[0], w).tanh().sum(1).slice(1, 0, 2);
  };
  const Batch batch = maker.MakeBatch(3);
  const at::Tensor values = outputs(batch);
  const at::Tensor j = Jacobian(maker.parameters(), {0}, 0, values);
  const TangentKernel kernel(maker.parameters(), outputs, batch);
  ExpectNearTensor(kernel.Whole(), at::mm(j, j.t()), 1e-12, "blocks");
  for (const auto& [begin, end] : {std::pair{0, 2}, {2, 4}, {1, 6}, {5, 6}}) {
    ExpectNearTensor(kernel.LayerRows(0, begin, end),
                     at::mm(j, j.t()).slice(0, begin, end).slice(1, 0, end), 1e-12, "rows");
  }
  EXPECT_THROW(kernel.LayerRows(0, 3, 3), Error);
  EXPECT_THROW(kernel.LayerRows(0, -1, 3), Error);
  EXPECT_THROW(kernel.LayerRows(0, 0, 7), Error);
}

TEST(TangentKernel, RefusesWhatIsNoneForEachExample) {
  ModelMaker maker(at::kDouble);
  const at::Tensor w = maker.Parameter("l.weight", {2, 3});
  maker.Input({3});
  const OutputFunction outputs = [=](const Batch& x) { return at::linear(x[0], w); };
  EXPECT_THROW(TangentKernel(maker.parameters(), outputs, maker.MakeBatch(1)), Error);
  const OutputFunction flat = [=](const Batch& x) { return at::linear(x[0], w).sum(1); };
  EXPECT_THROW(TangentKernel(maker.parameters(), flat, maker.MakeBatch(3)), Error);
  const OutputFunction mixing = [=](const Batch& x) {
    const at::Tensor y = at::linear(x[0], w);
    return y - y.mean(0, true);
  };
  EXPECT_THROW(TangentKernel(maker.parameters(), mixing, maker.MakeBatch(3)), Error);
}

}  // namespace
}  // namespace sordino
