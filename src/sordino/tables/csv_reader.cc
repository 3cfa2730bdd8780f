#include "sordino/tables/csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr std::size_t kReadBlock = std::size_t{1} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Of the file up to its first line feed, or its first blocks where there is none.
void CheckEncoding(std::string_view beginning, const std::string& name) {
  if (beginning.starts_with("\xFF\xFE") || beginning.starts_with("\xFE\xFF") ||
      beginning.substr(0, 2).find('\0') != std::string_view::npos) {
    throw Error(fmt::format("'{}' is text in UTF-16, not in UTF-8; save it as UTF-8.", name));
  }
  const std::size_t first_return = beginning.find('\r');
  if (beginning.find('\n') == std::string_view::npos && first_return != std::string_view::npos &&
      first_return + 1 < beginning.size()) {
    throw Error(fmt::format(
        "the lines of '{}' end in carriage returns alone, as those of old Macs did; save it with "
        "LF or CRLF.",
        name));
  }
}

}  // namespace

CsvReader::CsvReader(ByteSource source, char separator, std::string name, char quote)
    : source_(std::move(source)),
      separator_(separator),
      quote_(quote == '\0' ? separator : quote),
      name_(std::move(name)),
      buffer_(2 * kReadBlock) {
  const auto beginning = [&] { return std::string_view(buffer_.data(), end_); };
  while (beginning().find('\n') == std::string_view::npos && Refill()) {
  }
  CheckEncoding(beginning(), name_);
  if (beginning().starts_with(kByteOrderMark)) begin_ = kByteOrderMark.size();
}

// Moves what is left to the front and reads more after it; false when nothing more can come.
bool CsvReader::Refill() {
  if (at_end_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    consumed_ += begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) return false;
  const std::size_t room = std::min(kReadBlock, buffer_.size() - end_);
  const std::size_t got = source_({buffer_.data() + end_, room});
  if (got == 0) {
    at_end_ = true;
    return false;
  }
  end_ += got;
  return true;
}

// The place of the next LF at or behind begin_, or the end of the file. False when the line is
// longer than a record may be.
bool CsvReader::FindLineEnd(std::size_t* end) {
  std::size_t searched = 0;
  while (true) {
    const char* from = buffer_.data() + begin_ + searched;
    const std::size_t size = end_ - begin_ - searched;
    if (const void* found = size == 0 ? nullptr : std::memchr(from, '\n', size)) {
      *end = static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data());
      return *end - begin_ <= kReadBlock;
    }
    searched = end_ - begin_;
    if (searched > kReadBlock) return false;
    if (!Refill()) {
      *end = end_;
      return true;
    }
  }
}

// Splits [begin_, end) at its separators; false when it meets a quote.
bool CsvReader::SplitPlain(std::size_t end) {
  const char* field = buffer_.data() + begin_;
  const char* const stop = buffer_.data() + end;
  const char separator = separator_;
  const char quote = quote_;
  const char highest = std::max(separator, quote);
  for (const char* c = field; c != stop; ++c) {
    // Both tests in one: the quote is 0x22 or 0x27, the comma 0x2C, the tab 0x09, and most bytes
    // are above.
    if (*c > highest) continue;
    if (*c == separator) {
      fields_.emplace_back(field, static_cast<std::size_t>(c - field));
      field = c + 1;
    } else if (*c == quote) {
      return false;
    }
  }
  const char* last = stop > field && stop[-1] == '\r' ? stop - 1 : stop;
  fields_.emplace_back(field, static_cast<std::size_t>(last - field));
  return true;
}

// Splits the record at begin_, unescaping quoted fields where they stand. Touches the buffer only
// once the record is known to be whole. *end is the place of the LF after it (or the end).
CsvReader::Quoted CsvReader::SplitQuoted(std::size_t* end, std::uint64_t* breaks) {
  for (const bool commit : {false, true}) {
    fields_.clear();
    *breaks = 0;
    char* const data = buffer_.data();
    std::size_t at = begin_;
    bool more = true;
    while (more) {
      const std::size_t start = at;
      std::size_t size = 0;
      std::size_t text = start;
      if (at < end_ && data[at] == quote_) {
        text = ++at;
        while (true) {
          if (at == end_) return at_end_ ? Quoted::kBroken : Quoted::kIncomplete;
          if (data[at] == quote_) {
            if (at + 1 == end_ && !at_end_) return Quoted::kIncomplete;
            if (at + 1 == end_ || data[at + 1] != quote_) break;
            ++at;
          }
          *breaks += data[at] == '\n' ? 1 : 0;
          if (commit) data[text + size] = data[at];
          ++size;
          ++at;
        }
        ++at;
        if (at < end_ && data[at] == '\r' && (at + 1 == end_ || data[at + 1] == '\n')) {
          if (at + 1 == end_ && !at_end_) return Quoted::kIncomplete;
          ++at;
        }
        if (at < end_ && data[at] != separator_ && data[at] != '\n') return Quoted::kBroken;
      } else {
        while (at < end_ && data[at] != separator_ && data[at] != '\n') {
          if (data[at] == quote_ && quote_ == '"') return Quoted::kBroken;
          ++at;
        }
        size = at - start;
        const bool last = at == end_ || data[at] == '\n';
        if (last && size > 0 && data[at - 1] == '\r') --size;
      }
      if (at == end_ && !at_end_) return Quoted::kIncomplete;
      fields_.emplace_back(data + text, size);
      more = at < end_ && data[at] == separator_;
      if (more) ++at;
    }
    *end = at;
  }
  return Quoted::kDone;
}

void CsvReader::TakeQuoted(std::size_t line_end) {
  std::size_t end = 0;
  std::uint64_t breaks = 0;
  Quoted outcome = SplitQuoted(&end, &breaks);
  const std::size_t line_size = line_end - begin_;  // Refill moves begin_
  while (outcome == Quoted::kIncomplete && end_ - begin_ <= kReadBlock) {
    Refill();
    outcome = SplitQuoted(&end, &breaks);
  }
  if (outcome == Quoted::kDone && end - begin_ <= kReadBlock) {
    begin_ = std::min(end + 1, end_);
    next_line_ += breaks + 1;
    return;
  }
  fields_.clear();
  broken_ = "its quotes are not closed as they should be";
  begin_ = std::min(begin_ + line_size + 1, end_);
  ++next_line_;
}

bool CsvReader::Next() {
  while (true) {
    fields_.clear();
    broken_ = {};
    std::size_t end = 0;
    if (!FindLineEnd(&end)) {
      line_ = next_line_++;
      broken_ = "it is longer than 1 MiB";
      // Skips to the end of the monster without keeping it.
      while (true) {
        const void* found = std::memchr(buffer_.data() + begin_, '\n', end_ - begin_);
        if (found != nullptr) {
          begin_ = static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data()) + 1;
          return true;
        }
        begin_ = end_;
        if (!Refill()) return true;
      }
    }
    if (begin_ == end_ && end == end_) return false;
    const bool blank = end == begin_ || (end == begin_ + 1 && buffer_[begin_] == '\r');
    // Where records have one field, a blank line is a record whose field is empty.
    if (blank && first_fields_ != 1) {
      begin_ = std::min(end + 1, end_);
      ++next_line_;
      continue;
    }
    line_ = next_line_;
    if (SplitPlain(end)) {
      begin_ = std::min(end + 1, end_);
      ++next_line_;
    } else {
      TakeQuoted(end);
    }
    if (first_fields_ == 0) first_fields_ = std::max<std::size_t>(1, fields_.size());
    return true;
  }
}

}  // namespace sordino
