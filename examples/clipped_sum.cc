// The clipped sum of the gradients of 64 images under an ordinary model, and how much one image
// can change it.
#include <torch/torch.h>

#include <iostream>
#include <vector>

#include "sordino/train.h"

int main() {
  namespace nn = torch::nn;
  nn::Sequential model(nn::Conv2d(1, 8, 5), nn::ReLU(), nn::Flatten(), nn::Linear(8 * 24 * 24, 10));
  std::vector<sordino::NamedParameter> parameters;
  for (const auto& item : model->named_parameters()) {
    parameters.push_back({item.key(), item.value()});
  }
  const sordino::LossFunction loss = [&](const sordino::Batch& batch) {
    const auto each = nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone);
    return nn::functional::cross_entropy(model->forward(batch[0]), batch[1], each);
  };
  const sordino::Batch batch = {torch::randn({64, 1, 28, 28}), torch::randint(10, {64})};
  sordino::Clipper clipper(parameters);
  const auto sum = clipper.ClippedSum(loss, batch, sordino::FlatClipping(sordino::ClipNorm(1)));
  std::cout << "one image moves the sum by at most " << sum.sensitivity.value() << '\n';
}
