// How fast a CSV file becomes private statistics, beside what merely touches its bytes.
//
//   release_benchmark
//
// The table is made once: rows of id, age, income, city, user of about 32 bytes, 64 MiB in
// memory for the first benchmarks and a temporary file of 1 GiB (SORDINO_BENCHMARK_MIB overrides)
// for those that read a file. bytes_per_second is the figure.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/base/testing/test_folder.h"
#include "sordino/mechanisms/table_release.h"
#include "sordino/random/generator.h"
#include "sordino/tables/csv_reader.h"

namespace sordino {
namespace {

constexpr std::size_t kMemoryBytes = std::size_t{64} << 20;

std::string MakeTable() {
  std::mt19937_64 random(1);
  const char* cities[] = {"rome", "paris", "oslo"};
  std::string text = "id,age,income,city,user\n";
  std::uint64_t id = 0;
  while (text.size() < kMemoryBytes) {
    fmt::format_to(std::back_inserter(text), "{},{:.1f},{:.2f},{},u{}\n", id++,
                   static_cast<double>(random() % 1200) / 10,
                   static_cast<double>(random() % 10'000'000) / 100, cities[random() % 3],
                   random() % 50'000);
  }
  return text;
}

const std::string& Table() {
  static const std::string table = MakeTable();
  return table;
}

// A file that repeats the table until it has the size, header once.
class TemporaryFile {
 public:
  TemporaryFile() {
    const char* given = std::getenv("SORDINO_BENCHMARK_MIB");
    const std::uint64_t size = (given != nullptr ? std::stoull(given) : 1024) << 20;
    std::ofstream out(path_, std::ios::binary);
    const std::string_view rows = std::string_view(Table()).substr(Table().find('\n') + 1);
    out << std::string_view(Table()).substr(0, Table().find('\n') + 1);
    for (std::uint64_t written = 0; written < size; written += rows.size()) out << rows;
  }
  const std::string& path() const { return path_; }

 private:
  const TestFolder folder_;
  const std::string path_ = (folder_ / "table.csv").string();
};

const std::string& FilePath() {
  static const TemporaryFile file;
  return file.path();
}

TableRequest MeanOnly() {
  TableRequest request;
  request.statistics = {{TableStatistic::kMean, "age", 0.5, {}}};
  request.bounds.emplace("age", Bounds(0, 120));
  request.epsilon = 0.5;
  return request;
}

TableRequest SixStatistics() {
  TableRequest request = MeanOnly();
  request.statistics.push_back({TableStatistic::kCount, "", 0.5, {}});
  request.statistics.push_back({TableStatistic::kSum, "income", 0.5, {}});
  request.statistics.push_back({TableStatistic::kVariance, "income", 0.5, {}});
  request.statistics.push_back({TableStatistic::kQuantile, "age", 0.5, {}});
  request.statistics.push_back({TableStatistic::kHistogram, "city", 0.5, {}});
  request.bounds.emplace("income", Bounds(0, 1e6));
  request.bins["city"].categories = {"rome", "paris", "oslo"};
  return request;
}

void Release(benchmark::State& state, const TableRequest& request, bool file) {
  SecureGenerator generator;
  std::uint64_t bytes = 0;
  if (file) {
    FilePath();
  } else {
    Table();
  }
  for (auto _ : state) {
    TableRelease release(request);
    CsvReader reader(file ? OpenFile(FilePath()) : FromText(Table()));
    TableResult result = ReleaseCsv(reader, release, generator, [](std::uint64_t) { return true; });
    benchmark::DoNotOptimize(result.releases.front().release.values.front());
    bytes += reader.bytes();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
}

void ReleaseMeanOfFile(benchmark::State& state) { Release(state, MeanOnly(), true); }
void ReleaseSixStatisticsOfFile(benchmark::State& state) { Release(state, SixStatistics(), true); }
void ReleaseMeanOfMemory(benchmark::State& state) { Release(state, MeanOnly(), false); }

void ReleaseMeanPerUserOfMemory(benchmark::State& state) {
  TableRequest request = MeanOnly();
  request.user_column = "user";
  request.rows_per_user = 5;
  Release(state, request, false);
}

// The floor of any program that looks at every byte: lines counted with memchr.
void BaselineScanFile(benchmark::State& state) {
  std::vector<char> block(std::size_t{1} << 20);
  std::uint64_t bytes = 0;
  for (auto _ : state) {
    const int file = ::open(FilePath().c_str(), O_RDONLY);
    std::uint64_t lines = 0;
    ssize_t got = 0;
    while ((got = ::read(file, block.data(), block.size())) > 0) {
      const char* at = block.data();
      const char* const end = at + got;
      while (const void* found = std::memchr(at, '\n', static_cast<std::size_t>(end - at))) {
        at = static_cast<const char*>(found) + 1;
        ++lines;
      }
      bytes += static_cast<std::uint64_t>(got);
    }
    ::close(file);
    benchmark::DoNotOptimize(lines);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}

// What most programs do: std::getline and strtod on the second field, without any privacy.
void BaselineGetlineMeanOfFile(benchmark::State& state) {
  std::uint64_t bytes = 0;
  for (auto _ : state) {
    std::ifstream in(FilePath());
    std::string line;
    std::getline(in, line);
    double sum = 0;
    while (std::getline(in, line)) {
      bytes += line.size() + 1;
      const std::size_t comma = line.find(',');
      sum += std::strtod(line.c_str() + comma + 1, nullptr);
    }
    benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}

BENCHMARK(ReleaseMeanOfMemory)->Unit(benchmark::kMillisecond);
BENCHMARK(ReleaseMeanPerUserOfMemory)->Unit(benchmark::kMillisecond);
BENCHMARK(ReleaseMeanOfFile)->Unit(benchmark::kMillisecond);
BENCHMARK(ReleaseSixStatisticsOfFile)->Unit(benchmark::kMillisecond);
BENCHMARK(BaselineScanFile)->Unit(benchmark::kMillisecond);
BENCHMARK(BaselineGetlineMeanOfFile)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sordino
