// A model of one's own, trained privately with the installed package: two noisy rings of points,
// a module that no file of Sordino knows, and a layer-norm that is used twice.
#include <torch/torch.h>

#include <iostream>

#include "sordino/train.h"

namespace {

struct RingNetworkImpl : torch::nn::Module {
  torch::Tensor Forward(const torch::Tensor& points) {
    const torch::Tensor hidden = norm(torch::tanh(first(points)));
    return last(norm(hidden + torch::tanh(second(hidden))));
  }

  torch::nn::Linear first = register_module("first", torch::nn::Linear(2, 16));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(16, 16));
  torch::nn::LayerNorm norm =
      register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({16})));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(16, 2));
};
TORCH_MODULE(RingNetwork);

sordino::Dataset Rings(std::int64_t count) {
  const torch::Tensor labels = torch::arange(count) % 2;
  const torch::Tensor angle = 2 * M_PI * torch::rand({count});
  const torch::Tensor radius = 0.4 + 0.4 * labels + 0.05 * torch::randn({count});
  sordino::Dataset data;
  data.declaration.name = "rings";
  data.declaration.kind = sordino::InputKind::kFeatures;
  data.declaration.shape = {2};
  data.declaration.classes = 2;
  data.inputs = torch::stack({radius * torch::cos(angle), radius * torch::sin(angle)}, 1);
  data.labels = labels;
  return data;
}

}  // namespace

int main() {
  torch::manual_seed(1);
  const sordino::Dataset train = Rings(2000);
  RingNetwork model;
  const sordino::LossFunction losses = [&](const sordino::Batch& batch) {
    const auto each = torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone);
    return torch::nn::functional::cross_entropy(model->Forward(batch[0]), batch[1], each);
  };

  sordino::PlanOptions options;
  options.records = train.size();
  options.batch = 200;
  options.steps = 60;
  const auto plan =
      sordino::PrivacyPlan::ForBudget(options, sordino::Epsilon(4), sordino::Delta(1e-5));
  sordino::Trainer trainer(*plan, sordino::NamedParameters(*model), losses, train,
                           {.algorithm = {"sgd", {{"momentum", 0.9}}}, .learning_rate = 1});
  trainer.Run();

  const sordino::Dataset test = Rings(500);
  const torch::Tensor right = model->Forward(test.inputs).argmax(1) == test.labels;
  std::cout << "epsilon " << plan->Epsilon(trainer.steps_done()).upper << " accuracy "
            << right.to(torch::kDouble).mean().item<double>() << '\n';
}
