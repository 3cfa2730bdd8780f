// Event files that TensorBoard reads.
//
// An event file is a sequence of records: length (8 bytes, little endian), masked CRC-32C of these
// bytes, the data, masked CRC-32C of the data. The data are protocol buffers of the message Event
// (tensorflow/core/util/event.proto): wall_time = 1 (double), step = 2 (int64), file_version = 3
// (string) or summary = 5 with value = 1 of tag = 1 (string) and simple_value = 2 (float).
#ifndef SORDINO_REPORT_TENSORBOARD_H_
#define SORDINO_REPORT_TENSORBOARD_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "sordino/report/report_run.h"

namespace sordino {

// Castagnoli's polynomial, as in iSCSI (RFC 3720).
std::uint32_t Crc32c(std::string_view bytes);

// Everything that was measured on the public test set, and epsilon, at its step. `start` is the
// second since 1970 that the run's own seconds are added to.
std::string TensorboardEvents(const ReportRun& run, double start);

// One line for each evaluation: run, step and the measures of ReportMeasures(); what was not
// measured is empty.
std::string MetricsCsv(const std::vector<ReportRun>& runs);

}  // namespace sordino

#endif  // SORDINO_REPORT_TENSORBOARD_H_
