#include "sordino/report/tensorboard.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "sordino/base/csv_field.h"
#include "sordino/base/shown_text.h"

namespace sordino {
namespace {

constexpr std::array<std::uint32_t, 256> MakeCrcTable() {
  constexpr std::uint32_t kReversedPolynomial = 0x82F63B78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1U) ^ ((value & 1U) != 0 ? kReversedPolynomial : 0U);
    }
    table[i] = value;
  }
  return table;
}

void AppendLittleEndian(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    out += static_cast<char>(value >> (8U * static_cast<unsigned>(i)) & 0xFFU);
  }
}

std::uint32_t MaskedCrc(std::string_view bytes) {
  const std::uint32_t crc = Crc32c(bytes);
  return ((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U;
}

void AppendRecord(std::string& file, const std::string& data) {
  std::string length;
  AppendLittleEndian(length, data.size(), 8);
  file += length;
  AppendLittleEndian(file, MaskedCrc(length), 4);
  file += data;
  AppendLittleEndian(file, MaskedCrc(data), 4);
}

// ---- Protocol buffers: a key (number << 3 | wire type) and a value.
enum WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void AppendVarint(std::string& out, std::uint64_t value) {
  while (value >= 0x80U) {
    out += static_cast<char>((value & 0x7FU) | 0x80U);
    value >>= 7U;
  }
  out += static_cast<char>(value);
}

void AppendKey(std::string& out, unsigned number, WireType type) {
  AppendVarint(out, number << 3U | type);
}

void AppendBytes(std::string& out, unsigned number, std::string_view bytes) {
  AppendKey(out, number, kBytes);
  AppendVarint(out, bytes.size());
  out += bytes;
}

std::string EventAt(double wall_time) {
  std::string event;
  AppendKey(event, 1, kFixed64);
  AppendLittleEndian(event, std::bit_cast<std::uint64_t>(wall_time), 8);
  return event;
}

std::string ScalarEvent(double wall_time, std::int64_t step, std::string_view tag, double value) {
  std::string scalar;
  AppendBytes(scalar, 1, tag);
  AppendKey(scalar, 2, kFixed32);
  AppendLittleEndian(scalar, std::bit_cast<std::uint32_t>(static_cast<float>(value)), 4);
  std::string summary;
  AppendBytes(summary, 1, scalar);
  std::string event = EventAt(wall_time);
  AppendKey(event, 2, kVarint);
  AppendVarint(event, static_cast<std::uint64_t>(step));
  AppendBytes(event, 5, summary);
  return event;
}

}  // namespace

std::uint32_t Crc32c(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = MakeCrcTable();
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes) {
    crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFFU] ^ (crc >> 8U);
  }
  return crc ^ 0xFFFFFFFFU;
}

std::string TensorboardEvents(const ReportRun& run, double start) {
  std::string file;
  std::string version = EventAt(start);
  AppendBytes(version, 3, "brain.Event:2");
  AppendRecord(file, version);
  for (const ReportPoint& point : run.points) {
    const double time = start + point.seconds.value_or(0);
    for (const ReportMeasure& measure : ReportMeasures()) {
      const std::optional<double>& value = point.*measure.field;
      if (value) AppendRecord(file, ScalarEvent(time, point.step, measure.name, *value));
    }
  }
  return file;
}

std::string MetricsCsv(const std::vector<ReportRun>& runs) {
  std::string csv = "run,step";
  for (const ReportMeasure& measure : ReportMeasures()) csv += fmt::format(",{}", measure.name);
  csv += '\n';
  for (const ReportRun& run : runs) {
    const std::string name = CsvField(ShownText(run.name));
    for (const ReportPoint& point : run.points) {
      csv += fmt::format("{},{}", name, point.step);
      for (const ReportMeasure& measure : ReportMeasures()) {
        const std::optional<double>& value = point.*measure.field;
        csv += value ? fmt::format(",{}", *value) : ",";
      }
      csv += '\n';
    }
  }
  return csv;
}

}  // namespace sordino
