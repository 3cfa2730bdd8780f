// The tangent kernel of the network of cnn-mnist, whole and of each layer, one run: seconds and
// memory for bench/peers/tangent_kernel.py.
//
//   tangent_kernel_figure EXAMPLES
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

#include "sordino/gradients/tangent_kernel.h"

namespace sordino {
namespace {

// A line of /proc/self/status, in MB.
double StatusMegabytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key + ":", 0) == 0) return std::stod(line.substr(key.size() + 1)) / 1024;
  }
  return 0;
}

struct Network {
  std::vector<NamedParameter> parameters;

  Network() {
    at::manual_seed(1);
    const auto parameter = [&](const char* name, at::IntArrayRef sizes) {
      parameters.push_back({name, (0.1 * at::randn(sizes)).set_requires_grad(true)});
    };
    parameter("conv1.weight", {16, 1, 8, 8});
    parameter("conv1.bias", {16});
    parameter("conv2.weight", {32, 16, 4, 4});
    parameter("conv2.bias", {32});
    parameter("fc1.weight", {32, 512});
    parameter("fc1.bias", {32});
    parameter("fc2.weight", {10, 32});
    parameter("fc2.bias", {10});
  }
  at::Tensor Outputs(const at::Tensor& x) const {
    const auto p = [&](std::size_t i) { return parameters[i].value; };
    at::Tensor h = at::max_pool2d(at::conv2d(x, p(0), p(1), 2, 3).tanh(), {2, 2}, {1, 1});
    h = at::max_pool2d(at::conv2d(h, p(2), p(3), 2).tanh(), {2, 2}, {1, 1});
    return at::linear(at::linear(h.flatten(1), p(4), p(5)).tanh(), p(6), p(7));
  }
};

}  // namespace
}  // namespace sordino

int main(int argc, char** argv) {
  using sordino::Batch;
  const std::int64_t examples = argc > 1 ? std::atoll(argv[1]) : 512;
  const sordino::Network network;
  const Batch batch = {at::randn({examples, 1, 28, 28})};
  network.Outputs(batch[0].slice(0, 0, 2));  // libraries are loaded
  const double before = sordino::StatusMegabytes("VmRSS");
  const auto begin = std::chrono::steady_clock::now();
  const sordino::TangentKernel kernel(
      network.parameters, [&](const Batch& b) { return network.Outputs(b[0]); }, batch);
  double layers = 0;
  at::Tensor whole;
  for (std::size_t r = 0; r < kernel.layers().size(); ++r) {
    at::Tensor layer = kernel.Layer(r);
    layers += layer.trace().item<double>();
    whole = whole.defined() ? whole.add_(layer) : std::move(layer);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print("seconds {:.3f} megabytes {:.0f} threads {} trace {:.6g} layers {:.6g}\n",
             seconds.count(), sordino::StatusMegabytes("VmHWM") - before, at::get_num_threads(),
             whole.trace().item<double>(), layers);
  return 0;
}
