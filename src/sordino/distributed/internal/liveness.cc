#include "sordino/distributed/internal/liveness.h"
#include "sordino/base/shown_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace sordino::internal {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyClock = std::chrono::steady_clock;

constexpr milliseconds kBeat(1000);
// A beat that came later than this: this process did not run, and says nothing about others.
constexpr milliseconds kPause(5000);
// The thread that uses the group may end by itself before the process is ended under it.
constexpr milliseconds kUnwinding(6000);
// A rank 0 that has the store leaves when the others have read there why.
constexpr milliseconds kLastWords(2500);
constexpr std::int64_t kSlowestBytesPerSecond = 1 << 20;
constexpr const char* kAdvice =
    "the run ends here, and what was charged stays charged; 'sordino train --resume FOLDER' goes "
    "on "
    "from its newest checkpoint.";

constexpr const char* kBegunByAllKey = "begun";

}  // namespace

Liveness::Liveness(StorePointer store, const GroupOptions& options)
    : store_(std::move(store)),
      options_(options),
      rank_(options.environment.rank),
      size_(options.environment.size),
      seen_(static_cast<std::size_t>(size_)),
      last_beat_(SteadyClock::now()),
      deadline_([this](const std::string& sentence) {
        Lose(sentence);
        if (options_.on_loss) options_.on_loss(sentence);
        std::abort();
      }) {
  thread_ = std::thread([this] { Run(); });
}

Liveness::~Liveness() {
  Finish();
  deadline_.Set(kUnwinding,
                fmt::format("rank {} of {} hangs in its last words to rank 0.", rank_, size_));
  thread_.join();
}

void Liveness::BeginOperation(std::int64_t bytes) {
  bytes_ = bytes;
  ++begun_;
  is_inside_ = true;
  {
    const std::lock_guard lock(mutex_);
    if (loss_.empty()) return;
  }
  EndLost();
}

void Liveness::EndOperation() { is_inside_ = false; }

bool Liveness::HasLost() {
  const std::lock_guard lock(mutex_);
  return !loss_.empty();
}

void Liveness::EndLost() {
  std::unique_lock lock(mutex_);
  // Rank 0 finds out who is silent and writes it; this rank reads it with its next beat.
  changed_.wait_for(lock, options_.silence + 10 * kBeat,
                    [this] { return !loss_.empty() || has_ended_; });
  if (loss_.empty()) loss_ = fmt::format("another rank of {} was lost; {}", size_, kAdvice);
  lock.unlock();
  LetOthersRead();
  throw CommunicationError(loss_);
}

void Liveness::EndForeign() {
  TellLoss(ForeignSentence());
  EndLost();
}

std::string Liveness::ForeignSentence() const {
  return fmt::format(
      "a program that is not one of the {} ranks has taken part in what they say to each other, or "
      "has changed it; nothing of it was used, {}",
      size_, kAdvice);
}

void Liveness::LetOthersRead() const {
  if (rank_ == 0 && !options_.environment.is_hosted) std::this_thread::sleep_for(kLastWords);
}

void Liveness::Finish() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  deadline_.Clear();
  changed_.notify_all();
}

void Liveness::Fail() {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended_ || !loss_.empty()) return;
  }
  deadline_.Set(kUnwinding, fmt::format("rank {} of {} failed.", rank_, size_));
  TellLoss(fmt::format("rank {} of {} ended with an error, which it reports itself; {}", rank_,
                       size_, kAdvice));
  LetOthersRead();
}

void Liveness::Lose(const std::string& sentence) {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended_ || !loss_.empty()) return;
    loss_ = sentence;
  }
  changed_.notify_all();
}

// To the store, where the first sentence counts.
void Liveness::TellLoss(const std::string& sentence) {
  std::string first = sentence;
  try {
    first = SetFirst(*store_, kLossKey, sentence);
  } catch (const std::exception&) {
    // Without the store the others find out by themselves.
  }
  Lose(first);
}

std::string Liveness::SilenceSentence(int rank) const {
  return fmt::format("rank {} of {} has not been heard of for {} s; {}", rank, size_,
                     duration_cast<seconds>(options_.silence).count(), kAdvice);
}

void Liveness::Run() {
  const std::string unreachable =
      fmt::format("rank {} of {} has lost the connection to {} at {}:{}; {}", rank_, size_,
                  options_.environment.is_hosted ? "the process that started it" : "rank 0",
                  options_.environment.address, options_.environment.port, kAdvice);
  bool goes_on = true;
  while (goes_on) {
    deadline_.Set(options_.silence, unreachable);
    try {
      goes_on = Beat();
    } catch (const ForeignWords&) {
      TellLoss(ForeignSentence());
      goes_on = false;
    } catch (const std::exception&) {
      Lose(unreachable);
      goes_on = false;
    }
    std::unique_lock lock(mutex_);
    if (has_ended_ || !loss_.empty()) break;
    changed_.wait_for(lock, kBeat, [this] { return has_ended_; });
    goes_on = goes_on && !has_ended_;
  }
  const std::lock_guard lock(mutex_);
  if (has_ended_) {
    deadline_.Clear();
  } else {
    deadline_.Set(kUnwinding, loss_);
  }
}

bool Liveness::Beat() {
  const SteadyClock::time_point now = SteadyClock::now();
  passed_ = duration_cast<milliseconds>(now - last_beat_);
  if (passed_ > kPause) passed_ = milliseconds(0);
  last_beat_ = now;
  store_->set(BeatKey(rank_), fmt::format("{} {}", ++beats_, begun_.load()));
  if (store_->check({kLossKey})) {
    Lose(ShownText(store_->get_to_str(kLossKey)));
    return false;
  }
  return rank_ == 0 ? LookAtAll() : LookAtFirst();
}

bool Liveness::IsSilent(Seen& seen, const std::string& value) {
  char* rest = nullptr;
  const std::uint64_t beats = std::strtoull(value.c_str(), &rest, 10);
  if (beats > seen.beats) {
    seen = {.beats = beats, .begun = std::strtoll(rest, nullptr, 10), .unchanged = milliseconds(0)};
  } else {
    seen.unchanged += passed_;
  }
  return seen.unchanged > options_.silence;
}

bool Liveness::LookAtAll() {
  std::int64_t begun_by_all = begun_;
  std::vector<std::string> keys;
  for (int rank = 1; rank < size_; ++rank) keys.push_back(BeatKey(rank));
  const std::vector<std::vector<std::uint8_t>> values = store_->multiGet(keys);
  for (int rank = 1; rank < size_; ++rank) {
    const std::vector<std::uint8_t>& bytes = values[static_cast<std::size_t>(rank - 1)];
    const std::string value(bytes.begin(), bytes.end());
    Seen& seen = seen_[static_cast<std::size_t>(rank)];
    if (IsSilent(seen, value)) {
      TellLoss(SilenceSentence(rank));
      return false;
    }
    begun_by_all = std::min(begun_by_all, seen.begun);
  }
  store_->set(kBegunByAllKey, fmt::format("{} {}", beats_, begun_by_all));
  return !IsStalled(begun_by_all);
}

bool Liveness::LookAtFirst() {
  const std::string value =
      store_->check({kBegunByAllKey}) ? store_->get_to_str(kBegunByAllKey) : kNoBeat;
  if (IsSilent(seen_.front(), value)) {
    TellLoss(SilenceSentence(0));
    return false;
  }
  return !IsStalled(seen_.front().begun);
}

bool Liveness::IsStalled(std::int64_t begun_by_all) {
  const std::int64_t begun = begun_;
  if (!is_inside_ || begun_by_all < begun || stalled_operation_ != begun) {
    stalled_operation_ = begun;
    stalled_ = milliseconds(0);
    return false;
  }
  stalled_ += passed_;
  const milliseconds limit = options_.stall + seconds(bytes_ / kSlowestBytesPerSecond);
  if (stalled_ < limit) return false;
  TellLoss(fmt::format("nothing has come through between the {} ranks for {} s; {}", size_,
                       duration_cast<seconds>(limit).count(), kAdvice));
  return true;
}

}  // namespace sordino::internal
