// Streams a CSV file in constant memory.
//
// RFC 4180: fields are separated by commas (or another separator, such as the tab of TSV files),
// records by LF or CRLF, a field may stand in double quotes (or another declared quote, or none)
// and then contain separators, line breaks and doubled quotes. A UTF-8 byte-order mark at the start
// is skipped. Blank lines are skipped too, except where the first record has one field: there a
// blank line is a record of an empty field. The file is read in blocks of 1 MiB with read(2);
// fields are views into the block and live until the next call. A record is at most 1 MiB long.
//
// A record whose quoting is broken (text after a closing quote, a quote that never closes) is
// reported as such, and reading continues after the end of its first line.
#ifndef SORDINO_TABLES_CSV_READER_H_
#define SORDINO_TABLES_CSV_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/tables/byte_source.h"

namespace sordino {

class CsvReader {
 public:
  // The separator is neither a quote nor a line break; the quote \0 stands for none. Throws Error,
  // with `name` in its sentence, for text in UTF-16 and for lines that end in CR alone.
  explicit CsvReader(ByteSource source, char separator = ',', std::string name = "the table",
                     char quote = '"');

  // Reads the next record; false at the end of the file. After that, fields() and the rest
  // describe it.
  bool Next();

  const std::string& name() const { return name_; }
  const std::vector<std::string_view>& fields() const { return fields_; }
  // The number of the line on which the record starts, from 1.
  std::uint64_t line() const { return line_; }
  // Why the record cannot be split into fields; empty when it can.
  std::string_view broken() const { return broken_; }
  // Bytes taken from the source and split so far.
  std::uint64_t bytes() const { return consumed_ + begin_; }

 private:
  enum class Quoted : std::uint8_t { kDone, kIncomplete, kBroken };

  bool Refill();
  bool FindLineEnd(std::size_t* end);
  bool SplitPlain(std::size_t end);
  Quoted SplitQuoted(std::size_t* end, std::uint64_t* breaks);
  void TakeQuoted(std::size_t line_end);

  ByteSource source_;
  char separator_;
  char quote_;  // as separator_ where there is none: that is looked for first
  std::string name_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // of what is not yet split
  std::size_t end_ = 0;    // of what was read
  bool at_end_ = false;
  std::uint64_t consumed_ = 0;  // bytes dropped from the front of the buffer
  std::vector<std::string_view> fields_;
  std::size_t first_fields_ = 0;  // of the first record; 0 before it
  std::uint64_t line_ = 0;
  std::uint64_t next_line_ = 1;
  std::string_view broken_;
};

}  // namespace sordino

#endif  // SORDINO_TABLES_CSV_READER_H_
