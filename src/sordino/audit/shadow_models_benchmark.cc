// Shadow models of cnn-mnist, 64 at once beside one after the other: the whole of TrainShadows,
// 50 steps each with batches of 64 of 320 made-up digits.
#include "sordino/audit/shadow_models.h"

#include <ATen/Functions.h>
#include <benchmark/benchmark.h>

namespace sordino {
namespace {

void Shadows(benchmark::State& state) {
  Dataset data;
  data.declaration.name = "made up";
  data.declaration.kind = InputKind::kImage;
  data.declaration.shape = {1, 28, 28};
  data.declaration.classes = 10;
  data.declaration.records = 640;
  at::manual_seed(1);
  data.inputs = at::randint(256, {640, 1, 28, 28}, at::TensorOptions().dtype(at::kByte));
  data.labels = at::randint(10, {640}, at::kLong);
  TrainedRun run;
  run.config.data.source = "made up";
  run.config.model.name = "cnn-mnist";
  run.config.privacy.delta = 1e-5;
  run.config.run.non_private = true;
  run.config.training.batch = 128;  // a fifth of the records: 64 of each half
  run.config.training.steps = 50;
  run.data = data.declaration;
  run.config = Completed(run.config, run.data);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        TrainShadows(run, data, {.shadows = 64, .seed = 1, .stacked = state.range(0) != 0}));
  }
}
BENCHMARK(Shadows)->ArgName("stacked")->Arg(0)->Arg(1)->Unit(benchmark::kSecond)->UseRealTime();

}  // namespace
}  // namespace sordino
