#include "sordino/gradients/script_model.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"

namespace sordino {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// A whole TorchScript file in which `change` has changed the records.
std::filesystem::path ChangedScript(
    const std::filesystem::path& folder,
    const std::function<void(const std::string& name, std::string& content)>& change) {
  torch::jit::Module module("Net");
  module.define("def forward(self, x):\n    return torch.neg(x)\n");
  module.save((folder / "whole.pt").string());
  caffe2::serialize::PyTorchStreamReader reader((folder / "whole.pt").string());
  const std::filesystem::path changed = folder / "changed.pt";
  caffe2::serialize::PyTorchStreamWriter writer(changed.string());
  for (const std::string& name : reader.getAllRecords()) {
    const auto [bytes, size] = reader.getRecord(name);
    std::string content(static_cast<const char*>(bytes.get()), size);
    change(name, content);
    // The writer adds its own.
    if (name == "version" || name == ".data/serialization_id") continue;
    writer.writeRecord(name, content.data(), content.size());
  }
  writer.writeEndOfFile();
  return changed;
}

TEST(LoadScriptModel, CodeThatIsNestedTooDeeplyIsOneSentence) {
  const TestFolder folder;
  int changed = 0;
  const std::filesystem::path file =
      ChangedScript(folder.path(), [&](const std::string& name, std::string& content) {
        if (!name.ends_with(".py")) return;
        const std::size_t at = content.find("torch.neg(x)");
        if (at == std::string::npos) return;
        content.replace(at, std::string("torch.neg(x)").size(), std::string(200'000, '-') + "x");
        ++changed;
      });
  ASSERT_EQ(changed, 1);
  EXPECT_EXIT(LoadScriptModel(file, at::kCPU), ::testing::ExitedWithCode(2),
              "sordino: the model file '[^\n]+' cannot be loaded: it is damaged, or its code is "
              "nested too deeply; give a file that torch.jit.save wrote.\n$");
}

// One bit of every third byte, one file after the other: whatever libtorch throws ("stoull" where
// the version is no longer a number) is a sentence about the file.
TEST(LoadScriptModel, DamagedFilesAreRefusedWithASentence) {
  const TestFolder folder = TestFolder::InMemory();
  const std::filesystem::path file =
      ChangedScript(folder.path(), [](const std::string&, std::string&) {});
  std::ifstream in(file, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  int refused = 0;
  for (std::size_t i = 0; i < whole.size(); i += 3) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
    try {
      LoadScriptModel(folder.Write("damaged.pt", damaged), at::kCPU);
    } catch (const Error& error) {
      ++refused;
      EXPECT_THAT(error.what(), HasSubstr("is no TorchScript module ("));
      EXPECT_THAT(error.what(), EndsWith("; give a file that torch.jit.save wrote."));
      EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
    }
  }
  EXPECT_GT(refused, 10);
}

TEST(LoadScriptModel, ReadsAWholeFile) {
  const TestFolder folder;
  const ScriptModel model = LoadScriptModel(
      ChangedScript(folder.path(), [](const std::string&, std::string&) {}), at::kCPU);
  EXPECT_EQ(model.Forward({at::ones({2})}).sum().item<float>(), -2);
}

// Of several ranks one evaluates: what it kept would tell a script which rank has a record.
TEST(ScriptModel, KeepsNothingInEvaluationMode) {
  torch::jit::Module module("Counter");
  module.register_parameter("w", at::ones({1}), false);
  module.register_buffer("calls", at::zeros({1}));
  module.define(
      "def forward(self, x: Tensor) -> Tensor:\n"
      "    self.calls.add_(1.0)\n"
      "    return x * self.w + self.calls\n");
  const ScriptModel model(module);
  const ScriptModel copy = model;
  const auto answer = [](const ScriptModel& asked) {
    const at::NoGradGuard no_grad;
    return asked.Forward({at::zeros({1})}).item<float>();
  };
  model.Train(false);
  EXPECT_EQ(answer(model), 1);
  EXPECT_EQ(answer(copy), 1);
  EXPECT_EQ(module.attr("calls").toTensor().item<float>(), 0);
  // Running statistics of a training without privacy.
  copy.Train(true);
  EXPECT_EQ(answer(model), 1);
  EXPECT_EQ(answer(copy), 2);
  EXPECT_EQ(module.attr("calls").toTensor().item<float>(), 2);
}

}  // namespace
}  // namespace sordino
