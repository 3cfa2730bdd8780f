#include "sordino/cli/schedule_file.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/tables/csv_reader.h"

namespace sordino {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::array<std::string_view, 5> kColumns = {"rate", "noise", "steps", "count", "clip"};

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// Spreadsheets put quotes around names, and sometimes around numbers.
std::string_view Unquote(std::string_view field) {
  field = Trim(field);
  if (field.size() >= 2 && field.front() == '"' && field.back() == '"') {
    field = Trim(field.substr(1, field.size() - 2));
  }
  return field;
}

std::vector<std::string_view> Fields(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t comma = line.find(',');
    fields.push_back(Unquote(line.substr(0, comma)));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

class ScheduleParser {
 public:
  explicit ScheduleParser(const EventOptions& flags) : flags_(flags) {}

  bool has_header() const { return has_header_; }

  void ReadHeader(std::string_view line) {
    has_header_ = true;
    columns_ = Fields(line).size();
    std::size_t index = 0;
    for (const std::string_view name : Fields(line)) {
      std::optional<std::size_t>& column = ColumnOf(name);
      if (column) throw Error(fmt::format("the column '{}' comes twice.", name));
      column = index++;
    }
    Refuse(rate_, flags_.rate, "--rate", "rate");
    Refuse(noise_, flags_.noise, "--noise", "noise");
    Refuse(steps_, flags_.steps, "--steps", "steps");
    if (!noise_ && !flags_.noise) {
      throw Error("there is no column 'noise'; add one, or give --noise for every step.");
    }
    shape_ = ShapeOf(flags_, rate_ || flags_.rate);
    sequence_.adjacency = shape_.adjacency;
    // A flag is parsed once, so that its mistakes are not blamed on a line.
    if (flags_.rate) common_rate_ = ParseReal("--rate", *flags_.rate);
    if (flags_.noise) common_noise_ = ParseReal("--noise", *flags_.noise);
    if (flags_.steps) common_steps_ = ParseWhole("--steps", *flags_.steps);
  }

  void ReadLine(std::string_view line) {
    const std::vector<std::string_view> fields = Fields(line);
    if (fields.size() != columns_) {
      throw Error(
          fmt::format("{} fields stand where the header names {}.", fields.size(), columns_));
    }
    const auto real = [&](std::optional<std::size_t> column, const char* name, double common) {
      return column ? ParseReal(fmt::format("column {}", name), fields[*column]) : common;
    };
    const SamplingRate rate(real(rate_, "rate", common_rate_));
    const NoiseMultiplier noise(real(noise_, "noise", common_noise_));
    if (clip_) (void)ClipNorm(real(clip_, "clip", 1));
    const std::uint64_t steps =
        steps_ ? ParseWhole("column steps", fields[*steps_]) : common_steps_;
    sequence_.phases.emplace_back(shape_.Step(noise, rate), shape_.CountOf(steps, rate));
  }

  StepSequence Finish() { return std::move(sequence_); }

 private:
  std::optional<std::size_t>& ColumnOf(std::string_view name) {
    if (name == "rate") return rate_;
    if (name == "noise") return noise_;
    if (name == "steps" || name == "count") return steps_;
    if (name == "clip") return clip_;
    const std::string nearest = NearestName(name, kColumns);
    throw Error(fmt::format("the column '{}' is unknown; {} be rate, noise, steps or clip.", name,
                            nearest.empty() ? std::string("it must")
                                            : fmt::format("did you mean '{}'? It must", nearest)));
  }

  static void Refuse(std::optional<std::size_t> column, const std::optional<std::string>& flag,
                     const char* flag_name, const char* column_name) {
    if (column && flag) {
      throw Error(fmt::format("{} was given, and there is a column '{}' too; leave out one.",
                              flag_name, column_name));
    }
  }

  const EventOptions& flags_;
  bool has_header_ = false;
  std::size_t columns_ = 0;
  std::optional<std::size_t> rate_;
  std::optional<std::size_t> noise_;
  std::optional<std::size_t> steps_;
  std::optional<std::size_t> clip_;
  double common_rate_ = 1;
  double common_noise_ = 0;
  std::uint64_t common_steps_ = 1;
  StepShape shape_;
  StepSequence sequence_;
};

}  // namespace

StepSequence ParseSchedule(std::string_view text, const std::string& name,
                           const EventOptions& flags) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  ScheduleParser parser(flags);
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    line = Trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    try {
      parser.has_header() ? parser.ReadLine(line) : parser.ReadHeader(line);
    } catch (const Error& error) {
      throw Error(fmt::format("line {} of {}: {}", number, name, error.what()));
    }
  }
  if (!parser.has_header()) {
    throw Error(fmt::format(
        "{} is empty; its first line must name its columns, any of rate, noise, steps and clip.",
        name));
  }
  StepSequence sequence = parser.Finish();
  if (sequence.phases.empty()) {
    throw Error(fmt::format("{} names its columns and no steps; add a line for each step.", name));
  }
  return sequence;
}

std::string ReadTextFile(const std::string& path, std::string_view advice) {
  const ByteSource source = OpenFile(path);
  std::string text;
  std::vector<char> block(std::size_t{1} << 16);
  while (const std::size_t size = source(std::span<char>(block))) {
    text.append(block.data(), size);
    if (text.size() > kMaxBytes) {
      throw Error(fmt::format("{} is larger than 64 MiB; {}.", path, advice));
    }
  }
  return text;
}

StepSequence ReadSchedule(const std::string& path, const EventOptions& flags) {
  const std::string text =
      ReadTextFile(path, "merge equal steps into one line with a steps column");
  return ParseSchedule(text, path == "-" ? "the schedule" : path, flags);
}

}  // namespace sordino
