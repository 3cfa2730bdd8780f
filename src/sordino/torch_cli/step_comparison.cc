#include "sordino/torch_cli/step_comparison.h"

#include <ATen/DeviceAccelerator.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/gradients/flat_clipping.h"
#include "sordino/torch_cli/peak_memory.h"

namespace sordino {
namespace {

constexpr std::uint64_t kBatchSeed = 1;
constexpr double kBytesPerMegabyte = 1e6;
constexpr std::int64_t kPairs = 5;
constexpr std::int64_t kSlowPairs = 3;
constexpr double kSlow = 10;         // of --seconds
constexpr double kWarmUpPart = 0.1;  // of --seconds

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<NamedParameter> Parameters(const BenchmarkModel& model) {
  std::vector<NamedParameter> parameters;
  for (const auto& [name, value] : model.parameters) parameters.push_back({name, value});
  return parameters;
}

// Both kinds of step on one model and one batch.
class StepPair {
 public:
  StepPair(const BenchmarkModel& model, std::int64_t examples, at::Device device, NormMethod norms)
      : model_(model), batch_(model.make_batch(examples, kBatchSeed)), device_(device) {
    options_.norms = norms;
    // As a plan would declare it: a Poisson batch of this mean is hardly ever twice as large.
    sum_options_.largest_batch = 2 * examples;
    ResetGradients();
  }

  void Ordinary() {
    ResetGradients();
    model_.losses(batch_).mean().backward();
  }

  void Private() {
    if (!clipper_) clipper_.emplace(Parameters(model_), options_, sum_options_);
    sum_.reset();
    sum_.emplace(clipper_->ClippedSum(model_.losses, batch_, policy_));
  }

  void ResetGradients() {
    for (const auto& [name, value] : model_.parameters) value.mutable_grad().reset();
  }

  template <typename Step>
  double Milliseconds(Step step) {
    Synchronise();
    const Clock::time_point start = Clock::now();
    (this->*step)();
    Synchronise();
    return 1e3 * SecondsSince(start);
  }

 private:
  void Synchronise() const {
    if (!device_.is_cpu()) at::accelerator::synchronizeDevice(device_.index());
  }

  const BenchmarkModel& model_;
  const Batch batch_;
  const at::Device device_;
  const FlatClipping policy_{ClipNorm(1.0)};
  GradientOptions options_;
  SumOptions sum_options_;
  std::optional<Clipper> clipper_;
  std::optional<BoundedSum> sum_;
};

// The second step of each kind is measured: the first one builds what is kept from then on, and
// the first private step also looks for the owners of rows and checks itself.
void MeasureMemory(StepPair& steps, at::Device device, StepComparison& result) {
  PeakMemory memory(device);
  const auto second_step = [&](auto step) {
    (steps.*step)();
    memory.Restart();
    (steps.*step)();
    return static_cast<double>(memory.Peak()) / kBytesPerMegabyte;
  };
  result.ordinary_step.megabytes = second_step(&StepPair::Ordinary);
  steps.ResetGradients();
  memory.SetBaseline();
  result.private_step.megabytes = second_step(&StepPair::Private);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

}  // namespace

StepComparison CompareSteps(const BenchmarkModel& model, std::int64_t examples, at::Device device,
                            const ComparisonOptions& options) {
  StepPair steps(model, examples, device, options.norms);
  StepComparison result;
  MeasureMemory(steps, device, result);

  std::vector<double> ordinary_steps;
  std::vector<double> private_steps;
  const auto pair = [&] {
    ordinary_steps.push_back(steps.Milliseconds(&StepPair::Ordinary));
    private_steps.push_back(steps.Milliseconds(&StepPair::Private));
  };
  const Clock::time_point warm_up = Clock::now();
  do pair();
  while (SecondsSince(warm_up) < kWarmUpPart * options.seconds);
  ordinary_steps.clear();
  private_steps.clear();

  const Clock::time_point start = Clock::now();
  const auto enough = [&] {
    const double seconds = SecondsSince(start);
    return (result.pairs >= kPairs && seconds >= options.seconds) ||
           (result.pairs >= kSlowPairs && seconds >= kSlow * options.seconds);
  };
  for (; !enough(); ++result.pairs) pair();
  result.ordinary_step.milliseconds = Median(std::move(ordinary_steps));
  result.private_step.milliseconds = Median(std::move(private_steps));
  return result;
}

}  // namespace sordino
