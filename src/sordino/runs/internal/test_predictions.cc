#include "sordino/runs/internal/test_predictions.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sordino/data/batch_loader.h"
#include "sordino/ledger/data_description.h"
#include "sordino/report/report_predictions.h"

namespace sordino::internal {
namespace {

constexpr std::int64_t kChunkOfTest = 500;  // records in one pass
constexpr std::int64_t kFirstExamples = 8;
constexpr std::size_t kMistakeExamples = 8;
constexpr std::int64_t kClassesOfExample = 3;

struct Mistake {
  double probability = 0;  // of the class that was predicted
  std::int64_t record = 0;
};

class TestPredictor {
 public:
  TestPredictor(const Model& model, const Dataset& test, const FeatureShape& features,
                const TestRecords& records, c10::Device device)
      : model_(model), test_(test), features_(features), records_(records), device_(device) {}

  TestAnswers Predict() {
    const at::NoGradGuard no_grad;
    const DatasetDeclaration& declaration = test_.declaration;
    for (std::int64_t k = 0; k < declaration.classes; ++k) {
      const auto index = static_cast<std::size_t>(k);
      found_.classes.push_back(index < declaration.class_names.size()
                                   ? declaration.class_names[index]
                                   : fmt::format("{}", k));
    }
    const auto classes = static_cast<std::size_t>(declaration.classes);
    found_.confusion.assign(classes, std::vector<std::int64_t>(classes, 0));
    for (std::int64_t begin = 0; begin < test_.size(); begin += kChunkOfTest) {
      Count(begin, std::min(test_.size(), begin + kChunkOfTest));
    }
    if (records_.disclosure == TestDisclosure::kRecords) AddExamples();
    found_.quality = meter_.Quality();
    return {.file = PredictionsJson(found_), .quality = *found_.quality};
  }

 private:
  // Of some records.
  struct Answers {
    at::Tensor chances;  // [records, classes], float64, contiguous
    at::Tensor guesses;  // [records], int64: as Evaluate() takes them
    at::Tensor labels;   // likewise
  };
  Answers Ask(std::int64_t begin, std::int64_t end) const {
    const std::vector<at::Tensor> batch = LoadRange(test_, begin, end, device_);
    const at::Tensor logits = Logits(model_, batch[0], features_).to(at::kCPU);
    return {.chances = at::softmax(logits.to(at::kDouble), 1).contiguous(),
            .guesses = logits.argmax(1),
            .labels = batch[1].to(at::kCPU)};
  }

  void Count(std::int64_t begin, std::int64_t end) {
    const Answers answers = Ask(begin, end);
    const auto classes = static_cast<std::size_t>(answers.chances.size(1));
    const double* chances = answers.chances.const_data_ptr<double>();
    for (std::int64_t i = 0; i < end - begin; ++i, chances += classes) {
      const auto truth = answers.labels[i].item<std::int64_t>();
      meter_.Add({chances, classes}, truth);
      const auto guess = answers.guesses[i].item<std::int64_t>();
      ++found_.confusion[static_cast<std::size_t>(truth)][static_cast<std::size_t>(guess)];
      if (truth == guess) continue;
      mistakes_.push_back({answers.chances[i][guess].item<double>(), begin + i});
    }
  }

  // The first records, and the mistakes that the model was surest of.
  void AddExamples() {
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < std::min(kFirstExamples, test_.size()); ++i) places.push_back(i);
    std::stable_sort(mistakes_.begin(), mistakes_.end(), [](const Mistake& a, const Mistake& b) {
      return a.probability > b.probability;
    });
    std::size_t added = 0;
    for (const Mistake& mistake : mistakes_) {
      if (added == kMistakeExamples) break;
      if (mistake.record < kFirstExamples) continue;
      places.push_back(mistake.record);
      ++added;
    }
    for (const std::int64_t place : places) found_.examples.push_back(ExampleAt(place));
  }

  ReportExample ExampleAt(std::int64_t place) const {
    const Answers answers = Ask(place, place + 1);
    const auto [sorted, order] = answers.chances[0].sort(/*dim=*/0, /*descending=*/true);
    ReportExample example;
    example.record = place + 1;
    example.truth = answers.labels[0].item<std::int64_t>();
    for (std::int64_t k = 0; k < std::min(kClassesOfExample, order.size(0)); ++k) {
      example.predictions.emplace_back(order[k].item<std::int64_t>(), sorted[k].item<double>());
    }
    if (records_.pictures.defined()) example.image = ImageAt(place);
    return example;
  }

  // Every so many pixels of a large picture; nothing for pictures of other channels.
  std::optional<ReportImage> ImageAt(std::int64_t place) const {
    const at::Tensor picture = records_.pictures[place];
    const std::int64_t longest = std::max(picture.size(1), picture.size(2));
    const std::int64_t step = (longest + kMaxImageSide - 1) / kMaxImageSide;
    const at::Tensor rows = picture.slice(1, 0, picture.size(1), step)
                                .slice(2, 0, picture.size(2), step)
                                .permute({1, 2, 0})
                                .contiguous();
    if (rows.size(2) != 1 && rows.size(2) != 3) return std::nullopt;
    const auto* const bytes = reinterpret_cast<const char*>(rows.const_data_ptr<std::uint8_t>());
    return ReportImage{.width = rows.size(1),
                       .height = rows.size(0),
                       .channels = rows.size(2),
                       .pixels = Base64({bytes, static_cast<std::size_t>(rows.numel())})};
  }

  const Model& model_;
  const Dataset& test_;
  const FeatureShape& features_;
  const TestRecords& records_;
  c10::Device device_;
  std::vector<Mistake> mistakes_;
  ClassQualityMeter meter_;
  ReportPredictions found_;
};

}  // namespace

TestDisclosure DisclosureOf(const DataRequest& request) {
  if (request.test.empty()) {
    return IsDatasetName(request.source) ? TestDisclosure::kRecords : TestDisclosure::kNothing;
  }
  for (const std::string& file : {request.test, request.test_labels}) {
    if (!file.empty() && LedgerOfData(file)) return TestDisclosure::kNothing;
  }
  return TestDisclosure::kCounts;
}

TestRecords TestRecordsOf(const DataRequest& request, const DataSplits& data) {
  TestRecords records;
  if (!data.test) return records;
  records.disclosure = DisclosureOf(request);
  const bool shows_pictures = records.disclosure == TestDisclosure::kRecords &&
                              data.test->declaration.kind == InputKind::kImage;
  if (shows_pictures) records.pictures = data.test->inputs;
  return records;
}

std::optional<TestAnswers> TestPredictions(const Model& model, const Dataset& test,
                                           const FeatureShape& features, const TestRecords& records,
                                           c10::Device device) {
  const std::int64_t classes = test.declaration.classes;
  if (records.disclosure == TestDisclosure::kNothing || test.size() == 0 || classes == 0 ||
      classes > kMaxConfusionClasses) {
    return std::nullopt;
  }
  return TestPredictor(model, test, features, records, device).Predict();
}

}  // namespace sordino::internal
