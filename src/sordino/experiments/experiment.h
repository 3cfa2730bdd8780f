// An experiment: commands of the program over a grid of settings, what is measured of each, and the
// pictures that are drawn of it. It is a TOML file:
//
//   title = "Accuracy against noise"
//   source = "where it was shown first"
//   about = "what is to be seen"
//   minutes = 5                # expected on two cores; quick-minutes for the quick form
//   repeats = 3                # quick-repeats for the quick form
//   public-data = true         # nothing is spent; else commands on data need the setting ledger
//   document = "what the document says of it"
//   differs = "why the results of the full form differ from that"
//
//   [[part]]
//   name = "train"
//   command = "train"          # or "bench step", ...
//   reads = "attack"           # in the place of a command: runs nothing and measures the cells of
//                              # an earlier part once more, for each value of axes of its own
//   [part.settings]            # flags of the command; {repeat} and {AXIS} stand for values, and
//                              # {PART.run} and {PART.cell} for folders of an earlier part's cell
//   data = "fashion-mnist"
//   seed = "{repeat}"
//   [part.quick]               # settings that the quick form replaces or adds
//   data = "digits"
//   [[part.axis]]
//   name = "noise"             # a flag, or any name with flag = false
//   values = [0.5, 1, 2]       # or sets of flags: [{label = "small", clip = 0.1}, ...]
//   quick = [0.5, 1]
//   [[part.measure]]
//   name = "accuracy"
//   path = "test_accuracy"     # in what the command prints with --json; {AXIS} stands for values
//   [[part.measure]]
//   name = "loss"
//   column = "test_loss"       # of the metrics of a training run, against its column "step"
//   take = "rises"             # of a curve: how often it rises, instead of the curve
//   table = false              # for pictures alone
//
//   [[picture]]
//   name = "accuracy"
//   part = "train"
//   x = "noise"                # an axis or a measure; left out where y is a series
//   y = ["accuracy"]
//   right = ["epsilon"]        # measures against a second axis on the right
//   by = ["clip"]              # axes whose values are curves
//   x-log = true
//   file = "rebuilt.svg"       # in the place of x, y and by: the picture that the command of the
//                              # first cell drew with a setting such as picture = "rebuilt.svg"
//
// Cells are the values of the axes of a part times the repeats. Whoever reads a file gets it
// checked: every name that a picture uses is there, and an axis that is neither x nor by is fixed
// by `where`.
#ifndef SORDINO_EXPERIMENTS_EXPERIMENT_H_
#define SORDINO_EXPERIMENTS_EXPERIMENT_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sordino {

inline constexpr std::uint64_t kMaxCells = 10'000;
inline constexpr int kMaxRepeats = 1'000;
inline constexpr std::uintmax_t kMaxExperimentBytes = std::uintmax_t{1} << 20;

// A flag without its dashes, and its values; none for a switch. `false` leaves out a flag that was
// set before: a set of flags takes back what the part says.
struct FlagSetting {
  std::string flag;
  std::vector<std::string> values;
  bool is_left_out = false;
};
using Settings = std::vector<FlagSetting>;

// Replaces the setting of the same flag, adds it, or removes it.
void SetSetting(Settings& settings, const FlagSetting& setting);

struct AxisValue {
  std::string label;
  Settings settings;
};

struct Axis {
  std::string name;
  std::vector<AxisValue> values;

  bool IsNumeric() const;  // all labels are numbers
};

// One number of a curve: how many points lie above the one before, by more than kRiseShare of the
// first.
inline constexpr std::string_view kTakeRises = "rises";
inline constexpr double kRiseShare = 1e-6;

struct Measure {
  std::string name;
  std::string path;     // keys with dots between them, in the JSON of the command; or
  std::string column;   // of metrics.jsonl in the run folder
  std::string against;  // the other column, or the path of another list; empty: the position
  std::string take{};   // empty: what is found
  bool in_table = true;
};

// Rows that are drawn for the cells of a part: a CSV file, a test file and a schema, which the
// settings name as {table}, {test} and {schema}. Both numbers may be {AXIS}.
struct MadeUpTable {
  std::string records;  // empty: no table
  std::string columns;
  std::int64_t test_records = 0;
};

struct Part {
  std::string name;
  std::string command;  // empty where it reads another part
  std::string reads;
  Settings settings;
  std::vector<Axis> axes;
  std::vector<Measure> measures;
  MadeUpTable table;

  const Axis* FindAxis(std::string_view wanted) const;
  const Measure* FindMeasure(std::string_view wanted) const;
};

struct Picture {
  std::string name;  // of its file, without .svg
  std::string title;
  std::string part;
  std::string file;  // that the command wrote; empty: a chart of measures
  std::string x;
  std::vector<std::string> y;
  std::vector<std::string> right;  // measures against an axis of their own
  std::vector<std::string> by;
  std::vector<std::pair<std::string, std::string>> where;  // axis and label
  std::string x_label;
  std::string y_label;
  std::string right_label;
  bool x_log = false;
  bool y_log = false;
  bool right_log = false;
  bool each_repeat = false;  // a dot for each repeat instead of their mean
};

struct Experiment {
  std::string name;  // of its file, without .toml
  std::string text;  // of its file
  bool quick = false;
  std::string title;
  std::string source;
  std::string about;
  std::string document;  // what it says of this
  std::string differs;   // why results of the full form differ from that
  double minutes = 0;    // of the form that was asked for
  int repeats = 1;
  bool public_data = false;
  std::vector<Part> parts;
  std::vector<Picture> pictures;

  const Part* FindPart(std::string_view wanted) const;
  // Throws Error for more than kMaxCells.
  std::uint64_t CellCount() const;
};

// The measures that every cell has.
inline constexpr std::string_view kSecondsMeasure = "seconds";
inline constexpr std::string_view kMemoryMeasure = "memory_mb";

// Throw Error with the name of the file and the line where it is not an experiment.
Experiment ParseExperiment(std::string_view text, const std::string& name, bool quick);
Experiment ReadExperiment(const std::filesystem::path& file, bool quick);

}  // namespace sordino

#endif  // SORDINO_EXPERIMENTS_EXPERIMENT_H_
