// What a page may show of the folder of an experiment: its results.json.
//
//   {"experiment": NAME, "title": TEXT, "source": TEXT, "about": TEXT, "public": true,
//    "axes": [{"name": NAME, "values": [...]}],
//    "cells": [{"settings": {AXIS: VALUE}, "repeat": 0, "values": {MEASURE: NUMBER}}],
//    "pictures": ["file.svg"]}
//
// Measures that are not one number are left out. "public" says that the data of the experiment are
// public. Without it, measures that are not known to be safe (IsSafeMeasure) are left out.
#ifndef SORDINO_REPORT_REPORT_EXPERIMENT_H_
#define SORDINO_REPORT_REPORT_EXPERIMENT_H_

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sordino {

struct ReportAxis {
  std::string name;
  std::vector<std::string> values;  // as text, in their order
};

struct ReportCell {
  std::map<std::string, std::string> settings;  // of the axes
  std::map<std::string, double> values;         // by measure
};

struct ReportPicture {
  std::string name;
  std::string svg;
};

struct ReportExperiment {
  std::string name;
  std::string title;
  std::string source;  // which document it repeats; may be empty
  std::string about;   // what is to be seen; may be empty
  bool is_public = false;
  std::vector<ReportAxis> axes;
  std::vector<std::string> measures;
  std::vector<ReportCell> cells;
  std::vector<ReportPicture> pictures;
  std::size_t measures_left_out = 0;
};

// Test results, privacy parameters, times and sizes: what says nothing about private records that
// was not paid for.
bool IsSafeMeasure(std::string_view name);

bool IsExperimentFolder(const std::filesystem::path& folder);  // has a results.json
ReportExperiment ReadReportExperiment(const std::filesystem::path& folder);

}  // namespace sordino

#endif  // SORDINO_REPORT_REPORT_EXPERIMENT_H_
