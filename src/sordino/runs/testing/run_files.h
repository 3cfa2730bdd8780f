// What tests look at in the folder of a run.
#ifndef SORDINO_RUNS_TESTING_RUN_FILES_H_
#define SORDINO_RUNS_TESTING_RUN_FILES_H_

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <fstream>
#include <ios>
#include <sstream>
#include <string>

#include "sordino/models/safetensors.h"

namespace sordino {

inline std::string ReadRunFile(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

// The names and bytes of the weights of a run, without the metadata of their file.
inline std::string WeightsOfRun(const std::filesystem::path& run) {
  std::ostringstream text;
  for (const auto& [tensor, value] : ReadSafetensors(run / "model.safetensors").tensors) {
    const at::Tensor flat = value.contiguous();
    text << tensor << ' ';
    text.write(static_cast<const char*>(flat.const_data_ptr()),
               static_cast<std::streamsize>(flat.nbytes()));
  }
  return text.str();
}

}  // namespace sordino

#endif  // SORDINO_RUNS_TESTING_RUN_FILES_H_
