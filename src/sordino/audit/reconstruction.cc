#include "sordino/audit/reconstruction.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "sordino/accounting/renyi.h"
#include "sordino/accounting/tradeoff.h"
#include "sordino/base/error.h"
#include "sordino/data/batch_loader.h"
#include "sordino/training/privacy_plan.h"
#include "sordino/training/trainer.h"

namespace sordino {
namespace {

constexpr int kProfileLines = 200;
constexpr double kLearningRate = 1;
// Of a plan whose noise is not used.
constexpr double kAnyNoise = 1;

// Inputs as the model sees them, a row for each record, and their classes.
struct Rows {
  at::Tensor x;       // float64 [n, d]
  at::Tensor labels;  // int64 [n]
};

Rows RowsOf(const Dataset& data) {
  return {Normalise(data.declaration, data.inputs).flatten(1).to(at::kDouble), data.labels};
}

Dataset Part(const Dataset& data, const std::vector<std::int64_t>& places) {
  const at::Tensor index = at::tensor(places, at::kLong);
  Dataset part = data;
  part.inputs = data.inputs.index_select(0, index);
  part.labels = data.labels.index_select(0, index);
  part.ids.clear();
  part.declaration.records = static_cast<std::int64_t>(places.size());
  return part;
}

// The model at some step, or a sum of gradients.
struct Linear {
  at::Tensor weight;  // float64 [classes, d]
  at::Tensor bias;    // float64 [classes]
};

// (p - y) for each record, times what clips its gradient (p - y) (x, 1)^T to the norm `clip`.
at::Tensor ClippedSlopes(const Linear& model, const Rows& rows, double clip) {
  at::Tensor slopes = at::softmax(at::addmm(model.bias, rows.x, model.weight.t()), 1);
  slopes.sub_(at::one_hot(rows.labels, slopes.size(1)));
  const at::Tensor norms = slopes.norm(2, 1) * (rows.x.square().sum(1) + 1).sqrt();
  return slopes * (clip / norms).clamp_max(1).unsqueeze(1);
}

// What the adversary has: the model before each step, and the sum that the step released.
struct Observed {
  std::vector<Linear> models;
  std::vector<Linear> sums;
};

PlanOptions PlanOptionsOf(const ReconstructionOptions& options) {
  PlanOptions plan;
  plan.sampling = "full";
  plan.records = options.records;
  plan.batch = static_cast<double>(options.records);
  plan.steps = options.steps;
  plan.adjacency = Adjacency::kZeroOut;
  plan.clip = ClipNorm(options.clip);
  return plan;
}

Observed Train(const PrivacyPlan& plan, bool with_noise, const Dataset& data,
               std::optional<std::uint64_t> seed) {
  const auto width = data.inputs.flatten(1).size(1);
  const at::TensorOptions kind = at::TensorOptions().dtype(at::kFloat);
  const at::Tensor weight =
      at::zeros({data.declaration.classes, width}, kind).set_requires_grad(true);
  const at::Tensor bias = at::zeros({data.declaration.classes}, kind).set_requires_grad(true);
  const std::vector<NamedParameter> parameters = {{"weight", weight}, {"bias", bias}};
  const LossFunction losses = [&](const Batch& batch) {
    return at::cross_entropy_loss(at::linear(batch[0].flatten(1), weight, bias), batch[1], {},
                                  at::Reduction::None);
  };
  TrainerOptions options;
  options.insecure_seed = seed;
  const OptimizerOptions optimizer{.learning_rate = kLearningRate};
  Trainer trainer =
      with_noise
          ? Trainer(plan, parameters, losses, data, optimizer, std::move(options))
          : Trainer::WithoutNoise(plan, parameters, losses, data, optimizer, std::move(options));
  const auto now = [&]() -> Linear {
    const at::NoGradGuard no_grad;
    return {weight.detach().to(at::kDouble), bias.detach().to(at::kDouble)};
  };
  Observed observed;
  observed.models.push_back(now());
  trainer.Run([&](std::int64_t done) {
    const Linear after = now();
    const Linear& before = observed.models.back();
    const double scale = plan.Divisor(done - 1) / kLearningRate;
    observed.sums.push_back(
        {(before.weight - after.weight) * scale, (before.bias - after.bias) * scale});
    observed.models.push_back(after);
    return true;
  });
  return observed;
}

struct AttackOutcome {
  std::int64_t guess = 0;  // among the candidates
  at::Tensor rebuilt;      // [d], as the model sees it
};

AttackOutcome Attack(const Observed& observed, const Rows& known, const Rows& candidates,
                     double clip) {
  at::Tensor scores = at::zeros({candidates.x.size(0)}, at::kDouble);
  at::Tensor numerator = at::zeros({candidates.x.size(1)}, at::kDouble);
  double denominator = 0;
  const at::Tensor lengths = candidates.x.square().sum(1) + 1;
  for (std::size_t t = 0; t < observed.sums.size(); ++t) {
    const Linear& model = observed.models[t];
    at::Tensor weight = observed.sums[t].weight;
    at::Tensor bias = observed.sums[t].bias;
    if (known.x.size(0) > 0) {
      const at::Tensor slopes = ClippedSlopes(model, known, clip);
      weight = weight - slopes.t().mm(known.x);
      bias = bias - slopes.sum(0);
    }
    // log likelihood, up to what is the same for all: <g, r> - ||g||^2 / 2 over the variance.
    const at::Tensor slopes = ClippedSlopes(model, candidates, clip);
    scores += (slopes.mm(weight) * candidates.x).sum(1) + slopes.mv(bias) -
              slopes.square().sum(1) * lengths / 2;
    numerator += weight.t().mv(bias);
    denominator += bias.square().sum().item<double>();
  }
  return {scores.argmax().item<std::int64_t>(), numerator / std::max(denominator, 1e-300)};
}

// In the scale of the error: from 0 to 1 for images.
at::Tensor Shown(const DatasetDeclaration& declaration, const at::Tensor& row) {
  const at::Tensor input = row.view(declaration.shape);
  if (declaration.kind != InputKind::kImage) return input;
  const Normalisation& normal = declaration.normalisation;
  if (normal.mean.empty()) return input.clamp(0, 1);
  const std::vector<std::int64_t> sizes = {declaration.shape[0], 1, 1};
  const at::Tensor deviation = at::tensor(normal.deviation, at::kDouble).view(sizes);
  return (input * deviation + at::tensor(normal.mean, at::kDouble).view(sizes)).clamp(0, 1);
}

double SquaredError(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).square().mean().item<double>();
}

void Check(const Dataset& data, const ReconstructionOptions& options) {
  if (data.declaration.classes < 2 || data.declaration.kind == InputKind::kTokens) {
    throw Error("records are rebuilt from images or numbers with classes; give such data.");
  }
  const auto whole = [](const char* name, std::int64_t value, std::int64_t least) {
    if (value >= least) return;
    throw Error(fmt::format("the number of {} is {}; give at least {}.", name, value, least));
  };
  whole("records", options.records, 1);
  whole("candidates", options.candidates, 2);
  whole("trials", options.trials, 1);
  whole("steps", options.steps, 1);
  CheckRange("the clipping norm", options.clip, 0, true, kInfinity, true);
  const std::int64_t needed = options.records - 1 + options.candidates;
  if (needed > data.size()) {
    throw Error(
        fmt::format("{} known records and {} candidates are {} of different records, and the data "
                    "have {}; ask for fewer.",
                    options.records - 1, options.candidates, needed, data.size()));
  }
}

PrivacyPlan PlanOf(const ReconstructionOptions& options, std::optional<double> epsilon) {
  const PlanOptions plan = PlanOptionsOf(options);
  if (!epsilon) return PrivacyPlan(plan, NoiseMultiplier(kAnyNoise), options.delta);
  const auto found = PrivacyPlan::ForBudget(plan, Epsilon(*epsilon), options.delta);
  if (!found) {
    throw Error(
        fmt::format("no noise makes {} steps meet epsilon {} at delta {}; raise one of "
                    "them.",
                    options.steps, *epsilon, options.delta.value()));
  }
  return *found;
}

// One target and what the adversary knows.
struct Trial {
  std::vector<std::int64_t> candidates;
  std::int64_t right = 0;  // among them
  Dataset data;            // the known records and the target, which is the last
  Rows known;
};

Trial DrawTrial(const Dataset& data, const ReconstructionOptions& options,
                std::mt19937_64& random) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(data.size()));
  std::iota(places.begin(), places.end(), std::int64_t{0});
  std::shuffle(places.begin(), places.end(), random);
  Trial trial;
  const auto split = places.begin() + options.records - 1;
  trial.candidates.assign(split, split + options.candidates);
  trial.right = std::uniform_int_distribution<std::int64_t>(0, options.candidates - 1)(random);
  std::vector<std::int64_t> used(places.begin(), split);
  used.push_back(trial.candidates[static_cast<std::size_t>(trial.right)]);
  trial.data = Part(data, used);
  const Rows all = RowsOf(trial.data);
  trial.known = {all.x.narrow(0, 0, options.records - 1),
                 all.labels.narrow(0, 0, options.records - 1)};
  return trial;
}

}  // namespace

double ReconstructionBound(const Event& event, double kappa, double failure) {
  CheckRange("the probability of a blind guess", kappa, 0, true, 1, false);
  const std::vector<PrivacyLine> profile = PrivacyProfile(event, kProfileLines);
  return std::min(1.0, 1 - ProfileTradeoff(profile, kappa) + failure);
}

std::optional<double> RenyiReconstructionBound(const Event& event, double kappa, double failure) {
  CheckRange("the probability of a blind guess", kappa, 0, true, 1, false);
  RenyiCurve curve(event);
  if (!curve.reason().empty()) return std::nullopt;
  double least = 0;  // log of the bound
  for (double excess = 1e-3; excess < 1e5; excess *= 1.02) {
    const double order = 1 + excess;
    least = std::min(least, excess / order * (std::log(kappa) + curve(order)));
  }
  return std::min(1.0, std::exp(least) + failure);
}

Reconstruction Reconstruct(const Dataset& data, const std::vector<double>& epsilons,
                           const ReconstructionOptions& options) {
  Check(data, options);
  std::vector<std::optional<double>> budgets = {std::nullopt};
  budgets.insert(budgets.end(), epsilons.begin(), epsilons.end());
  std::vector<PrivacyPlan> plans;
  Reconstruction result;
  for (const std::optional<double>& epsilon : budgets) {
    plans.push_back(PlanOf(options, epsilon));
    ReconstructionLevel level{.epsilon = epsilon, .renyi_bound = {}, .rebuilt = {}, .guessed = {}};
    if (epsilon) {
      const double failure = plans.back().Failure(options.steps);
      const double kappa = 1.0 / static_cast<double>(options.candidates);
      level.noise = plans.back().noise().value();
      level.bound = ReconstructionBound(plans.back().event(), kappa, failure);
      level.renyi_bound = RenyiReconstructionBound(plans.back().event(), kappa, failure);
    }
    result.levels.push_back(std::move(level));
  }
  std::mt19937_64 random(options.seed);
  std::vector<at::Tensor> targets;
  std::vector<std::vector<at::Tensor>> rebuilt(plans.size());
  std::vector<std::vector<at::Tensor>> guessed(plans.size());
  const double trials = static_cast<double>(options.trials);
  const std::size_t shown = static_cast<std::size_t>(std::min(options.trials, kShownTargets));
  for (std::int64_t i = 0; i < options.trials; ++i) {
    const Trial trial = DrawTrial(data, options, random);
    const Rows candidates = RowsOf(Part(data, trial.candidates));
    const at::Tensor target = Shown(data.declaration, candidates.x[trial.right]);
    result.blind_error +=
        SquaredError(Shown(data.declaration, candidates.x.mean(0)), target) / trials;
    if (targets.size() < shown) targets.push_back(target);
    for (std::size_t k = 0; k < plans.size(); ++k) {
      std::optional<std::uint64_t> seed;
      if (options.insecure_seed) {
        seed = *options.insecure_seed + static_cast<std::uint64_t>(i) * plans.size() + k;
      }
      const Observed observed = Train(plans[k], budgets[k].has_value(), trial.data, seed);
      const AttackOutcome attacked = Attack(observed, trial.known, candidates, options.clip);
      ReconstructionLevel& level = result.levels[k];
      const at::Tensor input = Shown(data.declaration, attacked.rebuilt);
      level.right += attacked.guess == trial.right ? 1 : 0;
      level.rebuilt_error += SquaredError(input, target) / trials;
      if (rebuilt[k].size() < shown) {
        rebuilt[k].push_back(input);
        guessed[k].push_back(Shown(data.declaration, candidates.x[attacked.guess]));
      }
    }
    if (options.progress) options.progress(static_cast<double>(i + 1) / trials);
  }
  result.blind_error = std::sqrt(result.blind_error);
  result.targets = at::stack(targets);
  for (std::size_t k = 0; k < plans.size(); ++k) {
    result.levels[k].rebuilt_error = std::sqrt(result.levels[k].rebuilt_error);
    result.levels[k].rebuilt = at::stack(rebuilt[k]);
    result.levels[k].guessed = at::stack(guessed[k]);
  }
  return result;
}

}  // namespace sordino
