// The table of the lecture (which clipping keeps the kernel symmetric, its quadratic form and its
// eigenvalues positive) on small networks: every "no" by a counterexample that a search finds,
// every "yes" by a search that finds none.
#include "sordino/clipping/clipped_kernel.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/clipping_groups.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/tangent_kernel.h"

namespace sordino {
namespace {

// Two layers with one output and squared loss; float64.
struct SmallNetwork {
  std::vector<NamedParameter> parameters;
  Batch batch;

  SmallNetwork(std::uint64_t seed, std::int64_t examples, double target_scale) {
    at::manual_seed(seed);
    const auto parameter = [&](const char* name, at::IntArrayRef sizes) {
      parameters.push_back({name, at::randn(sizes, at::kDouble).set_requires_grad(true)});
    };
    parameter("first.weight", {6, 3});
    parameter("first.bias", {6});
    parameter("second.weight", {1, 6});
    // Inputs near each other, so that gradients have much in common.
    const at::Tensor inputs =
        at::randn({1, 3}, at::kDouble) + 0.5 * at::randn({examples, 3}, at::kDouble);
    batch = {inputs, target_scale * at::randn({examples}, at::kDouble)};
  }

  at::Tensor Outputs(const Batch& b) const {
    return at::linear(at::linear(b[0], parameters[0].value, parameters[1].value).tanh(),
                      parameters[2].value);
  }
  OutputFunction outputs() const {
    return [this](const Batch& b) { return Outputs(b); };
  }
  LossFunction loss() const {
    return [this](const Batch& b) { return (Outputs(b).squeeze(1) - b[1]).square() / 2; };
  }
  std::vector<std::int64_t> layers() const {
    return ClippingGroups::ByLayer(parameters).Assign(parameters);
  }
};

struct NetworkKernel {
  std::vector<at::Tensor> layers;
  at::Tensor loss_gradients;  // [1, n]
};

NetworkKernel KernelOf(const SmallNetwork& network) {
  const TangentKernel kernel(network.parameters, network.outputs(), network.batch);
  NetworkKernel result;
  for (std::size_t r = 0; r < kernel.layers().size(); ++r) result.layers.push_back(kernel.Layer(r));
  result.loss_gradients = kernel.outputs() - network.batch[1].unsqueeze(0);
  return result;
}

bool IsPositiveDefinite(const std::vector<at::Tensor>& layers) {
  const ClippedKernel none =
      ClipKernel("none", layers, at::ones({1, layers[0].size(0)}, at::kDouble), ClipNorm(1));
  return none.least_form > 1e-6 * none.largest_form;
}

// How often each property failed, and how often the loss rose at once.
struct Failures {
  int symmetric = 0;
  int form = 0;
  int eigenvalues = 0;
  int rising = 0;
};

std::map<std::string, Failures> Search(int networks) {
  std::map<std::string, Failures> failures;
  for (int seed = 0; seed < networks; ++seed) {
    const SmallNetwork network(static_cast<std::uint64_t>(seed), 5, 10);
    const NetworkKernel kernel = KernelOf(network);
    if (!IsPositiveDefinite(kernel.layers)) continue;  // the table is about those
    for (const std::string_view name : KernelClippings()) {
      const ClippedKernel clipped =
          ClipKernel(name, kernel.layers, kernel.loss_gradients, ClipNorm(0.5));
      Failures& counted = failures[std::string(name)];
      counted.symmetric += clipped.IsSymmetric() ? 0 : 1;
      counted.form += clipped.HasPositiveForm() ? 0 : 1;
      counted.eigenvalues += clipped.HasPositiveEigenvalues() ? 0 : 1;
      counted.rising += clipped.decrease_rate < 0 ? 1 : 0;
    }
  }
  return failures;
}

TEST(ClippedKernel, TableOfTheLectureIsFoundBySearch) {
  const std::map<std::string, Failures> failures = Search(3000);
  ASSERT_EQ(failures.size(), 5U);
  for (const char* kept : {"none", "global-flat", "global-layerwise"}) {
    const Failures& counted = failures.at(kept);
    EXPECT_EQ(counted.symmetric, 0) << kept;
    EXPECT_EQ(counted.form, 0) << kept;
    EXPECT_EQ(counted.eigenvalues, 0) << kept;
    EXPECT_EQ(counted.rising, 0) << kept;
  }
  const Failures& flat = failures.at("local-flat");
  EXPECT_GT(flat.symmetric, 0);
  EXPECT_GT(flat.form, 0);
  EXPECT_EQ(flat.eigenvalues, 0);
  EXPECT_GT(flat.rising, 0);
  const Failures& layerwise = failures.at("local-layerwise");
  EXPECT_GT(layerwise.symmetric, 0);
  EXPECT_GT(layerwise.form, 0);
  EXPECT_GT(layerwise.rising, 0);
}

// That a network of two layers loses positive eigenvalues is rare; two layers of any kernels do so
// sooner. H_1 and H_2 are drawn, the factors are those of clipping.
TEST(ClippedKernel, LayerwiseClippingLosesPositiveEigenvalues) {
  int found = 0;
  for (int seed = 0; seed < 2000 && found == 0; ++seed) {
    at::manual_seed(static_cast<std::uint64_t>(seed));
    std::vector<at::Tensor> layers;
    for (int r = 0; r < 2; ++r) {
      const at::Tensor j = at::randn({3, 2}, at::kDouble);
      layers.push_back(at::mm(j, j.t()) + 1e-3 * at::eye(3, at::kDouble));
    }
    const at::Tensor l = (2 * at::randn({1, 3}, at::kDouble)).exp();
    const ClippedKernel clipped = ClipKernel("local-layerwise", layers, l, ClipNorm(0.05));
    const ClippedKernel flat = ClipKernel("local-flat", layers, l, ClipNorm(0.05));
    EXPECT_TRUE(flat.HasPositiveEigenvalues()) << seed;
    if (!clipped.HasPositiveEigenvalues()) ++found;
  }
  EXPECT_GT(found, 0);
}

// references.md: eigenvalues of HC, and of its symmetric part.
TEST(ClippedKernel, MatchesThePublishedExample) {
  const at::Tensor h = at::tensor({1.0, 0.9, 0.9, 1.0}).to(at::kDouble).view({2, 2});
  // Gradients of norm 1 and 10 at a clipping norm of 1: C = diag(1, 0.1).
  const at::Tensor l = at::tensor({1.0, 10.0}).to(at::kDouble).view({1, 2});
  const ClippedKernel clipped = ClipKernel("local-flat", {h}, l, ClipNorm(1));
  EXPECT_NEAR(clipped.factors[0][1].item<double>(), 0.1, 1e-15);
  EXPECT_NEAR(clipped.least_real, 0.0175528, 1e-7);
  EXPECT_NEAR(clipped.least_form, -0.1189731, 1e-7);
  EXPECT_NEAR(clipped.largest_form, 1.2189731, 1e-7);
  EXPECT_FALSE(clipped.IsSymmetric());
  EXPECT_FALSE(clipped.HasPositiveForm());
  EXPECT_TRUE(clipped.HasPositiveEigenvalues());
}

TEST(ClippedKernel, FactorsAreThoseOfTheClipper) {
  const SmallNetwork network(7, 6, 3);
  const NetworkKernel kernel = KernelOf(network);
  Clipper clipper(network.parameters);
  for (const double clip : {0.01, 1.0, 5.0, 1000.0}) {
    const FlatClipping flat{ClipNorm(clip)};
    const auto layerwise = NormClipping::Layerwise(network.parameters, ClipNorm(clip));
    const auto expect = [&](const char* name, const ClippingPolicy& policy) {
      const at::Tensor norms = clipper.Norms(network.loss(), network.batch, policy);
      const at::Tensor factors =
          ClipKernel(name, kernel.layers, kernel.loss_gradients, ClipNorm(clip)).factors;
      const at::Tensor wanted = policy.Factors(norms).expand_as(factors);
      EXPECT_LT((factors - wanted).abs().max().item<double>(), 1e-9) << name << " " << clip;
    };
    expect("local-flat", flat);
    expect("local-layerwise", layerwise);
  }
}

TEST(ClippedKernel, PredictsWhatASmallStepDoes) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const SmallNetwork network(seed, 6, 3);
    const NetworkKernel kernel = KernelOf(network);
    std::vector<at::Tensor> before;
    for (const NamedParameter& p : network.parameters) before.push_back(p.value.detach().clone());
    for (const std::string_view name : KernelClippings()) {
      const ClippedKernel clipped =
          ClipKernel(name, kernel.layers, kernel.loss_gradients, ClipNorm(0.5));
      constexpr double kStep = 1e-6;
      const double measured = MeasuredDecrease(network.parameters, network.layers(), network.loss(),
                                               network.batch, clipped.factors, kStep);
      EXPECT_NEAR(measured / kStep, clipped.decrease_rate,
                  1e-3 * std::abs(clipped.decrease_rate) + 1e-6)
          << name;
    }
    for (std::size_t p = 0; p < before.size(); ++p) {
      EXPECT_TRUE(at::equal(network.parameters[p].value, before[p]));
    }
  }
}

// The losses of a run of local flat clipping.
std::vector<double> LossCurve(double learning_rate, double clip) {
  const SmallNetwork network(11, 8, 1e6);
  Clipper clipper(network.parameters);
  const FlatClipping policy{ClipNorm(clip)};
  std::vector<double> curve;
  for (int step = 0; step < 200; ++step) {
    const at::Tensor norms = clipper.Norms(network.loss(), network.batch, policy);
    EXPECT_GT(norms.min().item<double>(), 10) << "an example is not clipped";
    const LossFunction loss = network.loss();
    curve.push_back(loss(network.batch).mean().item<double>());
    const at::Tensor weighted = (loss(network.batch) * policy.Factors(norms)[0]).mean();
    std::vector<at::Tensor> values;
    for (const NamedParameter& p : network.parameters) values.push_back(p.value);
    const auto gradients = torch::autograd::grad({weighted}, values);
    const at::NoGradGuard no_grad;
    for (std::size_t p = 0; p < values.size(); ++p) values[p].sub_(gradients[p], learning_rate);
  }
  return curve;
}

TEST(LocalClipping, WhileAllAreClippedOnlyLearningRateTimesClipMatters) {
  const std::vector<double> first = LossCurve(0.1, 1);
  EXPECT_LT(first.back(), first.front());
  for (const auto& [learning_rate, clip] : {std::pair(1.0, 0.1), std::pair(0.01, 10.0)}) {
    const std::vector<double> other = LossCurve(learning_rate, clip);
    for (std::size_t i = 0; i < first.size(); ++i) {
      ASSERT_NEAR(other[i], first[i], 1e-9 * first[i]) << i;
    }
  }
}

TEST(ClippedKernel, RefusesWhatDoesNotFit) {
  const at::Tensor h = at::eye(4, at::kDouble);
  const at::Tensor l = at::ones({2, 2}, at::kDouble);
  EXPECT_THROW(ClipKernel("local", {h}, l, ClipNorm(1)), Error);
  EXPECT_THROW(ClipKernel("none", {}, l, ClipNorm(1)), Error);
  EXPECT_THROW(ClipKernel("none", {h}, at::ones({3, 2}, at::kDouble), ClipNorm(1)), Error);
  EXPECT_THROW(ClipKernel("none", {h.to(at::kFloat)}, l, ClipNorm(1)), Error);
}

}  // namespace
}  // namespace sordino
