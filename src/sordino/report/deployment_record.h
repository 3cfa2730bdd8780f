// A record of a release for registries of deployments, read by programs: record.json.
//
// Its fields follow what a registry of differential privacy asks for (arXiv 2509.13509): who keeps
// the data and what the release is for, what is released, who is protected, which flavour of
// privacy with which parameters, how it was accounted for, by which implementation, and what is not
// protected. It holds public values only.
#ifndef SORDINO_REPORT_DEPLOYMENT_RECORD_H_
#define SORDINO_REPORT_DEPLOYMENT_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sordino/base/quantity.h"

namespace sordino {

// What only the people behind a release know; empty: not said.
struct ReleasePurpose {
  std::string curator;  // who keeps the data and answers for the release
  std::string use;      // what the release is for
};
inline constexpr std::size_t kMaxPurposeText = 500;  // bytes

// Throws Error where a text is longer, or is not one line of printable UTF-8.
void CheckPurpose(const ReleasePurpose& purpose);

// "Curator: X. Intended use: Y."; empty where nothing was said.
std::string PurposeSentence(const ReleasePurpose& purpose);

// Noise that was lowered as a run went (training/adaptive_noise.h). Its counts are releases that
// were charged.
struct AdaptiveNoiseRecord {
  struct Measurement {
    std::int64_t step = 0;  // steps made before it
    double count = 0;       // noised
    double noise = 0;       // the multiplier of the steps after it
  };
  double first_noise = 0;
  double count_noise = 0;  // standard deviation on a count
  std::vector<Measurement> measurements = {};
};

struct DeploymentFacts {
  ReleasePurpose purpose;
  // What is released, in the order in which it is written: "kind", "data", "model", "steps", ...
  std::vector<std::pair<std::string, std::variant<std::string, std::int64_t>>> release;
  std::optional<AdaptiveNoiseRecord> adaptive_noise;
  std::string warning;       // why it is not private; empty: it is
  bool is_protected = true;  // false: neither clipping nor noise, and no epsilon
  bool counts_users = false;
  std::int64_t rows_per_user = 1;
  bool counts_whole = false;
  Adjacency adjacency = Adjacency::kAddRemove;
  double epsilon = 0;  // upper bound; infinite: none
  double delta = 0;
  double failure = 0;  // probability of what is not in the event (accounting/failures.h)
  std::string accounting =
      "privacy loss distribution of the event, upper end of a certified interval";
  std::string event;
  std::string device = "cpu";
  std::int64_t time = 0;  // seconds since 1970
  bool has_test = false;  // a public test set was looked at
};

// A JSON object, ending in a line break.
std::string DeploymentRecord(const DeploymentFacts& facts);

}  // namespace sordino

#endif  // SORDINO_REPORT_DEPLOYMENT_RECORD_H_
