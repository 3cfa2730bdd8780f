#include "sordino/training/trainer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <deque>
#include <exception>
#include <string>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/distributed/communicator.h"
#include "sordino/gradients/saved_tensors.h"
#include "sordino/training/internal/data_check.h"
#include "sordino/training/internal/held_out_records.h"
#include "sordino/training/internal/libtorch_seed.h"
#include "sordino/training/internal/made_up_records.h"
#include "sordino/training/internal/packed_tensors.h"
#include "sordino/training/internal/rank_agreement.h"
#include "sordino/training/internal/run_canaries.h"
#include "sordino/training/internal/shared_start.h"
#include "sordino/training/internal/sum_source.h"
#include "sordino/training/internal/trainer_state.h"

namespace sordino {
namespace {

// What rank 0 announces.
constexpr const char* kStep = "step";
constexpr const char* kOrdinaryStep = "ordinary step";
constexpr const char* kSave = "save";
constexpr const char* kRestore = "restore";
constexpr const char* kEnd = "end";
constexpr const char* kCharged = "charged";

// Of libtorch's generators after a step (random/random_source.h).
constexpr std::uint32_t kBetweenStream = kSamplingStream + 9;

// What the steps of a trainer are.
enum class StepKind : std::uint8_t { kPrivate, kWithoutNoise, kOrdinary };

// Before anything that all ranks do together, so that none waits for one that has refused.
const PrivacyPlan& CheckedPlan(const PrivacyPlan& plan,
                               const std::vector<NamedParameter>& parameters,
                               const TrainerOptions& options) {
  if (options.communicator != nullptr) CheckShared(plan, parameters, options);
  return plan;
}

}  // namespace

// Every rank has one. Rank 0 leads: what it is asked for (a step, a saved state) it announces, and
// the other ranks, which serve, do their part of it. A process alone is rank 0 of one.
//
// All ranks draw the whole batch from one source that they share, the coins of canaries and of
// held-out records included; scores of canaries are those of rank 0. What a rank cannot do it tells
// before the sums are added up, and all ranks stop with its sentence.
struct Trainer::State {
  State(const PrivacyPlan& the_plan, std::vector<NamedParameter> parameters,
        LossFunction loss_function, const Dataset& data, const OptimizerOptions& optimizer,
        TrainerOptions the_options, StepKind kind, const ProgramRecords& program = {})
      : plan(CheckedPlan(the_plan, parameters, the_options)),
        losses(std::move(loss_function)),
        options(internal::WithMadeUpRecords(std::move(the_options), data, program.form,
                                            kind != StepKind::kOrdinary)),
        is_noised(kind == StepKind::kPrivate),
        clips(kind != StepKind::kOrdinary),
        alone(options.communicator == nullptr ? SingleProcess() : nullptr),
        ranks(alone ? *alone : *options.communicator),
        shared(SharedSource(options, ranks)),
        own(options.insecure_seed ? RandomSource(*options.insecure_seed) : RandomSource()),
        noise(StartNoise()),
        sums((alone ? MeasuredSums : ChunkedSums)(
            {plan, options, losses, clips, ranks, shared, *noise, draws}, std::move(parameters),
            optimizer)),
        clipping(StartClipping()),
        held_out(HoldOut(data)),
        records(held_out ? held_out->trained()
                         : static_cast<std::uint64_t>(program.source ? program.size : data.size())),
        sampler(plan.sampler().Make(
            plan.sampling(), records + static_cast<std::uint64_t>(CanariesOf(options)), shared)),
        canaries(options, plan, sums->parameters(), losses, *StreamOf(shared, 0, kCanaryStream)) {
    SORDINO_CHECK(is_noised || canaries.IsEmpty(), "canaries were put into a run without privacy");
    if (program.source != nullptr) {
      sums->LoadFrom(*program.source);
      return;
    }
    if (clips) internal::CheckData(plan, data);
    loader = std::make_unique<BatchLoader>(canaries.Joined(data, options), options.loader);
    sums->LoadFrom(*loader);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  // Rank 0 dismisses the others, unless they have stopped with it.
  ~State() {
    if (!ranks.IsFirst() || is_broken) return;
    try {
      ranks.Broadcast(kEnd);
    } catch (const std::exception&) {
      // Somebody has gone already; the others notice by themselves.
    }
  }

  static std::unique_ptr<Generator> StreamOf(RandomSource& source, std::int64_t step,
                                             std::uint32_t purpose) {
    return source.Stream({.step = static_cast<std::uint64_t>(step), .rank = 0, .tensor = purpose});
  }

  std::unique_ptr<ClippingState> StartClipping() const {
    return clips && !is_noised ? plan.StartClippingWithoutNoise(sums->parameters())
                               : plan.StartClipping(sums->parameters());
  }

  std::unique_ptr<NoiseProcess> StartNoise() {
    if (!plan.options().held_out) return plan.StartNoise(own);
    SORDINO_CHECK(is_noised && options.held_out && options.held_out->is_right,
                  "a plan with held-out records needs a way to measure them");
    auto process = std::make_unique<AdaptiveNoise>(options.held_out->rule, plan, own);
    adaptive = process.get();
    return process;
  }

  // Before anything is drawn from them.
  std::unique_ptr<HeldOutRecords> HoldOut(const Dataset& data) {
    if (!plan.options().held_out) return nullptr;
    return std::make_unique<HeldOutRecords>(data, options.loader.device,
                                            plan.options().held_out->share,
                                            *StreamOf(shared, 0, kHoldOutStream));
  }

  void Announce(const char* what) {
    SORDINO_CHECK(ranks.IsFirst(), "a rank that serves has announced something");
    // After an exception the batch in hand is lost and the next one was drawn for a later step.
    if (is_broken) {
      throw Error(
          "this trainer was stopped by an exception; what it did is charged, and going on "
          "takes a new one.");
    }
    is_broken = true;
    ranks.Broadcast(what);
  }

  // Draws the batch of a step and has it made ready, where it is larger than `least` records.
  // Returns its size. Gradients among its canaries are told apart.
  std::size_t RequestBatch(std::int64_t step, std::vector<std::int64_t>& drawn, std::size_t least) {
    const auto stream = StreamOf(shared, step, kSamplingStream);
    std::vector<std::uint64_t> batch = sampler->Batch(step, *stream);
    drawn = canaries.TakeFrom(batch, records);
    if (held_out) held_out->FindRecords(batch);
    const std::size_t size = batch.size();
    if (size >= least) sums->Request(step, std::move(batch), *stream);
    return size;
  }

  void RequestNext() {
    if (requested == plan.steps()) return;
    RequestBatch(requested, drawn_canaries.emplace_back(), 0);
    ++requested;
  }

  // Has the batch of the step in hand requested, and the next one, which is made ready meanwhile;
  // returns the canaries of the first that are gradients.
  std::vector<std::int64_t> TakeRequest() {
    if (requested == done) RequestNext();
    RequestNext();
    std::vector<std::int64_t> drawn = std::move(drawn_canaries.front());
    drawn_canaries.pop_front();
    return drawn;
  }

  // A source that cuts batches by what it measured on an earlier one shows that in the rounding of
  // its sums. For the same bits it has to see again what it learned from: the first batch, and each
  // that was larger than all before it.
  void RepeatLearning(std::int64_t steps_done) {
    std::size_t largest = 0;
    std::vector<std::int64_t> drawn;
    for (std::int64_t step = 0; step < steps_done; ++step) {
      const std::size_t size = RequestBatch(step, drawn, largest + 1);
      if (size > largest) {
        largest = size;
        sums->Sum(clipping->StepPolicy(plan.StepClip(step)), step);
      }
      if (static_cast<std::int64_t>(largest) >= plan.LargestBatch()) return;
    }
  }

  // Returns true on every rank once the charge of a step is durable.
  bool Charge(std::int64_t step) {
    const std::string told = TellOthers(ranks, [&] {
      if (options.charge) options.charge(step, plan.ChargeOf(step, first));
      return std::string(kCharged);
    });
    return told == kCharged;
  }

  // False, on a rank that serves: rank 0 has stopped, and nothing more is released.
  bool MakeStep() {
    struct Forgets {
      State& state;
      ~Forgets() { state.ForgetDraws(); }
    };
    const Forgets forgets{*this};
    if (is_noised) return PrivateStep();
    if (clips) {
      StepWithoutNoise();
    } else {
      OrdinaryStep();
    }
    return true;
  }

  // A model that draws random numbers when it is evaluated shows them, and libtorch's generators
  // can be computed back from a few: to the masks of the step before, and to how many it drew,
  // which depends on the batch. So what follows a step has numbers of its own.
  void ForgetDraws() {
    if (!options.insecure_seed && draws.AreFresh()) return;
    draws.Seed(*StreamOf(own, done, kBetweenStream));
  }

  bool PrivateStep() {
    const std::int64_t step = done;
    const ClippingPolicy& policy = clipping->StepPolicy(plan.StepClip(step));
    std::vector<std::int64_t> drawn;
    DoTogether(ranks, [&] {
      drawn = TakeRequest();
      sums->Sum(policy, step);
    });
    const BoundedSum& sum = sums->Total();
    SORDINO_CHECK(sum.adjacency == plan.options().adjacency,
                  "the sum was bounded for another adjacency than the plan's");
    // Charged, and counted as done, before any noise is drawn: what is released was paid for,
    // whatever happens next.
    if (!Charge(step)) return false;
    ++done;
    const std::vector<Dirac> gradients = canaries.Gradients(drawn, policy);
    const StepNoise step_noise = {.kind = &plan.noise_kind(),
                                  .multiplier = clipping->GradientNoise(plan.StepNoise(step)),
                                  .unit_share = plan.UnitShare(),
                                  .divisor = plan.Divisor(step),
                                  .largest_batch = static_cast<double>(plan.LargestBatch()),
                                  .step = step,
                                  .canaries = gradients};
    if (canaries.IsEmpty() && !clipping->ReadsNoised()) {
      sums->NoiseAndUpdate(step_noise);
    } else {
      UpdateInParts(sum, policy, step_noise);
    }
    return !plan.MeasuresAfter(step) || Measure(step);
  }

  // Where others than the optimizer see the noised gradients.
  void UpdateInParts(const BoundedSum& sum, const ClippingPolicy& policy,
                     const StepNoise& of_step) {
    const bool whole = clipping->NeedsAllGradients() || !canaries.IsEmpty();
    const SamplingRate rate = plan.StepRate(of_step.step);
    NoisedGradients mean = sums->Noised(of_step, whole);
    const bool observes = !canaries.IsEmpty() && ranks.IsFirst();
    if (observes) canaries.ObserveSum(mean, of_step.divisor, rate, policy);
    const NoisedGradients gradients =
        clipping->AfterNoise(std::move(mean), sum, of_step.step, shared);
    if (observes) {
      canaries.ObserveGradients(gradients, of_step.divisor, rate,
                                *StreamOf(own, of_step.step + 1, kCanaryStream));
    }
    sums->Update(gradients, whole);
  }

  // The charge of the step covers it. Each rank counts some of the held-out records; rank 0 adds
  // the noise to the sum, and tells what follows. False: it could not.
  bool Measure(std::int64_t step) {
    at::Tensor right;
    DoTogether(ranks, [&] {
      right = at::full({1},
                       held_out
                           ->Count(options.held_out->is_right, options.gradients.fallback,
                                   ranks.Rank(), ranks.Size())
                           .RevealForNoise(),
                       at::kLong);
    });
    ranks.AllReduceSum(right);
    const std::string told = TellOthers(ranks, [&] {
      const double noised = NoisedCount(PrivateValue<std::int64_t>(right.item<std::int64_t>()),
                                        plan.options().held_out->count_noise,
                                        *StreamOf(own, step, kHeldOutNoiseStream));
      adaptive->Observe(noised, [&](NoiseMultiplier lower) {
        return !options.held_out->admits ||
               options.held_out->admits(plan.WithNoise(lower), step + 1);
      });
      return fmt::format("{:a} {:a}", noised, adaptive->noise().value());
    });
    if (told == kNotDone) return false;
    if (!ranks.IsFirst()) {
      const std::size_t space = told.find(' ');
      const double lowered = std::stod(told.substr(space + 1));
      adaptive->Observe(std::stod(told.substr(0, space)),
                        [&](NoiseMultiplier lower) { return lower.value() == lowered; });
    }
    plan = plan.WithNoise(adaptive->noise());
    return true;
  }

  // A private step whose noise has the scale 0.
  void StepWithoutNoise() {
    const std::int64_t step = done;
    const ClippingPolicy& policy = clipping->StepPolicy(plan.StepClip(step));
    DoTogether(ranks, [&] {
      TakeRequest();
      sums->Sum(policy, step);
    });
    static_cast<void>(sums->Total());
    ++done;
    sums->UpdateWithoutNoise(plan.Divisor(step));
  }

  void OrdinaryStep() {
    DoTogether(ranks, [&] {
      TakeRequest();
      sums->SumOrdinary(done);
    });
    ++done;
    sums->UpdateOrdinary();
  }

  NamedTensors Save() {
    NamedTensors state = sums->SaveOptimizer();
    // A step without privacy whose batch is empty makes no update.
    internal::AppendParameters(sums->parameters(), sums->optimizer().steps_done(), state);
    for (auto& entry : clipping->Save()) state.push_back(std::move(entry));
    canaries.Save(state);
    for (auto& entry : noise->Save()) state.push_back(std::move(entry));
    static_cast<void>(SavedTensors(state));  // names are needed to come back
    return state;
  }

  // What rank 0 passes, on every rank.
  void Restore(NamedTensors state, std::int64_t steps_done) {
    if (ranks.Size() > 1) {
      state.emplace_back("steps", at::scalar_tensor(steps_done, at::kLong));
      state = UnpackTensors(ranks.Broadcast(ranks.IsFirst() ? PackTensors(state) : std::string()));
      steps_done = state.back().second.item<std::int64_t>();
      state.pop_back();
    }
    const internal::StateParts parts = internal::SplitState(state);
    SavedTensors saved(parts.own);
    const std::vector<at::Tensor> values = internal::TakeParameters(sums->parameters(), saved);
    const std::int64_t updates =
        saved.TakeNumber(internal::kUpdates, clips ? steps_done : 0, steps_done);
    std::unique_ptr<ClippingState> restored = StartClipping();
    restored->Restore(saved);
    canaries.Restore(saved);
    noise->Restore(saved, steps_done);
    saved.CheckAllTaken();
    // With the parameters and the policy that a run begins with, as it was then.
    if (clips && options.insecure_seed && sums->LearnsFromBatches()) RepeatLearning(steps_done);
    {
      const at::NoGradGuard no_grad;
      for (std::size_t i = 0; i < values.size(); ++i) {
        sums->parameters()[i].value.detach().copy_(values[i]);
      }
    }
    sums->RestoreOptimizer(parts.of_optimizer, updates);
    clipping = std::move(restored);
    if (adaptive) plan = plan.WithNoise(adaptive->noise());
    first = steps_done;
    requested = steps_done;
    done = steps_done;
  }

  PrivacyPlan plan;
  LossFunction losses;
  TrainerOptions options;
  bool is_noised;
  bool clips;
  std::unique_ptr<Communicator> alone;  // where none was given
  Communicator& ranks;
  // Batches, dropout, augmentation, noise on counts, directions of estimated norms, held-out
  // records, coins of canaries. All ranks ask it for the same streams in the same order.
  RandomSource shared;
  RandomSource own;                   // noise
  AdaptiveNoise* adaptive = nullptr;  // where the noise is
  std::unique_ptr<NoiseProcess> noise;
  LibtorchDraws draws;
  std::unique_ptr<BatchLoader> loader;  // null: records are those of a program
  std::unique_ptr<SumSource> sums;
  std::unique_ptr<ClippingState> clipping;
  std::unique_ptr<HeldOutRecords> held_out;  // null: there are none
  std::uint64_t records;                     // that are trained on
  std::unique_ptr<BatchSampler> sampler;
  RunCanaries canaries;
  std::deque<std::vector<std::int64_t>> drawn_canaries;  // of the batches that were requested
  std::int64_t first = 0;                                // the step that this trainer began with
  std::int64_t requested = 0;
  std::int64_t done = 0;
  bool is_broken = false;
};

Trainer::Trainer(std::unique_ptr<State> state) : state_(std::move(state)) {}

Trainer::Trainer(const PrivacyPlan& plan, std::vector<NamedParameter> parameters,
                 LossFunction losses, const Dataset& data, const OptimizerOptions& optimizer,
                 TrainerOptions options)
    : state_(std::make_unique<State>(plan, std::move(parameters), std::move(losses), data,
                                     optimizer, std::move(options), StepKind::kPrivate)) {}

Trainer::Trainer(const PrivacyPlan& plan, std::vector<NamedParameter> parameters,
                 LossFunction losses, const ProgramRecords& records, UpdateFunction update,
                 TrainerOptions options) {
  SORDINO_CHECK(records.source != nullptr && update, "a program gives its records and its update");
  internal::CheckProgram(plan, options);
  options.update = std::move(update);
  state_ =
      std::make_unique<State>(plan, std::move(parameters), std::move(losses), Dataset(),
                              OptimizerOptions(), std::move(options), StepKind::kPrivate, records);
}

Trainer Trainer::NonPrivate(const PrivacyPlan& plan, std::vector<NamedParameter> parameters,
                            LossFunction losses, const Dataset& data,
                            const OptimizerOptions& optimizer, TrainerOptions options) {
  return Trainer(std::make_unique<State>(plan, std::move(parameters), std::move(losses), data,
                                         optimizer, std::move(options), StepKind::kOrdinary));
}

Trainer Trainer::WithoutNoise(const PrivacyPlan& plan, std::vector<NamedParameter> parameters,
                              LossFunction losses, const Dataset& data,
                              const OptimizerOptions& optimizer, TrainerOptions options) {
  return Trainer(std::make_unique<State>(plan, std::move(parameters), std::move(losses), data,
                                         optimizer, std::move(options), StepKind::kWithoutNoise));
}

Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

void Trainer::Look() {
  State& s = *state_;
  if (s.clips) s.sums->Look(s.clipping->StepPolicy(s.plan.StepClip(s.done)), s.done);
}

void Trainer::Step() {
  State& s = *state_;
  SORDINO_CHECK(s.done < s.plan.steps(), "a step was taken that the plan does not have");
  s.Announce(s.is_noised ? kStep : kOrdinaryStep);
  s.MakeStep();
  s.is_broken = false;
}

void Trainer::Run(const std::function<bool(std::int64_t)>& go_on) {
  while (steps_done() < plan().steps()) {
    Step();
    if (go_on && !go_on(steps_done())) return;
  }
}

void Trainer::Serve() {
  State& s = *state_;
  SORDINO_CHECK(!s.ranks.IsFirst(), "rank 0 leads, and does not serve");
  while (true) {
    const std::string what = s.ranks.Broadcast("");
    if (what == kEnd) return;
    if (what == kSave) {
      static_cast<void>(s.Save());
    } else if (what == kRestore) {
      s.Restore({}, 0);
    } else {
      SORDINO_CHECK(what == (s.is_noised ? kStep : kOrdinaryStep),
                    "rank 0 has announced what this rank does not do");
      if (!s.MakeStep()) return;
    }
  }
}

std::int64_t Trainer::steps_done() const { return state_->done; }
bool Trainer::is_private() const { return state_->is_noised && state_->own.IsPrivate(); }
const PrivacyPlan& Trainer::plan() const { return state_->plan; }
Optimizer& Trainer::optimizer() { return state_->sums->optimizer(); }
CanaryScores Trainer::canary_scores() const { return state_->canaries.Scores(); }

std::vector<HeldOutMeasurement> Trainer::measurements() const {
  return state_->adaptive ? state_->adaptive->measurements() : std::vector<HeldOutMeasurement>();
}

NamedTensors Trainer::SaveState() const {
  State& s = *state_;
  s.Announce(kSave);
  s.is_broken = !s.alone;  // the others may wait for what a failure leaves out
  NamedTensors state = s.Save();
  s.is_broken = false;
  return state;
}

void Trainer::RestoreState(const NamedTensors& state, std::int64_t steps_done) {
  State& s = *state_;
  internal::CheckRestorable(s.requested != 0 || s.is_broken, steps_done, s.plan);
  s.Announce(kRestore);
  s.Restore(state, steps_done);
  s.is_broken = false;
}

}  // namespace sordino
