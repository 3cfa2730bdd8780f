#include "sordino/runs/checkpoint.h"

#include <ATen/Functions.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "sordino/base/durable_file.h"
#include "sordino/base/error.h"
#include "sordino/base/sha256.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/runs/run_folder.h"
#include "sordino/runs/testing/run_files.h"

// Calls of the operating system that fail when they are told to. The program's own definitions
// stand before those of the C library, also for what shared libraries call.
namespace {

struct Fault {
  std::atomic<int> until = -1;  // calls that still succeed; negative: all
  std::atomic<int> calls = 0;
  std::atomic<int> error = EIO;

  bool Strikes() {
    ++calls;
    return until >= 0 && until-- == 0;
  }
};

Fault sync_fault;
Fault write_fault;
Fault rename_fault;

// F: a file was synced, D: a folder was, R: something was renamed.
std::string order;

template <typename Function>
Function Real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int fsync(int descriptor) {
  static const auto real = Real<int (*)(int)>("fsync");
  if (sync_fault.Strikes()) {
    errno = sync_fault.error;
    return -1;
  }
  struct stat status {};
  order += fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode) ? 'D' : 'F';
  return real(descriptor);
}

extern "C" ssize_t write(int descriptor, const void* data, std::size_t size) {
  static const auto real = Real<ssize_t (*)(int, const void*, std::size_t)>("write");
  if (descriptor > 2 && write_fault.Strikes()) {
    errno = write_fault.error;
    return -1;
  }
  return real(descriptor, data, size);
}

extern "C" int rename(const char* from, const char* to) noexcept {
  static const auto real = Real<int (*)(const char*, const char*)>("rename");
  if (rename_fault.Strikes()) {
    errno = rename_fault.error;
    return -1;
  }
  order += 'R';
  return real(from, to);
}

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CheckpointTest : public ::testing::Test {
 protected:
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  static void Write(const fs::path& file, const std::string& content) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
  }

  const TestFolder root_;
  const fs::path folder_ = root_ / "checkpoints";
};

at::Tensor ValuesAt(std::int64_t step) { return at::full({300}, static_cast<double>(step)); }

Checkpoint At(std::int64_t step) {
  Checkpoint checkpoint;
  checkpoint.facts.step = step;
  checkpoint.facts.noise = 1.0 + 0x1p-52;
  checkpoint.facts.plan = "poisson(0.1, gaussian(1.5)) * 10";
  checkpoint.facts.ledger = "l\"1";
  checkpoint.facts.run = "r/2";
  checkpoint.facts.head = "00ff";
  checkpoint.facts.seconds = 0.1 * static_cast<double>(step);
  checkpoint.tensors = {{"parameter.w", ValuesAt(step)},
                        {"updates", at::scalar_tensor(step, at::kLong)}};
  return checkpoint;
}

void ExpectIs(const std::optional<Checkpoint>& seen, std::int64_t step) {
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->facts.step, step);
  ASSERT_EQ(seen->tensors.size(), 2U);
  EXPECT_TRUE(seen->tensors[0].second.equal(ValuesAt(step)));
  EXPECT_EQ(seen->tensors[1].second.item<std::int64_t>(), step);
}

TEST_F(CheckpointTest, ComesBackToTheLastBit) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 40; ++round) {
    Checkpoint written = At(round);
    // Any finite double that is not negative, subnormals and the largest too.
    const auto number = [&] {
      double value = 0;
      do {
        value = std::abs(std::bit_cast<double>(random()));
      } while (!std::isfinite(value));
      return value;
    };
    written.facts.noise = round == 0 ? std::numeric_limits<double>::denorm_min() : number();
    written.facts.seconds = round == 0 ? std::numeric_limits<double>::max() : number();
    const at::Tensor special = at::tensor({0.0, -0.0, std::nan(""), HUGE_VAL, 5e-324});
    written.tensors = {{"empty", at::empty({0, 3})}, {"double", special}};
    for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kByte}) {
      written.tensors.emplace_back(c10::toString(type), at::arange(7).to(type));
    }
    WriteCheckpoint(folder_, written);
    const auto read = ReadNewestCheckpoint(folder_);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->facts.step, written.facts.step);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(read->facts.noise),
              std::bit_cast<std::uint64_t>(written.facts.noise));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(read->facts.seconds),
              std::bit_cast<std::uint64_t>(written.facts.seconds));
    EXPECT_EQ(read->facts.plan, written.facts.plan);
    EXPECT_EQ(read->facts.ledger, written.facts.ledger);
    EXPECT_EQ(read->facts.run, written.facts.run);
    EXPECT_EQ(read->facts.head, written.facts.head);
    ASSERT_EQ(read->tensors.size(), written.tensors.size());
    for (std::size_t i = 0; i < read->tensors.size(); ++i) {
      EXPECT_EQ(read->tensors[i].first, written.tensors[i].first);
      const at::Tensor& seen = read->tensors[i].second;
      const at::Tensor& wanted = written.tensors[i].second;
      ASSERT_EQ(seen.scalar_type(), wanted.scalar_type());
      ASSERT_EQ(seen.sizes(), wanted.sizes());
      if (wanted.nbytes() == 0) continue;
      EXPECT_EQ(std::memcmp(seen.data_ptr(), wanted.data_ptr(), wanted.nbytes()), 0);
    }
  }
}

TEST_F(CheckpointTest, TheNewestTwoAreKeptAndNothingElse) {
  EXPECT_FALSE(ReadNewestCheckpoint(folder_).has_value());
  for (const std::int64_t step : {5, 10, 15, 1'234'567'890}) WriteCheckpoint(folder_, At(step));
  EXPECT_EQ(Names(), (std::set<std::string>{"step-000000015", "step-1234567890"}));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "step-000000015"), {}), 2);
  ExpectIs(ReadNewestCheckpoint(folder_), 1'234'567'890);
}

TEST_F(CheckpointTest, AStepThatIsThereIsReplaced) {
  WriteCheckpoint(folder_, At(5));
  WriteCheckpoint(folder_, At(7));
  Checkpoint other = At(7);
  other.facts.run = "another";
  WriteCheckpoint(folder_, other);
  EXPECT_EQ(Names(), (std::set<std::string>{"step-000000005", "step-000000007"}));
  EXPECT_EQ(ReadNewestCheckpoint(folder_)->facts.run, "another");
}

// One that was damaged and passed over may not push the whole ones out.
TEST_F(CheckpointTest, LaterOnesThatWereNotGoneOnWithAreRemoved) {
  for (const std::int64_t step : {5, 10}) WriteCheckpoint(folder_, At(step));
  Write(folder_ / "step-000000010" / "state.json", "{");
  ExpectIs(ReadNewestCheckpoint(folder_), 5);
  WriteCheckpoint(folder_, At(8));
  EXPECT_EQ(Names(), (std::set<std::string>{"step-000000005", "step-000000008"}));
}

TEST_F(CheckpointTest, WhatACrashLeftBesideIsNotReadAndIsRemoved) {
  fs::create_directories(folder_ / ".new-0123");
  Write(folder_ / ".new-0123" / "state.safetensors", "half");
  EXPECT_FALSE(ReadNewestCheckpoint(folder_).has_value());
  WriteCheckpoint(folder_, At(1));
  EXPECT_EQ(Names(), std::set<std::string>{"step-000000001"});
}

TEST_F(CheckpointTest, FilesOfOthersAreLeftAlone) {
  fs::create_directories(folder_ / "step-1");  // not a name that is written here
  for (const char* name : {"step-00000000x", "step-", "step--00000001", "notes.txt"}) {
    Write(folder_ / name, "x");
  }
  EXPECT_FALSE(ReadNewestCheckpoint(folder_).has_value());
  for (const std::int64_t step : {1, 2, 3}) WriteCheckpoint(folder_, At(step));
  EXPECT_EQ(Names().size(), 7U);
  RemoveCheckpoints(folder_);
  EXPECT_EQ(Names().size(), 5U);
}

TEST_F(CheckpointTest, RemovingLeavesNothing) {
  RemoveCheckpoints(folder_);
  for (const std::int64_t step : {1, 2}) WriteCheckpoint(folder_, At(step));
  fs::create_directories(folder_ / ".new-1" / "deep");
  RemoveCheckpoints(folder_);
  EXPECT_FALSE(fs::exists(folder_));
  EXPECT_FALSE(ReadNewestCheckpoint(folder_).has_value());
}

// Every change of every byte, every length, and every value that says something else.
TEST_F(CheckpointTest, ADamagedOneIsPassedOverForTheOneBefore) {
  WriteCheckpoint(folder_, At(5));
  WriteCheckpoint(folder_, At(10));
  const fs::path place = folder_ / "step-000000010";
  int damages = 0;
  const auto passed_over = [&](const std::string& what) {
    ++damages;
    const auto read = ReadNewestCheckpoint(folder_);
    ASSERT_TRUE(read.has_value()) << what;
    EXPECT_EQ(read->facts.step, 5) << what;
  };
  for (const char* name : {"state.json", "state.safetensors"}) {
    const std::string whole = ReadRunFile(place / name);
    std::mt19937_64 random(11);
    for (int round = 0; round < 200; ++round) {
      std::string changed = whole;
      const std::size_t byte = random() % whole.size();
      changed[byte] = static_cast<char>(changed[byte] ^ (1 << (random() % 8)));
      // Space between the parts of a JSON text says nothing.
      if (nlohmann::json::parse(changed, nullptr, false) ==
              nlohmann::json::parse(whole, nullptr, false) &&
          std::string(name) == "state.json" && nlohmann::json::accept(changed)) {
        continue;
      }
      Write(place / name, changed);
      passed_over(fmt::format("{}, byte {}", name, byte));
    }
    for (const std::size_t length :
         {std::size_t{0}, std::size_t{1}, std::size_t{8}, whole.size() / 2, whole.size() - 3}) {
      Write(place / name, whole.substr(0, length));
      passed_over(fmt::format("{} of {} bytes", name, length));
    }
    Write(place / name, whole + "x");
    passed_over(fmt::format("more behind {}", name));
    fs::remove(place / name);
    passed_over(fmt::format("no {}", name));
    fs::create_directories(place / name);
    passed_over(fmt::format("{} is a folder", name));
    fs::remove(place / name);
    Write(root_ / name, whole);
    fs::create_symlink(root_ / name, place / name);
    passed_over(fmt::format("{} lies elsewhere", name));
    fs::remove(place / name);
    Write(place / name, whole);
    ExpectIs(ReadNewestCheckpoint(folder_), 10);
  }
  EXPECT_GT(damages, 350);
}

// Texts with a right hash: whoever writes them is not the disk, and is not believed either.
TEST_F(CheckpointTest, NumbersThatMakeNoSenseArePassedOver) {
  WriteCheckpoint(folder_, At(5));
  WriteCheckpoint(folder_, At(10));
  const fs::path file = folder_ / "step-000000010" / "state.json";
  using Json = nlohmann::ordered_json;
  const std::string whole = ReadRunFile(file);
  const auto step_with = [&](const std::function<void(Json&)>& change) {
    Json json = Json::parse(whole);
    change(json);
    if (json.contains("facts")) json["facts_sha256"] = Sha256Hex(json["facts"].dump());
    Write(file, json.dump());
    const auto read = ReadNewestCheckpoint(folder_);
    return read ? read->facts.step : -1;
  };
  EXPECT_EQ(step_with([](Json&) {}), 10);
  EXPECT_EQ(step_with([](Json& json) { json["facts"]["noise"] = 2; }), 10);
  for (const char* key : {"step", "noise", "seconds", "plan", "ledger", "run", "head"}) {
    EXPECT_EQ(step_with([&](Json& json) { json["facts"].erase(key); }), 5) << key;
    for (const Json& wrong :
         {Json(nullptr), Json(-1), Json(-1.5), Json(true), Json::array(), Json::object()}) {
      EXPECT_EQ(step_with([&](Json& json) { json["facts"][key] = wrong; }), 5)
          << key << " " << wrong;
    }
  }
  for (const char* key : {"format", "version", "facts", "state_bytes", "state_sha256"}) {
    EXPECT_EQ(step_with([&](Json& json) { json.erase(key); }), 5) << key;
    for (const Json& wrong : {Json(nullptr), Json(-1), Json(1e300), Json(std::uint64_t{1} << 62),
                              Json(~std::uint64_t{0}), Json("x")}) {
      EXPECT_EQ(step_with([&](Json& json) { json[key] = wrong; }), 5) << key << " " << wrong;
    }
  }
  EXPECT_EQ(step_with([](Json& json) { json["facts"]["step"] = 11; }), 5);
  EXPECT_EQ(step_with([](Json& json) { json["facts"]["step"] = 10.0; }), 5);
  for (const char* text : {"", "null", "[]", "1e999", "\xff", "{\"facts\":NaN}"}) {
    Write(file, text);
    EXPECT_EQ(ReadNewestCheckpoint(folder_)->facts.step, 5) << text;
  }
  std::string deep(100'000, '[');
  Write(file, deep);
  EXPECT_EQ(ReadNewestCheckpoint(folder_)->facts.step, 5);
  std::string infinite = whole;
  const std::string noise = "\"noise\": ";
  const std::size_t begin = infinite.find(noise) + noise.size();
  infinite.replace(begin, infinite.find(',', begin) - begin, "1e999");
  Write(file, infinite);
  EXPECT_EQ(ReadNewestCheckpoint(folder_)->facts.step, 5);
}

TEST_F(CheckpointTest, NoneThatIsWholeIsAnErrorInOneSentence) {
  WriteCheckpoint(folder_, At(5));
  WriteCheckpoint(folder_, At(10));
  fs::remove(folder_ / "step-000000005" / "state.safetensors");
  Write(folder_ / "step-000000010" / "state.json", "{}");
  try {
    static_cast<void>(ReadNewestCheckpoint(folder_));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    const std::string sentence = error.what();
    EXPECT_THAT(sentence, HasSubstr("step-000000010"));
    EXPECT_EQ(sentence.back(), '.');
    EXPECT_EQ(sentence.find(". "), std::string::npos) << sentence;
  }
}

TEST_F(CheckpointTest, RefusesToWriteWhatCouldNotBeRead) {
  for (const double wrong : {std::nan(""), HUGE_VAL, -1.0}) {
    Checkpoint checkpoint = At(1);
    checkpoint.facts.noise = wrong;
    EXPECT_THROW(WriteCheckpoint(folder_, checkpoint), Error);
    checkpoint = At(1);
    checkpoint.facts.seconds = wrong;
    EXPECT_THROW(WriteCheckpoint(folder_, checkpoint), Error);
  }
  EXPECT_THROW(WriteCheckpoint(folder_, At(-1)), Error);
  Checkpoint checkpoint = At(1);
  checkpoint.facts.run = "\xff";
  EXPECT_THROW(WriteCheckpoint(folder_, checkpoint), Error);
  checkpoint = At(1);
  checkpoint.tensors.push_back(checkpoint.tensors[0]);
  EXPECT_THROW(WriteCheckpoint(folder_, checkpoint), std::runtime_error);
  EXPECT_FALSE(ReadNewestCheckpoint(folder_).has_value());
}

// What a name stands for is on the disk before the name is, and the name before anything older
// goes.
TEST_F(CheckpointTest, EverythingIsSyncedInTheOrderThatACrashNeeds) {
  order.clear();
  WriteWholeFile(root_ / "a.txt", "a");
  EXPECT_EQ(order, "FRD");
  WriteCheckpoint(folder_, At(1));
  order.clear();
  WriteCheckpoint(folder_, At(2));
  EXPECT_EQ(order,
            "FR"
            "FRD"
            "R"
            "D");
  order.clear();
  WriteCheckpoint(folder_, At(3));
  EXPECT_EQ(order,
            "FR"
            "FRD"
            "R"
            "D"
            "R");
  sync_fault.error = EIO;
  for (int call = 0; call < 2; ++call) {
    sync_fault.until = call;
    EXPECT_THROW(WriteWholeFile(root_ / "a.txt", "b"), std::runtime_error);
  }
  sync_fault.until = -1;
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), {}), 2);
}

// At every single one of its writes, syncs and renames.
TEST_F(CheckpointTest, ADiskThatFailsLeavesTheOlderOnes) {
  const auto begin_anew = [&] {
    fs::remove_all(folder_);
    WriteCheckpoint(folder_, At(1));
    WriteCheckpoint(folder_, At(2));
  };
  int failures = 0;
  for (Fault* fault : {&sync_fault, &write_fault, &rename_fault}) {
    fault->error = fault == &write_fault ? ENOSPC : EIO;
    for (const std::int64_t step : {2, 3}) {  // one that is replaced, and a new one
      begin_anew();
      fault->calls = 0;
      WriteCheckpoint(folder_, At(step));
      const int calls = fault->calls;
      EXPECT_GE(calls, 2);
      // The last rename of a new one is that of the oldest, which may as well stay.
      const int harmless = fault == &rename_fault && step == 3 ? 1 : 0;
      for (int call = 0; call < calls; ++call) {
        begin_anew();
        fault->until = call;
        try {
          WriteCheckpoint(folder_, At(step));
          EXPECT_GE(call, calls - harmless);
        } catch (const std::runtime_error& error) {
          ++failures;
          EXPECT_LT(call, calls - harmless);
          EXPECT_EQ(dynamic_cast<const Error*>(&error), nullptr) << error.what();
          EXPECT_EQ(std::string(error.what()).find(". "), std::string::npos) << error.what();
        }
        fault->until = -1;
        const auto read = ReadNewestCheckpoint(folder_);
        ASSERT_TRUE(read.has_value());
        EXPECT_TRUE(read->facts.step == 2 || read->facts.step == step) << read->facts.step;
        ExpectIs(read, read->facts.step);
        const std::set<std::string> names = Names();
        EXPECT_TRUE(names.contains("step-000000001"));
        EXPECT_TRUE(names.contains("step-000000002"));
        for (const std::string& name : names) EXPECT_THAT(name, StartsWith("step-"));
      }
    }
  }
  RecordProperty("failures", failures);
  EXPECT_GE(failures, 20);
}

struct Progress {
  std::atomic<std::int64_t> begun;
  std::atomic<std::int64_t> written;
};

// Children write checkpoint after checkpoint and are killed at random instants.
TEST_F(CheckpointTest, WholeAfterEveryKill) {
  constexpr int kKills = 120;
  void* const shared =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const progress = new (shared) Progress;
  // The instants are spread over the time that this disk takes for two.
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::int64_t last = 0;
  while (last < 4) WriteCheckpoint(folder_, At(++last));
  const auto most = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start) / 2;
  progress->begun = last;
  progress->written = last;
  std::mt19937_64 random(17);
  int within = 0;
  int drafts = 0;
  for (int kill_number = 0; kill_number < kKills; ++kill_number) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (std::int64_t step = last + 1;; ++step) {
        progress->begun = step;
        WriteCheckpoint(folder_, At(step));
        progress->written = step;
      }
    }
    while (progress->begun == last) usleep(100);  // it has to begin
    usleep(static_cast<useconds_t>(random() % static_cast<std::uint64_t>(most.count())));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";
    const std::int64_t begun = progress->begun;
    const std::int64_t written = progress->written;
    within += begun > written ? 1 : 0;
    const auto read = ReadNewestCheckpoint(folder_);
    ASSERT_TRUE(read.has_value());
    ASSERT_GE(read->facts.step, written) << "one that was written is gone";
    ASSERT_LE(read->facts.step, begun);
    ExpectIs(read, read->facts.step);
    last = read->facts.step;
    progress->begun = last;
    progress->written = last;
    int steps = 0;
    for (const std::string& name : Names()) {
      steps += name.starts_with("step-") ? 1 : 0;
      drafts += name.starts_with(".new-") ? 1 : 0;
    }
    ASSERT_GE(steps, 2);
  }
  munmap(shared, sizeof(Progress));
  RecordProperty("steps", static_cast<int>(last));
  RecordProperty("kills_within_a_write", within);
  RecordProperty("drafts_left", drafts);
  EXPECT_GT(last, 8) << "nothing was written";
  EXPECT_GT(within, kKills / 10) << "the kills hit nothing";
  EXPECT_GT(drafts, kKills / 20) << "the kills hit nothing";
  WriteCheckpoint(folder_, At(last + 1));
  EXPECT_EQ(Names().size(), 2U);
}

}  // namespace
}  // namespace sordino
