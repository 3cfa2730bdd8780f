#include "sordino/runs/statement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

StatementFacts Facts() {
  StatementFacts facts;
  facts.state = RunState::kFinished;
  facts.data = "digits";
  facts.model = "cnn-mnist: 26,010 parameters, of which 26,010 are trained.";
  facts.records = 60'000;
  facts.epsilon = {2.9, 3};
  facts.delta = 1e-5;
  facts.steps = 100;
  facts.planned_steps = 100;
  facts.plan = "Poisson sampling at rate 0.01.";
  facts.event = "add-remove: 100*poisson(0.01, gaussian(1))";
  facts.normalisation = "constants of the program, not of the data";
  facts.has_test = true;
  return facts;
}

// Lines joined, so that a phrase is found wherever it was wrapped.
std::string Flat(const StatementFacts& facts) {
  std::istringstream in(Statement(facts));
  std::string flat;
  for (std::string word; in >> word;) flat += word + ' ';
  return flat;
}

TEST(Statement, SaysWhoIsProtectedHowStronglyAndWhatIsNotCovered) {
  const std::string text = Flat(Facts());
  EXPECT_THAT(text, HasSubstr("One record of the training data."));
  EXPECT_THAT(text, HasSubstr("adding or removing one record (add-remove adjacency)"));
  EXPECT_THAT(text, HasSubstr("Epsilon is 3, delta 1e-05."));
  EXPECT_THAT(text, HasSubstr("e^epsilon = 20.09 times"));
  EXPECT_THAT(text, HasSubstr("one in 100000"));
  EXPECT_THAT(text, HasSubstr("which records were in which batch"));
  EXPECT_THAT(text, HasSubstr("The test set is public"));
  EXPECT_THAT(text, HasSubstr("constants of the program, not of the data"));
  EXPECT_THAT(text, HasSubstr("Each adds its own epsilon"));
  EXPECT_THAT(text, HasSubstr("100*poisson(0.01, gaussian(1))"));
  EXPECT_THAT(text, Not(HasSubstr("NOT PRIVATE")));
}

TEST(Statement, WarnsOfNumbersThatProtectNobody) {
  StatementFacts facts = Facts();
  EXPECT_THAT(Flat(facts), Not(HasSubstr("WEAK")));
  facts.epsilon = {50, 50.5};
  EXPECT_THAT(Flat(facts), HasSubstr("WEAK: an epsilon above 50"));
  EXPECT_THAT(GuaranteeSentence(facts), StartsWith("WEAK: an epsilon above 50"));
  facts = Facts();
  facts.delta = 1.1 / 60'000;
  EXPECT_THAT(Flat(facts), HasSubstr("WEAK: delta is above one over the 60000 records"));
  EXPECT_THAT(GuaranteeSentence(facts), StartsWith("WEAK: delta"));
  facts.records = 0;  // private
  EXPECT_THAT(Flat(facts), Not(HasSubstr("WEAK")));
}

TEST(Statement, NumbersAreNeverRoundedDown) {
  StatementFacts facts = Facts();
  facts.epsilon = {1, 1.00001};
  EXPECT_THAT(Flat(facts), HasSubstr("Epsilon is 1.001,"));
  facts.epsilon.lower = 0.99999;
  EXPECT_THAT(Flat(facts), HasSubstr("less than 0.9999 for"));
  EXPECT_THAT(Flat(facts), HasSubstr("e^epsilon = 2.719 times"));  // e^1.00001 = 2.71831
}

TEST(Statement, UsersAndOtherAdjacenciesAreNamed) {
  StatementFacts facts = Facts();
  facts.rows_per_user = 5;
  EXPECT_THAT(Flat(facts), HasSubstr("One person, with at most 5 records"));
  EXPECT_THAT(Flat(facts), HasSubstr("all records of one person (at most 5)"));
  facts = Facts();
  facts.adjacency = Adjacency::kReplaceOne;
  EXPECT_THAT(Flat(facts), HasSubstr("replacing one record by any other"));
  EXPECT_THAT(Flat(facts), HasSubstr("the number of records is taken to be known"));
}

TEST(Statement, ARunWithoutPrivacySaysSoFirstAndPromisesNothing) {
  for (const RunPrivacy privacy : {RunPrivacy::kNonPrivate, RunPrivacy::kWithoutNoise}) {
    StatementFacts facts = Facts();
    facts.privacy = privacy;
    facts.epsilon = {kInfinity, kInfinity};
    const std::string text = Statement(facts);
    EXPECT_THAT(text, StartsWith("NOT PRIVATE: "));
    EXPECT_THAT(text, HasSubstr("Nothing."));
    EXPECT_THAT(text, Not(HasSubstr("psilon")));
    EXPECT_THAT(GuaranteeSentence(facts), StartsWith("NOT PRIVATE: "));
  }
  EXPECT_THAT(NotPrivateWarning(RunPrivacy::kWithoutNoise), HasSubstr("--noise 0"));
}

TEST(Statement, ASeededRunSaysSoFirst) {
  StatementFacts facts = Facts();
  facts.privacy = RunPrivacy::kSeeded;
  EXPECT_THAT(Statement(facts), StartsWith("NOT PRIVATE: "));
  EXPECT_THAT(Flat(facts), HasSubstr("It does not hold for this one."));
  EXPECT_THAT(GuaranteeSentence(facts), StartsWith("NOT PRIVATE: "));
}

TEST(Statement, TellsAPlanFromARunThatEndedAndOneThatWasStopped) {
  StatementFacts facts = Facts();
  EXPECT_THAT(Flat(facts), HasSubstr("ended after all of its 100 steps"));
  facts.state = RunState::kInterrupted;
  facts.steps = 40;
  facts.steps_epsilon = {1, 1.5};
  facts.largest_epsilon = {3, 3.25};
  EXPECT_THAT(Flat(facts), HasSubstr("stopped after 40 of 100 steps"));
  EXPECT_THAT(Flat(facts), HasSubstr("40 steps were made of this plan: Poisson"));
  EXPECT_THAT(Flat(facts), HasSubstr("This counts the 40 steps that were made"));
  EXPECT_THAT(Flat(facts), HasSubstr("epsilon is at most 3.25."));
  EXPECT_THAT(GuaranteeSentence(facts), HasSubstr("epsilon is at most 3.25."));
  facts.counts_whole = true;
  EXPECT_THAT(Flat(facts), HasSubstr("This is the epsilon of all 100 planned steps"));
  EXPECT_THAT(Flat(facts), HasSubstr("The 40 steps that were made compose to 1.5,"));
  EXPECT_THAT(GuaranteeSentence(facts), Not(HasSubstr("at most 3.25")));
  facts.counts_whole = false;
  facts.state = RunState::kPlanned;
  EXPECT_THAT(Flat(facts), HasSubstr("PLANNED: nothing below was done yet."));
  EXPECT_THAT(Flat(facts), HasSubstr("Epsilon would be 3"));
  EXPECT_THAT(GuaranteeSentence(facts), HasSubstr("would be (3, 1e-05)-differentially private"));
}

TEST(Statement, LinesFitThePageExceptForTheEvent) {
  std::istringstream in(Statement(Facts()));
  for (std::string line; std::getline(in, line);) {
    if (line.find("poisson(") == std::string::npos) {
      EXPECT_LE(line.size(), 80U) << line;
    }
  }
}

TEST(Statement, OnlyWhatAppliesIsSaid) {
  StatementFacts facts = Facts();
  EXPECT_THAT(Flat(facts), Not(HasSubstr("weights that training began with")));
  facts.pretrained = "mobilenet.safetensors";
  EXPECT_THAT(Flat(facts), HasSubstr("weights that training began with (mobilenet.safetensors)"));
  EXPECT_THAT(Flat(facts), Not(HasSubstr("in exactly one batch")));
  facts.sampling = "In every epoch each record was in exactly one batch.";
  facts.charges_epochs = true;
  facts.lost_steps = 3;
  EXPECT_THAT(Flat(facts), HasSubstr("In every epoch each record was in exactly one batch"));
  EXPECT_THAT(Flat(facts), HasSubstr("3 steps that had been charged are not part of the run"));
  EXPECT_THAT(Flat(facts), HasSubstr("in which batch"));
  facts.has_secret_batches = false;
  EXPECT_THAT(Flat(facts), Not(HasSubstr("in which batch")));
  facts.has_test = false;
  EXPECT_THAT(Flat(facts), Not(HasSubstr("test set")));
  facts.records = 0;
  EXPECT_THAT(Flat(facts), Not(HasSubstr("60000")));
}

}  // namespace
}  // namespace sordino
