#include "sordino/base/component.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sordino/base/error.h"
#include "sordino/base/testing/sample_options.h"

namespace sordino {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr OptionSpec kDecay{.key = "weight-decay",
                            .flag = "--weight-decay",
                            .value_name = "X",
                            .help = "Penalty",
                            .what = "the weight decay",
                            .fallback = 0.0};
constexpr OptionSpec kOtherDecay = kDecay;

constexpr const OptionSpec* kOfHeavy[] = {&kMomentum, &kNesterov, &kDecay};
constexpr const OptionSpec* kOfLight[] = {&kDecay};
constexpr const OptionSpec* kOfWrong[] = {&kOtherDecay};

class Step : public Component {
 public:
  using Component::Component;
  void Check(const OptionValues& options) const override {
    if (options.Switch(kNesterov) && options.Number(kMomentum) == 0) {
      throw Error("there is no momentum to look ahead with.");
    }
  }
};

const Registry<Step>& Steps() {
  static const Step heavy({.name = "heavy", .help = "With a memory", .options = kOfHeavy});
  static const Step light({.name = "light", .help = "Without one", .options = kOfLight});
  static const Registry<Step> list("step", {&heavy, &light});
  return list;
}

std::string MistakeOf(const Choice& choice) {
  try {
    Steps().Checked(choice);
  } catch (const Error& error) {
    return error.what();
  }
  return "no mistake";
}

TEST(Registry, FindsItsComponentsByName) {
  EXPECT_EQ(Steps().Find("light").name(), "light");
  EXPECT_THAT(Steps().names(), ElementsAre("heavy", "light"));
  EXPECT_EQ(MistakeOf("lihgt"),
            "the step is 'lihgt', which is not known; did you mean 'light'? it can be heavy or "
            "light.");
}

TEST(Registry, KnowsEveryOptionOnceAndWhoHasIt) {
  EXPECT_THAT(Steps().options(), ElementsAre(&kMomentum, &kNesterov, &kDecay));
  EXPECT_THAT(Steps().Owners("momentum"), ElementsAre("heavy"));
  EXPECT_THAT(Steps().Owners("weight-decay"), ElementsAre("heavy", "light"));
  EXPECT_THAT(Steps().Owners("nothing"), ElementsAre());
}

TEST(Registry, RefusesAnOptionOfAnotherComponentByName) {
  EXPECT_EQ(MistakeOf({"light", {{"momentum", 0.5}}}),
            "the momentum was given for the step 'light', which does not have it; use 'heavy', or "
            "leave it out.");
  // As written by programs that wrote every option: it says nothing.
  EXPECT_EQ(MistakeOf({"light", {{"momentum", 0.0}, {"nesterov", false}}}), "no mistake");
  EXPECT_THAT(MistakeOf({"light", {{"momentum", 2.0}}}), HasSubstr("it must be at least 0"));
  EXPECT_EQ(MistakeOf({"light", {{"wieght-decay", 0.5}}}),
            "'wieght-decay' is not an option of the step; did you mean 'weight-decay'? its options "
            "are momentum, nesterov or weight-decay.");
}

TEST(Registry, ChecksWhatOptionsHaveToFulfilTogether) {
  EXPECT_EQ(MistakeOf({"heavy", {{"nesterov", true}}}), "there is no momentum to look ahead with.");
  EXPECT_EQ(MistakeOf({"heavy", {{"nesterov", true}, {"momentum", 0.5}}}), "no mistake");
}

TEST(Registry, CompletesAChoiceWithTheRecipe) {
  EXPECT_EQ(Steps().Completed({"heavy", {{"nesterov", true}}}),
            Choice("heavy", {{"nesterov", true}, {"momentum", 0.9}, {"weight-decay", 0.0}}));
  EXPECT_EQ(Steps().Completed({"light", {{"momentum", 0.0}}}),
            Choice("light", {{"weight-decay", 0.0}}));
  EXPECT_THROW(Steps().Completed({"light", {{"momentum", 0.9}}}), Error);
  const Choice once = Steps().Completed("heavy");
  EXPECT_EQ(Steps().Completed(once), once);
}

TEST(Registry, WritesItsHelpAndItsPage) {
  EXPECT_EQ(Steps().ChoiceHelp(), "heavy or light");
  EXPECT_EQ(Steps().OptionHelp(kMomentum), "Share of the last step that is kept (heavy; 0.9)");
  EXPECT_EQ(Steps().OptionHelp(kNesterov), "Look ahead (heavy)");
  EXPECT_EQ(Steps().OptionHelp(kDecay), "Penalty (0)");
  EXPECT_EQ(Steps().Page(),
            "| step | what it is | options |\n"
            "|---|---|---|\n"
            "| `heavy` | With a memory | `momentum`, `nesterov`, `weight-decay` |\n"
            "| `light` | Without one | `weight-decay` |\n"
            "\n"
            "| option | flag | range | left out | |\n"
            "|---|---|---|---|---|\n"
            "| `momentum` | `--momentum` | [0, 1) | 0.9 | Share of the last step that is kept |\n"
            "| `nesterov` | `--nesterov` | true or false | false | Look ahead |\n"
            "| `weight-decay` | `--weight-decay` | [0, ∞) | 0 | Penalty |\n");
}

TEST(RegistryDeath, TwoOfOneNameOrTwoSpecsOfOneKeyStopTheProgram) {
  const Step a({.name = "a", .help = "A", .options = kOfLight});
  const Step same({.name = "a", .help = "B"});
  const Step wrong({.name = "b", .help = "B", .options = kOfWrong});
  EXPECT_DEATH(Registry<Step>("step", {&a, &same}), "the same name");
  EXPECT_DEATH(Registry<Step>("step", {&a, &wrong}), "different options of the same key");
}

}  // namespace
}  // namespace sordino
