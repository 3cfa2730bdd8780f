#include "sordino/training/internal/shared_start.h"

#include <ATen/core/grad_mode.h>

#include <span>
#include <string>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/gradients/named_tensors.h"
#include "sordino/random/generator.h"
#include "sordino/training/internal/packed_tensors.h"

namespace sordino {

RandomSource SharedSource(const TrainerOptions& options, Communicator& communicator) {
  if (options.insecure_seed) return RandomSource(*options.insecure_seed);
  const SharedSecret fresh;
  const std::string bytes = communicator.Broadcast(
      std::string(reinterpret_cast<const char*>(fresh.bytes().data()), SharedSecret::kBytes));
  SORDINO_CHECK(bytes.size() == SharedSecret::kBytes, "the shared secret has another length");
  return RandomSource(SharedSecret(std::as_bytes(std::span(bytes)).first<SharedSecret::kBytes>()));
}

std::vector<NamedParameter> WithSharedValues(std::vector<NamedParameter> parameters,
                                             Communicator& communicator) {
  NamedTensors values;
  if (communicator.IsFirst()) {
    for (const NamedParameter& parameter : parameters) {
      values.emplace_back(parameter.name, parameter.value);
    }
  }
  values = UnpackTensors(communicator.Broadcast(PackTensors(values)));
  const at::NoGradGuard no_grad;
  bool fits = values.size() == parameters.size();
  for (std::size_t i = 0; fits && i < values.size(); ++i) {
    const at::Tensor& own = parameters[i].value;
    fits = values[i].first == parameters[i].name && values[i].second.sizes() == own.sizes() &&
           values[i].second.scalar_type() == own.scalar_type();
    if (fits) own.detach().copy_(values[i].second);
  }
  if (!fits) {
    throw Error(
        "the model of this process has other parameters than that of process 0; start all of them "
        "with the same model.");
  }
  return parameters;
}

void CheckShared(const PrivacyPlan& plan, const std::vector<NamedParameter>& parameters,
                 const TrainerOptions& options) {
  const auto sums = plan.StartChunks(parameters, options.gradients);
  const auto clipping = plan.StartClipping(sums->parameters());
  static_cast<void>(sums->Sensitivity(clipping->TightestPolicy(plan.SmallestClip())));
}

}  // namespace sordino
