// How good the probabilities of a classifier are, on records that are public: the numbers are exact
// and not private.
#ifndef SORDINO_REPORT_CLASS_QUALITY_H_
#define SORDINO_REPORT_CLASS_QUALITY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace sordino {

// The records whose predicted class has a probability in [k, k + 1) / kCalibrationBins.
inline constexpr std::size_t kCalibrationBins = 15;
struct CalibrationBin {
  std::int64_t records = 0;
  double probability = 0;  // the mean of that of the predicted class
  double right = 0;        // the share of records whose class it is
};

struct ClassQuality {
  double accuracy = 0;
  double log_loss = 0;  // the mean of -log of the probability of the true class, in nats
  // The area under the ROC curve: how often a record of a class has a larger probability of it than
  // a record of another class; ties count half. With more than two classes the mean over classes.
  // Absent where all records are of one class.
  std::optional<double> auroc;
  // The mean distance of probability and right over the records, by bins (Guo et al. 2017, section
  // 2: expected calibration error).
  double calibration_error = 0;
  std::array<CalibrationBin, kCalibrationBins> calibration = {};
};

class ClassQualityMeter {
 public:
  // The probabilities of all classes, which sum to 1, and the true class among them.
  void Add(std::span<const double> probabilities, std::int64_t truth);

  // Of at least one record.
  ClassQuality Quality() const;

 private:
  std::optional<double> Auroc() const;

  std::int64_t records_ = 0;
  std::int64_t right_ = 0;
  double loss_ = 0;
  std::array<CalibrationBin, kCalibrationBins> bins_;  // sums in the place of means
  // The probability of each class, and whether it is the true one, record by record.
  std::vector<std::vector<std::pair<double, bool>>> chances_;
};

}  // namespace sordino

#endif  // SORDINO_REPORT_CLASS_QUALITY_H_
