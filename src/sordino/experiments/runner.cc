#include "sordino/experiments/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <iostream>
#include <list>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/base/shallow_json.h"
#include "sordino/base/stop.h"
#include "sordino/experiments/internal/cell_process.h"

namespace sordino {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(10);
constexpr std::size_t kMaxSentence = 500;

std::string LastLine(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \n\r");
  if (end == std::string::npos) return "";
  const std::size_t begin = text.find_last_of('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

// What a command that failed said, or how it ended where it said nothing.
std::string FailureOf(const ResultsFolder& folder, const Cell& cell, int code) {
  const std::string output = ReadSmallFile(folder.OutputOf(cell), kMaxOutputBytes).value_or("");
  const auto json = nlohmann::json::parse(output, kShallowJson, false);
  std::string sentence;
  if (json.is_object() && json.contains("error") && json["error"].is_object() &&
      json["error"].contains("message") && json["error"]["message"].is_string()) {
    sentence = json["error"]["message"].get<std::string>();
  }
  if (sentence.empty()) {
    sentence = LastLine(ReadSmallFile(folder.MessagesOf(cell), kMaxOutputBytes).value_or(""));
  }
  return fmt::format("exit code {}: {}", code,
                     sentence.empty() ? "it said nothing." : sentence.substr(0, kMaxSentence));
}

// What was measured of a cell that has finished.
std::vector<MeasuredValue> ValuesOf(const Experiment& experiment, const ResultsFolder& folder,
                                    const Cell& cell) {
  Part part = MeasuredPart(experiment.parts[cell.part], cell);
  if (!part.reads.empty()) part.command = experiment.FindPart(part.reads)->command;
  return ReadMeasures(part, ReadSmallFile(folder.OutputOf(cell), kMaxOutputBytes).value_or(""),
                      folder.RunOf(cell));
}

class CellPool {
 public:
  CellPool(const Experiment& experiment, const ResultsFolder& folder, const RunRequest& request,
           std::vector<CellResult>& results)
      : experiment_(experiment),
        folder_(folder),
        request_(request),
        results_(results),
        has_ended_(results.size(), true) {
    const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
    // Processes beside each other share the cores.
    if (request.jobs > 1) threads_ = std::max(1, static_cast<int>(cores) / request.jobs);
  }

  // The results that are to be made, in their order.
  void Run(std::deque<std::size_t> waiting) {
    const StopGuard guard;
    Progress progress(experiment_.name, waiting.size(), std::cerr, request_.progress);
    std::uint64_t done = 0;
    for (const std::size_t result : waiting) has_ended_[result] = false;
    while (!waiting.empty() || !running_.empty()) {
      if (StopGuard::Requested()) Stop();
      done += StartReady(waiting);
      std::this_thread::sleep_for(kPollInterval);
      done += Collect();
      progress.Update(done, failed_ == 0 ? "" : fmt::format("{} failed", failed_));
    }
  }

 private:
  struct Running {
    std::size_t result;
    internal::CellProcess process;
  };

  // Starts cells that need no other, as long as there is room for them. Returns how many ended
  // without being started, because one that they need has failed.
  std::uint64_t StartReady(std::deque<std::size_t>& waiting) {
    std::uint64_t ended = 0;
    for (auto it = waiting.begin(); it != waiting.end();) {
      if (running_.size() >= static_cast<std::size_t>(request_.jobs)) break;
      CellResult& result = results_[*it];
      const std::vector<std::size_t>& needs = result.cell.needs;
      if (std::any_of(needs.begin(), needs.end(), [&](std::size_t n) { return !has_ended_[n]; })) {
        ++it;
        continue;
      }
      if (std::any_of(needs.begin(), needs.end(),
                      [&](std::size_t n) { return !results_[n].failure.empty(); })) {
        result.failure = "not run: a cell whose files it needs has failed.";
        has_ended_[*it] = true;
        ++failed_;
        ++ended;
      } else {
        Start(*it);
      }
      it = waiting.erase(it);
    }
    return ended;
  }

  void Start(std::size_t result) {
    const Cell& cell = results_[result].cell;
    folder_.Begin(cell);
    if (cell.table) WriteDrawnTable(folder_.Tables(), *cell.table);
    running_.push_back({result, internal::CellProcess({.program = request_.program,
                                                       .words = WordsOf(cell),
                                                       .output = folder_.OutputOf(cell),
                                                       .messages = folder_.MessagesOf(cell),
                                                       .threads = threads_})});
  }

  std::vector<std::string> WordsOf(const Cell& cell) const {
    return PlacedWords(
        cell, {.run = folder_.RunOf(cell), .tables = folder_.Tables(), .data = request_.data});
  }

  // How many have ended.
  std::uint64_t Collect() {
    std::uint64_t ended = 0;
    for (auto it = running_.begin(); it != running_.end();) {
      const std::optional<internal::ProcessEnd> end = it->process.Poll();
      if (!end) {
        ++it;
        continue;
      }
      const std::size_t result = it->result;
      it = running_.erase(it);
      has_ended_[result] = true;
      Take(results_[result], *end);
      ++ended;
    }
    return ended;
  }

  void Take(CellResult& result, const internal::ProcessEnd& end) {
    if (StopGuard::Requested()) return;  // it was asked to stop, too
    result.finished = {end.seconds, end.memory_mb};
    if (end.code != 0) {
      result.failure = FailureOf(folder_, result.cell, end.code);
      ++failed_;
      return;
    }
    folder_.Finish(result.cell, result.finished);
    result.values = ValuesOf(experiment_, folder_, result.cell);
  }

  [[noreturn]] void Stop() {
    for (const Running& running : running_) running.process.Signal(StopGuard::Signal());
    while (!running_.empty()) {
      std::this_thread::sleep_for(kPollInterval);
      Collect();
    }
    throw Stopped(fmt::format(
        "stopped; finished cells are kept in '{}', and the same command continues with the others.",
        folder_.path().string()));
  }

  const Experiment& experiment_;
  const ResultsFolder& folder_;
  const RunRequest& request_;
  std::vector<CellResult>& results_;
  std::vector<bool> has_ended_;  // of each result
  std::list<Running> running_;
  int threads_ = 0;
  std::uint64_t failed_ = 0;
};

}  // namespace

std::vector<CellResult> RunCells(const Experiment& experiment, const std::vector<Cell>& cells,
                                 const ResultsFolder& folder, const RunRequest& request) {
  std::vector<CellResult> results;
  std::deque<std::size_t> waiting;
  std::vector<bool> is_waiting;
  for (const Cell& cell : cells) {
    CellResult result{
        .cell = cell, .failure = "", .finished = {}, .values = {}, .folder = folder.Of(cell)};
    // Before anything runs: what cannot be placed is told at once.
    PlacedWords(cell, {.run = folder.RunOf(cell), .tables = folder.Tables(), .data = request.data});
    // A cell that read the files of another one is kept with them alone.
    bool waits = std::any_of(cell.needs.begin(), cell.needs.end(),
                             [&](std::size_t needed) { return is_waiting[needed]; });
    if (!cell.reads && !waits) {
      const std::optional<FinishedCell> finished = folder.Find(cell);
      waits = !finished;
      if (finished) {
        result.finished = *finished;
        result.values = ValuesOf(experiment, folder, cell);
      }
    }
    if (waits) waiting.push_back(results.size());
    is_waiting.push_back(waits);
    results.push_back(std::move(result));
  }
  CellPool(experiment, folder, request, results).Run(std::move(waiting));
  for (CellResult& result : results) {
    if (!result.cell.reads) continue;
    result.failure = results[*result.cell.reads].failure;
    if (result.failure.empty()) result.values = ValuesOf(experiment, folder, result.cell);
  }
  return results;
}

int RunCommandIn(const ResultsFolder& folder, const std::filesystem::path& program,
                 const std::vector<std::string>& words, const std::string& name) {
  internal::CellProcess process({.program = program,
                                 .words = words,
                                 .output = folder.path() / (name + ".out"),
                                 .messages = folder.path() / (name + ".err")});
  for (;;) {
    if (const auto end = process.Poll()) return end->code;
    std::this_thread::sleep_for(kPollInterval);
  }
}

}  // namespace sordino
