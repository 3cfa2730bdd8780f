// Raw keystream and noise beside the standard library, one core, one run:
//   openssl speed -evp aes-256-ctr -bytes 16384; build/release/bin/random_benchmark
// The first benchmark below does with OpenSSL what `openssl speed` does.
#include <benchmark/benchmark.h>
#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "sordino/random/bernoulli.h"
#include "sordino/random/discrete_gaussian.h"
#include "sordino/random/discrete_laplace.h"
#include "sordino/random/generator.h"
#include "sordino/random/grid_noise.h"

namespace sordino {
namespace {

constexpr std::size_t kCount = std::size_t{1} << 20;

void SetItems(benchmark::State& state, std::size_t count) {
  state.SetItemsProcessed(static_cast<std::int64_t>(count) * state.iterations());
}

void OpensslAesCtrInPlace(benchmark::State& state) {
  std::vector<unsigned char> buffer(16384);
  const std::array<unsigned char, 32> key{1};
  const std::array<unsigned char, 16> counter{};
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  EVP_EncryptInit_ex(context, EVP_aes_256_ctr(), nullptr, key.data(), counter.data());
  for (auto _ : state) {
    int written = 0;
    EVP_EncryptUpdate(context, buffer.data(), &written, buffer.data(),
                      static_cast<int>(buffer.size()));
    benchmark::DoNotOptimize(buffer.data());
  }
  EVP_CIPHER_CTX_free(context);
  state.SetBytesProcessed(static_cast<std::int64_t>(buffer.size()) * state.iterations());
}
BENCHMARK(OpensslAesCtrInPlace);

void SecureGeneratorFill(benchmark::State& state) {
  SecureGenerator generator;
  std::vector<std::byte> buffer(state.range(0));
  for (auto _ : state) {
    generator.Fill(buffer);
    benchmark::DoNotOptimize(buffer.data());
  }
  state.SetBytesProcessed(state.range(0) * state.iterations());
}
BENCHMARK(SecureGeneratorFill)->Arg(256)->Arg(4096)->Arg(16384)->Arg(1 << 20);

void SecureGeneratorNext64(benchmark::State& state) {
  SecureGenerator generator;
  for (auto _ : state) benchmark::DoNotOptimize(generator.Next64());
  SetItems(state, 1);
}
BENCHMARK(SecureGeneratorNext64);

void SubStream(benchmark::State& state) {
  SecureGenerator generator;
  StreamKey key;
  for (auto _ : state) {
    ++key.step;
    SecureGenerator stream = generator.SubStream(key);
    benchmark::DoNotOptimize(&stream);
  }
  SetItems(state, 1);
}
BENCHMARK(SubStream);

template <typename Value>
void StdNormal(benchmark::State& state) {
  std::mt19937_64 random(1);
  std::normal_distribution<Value> normal;
  std::vector<Value> buffer(kCount);
  for (auto _ : state) {
    for (Value& value : buffer) value = normal(random);
    benchmark::DoNotOptimize(buffer.data());
  }
  SetItems(state, kCount);
}
BENCHMARK_TEMPLATE(StdNormal, float);
BENCHMARK_TEMPLATE(StdNormal, double);

template <typename Noise, typename Value>
void GridFill(benchmark::State& state) {
  SecureGenerator generator;
  const Noise noise(1.5, GridPrecision::kFloat);
  std::vector<Value> buffer(kCount);
  for (auto _ : state) {
    noise.Fill(generator, std::span<Value>(buffer));
    benchmark::DoNotOptimize(buffer.data());
  }
  SetItems(state, kCount);
}
BENCHMARK_TEMPLATE(GridFill, GridGaussian, float);
BENCHMARK_TEMPLATE(GridFill, GridGaussian, double);
BENCHMARK_TEMPLATE(GridFill, GridLaplace, float);

template <typename Noise>
void DiscreteFill(benchmark::State& state) {
  SecureGenerator generator;
  const Noise noise(static_cast<double>(state.range(0)));
  std::vector<std::int64_t> buffer(kCount);
  for (auto _ : state) {
    noise.Fill(generator, buffer);
    benchmark::DoNotOptimize(buffer.data());
  }
  SetItems(state, kCount);
}
BENCHMARK_TEMPLATE(DiscreteFill, DiscreteGaussian)->Arg(1)->Arg(300)->Arg(std::int64_t{1} << 40);
BENCHMARK_TEMPLATE(DiscreteFill, DiscreteLaplace)->Arg(1)->Arg(300)->Arg(std::int64_t{1} << 40);

void DiscreteGaussianSingle(benchmark::State& state) {
  SecureGenerator generator;
  const DiscreteGaussian noise(300);
  for (auto _ : state) benchmark::DoNotOptimize(noise(generator));
  SetItems(state, 1);
}
BENCHMARK(DiscreteGaussianSingle);

void DiscreteGaussianTable(benchmark::State& state) {
  for (auto _ : state) {
    DiscreteGaussian noise(300);
    benchmark::DoNotOptimize(&noise);
  }
  SetItems(state, 1);
}
BENCHMARK(DiscreteGaussianTable);

void StdBernoulli(benchmark::State& state) {
  std::mt19937_64 random(1);
  std::bernoulli_distribution coin(0.01);
  std::vector<std::uint64_t> selected;
  for (auto _ : state) {
    selected.clear();
    for (std::uint64_t i = 0; i < kCount; ++i) {
      if (coin(random)) selected.push_back(i);
    }
    benchmark::DoNotOptimize(selected.data());
  }
  SetItems(state, kCount);
}
BENCHMARK(StdBernoulli);

void PoissonSampleOnePercent(benchmark::State& state) {
  SecureGenerator generator;
  std::vector<std::uint64_t> selected;
  for (auto _ : state) {
    selected.clear();
    PoissonSample(generator, SamplingRate(0.01), kCount, selected);
    benchmark::DoNotOptimize(selected.data());
  }
  SetItems(state, kCount);
}
BENCHMARK(PoissonSampleOnePercent);

}  // namespace
}  // namespace sordino
