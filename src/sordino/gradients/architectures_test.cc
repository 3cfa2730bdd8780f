// Real architectures as TorchScript files, made by bench/architectures/make_architectures.py: each
// is accepted, and its clipped sum is that of the loop. SORDINO_ARCHITECTURES names their folder.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/example_loop.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/script_model.h"
#include "sordino/gradients/testing/gradients_test_support.h"

namespace sordino {
namespace {

using Json = nlohmann::json;

at::Tensor InputsOf(const Json& input, std::int64_t examples) {
  std::vector<std::int64_t> sizes = {examples};
  for (const Json& size : input["shape"]) sizes.push_back(size.get<std::int64_t>());
  if (input["kind"] == "image") return at::randn(sizes);
  return at::randint(1, input["vocabulary"].get<std::int64_t>(), sizes);
}

struct Comparison {
  std::string refusal;          // empty: accepted
  std::optional<double> error;  // relative to the loop, where nothing is random
};

LossFunction LossOfScript(const ScriptModel& model) {
  return [&model](const Batch& batch) {
    return at::cross_entropy_loss(model.Forward({batch[0]}), batch[1], {}, at::Reduction::None);
  };
}

double ErrorOf(const ScriptModel& model, const Batch& batch) {
  const FlatClipping policy(ClipNorm(1));
  Clipper clipper(model.Parameters());
  const BoundedSum sum = clipper.ClippedSum(LossOfScript(model), batch, policy);
  const LoopResult loop = LoopClippedSum(LossOfScript(model), batch, clipper.parameters(), policy);
  return RelativeError(sum.gradients, loop.sum);
}

Comparison Try(const std::filesystem::path& file, const Json& entry) {
  constexpr std::int64_t kExamples = 5;
  at::manual_seed(1);
  Batch batch = {InputsOf(entry["input"], kExamples), at::randint(10, {kExamples})};
  try {
    const ScriptModel model = LoadScriptModel(file, at::kCPU);
    Clipper(model.Parameters()).ClippedSum(LossOfScript(model), batch, FlatClipping(ClipNorm(1)));
    if (entry["stochastic"].get<bool>()) {
      if (entry["how"] == "trace") return {};  // its dropout stays on
      model.Train(false);
    }
    const double error = ErrorOf(model, batch);
    if (error <= 1e-5) return {{}, error};
  } catch (const Error& error) {
    return {error.what(), {}};
  }
  // In float64, where a deep network with random weights does not magnify the last bits. A trace
  // may hold numbers of float32.
  torch::jit::Module module = torch::jit::load(file.string());
  module.to(at::kDouble);
  if (entry["input"]["kind"] == "image") batch[0] = batch[0].to(at::kDouble);
  try {
    const ScriptModel model(module);
    if (entry["stochastic"].get<bool>()) model.Train(false);
    return {{}, ErrorOf(model, batch)};
  } catch (const Error& error) {
    return {std::string("in float64: ") + error.what(), {}};
  }
}

TEST(Architectures, AreAcceptedAndAgreeWithTheLoop) {
  const char* folder = std::getenv("SORDINO_ARCHITECTURES");
  if (folder == nullptr) GTEST_SKIP() << "SORDINO_ARCHITECTURES is not set";
  const Json index = Json::parse(std::ifstream(std::filesystem::path(folder) / "index.json"));
  std::map<std::string, bool> accepted;  // whether all files of an architecture are
  std::size_t files = 0;
  double largest = 0;
  for (const Json& entry : index["files"]) {
    const std::string file = entry["file"].get<std::string>();
    const Comparison outcome = Try(std::filesystem::path(folder) / file, entry);
    const bool is_accepted = outcome.refusal.empty();
    bool& all = accepted.try_emplace(entry["name"].get<std::string>(), true).first->second;
    all = all && is_accepted;
    files += is_accepted ? 1 : 0;
    largest = std::max(largest, outcome.error.value_or(0));
    EXPECT_LE(outcome.error.value_or(0), 1e-4) << file;
    std::cout << file << "  " << (is_accepted ? "accepted" : "refused: " + outcome.refusal);
    if (outcome.error) std::cout << ", off by " << *outcome.error;
    std::cout << std::endl;
  }
  const auto whole = std::count_if(accepted.begin(), accepted.end(),
                                   [](const auto& architecture) { return architecture.second; });
  std::cout << files << " of " << index["files"].size() << " files, " << whole << " of "
            << accepted.size() << " architectures with all files accepted, gradients within "
            << largest << std::endl;
}

}  // namespace
}  // namespace sordino
