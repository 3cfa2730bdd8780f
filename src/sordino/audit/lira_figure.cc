// How well LiRA tells the records of an overfitted network from others, beside the same network
// trained with privacy:
//
//   lira_figure [DATA [STEPS [BATCH [SHADOWS [EPSILON]]]]]
//
// cnn-mnist on 1,000 digits of DATA (digits), STEPS (600) steps of Adam with batches of BATCH
// (100), without privacy, or with EPSILON at delta 1e-5. SHADOWS + 2 (18) models are trained on
// random halves of 2,000 digits, in pairs that see opposite halves. Each of them is attacked in
// turn, with the models but its own pair as its shadows. Shown for each attack: the mean over the
// targets of the area and of the true positive rate at 1 % of false ones, its least and largest
// value, and the interval of Clopper and Pearson of all guesses about members together, as if they
// were independent. Exit code 1 where a target of a private run passes what its event allows.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "sordino/accounting/tradeoff.h"
#include "sordino/audit/membership.h"
#include "sordino/audit/shadow_models.h"
#include "sordino/data/catalog.h"
#include "sordino/lower_bounds/binomial.h"
#include "sordino/lower_bounds/two_worlds.h"
#include "sordino/runs/train_config.h"
#include "sordino/training/privacy_plan.h"

namespace sordino {
namespace {

constexpr std::int64_t kRecords = 1000;
constexpr double kFalseRate = 0.01;
constexpr double kSignificance = 0.05;

struct Figure {
  std::string data = "digits";
  std::int64_t steps = 600;
  double batch = 100;
  std::int64_t shadows = 16;
  double epsilon = 0;  // 0: without privacy
};

TrainedRun RunOf(const Figure& figure, const DatasetDeclaration& declaration) {
  TrainedRun run;
  run.data = declaration;
  run.data.records = kRecords;
  TrainConfig config;
  config.data.source = figure.data;
  config.model.name = "cnn-mnist";
  config.privacy.delta = 1e-5;
  config.training.batch = figure.batch;
  config.training.steps = figure.steps;
  if (figure.epsilon > 0) {
    config.privacy.epsilon = figure.epsilon;
  } else {
    config.run.non_private = true;
    config.training.optimizer = "adam";
  }
  run.config = Completed(config, run.data);
  return run;
}

struct Outcome {
  double area = 0;
  std::vector<double> rates;
};

std::vector<double> Of(const std::vector<double>& scores, const at::Tensor& marked) {
  std::vector<double> chosen;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (marked.const_data_ptr<bool>()[i]) chosen.push_back(scores[i]);
  }
  return chosen;
}

std::map<std::string, Outcome> Attacked(const ShadowConfidences& models) {
  std::map<std::string, Outcome> outcomes;
  const std::int64_t count = models.size();
  for (std::int64_t target = 0; target < count; ++target) {
    std::vector<std::int64_t> rest;
    for (std::int64_t i = 0; i < count; ++i) {
      if (i / 2 != target / 2) rest.push_back(i);
    }
    const at::Tensor places = at::tensor(rest, at::kLong);
    const ShadowConfidences shadows = {.confidences = models.confidences.index_select(0, places),
                                       .saw = models.saw.index_select(0, places)};
    const at::Tensor saw = models.saw[target].contiguous();
    const at::Tensor missed = saw.logical_not();
    for (const AttackScores& attack :
         MembershipScores(models.confidences[target], shadows, missed)) {
      const TwoWorlds worlds(Of(attack.scores, saw), Of(attack.scores, missed));
      Outcome& outcome = outcomes[attack.attack];
      outcome.area += worlds.Area(kSignificance).value / static_cast<double>(count);
      outcome.rates.push_back(worlds.TruePositiveRate(kFalseRate, kSignificance).value);
    }
  }
  return outcomes;
}

int Main(const Figure& figure) {
  DataRequest request;
  request.source = figure.data;
  Dataset data = OpenData(request).train;
  data.inputs = data.inputs.narrow(0, 0, 2 * kRecords).contiguous();
  data.labels = data.labels.narrow(0, 0, 2 * kRecords).contiguous();
  const TrainedRun run = RunOf(figure, data.declaration);
  double limit = 1;
  if (figure.epsilon > 0) {
    const auto plan = PrivacyPlan::ForBudget(PlanOptionsOf(run.config, run.data),
                                             Epsilon(figure.epsilon), Delta(1e-5));
    constexpr int kLines = 48;
    limit = 1 - ProfileTradeoff(PrivacyProfile(plan.value().event(), kLines), kFalseRate);
  }
  const ShadowConfidences models = TrainShadows(run, data, {.shadows = figure.shadows + 2});
  const auto right = [&](const at::Tensor& marked) {
    return models.confidences.masked_select(marked).gt(0).to(at::kDouble).mean().item<double>();
  };
  fmt::print("{} models, {:.2f} % of their records right, {:.2f} % of others\n", models.size(),
             100 * right(models.saw), 100 * right(models.saw.logical_not()));
  bool passes = false;
  for (const auto& [name, outcome] : Attacked(models)) {
    double sum = 0;
    for (const double rate : outcome.rates) sum += rate;
    const auto guesses = static_cast<std::int64_t>(outcome.rates.size()) * kRecords;
    const auto hits = static_cast<std::int64_t>(std::lround(sum * kRecords));
    const auto [least, most] = std::minmax_element(outcome.rates.begin(), outcome.rates.end());
    passes = passes || *most > limit;
    fmt::print(
        "{:13} area {:.4f}; true at 1 % false {:.2f} % ({:.2f} to {:.2f}), targets from {:.2f} to "
        "{:.2f}\n",
        name, outcome.area, 100 * sum / static_cast<double>(outcome.rates.size()),
        100 * ClopperPearsonLower(guesses, hits, kSignificance / 2),
        100 * ClopperPearsonUpper(guesses, hits, kSignificance / 2), 100 * *least, 100 * *most);
  }
  if (figure.epsilon > 0) fmt::print("limit of the claim: {:.2f} %\n", 100 * limit);
  return passes ? 1 : 0;
}

}  // namespace
}  // namespace sordino

int main(int argc, char** argv) {
  sordino::Figure figure;
  if (argc > 1) figure.data = argv[1];
  if (argc > 2) figure.steps = std::atoll(argv[2]);
  if (argc > 3) figure.batch = std::atof(argv[3]);
  if (argc > 4) figure.shadows = std::atoll(argv[4]);
  if (argc > 5) figure.epsilon = std::atof(argv[5]);
  return sordino::Main(figure);
}
