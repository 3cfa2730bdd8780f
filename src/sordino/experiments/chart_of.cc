#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "sordino/experiments/internal/cell_group.h"
#include "sordino/experiments/internal/number_text.h"
#include "sordino/experiments/results.h"
#include "sordino/experiments/results_folder.h"

namespace sordino {
namespace {

using internal::CellGroup;

class Chart {
 public:
  Chart(const Experiment& experiment, const Picture& picture, std::span<const CellResult> results)
      : picture_(picture), part_(*experiment.FindPart(picture.part)) {
    const auto index = static_cast<std::size_t>(&part_ - experiment.parts.data());
    groups_ = internal::GroupsOf(index, results);
    x_axis_ = part_.FindAxis(picture.x);
    chart_.title = picture.title;
    chart_.x = {.label = picture.x_label, .logarithmic = picture.x_log, .names = {}};
    chart_.y = {.label = picture.y_label, .logarithmic = picture.y_log, .names = {}};
    if (!picture.right.empty()) {
      chart_.right = {.label = picture.right_label, .logarithmic = picture.right_log, .names = {}};
    }
    chart_.joined = !picture.each_repeat;
    if (experiment.repeats > 1 && !picture.each_repeat) {
      chart_.caption =
          fmt::format("mean of {} repeats; bars: standard deviation", experiment.repeats);
    }
    if (x_axis_ != nullptr && !x_axis_->IsNumeric()) {
      chart_.joined = false;
      chart_.x.logarithmic = false;
      for (const AxisValue& value : x_axis_->values) chart_.x.names.push_back(value.label);
    }
  }

  ChartPicture Make() {
    for (const std::string& measure : picture_.y) AddMeasure(measure, false);
    for (const std::string& measure : picture_.right) AddMeasure(measure, true);
    std::erase_if(chart_.curves, [](const ChartCurve& curve) { return curve.points.empty(); });
    return chart_;
  }

 private:
  const std::string& LabelOf(const CellGroup& group, std::string_view axis) const {
    return group.labels[static_cast<std::size_t>(part_.FindAxis(axis) - part_.axes.data())];
  }

  bool IsShown(const CellGroup& group) const {
    return !group.cells.empty() &&
           std::all_of(picture_.where.begin(), picture_.where.end(),
                       [&](const auto& pair) { return LabelOf(group, pair.first) == pair.second; });
  }

  void AddMeasure(const std::string& measure, bool on_right) {
    for (const CellGroup& group : groups_) {
      if (IsShown(group)) Add(measure, group, on_right);
    }
  }

  // The curve that a group belongs to; curves stand in the order in which they are met.
  ChartCurve& CurveOf(const std::string& measure, const CellGroup& group, bool on_right) {
    std::string name;
    for (const std::string& axis : picture_.by) {
      const std::string& label = LabelOf(group, axis);
      name += (name.empty() ? "" : ", ") +
              (internal::NumberIn(label) ? fmt::format("{} {}", axis, label) : label);
    }
    if (picture_.y.size() + picture_.right.size() > 1 || name.empty())
      name += (name.empty() ? "" : ", ") + measure;
    const auto found = std::find_if(
        chart_.curves.begin(), chart_.curves.end(),
        [&](const ChartCurve& curve) { return curve.name == name && curve.on_right == on_right; });
    if (found != chart_.curves.end()) return *found;
    chart_.curves.push_back({.name = name, .points = {}, .on_right = on_right});
    return chart_.curves.back();
  }

  double PlaceOf(const CellGroup& group) const {
    if (x_axis_ == nullptr) return internal::StatisticsOf(part_, group, picture_.x).mean;
    const std::string& label = LabelOf(group, picture_.x);
    if (chart_.x.names.empty()) return *internal::NumberIn(label);
    return static_cast<double>(std::find(chart_.x.names.begin(), chart_.x.names.end(), label) -
                               chart_.x.names.begin());
  }

  void Add(const std::string& measure, const CellGroup& group, bool on_right) {
    ChartCurve& curve = CurveOf(measure, group, on_right);
    if (picture_.x.empty()) {
      AddSeries(measure, group, curve);
    } else if (picture_.each_repeat) {
      for (const CellResult* const cell : group.cells) {
        const double x = x_axis_ != nullptr ? PlaceOf(group)
                                            : internal::ValueOf(part_, *cell, picture_.x).number;
        curve.points.push_back({x, internal::ValueOf(part_, *cell, measure).number, 0});
      }
    } else {
      const internal::Statistics y = internal::StatisticsOf(part_, group, measure);
      curve.points.push_back({PlaceOf(group), y.mean, y.deviation});
    }
  }

  // Point by point over the repeats, as far as all of them go.
  void AddSeries(const std::string& measure, const CellGroup& group, ChartCurve& curve) const {
    std::vector<MeasuredValue> series;
    std::size_t length = SIZE_MAX;
    for (const CellResult* const cell : group.cells) {
      series.push_back(internal::ValueOf(part_, *cell, measure));
      length = std::min(length, series.back().y.size());
    }
    for (std::size_t i = 0; i < length; ++i) {
      std::vector<double> x;
      std::vector<double> y;
      for (const MeasuredValue& one : series) {
        x.push_back(one.x[i]);
        y.push_back(one.y[i]);
      }
      const internal::Statistics at = internal::StatisticsOf(y);
      curve.points.push_back({internal::StatisticsOf(x).mean, at.mean, at.deviation});
    }
  }

  const Picture& picture_;
  const Part& part_;
  const Axis* x_axis_ = nullptr;
  std::vector<CellGroup> groups_;
  ChartPicture chart_;
};

}  // namespace

std::string PictureSvg(const Experiment& experiment, const Picture& picture,
                       std::span<const CellResult> results) {
  constexpr std::uintmax_t kMaxSvgBytes = std::uintmax_t{1} << 20;
  const ChartPicture chart = ChartOf(experiment, picture, results);
  if (picture.file.empty()) return ChartSvg(chart);
  const Part& part = *experiment.FindPart(picture.part);
  for (const CellResult& result : results) {
    const bool is_shown =
        result.failure.empty() && &experiment.parts[result.cell.part] == &part &&
        std::all_of(picture.where.begin(), picture.where.end(), [&](const auto& pair) {
          const auto axis = part.FindAxis(pair.first) - part.axes.data();
          return result.cell.labels[static_cast<std::size_t>(axis)] == pair.second;
        });
    if (!is_shown) continue;
    const std::optional<std::string> svg =
        ReadSmallFile(result.folder / picture.file, kMaxSvgBytes);
    if (svg && svg->starts_with("<svg")) return *svg;
  }
  return ChartSvg(chart);
}

ChartPicture ChartOf(const Experiment& experiment, const Picture& picture,
                     std::span<const CellResult> results) {
  return Chart(experiment, picture, results).Make();
}

}  // namespace sordino
