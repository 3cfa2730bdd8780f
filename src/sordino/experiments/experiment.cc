#include "sordino/experiments/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/experiments/internal/experiment_check.h"
#include "sordino/experiments/internal/number_text.h"

namespace sordino {
namespace {

constexpr std::size_t kMaxNameLength = 60;

// Names of parts, axes, measures and pictures: of files, of columns and of {AXIS}.
void CheckName(const Experiment& experiment, std::string_view what, const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == ' ';
  };
  if (name.empty() || name.size() > kMaxNameLength ||
      !std::all_of(name.begin(), name.end(), allowed)) {
    throw Error(fmt::format(
        "{}: the name '{}' of {} is not allowed; a name has 1 to {} letters, digits, blanks, '-' "
        "and '_'.",
        experiment.name, name.substr(0, kMaxNameLength), what, kMaxNameLength));
  }
}

class NameSet {
 public:
  NameSet(const Experiment& experiment, std::string what)
      : experiment_(experiment), what_(std::move(what)) {}
  void Add(const std::string& name) {
    CheckName(experiment_, what_, name);
    if (names_.insert(name).second) return;
    throw Error(fmt::format("{}: {} is called '{}' twice; give another name.", experiment_.name,
                            what_, name));
  }

 private:
  const Experiment& experiment_;
  std::string what_;
  std::set<std::string> names_;
};

void CheckPart(const Experiment& experiment, const Part& part) {
  NameSet names(experiment, "an axis or a measure of '" + part.name + "'");
  names.Add(std::string(kSecondsMeasure));
  names.Add(std::string(kMemoryMeasure));
  names.Add("part");
  names.Add("repeat");
  names.Add("failure");
  for (const Axis& axis : part.axes) {
    names.Add(axis.name);
    std::set<std::string> labels;
    for (const AxisValue& value : axis.values) {
      if (labels.insert(value.label).second) continue;
      throw Error(fmt::format("{}: the axis '{}' has the value '{}' twice; give it once.",
                              experiment.name, axis.name, value.label));
    }
  }
  for (const Measure& measure : part.measures) names.Add(measure.name);
}

// What a part reads comes before it and runs a command.
void CheckReads(const Experiment& experiment, const Part& part) {
  if (part.reads.empty()) return;
  const Part* const read = experiment.FindPart(part.reads);
  if (read == nullptr || read >= &part || !read->reads.empty()) {
    throw Error(
        fmt::format("{}: '{}' reads '{}', which is not an earlier part with a command; name one.",
                    experiment.name, part.name, part.reads));
  }
}

void CheckAxisName(const Experiment& experiment, const Picture& picture, const Part& part,
                   const std::string& name) {
  if (part.FindAxis(name) != nullptr) return;
  std::vector<std::string_view> known;
  for (const Axis& axis : part.axes) known.push_back(axis.name);
  throw Error(
      fmt::format("{}: the picture '{}' names the axis '{}', which '{}' does not have; {}{}",
                  experiment.name, picture.name, name, part.name, DidYouMean(name, known),
                  known.empty() ? "it has none." : "it has " + OneOf(known) + "."));
}

void CheckMeasureName(const Experiment& experiment, const Picture& picture, const Part& part,
                      const std::string& name) {
  if (name == kSecondsMeasure || name == kMemoryMeasure || part.FindMeasure(name) != nullptr)
    return;
  std::vector<std::string_view> known = {kSecondsMeasure, kMemoryMeasure};
  for (const Measure& measure : part.measures) known.push_back(measure.name);
  throw Error(fmt::format(
      "{}: the picture '{}' shows '{}', which is not measured by '{}'; {}it can be {}.",
      experiment.name, picture.name, name, part.name, DidYouMean(name, known), OneOf(known)));
}

// It is drawn by the command, and lies in the folder of a cell.
void CheckPictureFile(const Experiment& experiment, const Picture& picture, const Part& part) {
  const bool is_plain = picture.file.ends_with(".svg") && picture.file.front() != '.' &&
                        picture.file.find('/') == std::string::npos;
  const bool is_chart = !picture.x.empty() || !picture.y.empty() || !picture.right.empty() ||
                        !picture.by.empty() || picture.each_repeat;
  if (is_plain && !is_chart && part.reads.empty()) return;
  throw Error(fmt::format(
      "{}: the picture '{}' is the file '{}'; it is the name of an SVG file without a folder that "
      "the command of '{}' writes, and has no x, y, right, by and each-repeat.",
      experiment.name, picture.name, picture.file.substr(0, kMaxNameLength), part.name));
}

void CheckPicture(const Experiment& experiment, const Picture& picture) {
  const Part* const part = experiment.FindPart(picture.part);
  if (part == nullptr) {
    throw Error(fmt::format("{}: the picture '{}' is of the part '{}', which is not there.",
                            experiment.name, picture.name, picture.part));
  }
  if (!picture.file.empty()) {
    CheckPictureFile(experiment, picture, *part);
  } else if (picture.y.empty()) {
    throw Error(fmt::format("{}: the picture '{}' has no y; give the measures that it shows.",
                            experiment.name, picture.name));
  }
  for (const auto* measures : {&picture.y, &picture.right}) {
    for (const std::string& measure : *measures) {
      CheckMeasureName(experiment, picture, *part, measure);
    }
  }
  std::set<std::string> settled;
  if (!picture.x.empty() && part->FindAxis(picture.x) == nullptr) {
    CheckMeasureName(experiment, picture, *part, picture.x);
  } else {
    settled.insert(picture.x);
  }
  for (const std::string& axis : picture.by) {
    CheckAxisName(experiment, picture, *part, axis);
    settled.insert(axis);
  }
  for (const auto& [axis, label] : picture.where) {
    CheckAxisName(experiment, picture, *part, axis);
    settled.insert(axis);
  }
  for (const Axis& axis : part->axes) {
    if (picture.each_repeat) break;  // every cell is a dot of its own
    if (axis.values.size() == 1 || settled.contains(axis.name)) continue;
    throw Error(fmt::format(
        "{}: the picture '{}' mixes the values of the axis '{}'; name it in x or by, or choose one "
        "with where.",
        experiment.name, picture.name, axis.name));
  }
}

}  // namespace

void SetSetting(Settings& settings, const FlagSetting& setting) {
  const auto same = std::find_if(settings.begin(), settings.end(),
                                 [&](const FlagSetting& s) { return s.flag == setting.flag; });
  if (same == settings.end()) {
    if (!setting.is_left_out) settings.push_back(setting);
  } else if (setting.is_left_out) {
    settings.erase(same);
  } else {
    *same = setting;
  }
}

bool Axis::IsNumeric() const {
  return std::all_of(values.begin(), values.end(), [](const AxisValue& value) {
    return internal::NumberIn(value.label).has_value();
  });
}

const Axis* Part::FindAxis(std::string_view wanted) const {
  const auto found =
      std::find_if(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.name == wanted; });
  return found == axes.end() ? nullptr : &*found;
}

const Measure* Part::FindMeasure(std::string_view wanted) const {
  const auto found = std::find_if(measures.begin(), measures.end(),
                                  [&](const Measure& measure) { return measure.name == wanted; });
  return found == measures.end() ? nullptr : &*found;
}

const Part* Experiment::FindPart(std::string_view wanted) const {
  const auto found = std::find_if(parts.begin(), parts.end(),
                                  [&](const Part& part) { return part.name == wanted; });
  return found == parts.end() ? nullptr : &*found;
}

std::uint64_t Experiment::CellCount() const {
  double count = 0;
  for (const Part& part : parts) {
    double cells = repeats;
    for (const Axis& axis : part.axes) cells *= static_cast<double>(axis.values.size());
    count += cells;
  }
  if (count > static_cast<double>(kMaxCells)) {
    throw Error(fmt::format(
        "{} has {:.6g} cells; at most {} are run, so give shorter axes or fewer repeats.", name,
        count, kMaxCells));
  }
  return static_cast<std::uint64_t>(count);
}

namespace internal {

void CheckExperiment(const Experiment& experiment) {
  if (experiment.parts.empty()) {
    throw Error(fmt::format("{} has no parts; write a [[part]] with the command that it runs.",
                            experiment.name));
  }
  NameSet parts(experiment, "a part");
  for (const Part& part : experiment.parts) {
    parts.Add(part.name);
    CheckPart(experiment, part);
    CheckReads(experiment, part);
  }
  NameSet pictures(experiment, "a picture");
  for (const Picture& picture : experiment.pictures) {
    pictures.Add(picture.name);
    if (picture.name.find(' ') != std::string::npos) {
      throw Error(
          fmt::format("{}: the picture '{}' is a file of this name; write it without blanks.",
                      experiment.name, picture.name));
    }
    CheckPicture(experiment, picture);
  }
  experiment.CellCount();
}

}  // namespace internal
}  // namespace sordino
