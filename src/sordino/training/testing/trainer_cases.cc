#include "sordino/training/testing/trainer_cases.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>
#include <fstream>
#include <random>

namespace sordino {

Dataset RandomFeatures(std::int64_t records, std::int64_t features, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Dataset data;
  data.declaration.name = "random";
  data.declaration.kind = InputKind::kFeatures;
  data.declaration.shape = {features};
  data.declaration.classes = 2;
  data.inputs = at::empty({records, features}, at::kFloat);
  data.labels = at::empty({records}, at::kLong);
  auto* const inputs = data.inputs.mutable_data_ptr<float>();
  auto* const labels = data.labels.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < records * features; ++i) inputs[i] = normal(random);
  for (std::int64_t i = 0; i < records; ++i) {
    labels[i] = inputs[i * features] + 0.3F * normal(random) > 0 ? 1 : 0;
  }
  return data;
}

Dataset FirstRecords(Dataset data, std::int64_t records) {
  data.inputs = data.inputs.narrow(0, 0, records);
  data.labels = data.labels.narrow(0, 0, records);
  return data;
}

PlanOptions FullBatch(std::int64_t records, std::int64_t steps) {
  PlanOptions options;
  options.sampling = "full";
  options.records = records;
  options.steps = steps;
  return options;
}

Weights::Weights(std::int64_t size) : value(at::zeros({size}, at::kFloat)) {
  value.set_requires_grad(true);
}

LossFunction Weights::SquaredError() const {
  return [w = value](const Batch& batch) {
    return (at::matmul(batch[0], w) - batch[1].to(batch[0].scalar_type())).square();
  };
}

LossFunction Weights::Linear() const {
  return [w = value](const Batch& batch) { return at::matmul(batch[0], w); };
}

LossFunction Weights::NoGradient() const {
  return [w = value](const Batch& batch) {
    const at::Tensor nothing = at::zeros({1, 1}, w.options().requires_grad(false));
    return at::matmul(nothing.expand({batch[0].size(0), w.size(0)}), w);
  };
}

double Weights::MeanSquaredError(const Dataset& data) const {
  return (at::matmul(data.inputs, value.detach()) - data.labels.to(at::kFloat))
      .square()
      .mean()
      .item<double>();
}

void WritePoints(const std::filesystem::path& file, int count) {
  std::ofstream out(file);
  out << "x,y,above\n";
  double x = 0.1;
  double y = 0.7;
  for (int i = 0; i < count; ++i) {
    x = std::fmod(x + 0.6180339887, 1);
    y = std::fmod(y + 0.7548776662, 1);
    out << x << ',' << y << ',' << (y > x ? "yes" : "no") << '\n';
  }
}

}  // namespace sordino
