#include "sordino/report/report_predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sordino/base/error.h"
#include "sordino/base/exact_count.h"
#include "sordino/report/internal/record_table.h"
#include "sordino/report/internal/report_files.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using internal::WholeAt;
using PredictionJson = nlohmann::ordered_json;

constexpr std::uintmax_t kMaxPredictions = 4U << 20U;
constexpr std::size_t kMaxExamples = 64;
constexpr std::size_t kMaxShownClasses = 5;
constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const PredictionJson& ListIn(const PredictionJson& object, const char* key) {
  static const PredictionJson kNothing = PredictionJson::array();
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : kNothing;
}

// Nothing but base64 of exactly the pixels that are announced.
std::optional<ReportImage> ImageOf(const PredictionJson& json) {
  ReportImage image{.width = WholeAt(json, "width").value_or(0),
                    .height = WholeAt(json, "height").value_or(0),
                    .channels = WholeAt(json, "channels").value_or(0),
                    .pixels = ""};
  const auto has_side = [](std::int64_t side) { return side >= 1 && side <= kMaxImageSide; };
  const auto pixels = json.find("pixels");
  if (!has_side(image.width) || !has_side(image.height) ||
      (image.channels != 1 && image.channels != 3) || pixels == json.end() ||
      !pixels->is_string()) {
    return std::nullopt;
  }
  image.pixels = pixels->get<std::string>();
  const auto bytes = static_cast<std::size_t>(image.width * image.height * image.channels);
  const std::size_t digits = image.pixels.find_first_not_of(kBase64Digits);
  const std::size_t end = digits == std::string::npos ? image.pixels.size() : digits;
  if (image.pixels.size() != (bytes + 2) / 3 * 4 || end != (4 * bytes + 2) / 3 ||
      image.pixels.find_first_not_of('=', end) != std::string::npos) {
    return std::nullopt;
  }
  return image;
}

class PredictionsReader {
 public:
  PredictionsReader(const fs::path& file, const PredictionJson& json) : file_(file), json_(json) {}

  ReportPredictions Read() {
    for (const PredictionJson& name : ListIn(json_, "classes")) {
      Require(name.is_string(), "the name of a class is not a text");
      read_.classes.push_back(internal::ShortText(name.get<std::string>()));
    }
    Require(!read_.classes.empty() &&
                read_.classes.size() <= static_cast<std::size_t>(kMaxConfusionClasses),
            fmt::format("it does not have 1 to {} classes", kMaxConfusionClasses));
    ReadConfusion();
    for (const PredictionJson& example : ListIn(json_, "examples")) {
      if (read_.examples.size() == kMaxExamples) break;
      ReadExample(example);
    }
    ReadQuality(internal::ObjectAt(json_, "quality"));
    return std::move(read_);
  }

 private:
  void Require(bool holds, const std::string& otherwise) const {
    if (holds) return;
    throw Error(fmt::format("the file '{}' cannot be shown: {}.", file_.string(), otherwise));
  }

  void ReadConfusion() {
    const PredictionJson& rows = ListIn(json_, "confusion");
    Require(rows.size() == read_.classes.size(), "the matrix has not a row for each class");
    for (const PredictionJson& row : rows) {
      Require(row.is_array() && row.size() == rows.size(), "the matrix is not square");
      std::vector<std::int64_t> counts;
      for (const PredictionJson& count : row) {
        Require(count.is_number_unsigned() && count <= kMaxExactCount,
                "an entry of the matrix is not a count");
        counts.push_back(count.get<std::int64_t>());
      }
      read_.confusion.push_back(std::move(counts));
    }
  }

  // Files of earlier versions have none.
  void ReadQuality(const PredictionJson& json) {
    const auto share = [](const std::optional<double>& number) {
      return std::clamp(number.value_or(0), 0.0, 1.0);
    };
    const PredictionJson& bins = ListIn(json, "calibration");
    if (!internal::NumberAt(json, "log_loss") || bins.size() != kCalibrationBins) return;
    ClassQuality quality = {
        .accuracy = share(internal::NumberAt(json, "accuracy")),
        .log_loss = *internal::NumberAt(json, "log_loss"),
        .auroc = internal::NumberAt(json, "auroc"),
        .calibration_error = share(internal::NumberAt(json, "calibration_error"))};
    for (std::size_t k = 0; k < bins.size(); ++k) {
      quality.calibration[k] = {.records = WholeAt(bins[k], "records").value_or(0),
                                .probability = share(internal::NumberAt(bins[k], "probability")),
                                .right = share(internal::NumberAt(bins[k], "right"))};
    }
    read_.quality = quality;
  }

  bool IsClass(std::int64_t label) const {
    return label >= 0 && label < static_cast<std::int64_t>(read_.classes.size());
  }

  void ReadExample(const PredictionJson& json) {
    Require(json.is_object(), "an example is not an object");
    ReportExample example;
    example.record = WholeAt(json, "record").value_or(0);
    example.truth = WholeAt(json, "truth").value_or(-1);
    Require(IsClass(example.truth), "the class of an example is not there");
    for (const PredictionJson& entry : ListIn(json, "predictions")) {
      const bool is_pair = entry.is_array() && entry.size() == 2 && entry[0].is_number_integer() &&
                           entry[1].is_number() && IsClass(entry[0].get<std::int64_t>());
      Require(is_pair, "a prediction is not a class and its probability");
      example.predictions.emplace_back(entry[0].get<std::int64_t>(),
                                       std::clamp(entry[1].get<double>(), 0.0, 1.0));
      if (example.predictions.size() == kMaxShownClasses) break;
    }
    Require(!example.predictions.empty(), "an example has no prediction");
    example.image = ImageOf(internal::ObjectAt(json, "image"));
    read_.examples.push_back(std::move(example));
  }

  const fs::path& file_;
  const PredictionJson& json_;
  ReportPredictions read_;
};

}  // namespace

std::optional<ReportPredictions> ReadReportPredictions(const fs::path& folder) {
  const fs::path file = folder / "predictions.json";
  const std::optional<PredictionJson> json = internal::ReadReportObject(file, kMaxPredictions);
  if (!json) return std::nullopt;
  return PredictionsReader(file, *json).Read();
}

namespace {

PredictionJson QualityJson(const ClassQuality& quality) {
  PredictionJson bins = PredictionJson::array();
  for (const CalibrationBin& bin : quality.calibration) {
    bins.push_back(
        {{"records", bin.records}, {"probability", bin.probability}, {"right", bin.right}});
  }
  return {{"accuracy", quality.accuracy},
          {"log_loss", quality.log_loss},
          {"auroc", quality.auroc ? PredictionJson(*quality.auroc) : PredictionJson(nullptr)},
          {"calibration_error", quality.calibration_error},
          {"calibration", std::move(bins)}};
}

}  // namespace

std::string PredictionsJson(const ReportPredictions& predictions) {
  PredictionJson examples = PredictionJson::array();
  for (const ReportExample& example : predictions.examples) {
    PredictionJson list = PredictionJson::array();
    for (const auto& [label, probability] : example.predictions) {
      list.push_back({label, std::round(1e6 * probability) / 1e6});
    }
    PredictionJson json = {
        {"record", example.record}, {"truth", example.truth}, {"predictions", std::move(list)}};
    if (const auto& image = example.image) {
      json["image"] = {{"width", image->width},
                       {"height", image->height},
                       {"channels", image->channels},
                       {"pixels", image->pixels}};
    }
    examples.push_back(std::move(json));
  }
  PredictionJson json = {{"schema", 1},
                         {"classes", predictions.classes},
                         {"confusion", predictions.confusion},
                         {"examples", std::move(examples)}};
  if (predictions.quality) json["quality"] = QualityJson(*predictions.quality);
  return json.dump(-1, ' ', false, PredictionJson::error_handler_t::replace) + '\n';
}

std::string Base64(const std::string& bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) {
      return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U;
    };
    const unsigned bits = byte(0) << 16U | byte(1) << 8U | byte(2);
    for (unsigned k = 0; k < 4; ++k) {
      const bool is_there = i + k <= bytes.size();
      text += is_there ? kBase64Digits[bits >> (18U - 6U * k) & 63U] : '=';
    }
  }
  return text;
}

}  // namespace sordino
