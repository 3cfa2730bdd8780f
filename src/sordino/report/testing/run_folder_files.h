// The files of a finished run, made by hand.
#ifndef SORDINO_REPORT_TESTING_RUN_FOLDER_FILES_H_
#define SORDINO_REPORT_TESTING_RUN_FOLDER_FILES_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "sordino/base/sha256.h"
#include "sordino/base/testing/test_folder.h"

namespace sordino {

// A file of weights that holds nothing but its header.
inline std::string WeightsWith(const std::string& metadata) {
  const std::string header = "{\"__metadata__\":{" + metadata + "}}";
  std::string bytes;
  for (unsigned i = 0; i < 8; ++i) {
    bytes += static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * i) & 0xFFU);
  }
  return bytes + header;
}

inline std::string WeightsOf(const std::string& statement) {
  return WeightsWith("\"statement_sha256\":\"" + Sha256Hex(statement) + "\"");
}

// Returns the folder of the run.
inline std::filesystem::path WriteRunFolder(const TestFolder& folder, const std::string& name) {
  const std::string statement = "Privacy statement\nData: digits.\n";
  folder.Write(name + "/config.toml",
               "[data]\nsource = \"/home/somebody/digits\"\n[model]\nname = \"logistic\"\n"
               "[privacy]\nepsilon = 3\ndelta = 1e-05\nclip = 0.1\n[training]\nsteps = 200\n");
  folder.Write(name + "/metrics.jsonl",
               "{\"private\":true,\"step\":100,\"epsilon\":1.5,\"test_accuracy\":0.72,"
               "\"test_loss\":0.9,\"seconds\":2.0}\n"
               "{\"private\":true,\"step\":200,\"epsilon\":2.5,\"test_accuracy\":0.76,"
               "\"test_loss\":0.8,\"seconds\":4.0}\n");
  folder.Write(name + "/event.txt", "add-remove: 200*poisson(0.01, gaussian(1))\n");
  folder.Write(name + "/statement.txt", statement);
  folder.Write(name + "/model.safetensors", WeightsOf(statement));
  folder.Write(name + "/audit.json",
               "{\"schema\":1,\"canaries\":200,\"delta\":1e-05,\"confidence\":0.95,"
               "\"epsilon_claimed\":2.5,\"contradiction\":false,\"every_update\":{"
               "\"epsilon_lower\":{\"one-run\":0.14,\"gdp\":0.42},\"guesses\":25,\"correct\":18,"
               "\"roc\":[[0,0],[0.2,0.4],[1,1]]}}");
  folder.Write(name + "/record.json",
               "{\"schema\":1,\"release\":{\"kind\":\"training\",\"data\":\"digits\"},"
               "\"privacy\":{\"unit\":\"record\",\"failure\":1e-12},"
               "\"not_protected\":[\"what is true of the population\"]}");
  folder.Write(name + "/predictions.json",
               "{\"schema\":1,\"classes\":[\"cat\",\"dog\"],\"confusion\":[[30,10],[0,20]],"
               "\"examples\":[{\"record\":1,\"truth\":0,\"predictions\":[[1,0.75],[0,0.25]],"
               "\"image\":{\"width\":2,\"height\":1,\"channels\":1,\"pixels\":\"AP8=\"}}]}");
  return folder / name;
}

}  // namespace sordino

#endif  // SORDINO_REPORT_TESTING_RUN_FOLDER_FILES_H_
