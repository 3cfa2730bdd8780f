// Progress of long work: a bar that redraws itself on a terminal, plain lines elsewhere.
//
// Writes to standard error only, so that standard output stays clean for results. On a terminal
// the bar is redrawn at most ten times a second; a line is written at most every ten seconds and at
// the end. Amounts are shown in percent: a total may be the size of private data.
// Only public values may be put into the note: whoever calls decides.
#ifndef SORDINO_BASE_PROGRESS_H_
#define SORDINO_BASE_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>

namespace sordino {

class Progress {
 public:
  enum class Style : std::uint8_t { kBar, kLines, kSilent };

  // With a total of 0 there is nothing to do, and all of it is done.
  Progress(std::string title, std::uint64_t total);
  // For tests: where to write and how.
  Progress(std::string title, std::uint64_t total, std::ostream& out, Style style);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` of the total is finished; `note` stands after the bar.
  void Update(std::uint64_t done, const std::string& note = "");
  // Draws the last state and ends the line. Further calls do nothing.
  void Finish();

  // kBar where standard error is a terminal, else kLines.
  static Style DetectStyle();

 private:
  using Clock = std::chrono::steady_clock;
  void Draw(Clock::time_point now);

  std::string title_;
  std::uint64_t total_;
  std::ostream& out_;
  Style style_;
  std::uint64_t done_ = 0;
  std::string note_;
  Clock::time_point start_;
  Clock::time_point last_draw_;
  std::size_t last_width_ = 0;
  bool finished_ = false;
};

// "850 ms", "12 s", "3 min 20 s", "2 h 5 min".
std::string HumanDuration(double seconds);

}  // namespace sordino

#endif  // SORDINO_BASE_PROGRESS_H_
