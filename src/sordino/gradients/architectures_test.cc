// Real architectures as TorchScript files, made by bench/architectures/make_architectures.py: each
// is accepted, and its clipped sum is that of the loop. SORDINO_ARCHITECTURES names their folder.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/example_loop.h"
#include "sordino/gradients/flat_clipping.h"
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

// "accepted", with the distance to the loop where nothing is random, or the reason of a refusal.
std::string Try(const std::filesystem::path& file, const Json& entry) {
  constexpr std::int64_t kExamples = 5;
  at::manual_seed(1);
  const ScriptModel model = LoadScriptModel(file, at::kCPU);
  const LossFunction loss = [&](const Batch& batch) {
    return at::cross_entropy_loss(model.Forward({batch[0]}), batch[1], {}, at::Reduction::None);
  };
  const Batch batch = {InputsOf(entry["input"], kExamples), at::randint(10, {kExamples})};
  const FlatClipping policy(ClipNorm(1));
  Clipper clipper(model.Parameters());
  const BoundedSum sum = clipper.ClippedSum(loss, batch, policy);
  if (!entry["dropout"].is_null() || entry["stochastic"].get<bool>()) return "accepted";
  const LoopResult loop = LoopClippedSum(loss, batch, clipper.parameters(), policy);
  const double error = RelativeError(sum.gradients, loop.sum);
  return error < 1e-3 ? "accepted" : "WRONG by " + std::to_string(error);
}

TEST(Architectures, AreAcceptedAndAgreeWithTheLoop) {
  const char* folder = std::getenv("SORDINO_ARCHITECTURES");
  if (folder == nullptr) GTEST_SKIP() << "SORDINO_ARCHITECTURES is not set";
  const Json index = Json::parse(std::ifstream(std::filesystem::path(folder) / "index.json"));
  int accepted = 0;
  int wrong = 0;
  for (const Json& entry : index["files"]) {
    std::string outcome;
    try {
      outcome = Try(std::filesystem::path(folder) / entry["file"].get<std::string>(), entry);
    } catch (const Error& error) {
      outcome = std::string("refused: ") + error.what();
    }
    accepted += outcome == "accepted" ? 1 : 0;
    wrong += outcome.starts_with("WRONG") ? 1 : 0;
    std::cout << entry["file"].get<std::string>() << "  " << outcome << std::endl;
  }
  std::cout << accepted << " of " << index["files"].size() << " accepted" << std::endl;
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace sordino
