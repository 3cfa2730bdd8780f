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
#include <ATen/ops/zeros.h>
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
  const auto start = std::chrono::steady_clock::now();
  const sordino::TangentKernel kernel(
      network.parameters, [&](const Batch& b) { return network.Outputs(b[0]); }, batch);
  double layers = 0;
  const std::int64_t rows = examples * kernel.outputs().size(0);
  const at::Tensor whole = at::zeros({rows, rows});
  // The kernels of the layers, output by output, so that one of them is never held as a whole.
  for (std::int64_t begin = 0; begin < rows; begin += examples) {
    const std::int64_t end = begin + examples;
    const at::Tensor part = whole.slice(0, begin, end).slice(1, 0, end);
    for (std::size_t r = 0; r < kernel.layers().size(); ++r) {
      const at::Tensor layer = kernel.LayerRows(r, begin, end);
      layers += layer.slice(1, begin, end).trace().item<double>();
      part.add_(layer);
    }
    whole.slice(0, 0, begin).slice(1, begin, end).copy_(part.slice(1, 0, begin).t());
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  fmt::print("seconds {:.3f} megabytes {:.0f} threads {} trace {:.6g} layers {:.6g}\n",
             seconds.count(), sordino::StatusMegabytes("VmHWM") - before, at::get_num_threads(),
             whole.trace().item<double>(), layers);
  return 0;
}
