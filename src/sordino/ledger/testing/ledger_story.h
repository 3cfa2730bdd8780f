// What tests make a ledger on a failing disk live through.
#ifndef SORDINO_LEDGER_TESTING_LEDGER_STORY_H_
#define SORDINO_LEDGER_TESTING_LEDGER_STORY_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "sordino/accounting/event.h"
#include "sordino/base/error.h"
#include "sordino/ledger/ledger.h"
#include "sordino/ledger/testing/faulty_disk.h"

namespace sordino {

inline constexpr const char* kStoryFile = "/ledger.db";
inline constexpr double kStoryStep = 0.125;  // eight of them spend the budget of 1 exactly

inline Event Step(std::uint64_t count = 1) {
  return Event::Repeat(Event::Pure(Epsilon(kStoryStep)), count);
}

// What a story said and heard. Words tell entries apart.
struct Heard {
  std::set<std::string> acknowledged;  // the call returned
  std::set<std::string> attempted;     // the call was made
  std::set<std::string> refused;       // the call returned a refusal
  bool was_created = false;
  int threw = 0;
  int errors = 0;  // of `threw`: sentences of the kind Error
};

// Two runs through three handles on one file, the last two of which are open at once: a budget of
// eight steps, nine charges, one of them returned, and a tenth that is one too many.
class LedgerStory {
 public:
  LedgerStory(FaultyDisk& disk, std::filesystem::path witness)
      : options_{.vfs = disk.name(), .witness_folder = std::move(witness), .clock = {}} {}

  Heard Tell() {
    Try(first_, [&] {
      first_ = Ledger::Create(kStoryFile, {.epsilon = Epsilon(1), .delta = Delta(0)}, options_);
      heard_.was_created = true;
    });
    Begin(first_, first_run_, "a0");
    Charge(first_, first_run_, "a1");
    Charge(first_, first_run_, "a2");
    Return(first_, first_run_, "back");
    if (!heard_.was_created) return heard_;
    Open(first_);
    Charge(first_, first_run_, "a3");
    Open(second_);
    Begin(second_, second_run_, "b0");
    Charge(first_, first_run_, "a4");
    Charge(second_, second_run_, "b1");
    Say(second_, "note");
    Charge(first_, first_run_, "a5");
    Charge(second_, second_run_, "b2");
    Charge(first_, first_run_, "too much");
    return heard_;
  }

  static Heard TellOn(FaultyDisk& disk, const std::filesystem::path& witness) {
    return LedgerStory(disk, witness).Tell();
  }

 private:
  using Handle = std::optional<Ledger>;

  // A ledger whose disk failed admits nothing any more, also where the disk works again.
  void Try(Handle& handle, const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& error) {
      ++heard_.threw;
      ++heard_.errors;
      ExpectSentence(error.what());
      handle.reset();
    } catch (const std::runtime_error& error) {
      ++heard_.threw;
      ExpectSentence(error.what());
      if (handle) ExpectUsedUp(*handle);
      handle.reset();
    }
  }
  static void ExpectSentence(const std::string& text) {
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text.back(), '.') << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
  void ExpectUsedUp(Ledger& ledger) {
    const std::string run = first_run_.empty() ? second_run_ : first_run_;
    EXPECT_THROW(ledger.Charge(run, {.event = Step(), .words = "after the fault"}),
                 std::runtime_error);
  }

  void Open(Handle& handle) {
    handle.reset();
    Try(handle, [&] { handle = Ledger::Open(kStoryFile, options_); });
  }
  void Hear(const std::string& words, const Verdict& verdict) {
    (verdict.admitted ? heard_.acknowledged : heard_.refused).insert(words);
  }
  void Begin(Handle& handle, std::string& run, const std::string& words) {
    if (!handle) return;
    Try(handle, [&] {
      heard_.attempted.insert(words);
      const Begun begun = handle->BeginRun({.what = "run " + words, .plan = Step(8)},
                                           {.event = Step(), .words = words});
      Hear(words, begun.verdict);
      run = begun.id;
    });
  }
  void Charge(Handle& handle, const std::string& run, const std::string& words) {
    if (!handle || run.empty()) return;
    Try(handle, [&] {
      heard_.attempted.insert(words);
      Hear(words, handle->Charge(run, {.event = Step(), .words = words}));
    });
  }
  void Return(Handle& handle, const std::string& run, const std::string& words) {
    if (!handle || run.empty()) return;
    Try(handle, [&] {
      heard_.attempted.insert(words);
      handle->Return(run, {.event = Step(), .words = words});
      heard_.acknowledged.insert(words);
    });
  }
  void Say(Handle& handle, const std::string& words) {
    if (!handle) return;
    Try(handle, [&] {
      heard_.attempted.insert(words);
      handle->Note(words);
      heard_.acknowledged.insert(words);
    });
  }

  LedgerOptions options_;
  Heard heard_;
  Handle first_;
  Handle second_;
  std::string first_run_;
  std::string second_run_;
};

}  // namespace sordino

#endif  // SORDINO_LEDGER_TESTING_LEDGER_STORY_H_
