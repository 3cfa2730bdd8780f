#include "sordino/report/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace sordino {
namespace {

// Check values of RFC 3720, appendix B.4.
TEST(Tensorboard, Crc32cMatchesPublishedValues) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(Crc32c(""), 0U);
}

std::uint64_t Little(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8U | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

// The data of the records; checks what frames them.
std::vector<std::string> Records(const std::string& file) {
  const auto masked = [](std::string_view bytes) {
    const std::uint32_t crc = Crc32c(bytes);
    return static_cast<std::uint32_t>(((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U);
  };
  std::vector<std::string> records;
  for (std::size_t place = 0; place < file.size();) {
    const std::string length = file.substr(place, 8);
    const std::size_t size = Little(length);
    EXPECT_EQ(Little(file.substr(place + 8, 4)), masked(length));
    records.push_back(file.substr(place + 12, size));
    EXPECT_EQ(Little(file.substr(place + 12 + size, 4)), masked(records.back()));
    place += 16 + size;
  }
  return records;
}

TEST(Tensorboard, WritesAScalarForEveryMeasure) {
  ReportRun run;
  ReportPoint point;
  point.step = 300;
  point.epsilon = 1.5;
  point.test_accuracy = 0.25;
  point.seconds = 2;
  run.points = {point};
  const std::vector<std::string> records = Records(TensorboardEvents(run, 1000));
  ASSERT_EQ(records.size(), 4U);  // the version, epsilon, accuracy, seconds
  EXPECT_EQ(records[0].substr(9),
            "\x1A\x0D"
            "brain.Event:2");
  const std::string& epsilon = records[1];
  EXPECT_EQ(std::bit_cast<double>(Little(epsilon.substr(1, 8))), 1002);
  // step 300 as a varint, then a summary of 16 bytes, a value of 14, and a tag of 7
  EXPECT_EQ(epsilon.substr(9, 3), "\x10\xAC\x02");
  EXPECT_EQ(epsilon.substr(12, 4), "\x2A\x10\x0A\x0E");
  EXPECT_EQ(epsilon.substr(16, 9),
            "\x0A\x07"
            "epsilon");
  EXPECT_EQ(epsilon[25], '\x15');
  EXPECT_EQ(std::bit_cast<float>(static_cast<std::uint32_t>(Little(epsilon.substr(26, 4)))), 1.5F);
}

TEST(Tensorboard, CsvHasALineForEveryEvaluation) {
  ReportRun run;
  run.name = "=1+1,\"x\"\n";
  ReportPoint point;
  point.step = 7;
  point.test_accuracy = 0.1;
  run.points = {point};
  EXPECT_EQ(MetricsCsv({run}),
            "run,step,epsilon,test_accuracy,test_loss,test_mean_squared_error,"
            "test_mean_absolute_error,seconds\n\"'=1+1,\"\"x\"\"\\n\",7,,0.1,,,,\n");
}

}  // namespace
}  // namespace sordino
