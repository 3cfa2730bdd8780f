// The deployment record of `sordino release` (report/deployment_record.h).
#ifndef SORDINO_CLI_RELEASE_RECORD_H_
#define SORDINO_CLI_RELEASE_RECORD_H_

#include <optional>

#include "sordino/base/output_file.h"
#include "sordino/cli/release_options.h"
#include "sordino/mechanisms/table_release.h"

namespace sordino {

class ReleaseRecord {
 public:
  // Throws Error where the file may not be written, or there is none for --curator and --use: make
  // it before anything is charged.
  explicit ReleaseRecord(const ReleaseOptions& options);

  // Nothing where no record was asked for.
  void Write(const TableRequest& request, const TableRelease& release,
             const TableResult& result) const;

 private:
  const ReleaseOptions& options_;
  std::optional<OutputFile> file_;
};

}  // namespace sordino

#endif  // SORDINO_CLI_RELEASE_RECORD_H_
