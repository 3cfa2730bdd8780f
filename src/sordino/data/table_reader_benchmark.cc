// A table of a million rows and 50 numeric columns from CSV to packed float32 features, beside a
// plain read of the same file:
//   build/release/bin/table_reader_benchmark
// extra_memory is what the peak of the process grew by while the table was read, over the bytes of
// the features.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sordino/base/testing/test_folder.h"
#include "sordino/data/table_reader.h"
#include "sordino/tables/byte_source.h"

namespace sordino {
namespace {

constexpr std::int64_t kRows = 1'000'000;
constexpr int kColumns = 50;

double PeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

// Made once, by the first benchmark.
const std::filesystem::path& WideTable() {
  static const TestFolder folder;
  static const std::filesystem::path file = [] {
    std::filesystem::path path = folder / "wide.csv";
    std::ofstream out(path, std::ios::binary);
    for (int j = 0; j < kColumns; ++j) out << 'c' << j << ',';
    out << "label\n";
    std::uint64_t state = 1;
    for (std::int64_t i = 0; i < kRows; ++i) {
      std::string row;
      for (int j = 0; j < kColumns; ++j) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        fmt::format_to(std::back_inserter(row), "0.{:06},", (state >> 33U) % 1'000'000);
      }
      out << row << (state >> 63U) << '\n';
    }
    return path;
  }();
  return file;
}

void PlainRead(benchmark::State& state) {
  const std::string file = WideTable().string();
  std::vector<char> buffer(std::size_t{1} << 20);
  std::int64_t bytes = 0;
  for (auto _ : state) {
    const ByteSource source = OpenFile(file);
    while (const std::size_t got = source(buffer)) bytes += static_cast<std::int64_t>(got);
    benchmark::DoNotOptimize(buffer.data());
  }
  state.SetBytesProcessed(bytes);
}
BENCHMARK(PlainRead)->Unit(benchmark::kMillisecond);

void TableToFeatures(benchmark::State& state) {
  TableOptions options;
  std::vector<std::string> columns = {"label:label:0|1"};
  for (int j = 0; j < kColumns; ++j) columns.push_back(fmt::format("c{}:numeric:0:1", j));
  options.columns = ParseColumns(columns);
  DatasetDeclaration declaration;
  declaration.name = "wide";
  DeclareColumns(options.columns, declaration);
  const std::filesystem::path& file = WideTable();
  const double before = PeakBytes();
  double features = 1;
  for (auto _ : state) {
    const Dataset data = ReadTable(file, declaration, options);
    features = static_cast<double>(data.inputs.nbytes());
    benchmark::DoNotOptimize(data.inputs.data_ptr());
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(std::filesystem::file_size(file)));
  state.counters["extra_memory"] = (PeakBytes() - before) / features;
}
BENCHMARK(TableToFeatures)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sordino
