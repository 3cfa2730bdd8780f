// The results of an experiment as files: tables, one JSON object, pictures and a page of text.
#ifndef SORDINO_EXPERIMENTS_RESULTS_H_
#define SORDINO_EXPERIMENTS_RESULTS_H_

#include <span>
#include <string>

#include "sordino/experiments/experiment.h"
#include "sordino/experiments/runner.h"
#include "sordino/report/chart_picture.h"

namespace sordino {

// {"schema": 1, "experiment": ..., "public": ..., "axes": [{"name": ..., "values": [...]}],
//  "cells": [{"part": ..., "settings": {AXIS: LABEL}, "repeat": ..., "values": {...}, ...}],
//  "pictures": [FILE]}; a series is {"x": [...], "y": [...]}.
std::string ResultsJson(const Experiment& experiment, std::span<const CellResult> results);
// A line for each cell: part, axes, repeat, seconds, memory, measures that are numbers, failure.
std::string ResultsCsv(const Experiment& experiment, std::span<const CellResult> results);
// A line for each point of a series.
std::string SeriesCsv(const Experiment& experiment, std::span<const CellResult> results);
// Means over the repeats with their standard deviations.
ChartPicture ChartOf(const Experiment& experiment, const Picture& picture,
                     std::span<const CellResult> results);
// The picture as SVG: the chart, or the file that the first cell of its part and `where` wrote. An
// empty chart where no cell did.
std::string PictureSvg(const Experiment& experiment, const Picture& picture,
                       std::span<const CellResult> results);
// Markdown: what was run, what was spent, a table for each part and the pictures. `command` is the
// line that made it.
std::string SummaryPage(const Experiment& experiment, std::span<const CellResult> results,
                        const std::string& command);
// What the experiment cost those whose data it read, in one sentence.
std::string SpendingSentence(const Experiment& experiment);

// All of them into the folder. Throws std::runtime_error where that fails.
void WriteResults(const Experiment& experiment, std::span<const CellResult> results,
                  const std::filesystem::path& folder, const std::string& command);

}  // namespace sordino

#endif  // SORDINO_EXPERIMENTS_RESULTS_H_
