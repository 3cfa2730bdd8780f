#include "sordino/training/trainer.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/gradients/saved_tensors.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/training/internal/data_check.h"
#include "sordino/training/internal/distributed_trainer.h"
#include "sordino/training/internal/held_out_records.h"
#include "sordino/training/internal/libtorch_seed.h"
#include "sordino/training/internal/made_up_records.h"
#include "sordino/training/internal/ordinary_gradients.h"
#include "sordino/training/internal/run_canaries.h"
#include "sordino/training/internal/trainer_state.h"
#include "sordino/training/noised_update.h"

namespace sordino {
namespace {

std::vector<NamedParameter> Trained(std::vector<NamedParameter> parameters) {
  std::erase_if(parameters, [](const NamedParameter& p) { return !p.value.requires_grad(); });
  if (parameters.empty()) {
    throw Error("no parameter of the model requires a gradient; freeze fewer layers.");
  }
  return parameters;
}

}  // namespace

struct Trainer::State {
  State(const PrivacyPlan& the_plan, std::vector<NamedParameter> all, LossFunction loss_function,
        const Dataset& data, const OptimizerOptions& optimizer_options, TrainerOptions the_options,
        bool clip_and_noise)
      : plan(the_plan),
        parameters(Trained(std::move(all))),
        losses(std::move(loss_function)),
        options(internal::WithMadeUpRecords(std::move(the_options), data, clip_and_noise)),
        is_noised(clip_and_noise),
        random(options.insecure_seed ? RandomSource(*options.insecure_seed) : RandomSource()),
        held_out(HoldOut(data)),
        records(held_out ? held_out->trained() : static_cast<std::uint64_t>(data.size())),
        sampler(plan.sampler().Make(
            plan.sampling(), records + static_cast<std::uint64_t>(CanariesOf(options)), random)),
        optimizer(parameters, optimizer_options, plan.steps()),
        sums(plan.StartSums(parameters, options.gradients)),
        clipping(plan.StartClipping(sums->parameters())) {
    if (is_noised) internal::CheckData(plan, data);
    SORDINO_CHECK(is_noised || CanariesOf(options) == 0,
                  "canaries were put into a run without privacy");
    SeedModel(0);
    canaries = std::make_unique<RunCanaries>(options, plan, sums->parameters(), losses,
                                             *StreamOf(0, kCanaryStream));
    loader = std::make_unique<BatchLoader>(canaries->Joined(data, options), options.loader);
  }

  // Before anything is drawn from them.
  std::unique_ptr<HeldOutRecords> HoldOut(const Dataset& data) {
    if (!plan.options().held_out) return nullptr;
    SORDINO_CHECK(is_noised && options.held_out && options.held_out->is_right,
                  "a plan with held-out records needs a way to measure them");
    adaptive.emplace(options.held_out->rule, plan);
    return std::make_unique<HeldOutRecords>(
        data, options.loader.device, plan.options().held_out->share, *StreamOf(0, kHoldOutStream));
  }

  // Dropout draws by place in the batch from libtorch's default generators, which start from a
  // constant: like augmentation it has to be secret.
  void SeedModel(std::int64_t step) { SeedLibtorch(*StreamOf(step, kModelStream)); }

  std::unique_ptr<Generator> StreamOf(std::int64_t step, std::uint32_t purpose) {
    return random.Stream({.step = static_cast<std::uint64_t>(step), .rank = 0, .tensor = purpose});
  }

  // The records of a batch as the loader counts them; the gradients among the canaries apart.
  std::vector<std::uint64_t> DrawBatch(std::int64_t step, Generator& stream,
                                       std::vector<std::int64_t>& drawn) {
    std::vector<std::uint64_t> indices = sampler->Batch(step, stream);
    drawn = canaries->TakeFrom(indices, records);
    if (held_out) held_out->FindRecords(indices);
    return indices;
  }

  void RequestNext() {
    if (requested == plan.steps()) return;
    const auto stream = StreamOf(requested, kSamplingStream);
    std::vector<std::uint64_t> indices =
        DrawBatch(requested, *stream, drawn_canaries.emplace_back());
    // Augmentation is part of what is released: nobody may be able to repeat it (augmentation.h).
    loader->Request(std::move(indices), stream->Next64());
    ++requested;
  }

  // The clipper cuts batches by what it measured on an earlier one, and how a batch is cut shows in
  // the rounding of its sum. For the same bits it has to see again what it learned from: the first
  // batch, and each that was larger than all before it.
  void RepeatLearning(std::int64_t steps_done) {
    if (!sums->LearnsFromBatches()) return;
    std::size_t largest = 0;
    for (std::int64_t step = 0; step < steps_done; ++step) {
      const auto stream = StreamOf(step, kSamplingStream);
      std::vector<std::int64_t> drawn;
      std::vector<std::uint64_t> indices = DrawBatch(step, *stream, drawn);
      if (indices.size() > largest) {
        largest = indices.size();
        loader->Request(std::move(indices), stream->Next64());
        SeedModel(step);
        static_cast<void>(ClippedSum(loader->Take(), step));
      }
      if (static_cast<std::int64_t>(largest) >= plan.LargestBatch()) return;
    }
  }

  BoundedSum ClippedSum(const Batch& batch, std::int64_t step) {
    return sums->Sum(losses, batch, clipping->StepPolicy(plan.StepClip(step)), step, random);
  }

  StepNoise NoiseOf(std::int64_t step) const {
    return {.kind = &plan.noise_kind(),
            .multiplier = clipping->GradientNoise(plan.StepNoise(step)),
            .unit_share = plan.UnitShare(),
            .divisor = plan.Divisor(step),
            .step = step};
  }

  // The sum with noise and, before it, with the canaries that were drawn; the policy is that of the
  // step.
  NoisedGradients Noised(const BoundedSum& sum, std::int64_t step,
                         const std::vector<std::int64_t>& drawn) {
    StepNoise noise = NoiseOf(step);
    if (!canaries->AreGradients()) return update.Noised(sum, noise);
    const ClippingPolicy& policy = clipping->StepPolicy(plan.StepClip(step));
    const std::vector<Dirac> gradients = canaries->Gradients(drawn, policy);
    noise.canaries = gradients;
    return AddNoise(sum, noise, random);
  }

  // The first step of an epoch pays for all of it, and so does the first one after a state was
  // restored, whose batches are of a new allocation.
  Event ChargeOf(std::int64_t step) const {
    const bool begins = step == first || step % plan.StepsPerEvent() == 0;
    return begins ? plan.StepEvent(step) : Event::None(plan.options().adjacency);
  }

  void PrivateStep(const Batch& batch, const std::vector<std::int64_t>& drawn) {
    const BoundedSum sum = ClippedSum(batch, done);
    SORDINO_CHECK(sum.adjacency == plan.options().adjacency,
                  "the sum was bounded for another adjacency than the plan's");
    // Charged, and counted as done, before any noise is drawn: what is released was paid for,
    // whatever happens next.
    const std::int64_t step = done;
    if (options.charge) options.charge(step, ChargeOf(step));
    ++done;
    if (canaries->IsEmpty() && !clipping->ReadsNoised()) {
      update.Step(sum, NoiseOf(step));
    } else {
      UpdateInParts(sum, step, drawn);
    }
    if (plan.MeasuresAfter(step)) Measure(step);
  }

  // Where others than the optimizer see the noised gradients.
  void UpdateInParts(const BoundedSum& sum, std::int64_t step,
                     const std::vector<std::int64_t>& drawn) {
    NoisedGradients mean = Noised(sum, step, drawn);
    canaries->ObserveSum(mean, plan.Divisor(step), plan.StepRate(step),
                         clipping->StepPolicy(plan.StepClip(step)));
    const NoisedGradients gradient = clipping->AfterNoise(std::move(mean), sum, step, random);
    if (canaries->AreRecords()) ObserveCanaries(gradient, step);
    optimizer.Step(gradient);
  }

  // Uses the generators of the model, which go on with bits that no attack has seen.
  void ObserveCanaries(const NoisedGradients& gradient, std::int64_t step) {
    canaries->ObserveGradients(gradient, plan.Divisor(step), plan.StepRate(step),
                               *StreamOf(step + 1, kCanaryStream));
    SeedModel(step + 1);
  }

  // The charge of the step covers it.
  void Measure(std::int64_t step) {
    const PrivateValue<std::int64_t> right =
        held_out->Count(options.held_out->is_right, options.gradients.fallback);
    const double noised = NoisedCount(right, plan.options().held_out->count_noise,
                                      *StreamOf(step, kHeldOutNoiseStream));
    adaptive->Observe(noised, [&](NoiseMultiplier lower) {
      return !options.held_out->admits || options.held_out->admits(plan.WithNoise(lower), step + 1);
    });
    plan = plan.WithNoise(adaptive->noise());
  }

  void OrdinaryStep(const Batch& batch) {
    ++done;
    const std::int64_t examples = Examples(batch);
    if (examples == 0) return;
    // A tied weight once, as the optimizer has it.
    optimizer.StepNonPrivate(OrdinaryGradients(losses, batch, sums->parameters(), examples,
                                               options.gradients.physical_batch));
  }

  PrivacyPlan plan;
  std::vector<NamedParameter> parameters;
  LossFunction losses;
  TrainerOptions options;
  bool is_noised;
  RandomSource random;
  std::optional<AdaptiveNoise> adaptive;
  std::unique_ptr<HeldOutRecords> held_out;  // null: there are none
  std::uint64_t records;                     // that are trained on
  std::unique_ptr<BatchSampler> sampler;
  Optimizer optimizer;
  NoisedUpdate update{random, optimizer};
  std::unique_ptr<StepClipper> sums;
  std::unique_ptr<ClippingState> clipping;
  std::unique_ptr<RunCanaries> canaries;
  std::deque<std::vector<std::int64_t>> drawn_canaries;  // of the batches that were requested
  std::unique_ptr<BatchLoader> loader;
  std::int64_t first = 0;  // the step that this trainer began with
  std::int64_t requested = 0;
  std::int64_t done = 0;
  bool is_broken = false;
};

Trainer::Trainer(std::unique_ptr<State> state) : state_(std::move(state)) {}

Trainer::Trainer(const PrivacyPlan& plan, std::vector<NamedParameter> parameters,
                 LossFunction losses, const Dataset& data, const OptimizerOptions& optimizer,
                 TrainerOptions options) {
  if (options.communicator != nullptr) {
    distributed_ = std::make_unique<DistributedTrainer>(
        plan, std::move(parameters), std::move(losses), data, optimizer, std::move(options), true);
    return;
  }
  state_ = std::make_unique<State>(plan, std::move(parameters), std::move(losses), data, optimizer,
                                   std::move(options), true);
}

Trainer Trainer::NonPrivate(const PrivacyPlan& plan, std::vector<NamedParameter> parameters,
                            LossFunction losses, const Dataset& data,
                            const OptimizerOptions& optimizer, TrainerOptions options) {
  if (options.communicator != nullptr) {
    Trainer trainer(std::unique_ptr<State>(nullptr));
    trainer.distributed_ = std::make_unique<DistributedTrainer>(
        plan, std::move(parameters), std::move(losses), data, optimizer, std::move(options), false);
    return trainer;
  }
  return Trainer(std::make_unique<State>(plan, std::move(parameters), std::move(losses), data,
                                         optimizer, std::move(options), false));
}

Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

void Trainer::Step() {
  if (distributed_) return distributed_->Step();
  State& s = *state_;
  SORDINO_CHECK(s.done < s.plan.steps(), "a step was taken that the plan does not have");
  // After an exception the batch in hand is lost and the next one was drawn for a later step.
  if (s.is_broken) {
    throw Error(
        "this trainer was stopped by an exception; what it did is charged, and going on "
        "takes a new one.");
  }
  s.is_broken = true;
  if (s.options.insecure_seed) s.SeedModel(s.done);
  if (s.requested == s.done) s.RequestNext();
  const Batch batch = s.loader->Take();
  const std::vector<std::int64_t> drawn = std::move(s.drawn_canaries.front());
  s.drawn_canaries.pop_front();
  s.RequestNext();  // made ready while this step is computed
  if (s.is_noised) {
    s.PrivateStep(batch, drawn);
  } else {
    s.OrdinaryStep(batch);
  }
  s.is_broken = false;
}

void Trainer::Run(const std::function<bool(std::int64_t)>& go_on) {
  while (steps_done() < plan().steps()) {
    Step();
    if (go_on && !go_on(steps_done())) return;
  }
}

void Trainer::Serve() {
  SORDINO_CHECK(distributed_ != nullptr, "a trainer that is alone has nobody to serve");
  distributed_->Serve();
}

std::int64_t Trainer::steps_done() const {
  return distributed_ ? distributed_->steps_done() : state_->done;
}

bool Trainer::is_private() const {
  if (distributed_) return distributed_->is_private();
  return state_->is_noised && state_->random.IsPrivate();
}

const PrivacyPlan& Trainer::plan() const {
  return distributed_ ? distributed_->plan() : state_->plan;
}

Optimizer& Trainer::optimizer() {
  return distributed_ ? distributed_->optimizer() : state_->optimizer;
}

std::vector<HeldOutMeasurement> Trainer::measurements() const {
  if (distributed_) return distributed_->measurements();
  return state_->adaptive ? state_->adaptive->measurements() : std::vector<HeldOutMeasurement>();
}

CanaryScores Trainer::canary_scores() const {
  return distributed_ ? distributed_->canary_scores() : state_->canaries->Scores();
}

NamedTensors Trainer::SaveState() const {
  if (distributed_) return distributed_->SaveState();
  const State& s = *state_;
  if (s.is_broken) {
    throw Error(
        "this trainer was stopped by an exception, so its state is not that of a step; go on from "
        "one that was saved before.");
  }
  NamedTensors state = s.optimizer.SaveState();
  // A step without privacy whose batch is empty makes no update.
  internal::AppendParameters(s.sums->parameters(), s.optimizer.steps_done(), state);
  for (auto& entry : s.clipping->Save()) state.push_back(std::move(entry));
  s.canaries->Save(state);
  if (s.adaptive) SaveMeasurements(*s.adaptive, state);
  static_cast<void>(SavedTensors(state));  // names are needed to come back
  return state;
}

void Trainer::RestoreState(const NamedTensors& state, std::int64_t steps_done) {
  if (distributed_) return distributed_->RestoreState(state, steps_done);
  State& s = *state_;
  internal::CheckRestorable(s.requested != 0 || s.is_broken, steps_done, s.plan);
  s.is_broken = true;
  const internal::StateParts parts = internal::SplitState(state);
  SavedTensors saved(parts.own);
  const std::vector<at::Tensor> values = internal::TakeParameters(s.sums->parameters(), saved);
  const std::int64_t updates =
      saved.TakeNumber(internal::kUpdates, s.is_noised ? steps_done : 0, steps_done);
  std::unique_ptr<ClippingState> clipping = s.plan.StartClipping(s.sums->parameters());
  clipping->Restore(saved);
  s.canaries->Restore(saved);
  if (s.adaptive) RestoreMeasurements(*s.adaptive, saved, s.plan.Measurements(steps_done));
  saved.CheckAllTaken();
  // With the parameters and the policy that a run begins with, as it was then.
  if (s.is_noised && s.options.insecure_seed) s.RepeatLearning(steps_done);
  s.optimizer.RestoreState(parts.of_optimizer, updates);
  s.clipping = std::move(clipping);
  if (s.adaptive) s.plan = s.plan.WithNoise(s.adaptive->noise());
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < values.size(); ++i) {
    s.sums->parameters()[i].value.detach().copy_(values[i]);
  }
  s.first = steps_done;
  s.requested = steps_done;
  s.done = steps_done;
  s.is_broken = false;
}

}  // namespace sordino
