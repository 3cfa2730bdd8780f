// Who of the ranks lives, and whether operations come to an end.
#ifndef SORDINO_DISTRIBUTED_INTERNAL_LIVENESS_H_
#define SORDINO_DISTRIBUTED_INTERNAL_LIVENESS_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sordino/distributed/internal/deadline.h"
#include "sordino/distributed/internal/group_store.h"
#include "sordino/distributed/process_group.h"

namespace sordino::internal {

// Once a second each rank writes to the store that it lives and which operation it is in. Rank 0
// reads what all have written, the others what rank 0 has written: a beat, and the last operation
// that all ranks have begun. The first rank that finds another one lost writes it to the store, and
// all of them end with that sentence.
class Liveness {
 public:
  // `store` is for this object alone: operations on a store wait for each other.
  Liveness(StorePointer store, const GroupOptions& options);
  ~Liveness();
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  // Around each operation, which moves so many bytes. Throws CommunicationError when the group has
  // lost a rank.
  void BeginOperation(std::int64_t bytes);
  void EndOperation();
  // Whether the group has lost a rank: an operation that is waited for may not come to an end.
  bool HasLost();
  // An operation has failed. Waits until it is known which rank was lost, and throws
  // CommunicationError that says so.
  [[noreturn]] void EndLost();
  // A message was not sent by a rank of this group: ends all of them.
  [[noreturn]] void EndForeign();

  // From now on nobody is missed.
  void Finish();
  // Ends the others.
  void Fail();

 private:
  void Run();
  // Writes and reads once. False: the group has ended.
  bool Beat();
  bool LookAtAll();
  bool LookAtFirst();
  bool IsStalled(std::int64_t begun_by_all);
  void TellLoss(const std::string& sentence);
  void Lose(const std::string& sentence);
  void LetOthersRead() const;
  std::string SilenceSentence(int rank) const;
  std::string ForeignSentence() const;

  // The newest beat of another rank. An older one, which whoever reaches the store may put back, is
  // as good as none.
  struct Seen {
    std::uint64_t beats = 0;
    std::int64_t begun = 0;
    std::chrono::milliseconds unchanged{0};
  };
  // True: there was no new one for too long.
  bool IsSilent(Seen& seen, const std::string& value);

  StorePointer store_;
  GroupOptions options_;
  int rank_;
  int size_;
  std::vector<Seen> seen_;  // by rank 0: of all ranks; by others: of rank 0
  std::uint64_t beats_ = 0;
  std::chrono::steady_clock::time_point last_beat_;
  std::chrono::milliseconds passed_{0};  // since the last beat, unless this process was stopped

  std::atomic<std::int64_t> begun_{0};
  std::atomic<bool> is_inside_{false};
  std::atomic<std::int64_t> bytes_{0};
  std::int64_t stalled_operation_ = -1;
  std::chrono::milliseconds stalled_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_ended_ = false;
  std::string loss_;
  Deadline deadline_;
  std::thread thread_;
};

}  // namespace sordino::internal

#endif  // SORDINO_DISTRIBUTED_INTERNAL_LIVENESS_H_
