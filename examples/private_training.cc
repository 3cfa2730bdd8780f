// An ordinary libtorch model, trained so that no one digit of its training data shows.
#include <torch/torch.h>

#include <iostream>

#include "sordino/train.h"

int main() {
  namespace nn = torch::nn;
  const sordino::DataSplits digits = sordino::MakeDigits(2000, 500);

  nn::Sequential model(nn::Flatten(), nn::Linear(784, 64), nn::Tanh(), nn::Linear(64, 10));
  const sordino::LossFunction losses = [&](const sordino::Batch& batch) {
    const auto each = nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone);
    return nn::functional::cross_entropy(model->forward(batch[0]), batch[1], each);
  };

  sordino::PlanOptions options;
  options.records = digits.train.size();
  options.batch = 200;
  options.steps = 100;
  const auto plan =
      sordino::PrivacyPlan::ForBudget(options, sordino::Epsilon(3), sordino::Delta(1e-5));

  sordino::Trainer trainer(*plan, sordino::NamedParameters(*model), losses, digits.train,
                           {.algorithm = {"sgd", {{"momentum", 0.9}}}, .learning_rate = 0.5});
  trainer.Run();

  std::cout << plan->Description() << "\nspent epsilon "
            << plan->Epsilon(trainer.steps_done()).upper << " at delta 1e-5\n";
}
