#include "sordino/models/internal/token_networks.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <string>

namespace sordino {
namespace {

const ModelShape kSentences{.input = {9}, .tokens = true, .vocabulary = 30, .classes = 3};

class TokenModel : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Model> Make(std::int64_t length) const {
    ModelShape shape = kSentences;
    shape.input = {length};
    return MakeModel(GetParam(), shape, {.width = 16}, c10::kCPU);
  }
};
INSTANTIATE_TEST_SUITE_P(TokenNetworks, TokenModel, ::testing::Values("lstm", "transformer"),
                         [](const auto& test) { return test.param; });

TEST_P(TokenModel, GivesFiniteLogitsAlsoForASentenceOfPaddingAlone) {
  const auto model = Make(9);
  at::Tensor tokens = at::randint(1, 30, {4, 9}, at::kLong);
  tokens[2].zero_();
  const at::Tensor logits = model->Forward(tokens);
  EXPECT_EQ(logits.sizes(), (at::IntArrayRef{4, 3}));
  EXPECT_TRUE(logits.isfinite().all().item<bool>());
  EXPECT_EQ(tokens.ne(0).sum().item<std::int64_t>(), 27) << "the tokens are left as they were";
}

TEST_P(TokenModel, DoesNotSeeThePaddingBehindASentence) {
  const auto model = Make(9);
  at::Tensor tokens = at::randint(1, 30, {2, 9}, at::kLong);
  tokens.slice(1, 5).zero_();
  const at::Tensor expected = model->Forward(tokens);
  for (auto& [name, value] : model->Parameters()) {
    if (name != "embedding.weight" && name != "position") continue;
    const at::NoGradGuard no_grad;
    (name == "position" ? value[0].slice(0, 5) : value[0]).add_(3);
  }
  EXPECT_TRUE(model->Forward(tokens).allclose(expected, 1e-4, 1e-5));
  tokens.select(1, 4).fill_(7);
  tokens.select(1, 3).fill_(0);
  EXPECT_FALSE(model->Forward(tokens).allclose(expected, 1e-4, 1e-5));
}

TEST_P(TokenModel, LooksAtEveryExampleByItself) {
  const auto model = Make(9);
  at::Tensor tokens = at::randint(0, 30, {5, 9}, at::kLong);
  const at::Tensor together = model->Forward(tokens);
  for (std::int64_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(model->Forward(tokens.slice(0, i, i + 1))
                    .allclose(together.slice(0, i, i + 1), 1e-4, 1e-5));
  }
}

TEST_P(TokenModel, HasTheWidthThatWasAskedFor) {
  for (const auto& [name, value] : Make(9)->Parameters()) {
    if (name == "embedding.weight" || name == "classifier.weight") {
      EXPECT_EQ(value.size(1), 16) << name;
    }
  }
}

TEST(TokenNetworks, TheTransformerLooksAtTheOrderOfWords) {
  const auto model = MakeModel("transformer", kSentences, {.width = 16}, c10::kCPU);
  const at::Tensor tokens = at::arange(1, 10).unsqueeze(0);
  EXPECT_FALSE(model->Forward(tokens).allclose(model->Forward(tokens.flip(1)), 1e-4, 1e-6));
}

}  // namespace
}  // namespace sordino
