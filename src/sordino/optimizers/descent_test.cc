// Descents (device/descent.h) beside the steps that they are in place of.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "sordino/optimizers/testing/optimizer_cases.h"

namespace sordino {
namespace {

std::unique_ptr<OptimizerAlgorithm> Made(const Choice& choice,
                                         const std::vector<at::Tensor>& parameters) {
  return Optimizers().Checked(choice).Make(parameters, choice.options);
}

template <typename T>
void Make(const Descent& descent, const std::vector<at::Tensor>& gradients) {
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    T* const momentum =
        descent.momenta.empty() ? nullptr : descent.momenta[k].mutable_data_ptr<T>();
    for (std::int64_t i = 0; i < gradients[k].numel(); ++i) {
      Descend(descent.factors, gradients[k].const_data_ptr<T>()[i],
              descent.parameters[k].mutable_data_ptr<T>() + i,
              momentum == nullptr ? momentum : momentum + i);
    }
  }
}

// Every algorithm that has the form, step by step, to a few roundings; those of all kinds that have
// it are the ones of sgd.
TEST(Descent, IsTheStepOfItsAlgorithm) {
  const at::NoGradGuard no_grad;
  int found = 0;
  for (const OptimizerCase& kind : OptimizerCasesOfAllKinds()) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      std::vector<at::Tensor> own;
      std::vector<at::Tensor> other;
      for (const std::int64_t size : {3, 40}) {
        own.push_back(at::randn({size}, type).set_requires_grad(true));
        other.push_back(own.back().detach().clone().set_requires_grad(true));
      }
      const auto by_formula = Made(kind.options.algorithm, own);
      const auto by_steps = Made(kind.options.algorithm, other);
      for (int step = 0; step < 10; ++step) {
        const double rate = 0.1 / (1 + step);
        const std::optional<Descent> descent = by_formula->AsDescent(rate);
        EXPECT_EQ(descent.has_value(), kind.options.algorithm.name == "sgd") << kind.name;
        if (!descent) break;
        found += step == 0;
        std::vector<at::Tensor> gradients;
        for (at::Tensor& parameter : other) {
          gradients.push_back(at::randn_like(parameter));
          parameter.mutable_grad() = gradients.back();
        }
        by_steps->Step(rate);
        if (type == at::kFloat) {
          Make<float>(*descent, gradients);
        } else {
          Make<double>(*descent, gradients);
        }
      }
      const double tolerance = type == at::kFloat ? 1e-5 : 1e-14;
      for (std::size_t k = 0; k < own.size(); ++k) {
        if (kind.options.algorithm.name != "sgd") break;
        EXPECT_TRUE(at::allclose(own[k], other[k], tolerance, tolerance)) << kind.name;
        if (by_steps->KeptTensors().empty()) continue;
        EXPECT_TRUE(at::allclose(by_formula->Kept(k).tensors[0], by_steps->Kept(k).tensors[0],
                                 tolerance, tolerance))
            << kind.name;
      }
    }
  }
  EXPECT_EQ(found, 12);
}

}  // namespace
}  // namespace sordino
