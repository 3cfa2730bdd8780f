#include "sordino/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>

namespace sordino {
namespace {

constexpr std::size_t kBarWidth = 30;
constexpr auto kBarInterval = std::chrono::milliseconds(100);
constexpr auto kLineInterval = std::chrono::seconds(10);

}  // namespace

Progress::Style Progress::DetectStyle() {
  return isatty(STDERR_FILENO) != 0 ? Style::kBar : Style::kLines;
}

Progress::Progress(std::string title, std::uint64_t total)
    : Progress(std::move(title), total, std::cerr, DetectStyle()) {}

Progress::Progress(std::string title, std::uint64_t total, std::ostream& out, Style style)
    : title_(std::move(title)),
      total_(total),
      out_(out),
      style_(style),
      start_(Clock::now()),
      last_draw_(start_) {}

Progress::~Progress() { Finish(); }

void Progress::Update(std::uint64_t done, const std::string& note) {
  done_ = done;
  note_ = note;
  if (style_ == Style::kSilent || finished_) return;
  const Clock::time_point now = Clock::now();
  const Clock::duration interval =
      style_ == Style::kBar ? Clock::duration(kBarInterval) : Clock::duration(kLineInterval);
  if (now - last_draw_ < interval) return;
  Draw(now);
}

void Progress::Finish() {
  if (finished_) return;
  finished_ = true;
  if (style_ == Style::kSilent) return;
  Draw(Clock::now());
  if (style_ == Style::kBar) out_ << '\n';
  out_.flush();
}

void Progress::Draw(Clock::time_point now) {
  last_draw_ = now;
  // Whole seconds: finer ones would tell how much work there was, which may be private.
  const double elapsed = std::floor(std::chrono::duration<double>(now - start_).count());
  std::string line;
  const double fraction =
      total_ > 0 ? std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_)) : 1;
  if (style_ == Style::kBar) {
    const auto filled = static_cast<std::size_t>(fraction * static_cast<double>(kBarWidth));
    line = fmt::format("{} [{}{}] {:3.0f}%", title_, std::string(filled, '='),
                       std::string(kBarWidth - filled, ' '), 100 * fraction);
  } else {
    line = fmt::format("{}: {:.0f}%", title_, 100 * fraction);
  }
  if (finished_) {
    line += fmt::format(", {}", HumanDuration(elapsed));
  } else if (fraction > 0 && elapsed > 0) {
    line += fmt::format(", {} left", HumanDuration(std::floor(elapsed * (1 / fraction - 1))));
  }
  if (!note_.empty()) line += "  " + note_;
  if (style_ == Style::kBar) {
    const std::size_t width = line.size();
    // Blanks wipe what a longer line left behind.
    if (width < last_width_) line.append(last_width_ - width, ' ');
    last_width_ = width;
    out_ << '\r' << line;
  } else {
    out_ << line << '\n';
  }
  out_.flush();
}

std::string HumanDuration(double seconds) {
  if (seconds > 0 && seconds < 1) return fmt::format("{:.0f} ms", 1000 * seconds);
  if (seconds < 60) return fmt::format("{:.0f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(seconds);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace sordino
