// How long the accountants think about the questions that bench/README.md lists, in process.
//
//   accounting_benchmark
//
// `relative_width` is (upper - lower) / upper of the certified interval. Each question stands
// beside its Renyi bound alone, the standard answer. Whole processes are timed by
// bench/accounting_figures.
#include <benchmark/benchmark.h>

#include <cmath>
#include <utility>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/calibration.h"
#include "sordino/accounting/event.h"
#include "sordino/accounting/renyi.h"

namespace sordino {
namespace {

Event Sampled(double rate, double noise, std::uint64_t steps) {
  return Event::Repeat(Event::Poisson(SamplingRate(rate), Event::Gaussian(NoiseMultiplier(noise))),
                       steps);
}

// 10,000 steps whose sigma falls from 2 to 1, no two alike.
Event Schedule() {
  constexpr int kSteps = 10000;
  std::vector<std::pair<Event, std::uint64_t>> steps;
  steps.reserve(kSteps);
  for (int i = 0; i < kSteps; ++i) {
    steps.emplace_back(Sampled(0.01, 2.0 - static_cast<double>(i) / kSteps, 1), 1);
  }
  return Event::Compose(steps);
}

void Certify(benchmark::State& state, const Event& event, double delta) {
  Interval epsilon;
  for (auto _ : state) {
    epsilon = CertifiedEpsilon(event, std::log(delta)).value;
    benchmark::DoNotOptimize(epsilon);
  }
  state.counters["epsilon"] = epsilon.upper;
  state.counters["relative_width"] = (epsilon.upper - epsilon.lower) / epsilon.upper;
}

void Renyi(benchmark::State& state, const Event& event, double delta) {
  double epsilon = 0;
  for (auto _ : state) {
    RenyiCurve curve(event);
    epsilon = curve.ToEpsilon(std::log(delta)).epsilon;
    benchmark::DoNotOptimize(epsilon);
  }
  state.counters["epsilon"] = epsilon;
}

void Everything(benchmark::State& state, const Event& event, double delta) {
  for (auto _ : state) benchmark::DoNotOptimize(Account(event, Delta(delta)));
}

void Calibrate(benchmark::State& state) {
  for (auto _ : state) {
    const auto calibrated =
        CalibrateNoise([](NoiseMultiplier noise) { return Sampled(0.01, noise.value(), 10000); },
                       Epsilon(1), Delta(1e-5));
    state.counters["noise"] = calibrated->noise.value();
  }
}

void CertifySchedule(benchmark::State& state) { Certify(state, Schedule(), 1e-6); }
void RenyiSchedule(benchmark::State& state) { Renyi(state, Schedule(), 1e-6); }

BENCHMARK_CAPTURE(Certify, rate_1e2_sigma_1_steps_1e4, Sampled(0.01, 1, 10000), 1e-6)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Renyi, rate_1e2_sigma_1_steps_1e4, Sampled(0.01, 1, 10000), 1e-6)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Everything, rate_1e2_sigma_1_steps_1e4, Sampled(0.01, 1, 10000), 1e-6)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Certify, rate_1e3_sigma_1_steps_1e6, Sampled(0.001, 1, 1000000), 1e-6)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Renyi, rate_1e3_sigma_1_steps_1e6, Sampled(0.001, 1, 1000000), 1e-6)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Certify, rate_33e5_sigma_4_tiny_delta, Sampled(0.00033, 4, 10000), 1.1e-18)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Renyi, rate_33e5_sigma_4_tiny_delta, Sampled(0.00033, 4, 10000), 1.1e-18)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(Calibrate)->Unit(benchmark::kMillisecond);
BENCHMARK(CertifySchedule)->Unit(benchmark::kMillisecond);
BENCHMARK(RenyiSchedule)->Unit(benchmark::kMillisecond)->Iterations(1);
// The grid's part: few steps, and losses without a density.
BENCHMARK_CAPTURE(Certify, grid_three_steps, Sampled(0.2, 0.5, 3), 1e-5)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Certify, grid_laplace_1000,
                  Event::Repeat(Event::Laplace(NoiseMultiplier(20)), 1000), 1e-6)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sordino
