// What the flags of `sordino release` say, turned into a request. No data are read here.
#ifndef SORDINO_CLI_RELEASE_OPTIONS_H_
#define SORDINO_CLI_RELEASE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sordino/mechanisms/table_declaration.h"  // IWYU pragma: export
#include "sordino/mechanisms/table_release.h"
#include "sordino/report/deployment_record.h"

namespace sordino {

// The flags as they were typed; lists are written as in base/list_text.h.
struct ReleaseOptions {
  std::string file;
  bool count = false;
  std::vector<std::string> sums;
  std::vector<std::string> means;
  std::vector<std::string> variances;
  std::vector<std::string> vector_means;  // COL,COL,...
  std::vector<std::string> histograms;
  std::vector<std::string> quantiles;       // COL:Q
  std::vector<std::string> bounds;          // [COL=]low,high
  std::vector<std::string> clip_norms;      // [COL,COL,...=]norm
  std::vector<std::string> second_moments;  // [COL=]root
  std::optional<std::uint64_t> expected_records;
  std::vector<std::string> bins;        // [COL=]number or [COL=]edge,edge,...
  std::vector<std::string> categories;  // [COL=]name,name,...
  std::vector<std::string> group_by;    // COL=name,name,... or COL
  std::string schema;                   // a schema file
  bool no_header = false;
  std::string encoding;            // empty: UTF-8
  std::string delimiter;           // empty: a tab for .tsv, else a comma
  std::string quote;               // empty: a double quote
  std::string missing;             // text,text,...
  std::vector<std::string> spend;  // STATISTIC[:COL[:Q]]=epsilon
  std::optional<double> epsilon;
  std::optional<double> delta;
  std::string noise;  // empty: Gaussian if and only if delta was given
  std::string adjacency = "add-remove";
  std::string user;
  std::optional<std::uint32_t> rows_per_user;
  std::string on_error = "refuse";
  std::string ledger;  // empty: the one that a description of the data names, or none
  bool whole = false;  // it may take all of the ledger's budget
  bool dry_run = false;
  std::optional<double> confidence;
  bool show_skipped = false;
  bool show_private = false;
  bool json = false;
  std::optional<std::uint64_t> insecure_seed;
  std::optional<std::string> record;  // a deployment record to write
  ReleasePurpose purpose;
  bool force = false;
};

// Throws Error for a flag that says nothing sensible.
TableRequest MakeTableRequest(const ReleaseOptions& options);

}  // namespace sordino

#endif  // SORDINO_CLI_RELEASE_OPTIONS_H_
