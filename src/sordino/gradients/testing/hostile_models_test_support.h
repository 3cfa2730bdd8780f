// The scripts of testdata/hostile_models.json, for all who train them: the tests of the clipper, of
// the trainer and of the command. Whoever uses it defines SORDINO_TESTDATA, the folder of the file.
#ifndef SORDINO_GRADIENTS_TESTING_HOSTILE_MODELS_TEST_SUPPORT_H_
#define SORDINO_GRADIENTS_TESTING_HOSTILE_MODELS_TEST_SUPPORT_H_

#include <c10/core/Device.h>
#include <torch/csrc/jit/api/module.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sordino {

// Six numbers in, logits of three classes out. Keys: name, category, hostile, parameters (sizes),
// parameter_init, buffers, attributes, source, and trigger (what makes it do what it does). Those
// that index by a value bring it into the range first: an index out of range ends all work of a
// process on a GPU (docs/sharp-edges.md).
const std::vector<nlohmann::json>& HostileModels();

// In training mode, with the same weights each time. On a GPU the tensors that the source makes are
// made there, as SourceOnDeviceOfInput() writes it.
torch::jit::Module MakeHostileScript(const nlohmann::json& model, c10::Device device = c10::kCPU);

// The source of a script with `device=x.device` in each call that makes a tensor of nothing.
std::string SourceOnDeviceOfInput(const std::string& source);

// Whether the source has a word that draws random numbers.
bool MayDraw(const nlohmann::json& model);

// What its trigger asks for: steps before the first that counts, and the size of a batch.
struct HostileTrigger {
  std::int64_t warm_up = 0;
  std::optional<std::int64_t> examples;
};
HostileTrigger TriggerOf(const nlohmann::json& model);

// Whether a refusal holds a digit outside of the quotes around names.
bool HasNumber(const std::string& refusal);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_TESTING_HOSTILE_MODELS_TEST_SUPPORT_H_
