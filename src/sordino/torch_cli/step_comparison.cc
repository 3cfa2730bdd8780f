#include "sordino/torch_cli/step_comparison.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/device/precision.h"
#include "sordino/device/recorded_graph.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/optimizers/optimizer.h"
#include "sordino/random/random_source.h"
#include "sordino/torch_cli/peak_memory.h"
#include "sordino/training/noised_update.h"

namespace sordino {
namespace {

constexpr std::uint64_t kBatchSeed = 1;
constexpr double kBytesPerMegabyte = 1e6;
constexpr std::int64_t kPairs = 5;
constexpr std::int64_t kSlowPairs = 3;
constexpr double kSlow = 10;         // of --seconds
constexpr double kWarmUpPart = 0.1;  // of --seconds
constexpr int kDeviceSteps = 10;     // between two readings of the clock
constexpr int kStepsOfMemory = 3;    // a large batch is recorded in the third step
constexpr double kRate = 1e-3;
constexpr std::int64_t kManySteps = std::int64_t{1} << 40;

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<NamedParameter> Parameters(const BenchmarkModel& model) {
  std::vector<NamedParameter> parameters;
  parameters.reserve(model.parameters.size());
  for (const auto& [name, value] : model.parameters) parameters.push_back({name, value});
  return parameters;
}

std::vector<at::Tensor> Values(const std::vector<NamedParameter>& parameters) {
  std::vector<at::Tensor> values;
  values.reserve(parameters.size());
  for (const NamedParameter& parameter : parameters) values.push_back(parameter.value);
  return values;
}

// Both kinds of step on one model and one batch.
// Noise with so many bands. What a step costs does not depend on their coefficients.
NoiseMemory MemoryOfBands(std::int64_t bands) {
  if (bands == 1) return {};
  const auto earlier = static_cast<std::size_t>(bands - 1);
  return {.kind = MemoryKind::kNoise,
          .factors = std::vector<double>(earlier, -0.5 / static_cast<double>(earlier))};
}

class StepPair {
 public:
  StepPair(const BenchmarkModel& model, std::int64_t examples, at::Device device,
           const ComparisonOptions& options)
      : model_(model),
        batch_(model.make_batch(examples, kBatchSeed)),
        device_(device),
        comparison_(options),
        parameters_(Parameters(model)),
        values_(Values(parameters_)) {
    options_.norms = options.norms;
    options_.graph = options.graph;
    // As a plan would declare it: a Poisson batch of this mean is hardly ever twice as large.
    sum_options_.largest_batch = 2 * examples;
    ResetGradients();
  }

  void Ordinary() {
    ResetGradients();
    OrdinaryLoss().backward();
    if (!comparison_.whole) return;
    std::vector<at::Tensor> gradients;
    gradients.reserve(values_.size());
    for (const at::Tensor& value : values_) gradients.push_back(value.grad());
    Update(gradients);
  }

  void RecordedOrdinary() {
    if (!graph_) {
      ResetGradients();
      graph_ = RecordGraph(device_, [this] {
        gradients_ = torch::autograd::grad({OrdinaryLoss()}, values_);
        if (comparison_.whole) Update(gradients_);
      });
    }
    graph_->Replay();
  }

  void Private() {
    if (!clipper_) clipper_.emplace(parameters_, options_, sum_options_);
    sum_.reset();
    sum_.emplace(clipper_->ClippedSum(model_.losses, batch_, policy_));
    if (!comparison_.whole) return;
    if (!optimizer_) {
      optimizer_.emplace(parameters_, OptimizerOptions{.learning_rate = kRate}, kManySteps);
      update_.emplace(noise_, *optimizer_);
    }
    const StepNoise noise{.multiplier = NoiseMultiplier(1),
                          .divisor = static_cast<double>(Examples(batch_)),
                          .step = steps_++};
    update_->Step(*sum_, noise);
  }

  void ResetGradients() {
    for (const auto& [name, value] : model_.parameters) value.mutable_grad().reset();
  }

  bool PrivateIsRecorded() const { return GraphStatus() == "recorded"; }
  std::string GraphStatus() const { return clipper_ ? clipper_->GraphStatus() : "off"; }

  int StepsPerReading() const { return device_.is_cpu() ? 1 : kDeviceSteps; }

  // Of one step.
  template <typename Step>
  double Milliseconds(Step step, int steps) {
    Synchronise();
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < steps; ++i) (this->*step)();
    Synchronise();
    return 1e3 * SecondsSince(start) / steps;
  }

 private:
  at::Tensor OrdinaryLoss() const {
    const OrdinaryPrecision precision(device_);
    return model_.losses(batch_).mean();
  }

  void Update(const std::vector<at::Tensor>& gradients) const {
    const at::NoGradGuard no_grad;
    at::_foreach_add_(values_, gradients, -kRate);
  }

  void Synchronise() const {
    if (!device_.is_cpu()) at::accelerator::synchronizeDevice(device_.index());
  }

  const BenchmarkModel& model_;
  const Batch batch_;
  const at::Device device_;
  const ComparisonOptions& comparison_;
  const std::vector<NamedParameter> parameters_;
  const std::vector<at::Tensor> values_;
  const FlatClipping policy_{ClipNorm(1.0)};
  GradientOptions options_;
  SumOptions sum_options_;
  std::optional<Clipper> clipper_;
  std::optional<BoundedSum> sum_;
  std::optional<Optimizer> optimizer_;
  RandomSource random_;
  NoiseProcess noise_{MemoryOfBands(comparison_.bands), random_};
  std::optional<NoisedUpdate> update_;
  std::int64_t steps_ = 0;
  std::vector<at::Tensor> gradients_;
  std::unique_ptr<RecordedGraph> graph_;
};

// The memory of the first step is not measured: it builds what is kept from then on, and the first
// private one also looks for the owners of rows and checks itself; its time is. A step that is
// recorded has its memory while that is done, and keeps it.
void MeasureMemory(StepPair& steps, at::Device device, StepComparison& result) {
  PeakMemory memory(device);
  double first = 0;
  const auto later_steps = [&](auto step) {
    first = steps.Milliseconds(step, /*steps=*/1);
    memory.Restart();
    for (int i = 0; i < kStepsOfMemory; ++i) (steps.*step)();
    return static_cast<double>(memory.Peak()) / kBytesPerMegabyte;
  };
  result.ordinary_step.megabytes = later_steps(&StepPair::Ordinary);
  steps.ResetGradients();
  memory.SetBaseline();
  result.private_step.megabytes = later_steps(&StepPair::Private);
  result.first_milliseconds = first;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

}  // namespace

StepComparison CompareSteps(const BenchmarkModel& model, std::int64_t examples, at::Device device,
                            const ComparisonOptions& options) {
  StepPair steps(model, examples, device, options);
  StepComparison result;
  MeasureMemory(steps, device, result);
  result.graph = steps.GraphStatus();
  const bool recorded = steps.PrivateIsRecorded();

  std::vector<double> eager_steps;
  std::vector<double> ordinary_steps;
  std::vector<double> private_steps;
  const int count = steps.StepsPerReading();
  const auto pair = [&] {
    if (recorded) {
      eager_steps.push_back(steps.Milliseconds(&StepPair::Ordinary, count));
      ordinary_steps.push_back(steps.Milliseconds(&StepPair::RecordedOrdinary, count));
    } else {
      ordinary_steps.push_back(steps.Milliseconds(&StepPair::Ordinary, count));
    }
    private_steps.push_back(steps.Milliseconds(&StepPair::Private, count));
  };
  const Clock::time_point warm_up = Clock::now();
  do pair();
  while (SecondsSince(warm_up) < kWarmUpPart * options.seconds);
  eager_steps.clear();
  ordinary_steps.clear();
  private_steps.clear();

  const Clock::time_point start = Clock::now();
  const auto enough = [&] {
    const double seconds = SecondsSince(start);
    return (result.pairs >= kPairs && seconds >= options.seconds) ||
           (result.pairs >= kSlowPairs && seconds >= kSlow * options.seconds);
  };
  for (; !enough(); ++result.pairs) pair();
  if (recorded) result.eager_milliseconds = Median(std::move(eager_steps));
  result.ordinary_step.milliseconds = Median(std::move(ordinary_steps));
  result.private_step.milliseconds = Median(std::move(private_steps));
  return result;
}

}  // namespace sordino
