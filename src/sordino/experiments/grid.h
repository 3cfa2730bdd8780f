// The cells of an experiment: each is one call of a command, in a process of its own.
#ifndef SORDINO_EXPERIMENTS_GRID_H_
#define SORDINO_EXPERIMENTS_GRID_H_

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/experiments/drawn_table.h"
#include "sordino/experiments/experiment.h"

namespace sordino {

// What a command takes, as its help says.
struct CommandFlag {
  std::string name;  // without dashes; of a place on the line: "file"
  bool is_switch = false;
  bool is_place = false;
};
struct CommandFlags {
  std::vector<CommandFlag> flags;

  const CommandFlag* Find(std::string_view name) const;
};
// Of a command by its name ("bench step"); nothing where there is none. Throws Error where the
// command is known and cannot be run here.
using FindCommand = std::function<std::optional<CommandFlags>(const std::string& command)>;

struct Cell {
  std::size_t part = 0;
  std::vector<std::string> labels;  // of the axes of its part, in their order
  int repeat = 1;
  // Behind the name of the program. {run}, {cell}, {cells}, {table}, {test}, {schema} and {data}
  // are still in them. None where the cell reads the output of another one.
  std::vector<std::string> words;
  std::vector<std::size_t> needs;    // earlier cells whose folders are in the words
  std::optional<std::size_t> reads;  // the cell whose output it measures in the place of its own
  std::optional<DrawnTable> table;
  std::string id;  // 16 hex digits of everything that decides what is run: the name of its folder
};

// Throws Error for a command or a setting that is not known, data that could be private without a
// ledger, a file that would be written outside of the folder of its cell, and numbers of a table
// that are not allowed. `device` is given to commands that have one;
// empty: none.
std::vector<Cell> MakeCells(const Experiment& experiment, const FindCommand& find,
                            const std::string& device);

// The part with the labels of the cell in the paths of its measures.
Part MeasuredPart(const Part& part, const Cell& cell);

// The words with the places of files put in.
struct CellPlaces {
  std::filesystem::path run;  // within the folder of the cell
  std::filesystem::path tables;
  std::string data;  // the folder of SORDINO_DATA; empty: not set
};
std::vector<std::string> PlacedWords(const Cell& cell, const CellPlaces& places);

}  // namespace sordino

#endif  // SORDINO_EXPERIMENTS_GRID_H_
