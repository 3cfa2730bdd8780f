#include "sordino/cli/release_record.h"

#include <ctime>
#include <filesystem>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/report/deployment_record.h"

namespace sordino {
namespace {

constexpr OutputKind kRecordFile = {"a deployment record", ".json", "{\n  \"schema\": 1,"};

}  // namespace

ReleaseRecord::ReleaseRecord(const ReleaseOptions& options) : options_(options) {
  CheckPurpose(options.purpose);
  if (!options.record) {
    if (options.purpose.curator.empty() && options.purpose.use.empty()) return;
    throw Error("--curator and --use are written into a record; give --record FILE too.");
  }
  const std::vector<std::filesystem::path> inputs = {options.file, options.schema, options.ledger};
  file_.emplace(OutputRequest{"--record", *options.record, kRecordFile, options.force}, inputs);
}

void ReleaseRecord::Write(const TableRequest& request, const TableRelease& release,
                          const TableResult& result) const {
  if (!file_) return;
  DeploymentFacts facts;
  facts.purpose = options_.purpose;
  facts.release = {
      {"kind", "statistics"},
      {"what", DescribeRelease(request, "-")},
      {"data", options_.file == "-" ? std::string("standard input")
                                    : std::filesystem::path(options_.file).filename().string()}};
  if (!result.is_private) facts.warning = "NOT PRIVATE: the noise comes from --insecure-seed.";
  facts.counts_users = !request.user_column.empty();
  facts.rows_per_user = request.rows_per_user;
  facts.adjacency = request.adjacency;
  facts.epsilon = result.epsilon.value();
  facts.delta = result.delta.value();
  facts.failure = release.failure();
  facts.accounting = "sum of the epsilons and deltas of the statistics";
  facts.event = release.event().ToString();
  facts.time = std::time(nullptr);
  file_->Write(DeploymentRecord(facts));
}

}  // namespace sordino
