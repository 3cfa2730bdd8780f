#include "sordino/training/internal/distributed_trainer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <exception>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/gradients/saved_tensors.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/noise/noised_shards.h"
#include "sordino/training/internal/data_check.h"
#include "sordino/training/internal/libtorch_seed.h"
#include "sordino/training/internal/made_up_records.h"
#include "sordino/training/internal/ordinary_gradients.h"
#include "sordino/training/internal/packed_tensors.h"
#include "sordino/training/internal/rank_agreement.h"
#include "sordino/training/internal/shared_start.h"
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

// Before anything that all ranks do together, so that none waits for one that has refused.
const PrivacyPlan& Shared(const PrivacyPlan& plan, const std::vector<NamedParameter>& parameters,
                          const TrainerOptions& options) {
  CheckShared(plan, parameters, options);
  return plan;
}

}  // namespace

DistributedTrainer::DistributedTrainer(const PrivacyPlan& plan,
                                       std::vector<NamedParameter> parameters, LossFunction losses,
                                       const Dataset& data, const OptimizerOptions& optimizer,
                                       TrainerOptions options, bool clip_and_noise)
    : plan_(Shared(plan, parameters, options)),
      parameters_(WithSharedValues(std::move(parameters), *options.communicator)),
      losses_(std::move(losses)),
      options_(internal::WithMadeUpRecords(std::move(options), data, clip_and_noise)),
      is_noised_(clip_and_noise),
      communicator_(*options_.communicator),
      shared_source_(SharedSource(options_, communicator_)),
      noise_source_(options_.insecure_seed ? RandomSource(*options_.insecure_seed)
                                           : RandomSource()),
      sums_(plan_.StartChunks(parameters_, options_.gradients)),
      clipping_(plan_.StartClipping(sums_->parameters())),
      optimizer_(sums_->parameters(), optimizer, plan_.steps(), communicator_),
      held_out_(HoldOut(data)),
      records_(held_out_ ? held_out_->trained() : static_cast<std::uint64_t>(data.size())),
      sampler_(plan_.sampler().Make(plan_.sampling(),
                                    records_ + static_cast<std::uint64_t>(CanariesOf(options_)),
                                    shared_source_)),
      canaries_(options_, plan_, sums_->parameters(), losses_, *SharedStream(0, kCanaryStream)),
      loader_(canaries_.Joined(data, options_), options_.loader) {
  if (is_noised_) internal::CheckData(plan_, data);
  SORDINO_CHECK(is_noised_ || canaries_.IsEmpty(), "canaries were put into a run without privacy");
}

std::unique_ptr<Generator> DistributedTrainer::SharedStream(std::int64_t step,
                                                            std::uint32_t purpose) {
  return shared_source_.Stream(
      {.step = static_cast<std::uint64_t>(step), .rank = 0, .tensor = purpose});
}

// The same records on every rank.
std::unique_ptr<HeldOutRecords> DistributedTrainer::HoldOut(const Dataset& data) {
  if (!plan_.options().held_out) return nullptr;
  SORDINO_CHECK(is_noised_ && options_.held_out && options_.held_out->is_right,
                "a plan with held-out records needs a way to measure them");
  adaptive_.emplace(options_.held_out->rule, plan_);
  return std::make_unique<HeldOutRecords>(data, options_.loader.device,
                                          plan_.options().held_out->share,
                                          *SharedStream(0, kHoldOutStream));
}

DistributedTrainer::~DistributedTrainer() {
  if (!communicator_.IsFirst() || is_broken_) return;
  try {
    communicator_.Broadcast(kEnd);
  } catch (const std::exception&) {
    // Somebody has gone already; the others notice by themselves.
  }
}

void DistributedTrainer::Announce(const std::string& what) {
  SORDINO_CHECK(communicator_.IsFirst(), "a rank that serves has announced something");
  if (is_broken_) {
    throw Error(
        "this trainer was stopped by an exception; what it did is charged, and going on "
        "takes a new one.");
  }
  is_broken_ = true;
  communicator_.Broadcast(what);
}

// Of an ordinary run, one for each rank.
std::vector<Chunk> DistributedTrainer::Cut(std::int64_t examples) const {
  if (is_noised_) return Chunks(examples, sums_->chunks());
  const std::int64_t ranks = communicator_.Size();
  std::vector<Chunk> parts;
  parts.reserve(static_cast<std::size_t>(ranks));
  for (std::int64_t i = 0; i < ranks; ++i) {
    parts.push_back({.begin = examples * i / ranks, .end = examples * (i + 1) / ranks});
  }
  return parts;
}

// Every rank asks the shared source for the same streams in the same order, those of chunks that
// others compute included.
void DistributedTrainer::RequestNext() {
  if (requested_ == plan_.steps()) return;
  const auto step = static_cast<std::uint64_t>(requested_);
  const auto stream = SharedStream(requested_, kSamplingStream);
  std::vector<std::uint64_t> batch = sampler_->Batch(requested_, *stream);
  Request request;
  request.canaries = canaries_.TakeFrom(batch, records_);
  if (held_out_) held_out_->FindRecords(batch);
  const auto examples = static_cast<std::int64_t>(batch.size());
  const std::vector<Chunk> chunks = Cut(examples);
  request.examples = examples;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    auto model = shared_source_.Stream(
        {.step = step, .rank = static_cast<std::uint32_t>(i), .tensor = kModelStream});
    const std::uint64_t augmentation = model->Next64();
    if (static_cast<int>(i % static_cast<std::size_t>(communicator_.Size())) !=
        communicator_.Rank()) {
      continue;
    }
    loader_.Request({batch.begin() + chunks[i].begin, batch.begin() + chunks[i].end}, augmentation);
    request.models.push_back(std::move(model));
  }
  requests_.push_back(std::move(request));
  ++requested_;
}

// The one of the step in hand; the next is made ready meanwhile.
DistributedTrainer::Request DistributedTrainer::TakeRequest() {
  if (requested_ == done_) RequestNext();
  RequestNext();
  Request request = std::move(requests_.front());
  requests_.pop_front();
  return request;
}

FixedPointSum DistributedTrainer::SumOfOwnChunks(const Request& request,
                                                 const ClippingPolicy& policy) {
  std::size_t chunk = 0;
  const auto next = [&]() -> std::optional<Batch> {
    if (chunk == request.models.size()) return std::nullopt;
    SeedLibtorch(*request.models[chunk++]);
    return loader_.Take();
  };
  return sums_->Sum(losses_, request.examples, next, policy, done_, shared_source_);
}

std::vector<at::Tensor> DistributedTrainer::GradientsOfOwnPart(const Request& request) {
  SORDINO_CHECK(request.models.size() == 1, "a rank has one part of an ordinary batch");
  SeedLibtorch(*request.models.front());
  return OrdinaryGradients(losses_, loader_.Take(), sums_->parameters(), request.examples,
                           options_.gradients.physical_batch);
}

// The first step of an epoch pays for all of it, and so does the first one after a state was
// restored, whose batches are of a new allocation.
Event DistributedTrainer::ChargeOf(std::int64_t step) const {
  const bool begins = step == first_ || step % plan_.StepsPerEvent() == 0;
  return begins ? plan_.StepEvent(step) : Event::None(plan_.options().adjacency);
}

// Returns true on every rank once the charge of the step in hand is durable.
bool DistributedTrainer::WaitForCharge() {
  const std::string told = TellOthers(communicator_, [&] {
    if (options_.charge) options_.charge(done_, ChargeOf(done_));
    return std::string(kCharged);
  });
  return told == kCharged;
}

// False: the step was not charged, and nothing was released.
bool DistributedTrainer::MakeStep() {
  const std::int64_t step = done_;
  const ClippingPolicy& policy = clipping_->StepPolicy(plan_.StepClip(step));
  Request request;
  std::optional<FixedPointSum> sum;
  std::exception_ptr failure;
  try {
    request = TakeRequest();
    sum.emplace(SumOfOwnChunks(request, policy));
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  AgreeThatAllCan(communicator_, failure);
  const FixedPointShard shard = sum->Scatter(
      [&](const at::Tensor& all, at::Tensor& part) { communicator_.ReduceScatterSum(all, part); },
      communicator_.Rank(), communicator_.Size(),
      communicator_.DeviceFor(sums_->parameters().front().value.device()));
  const BoundedSum counts =
      sum->Counts([&](at::Tensor& values) { communicator_.AllReduceSum(values); });
  SORDINO_CHECK(shard.adjacency == plan_.options().adjacency,
                "the sum was bounded for another adjacency than the plan's");
  // Charged, and counted as done, before any noise is drawn: what is released was paid for,
  // whatever happens next.
  if (!WaitForCharge()) return false;
  ++done_;
  const std::vector<Dirac> canaries = canaries_.Gradients(request.canaries, policy);
  const StepNoise noise = {.kind = &plan_.noise_kind(),
                           .multiplier = clipping_->GradientNoise(plan_.StepNoise(step)),
                           .unit_share = plan_.UnitShare(),
                           .divisor = plan_.Divisor(step),
                           .step = step,
                           .canaries = canaries};
  optimizer_.Step(AfterNoise(AddNoise(shard, noise, noise_source_), counts, step));
  return !plan_.MeasuresAfter(step) || Measure(step);
}

// The gradients of this rank's shard for the optimizer. Where all are needed they are gathered:
// they have noise on them.
NoisedGradients DistributedTrainer::AfterNoise(NoisedGradients shard, const BoundedSum& counts,
                                               std::int64_t step) {
  if (!clipping_->NeedsAllGradients() && canaries_.IsEmpty()) {
    return clipping_->AfterNoise(std::move(shard), counts, step, shared_source_);
  }
  NoisedGradients mean = NoisedShards::Join(
      shard, communicator_.Size(), sums_->parameters(),
      [&](const at::Tensor& own, at::Tensor& all) { communicator_.AllGather(own, all); });
  const double divisor = plan_.Divisor(step);
  const SamplingRate rate = plan_.StepRate(step);
  if (communicator_.IsFirst()) {
    canaries_.ObserveSum(mean, divisor, rate, clipping_->StepPolicy(plan_.StepClip(step)));
  }
  const NoisedGradients gradients =
      clipping_->AfterNoise(std::move(mean), counts, step, shared_source_);
  if (communicator_.IsFirst()) {
    const auto stream = noise_source_.Stream(
        {.step = static_cast<std::uint64_t>(step) + 1, .rank = 0, .tensor = kCanaryStream});
    canaries_.ObserveGradients(gradients, divisor, rate, *stream);
  }
  return NoisedShards::Cut(gradients, communicator_.Rank(), communicator_.Size(),
                           shard.value().front().device());
}

// The charge of the step covers it. Each rank counts some of the held-out records; rank 0 adds the
// noise, and tells what follows. False: it could not.
bool DistributedTrainer::Measure(std::int64_t step) {
  std::int64_t right = 0;
  std::exception_ptr failure;
  try {
    right = held_out_
                ->Count(options_.held_out->is_right, options_.gradients.fallback,
                        communicator_.Rank(), communicator_.Size())
                .RevealForNoise();
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  AgreeThatAllCan(communicator_, failure);
  at::Tensor total = at::full({1}, right, at::kLong);
  communicator_.AllReduceSum(total);
  const std::string told = TellOthers(communicator_, [&] {
    const auto stream = noise_source_.Stream(
        {.step = static_cast<std::uint64_t>(step), .rank = 0, .tensor = kHeldOutNoiseStream});
    const double noised = NoisedCount(PrivateValue<std::int64_t>(total.item<std::int64_t>()),
                                      plan_.options().held_out->count_noise, *stream);
    adaptive_->Observe(noised, [&](NoiseMultiplier lower) {
      return !options_.held_out->admits ||
             options_.held_out->admits(plan_.WithNoise(lower), step + 1);
    });
    return fmt::format("{:a} {:a}", noised, adaptive_->noise().value());
  });
  if (told == kNotDone) return false;
  if (!communicator_.IsFirst()) {
    const std::size_t space = told.find(' ');
    const double noise = std::stod(told.substr(space + 1));
    adaptive_->Observe(std::stod(told.substr(0, space)),
                       [&](NoiseMultiplier lower) { return lower.value() == noise; });
  }
  plan_ = plan_.WithNoise(adaptive_->noise());
  return true;
}

void DistributedTrainer::MakeOrdinaryStep() {
  std::vector<at::Tensor> gradients;
  std::exception_ptr failure;
  bool is_empty = false;
  try {
    const Request request = TakeRequest();
    is_empty = request.examples == 0;
    gradients = GradientsOfOwnPart(request);
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  AgreeThatAllCan(communicator_, failure);
  ++done_;
  if (!is_empty) optimizer_.StepNonPrivate(ShardOfSum(gradients, communicator_));
}

void DistributedTrainer::Step() {
  SORDINO_CHECK(done_ < plan_.steps(), "a step was taken that the plan does not have");
  Announce(is_noised_ ? kStep : kOrdinaryStep);
  if (is_noised_) {
    MakeStep();
  } else {
    MakeOrdinaryStep();
  }
  is_broken_ = false;
}

NamedTensors DistributedTrainer::SaveState() {
  Announce(kSave);
  NamedTensors state = GatherState();
  is_broken_ = false;
  return state;
}

NamedTensors DistributedTrainer::GatherState() {
  NamedTensors state = optimizer_.SaveState();
  internal::AppendParameters(sums_->parameters(), optimizer_.whole().steps_done(), state);
  for (auto& entry : clipping_->Save()) state.push_back(std::move(entry));
  canaries_.Save(state);
  if (adaptive_) SaveMeasurements(*adaptive_, state);
  static_cast<void>(SavedTensors(state));  // names are needed to come back
  return state;
}

void DistributedTrainer::RestoreState(const NamedTensors& state, std::int64_t steps_done) {
  internal::CheckRestorable(requested_ != 0, steps_done, plan_);
  Announce(kRestore);
  ShareState(state, steps_done);
  is_broken_ = false;
}

// What rank 0 passes, on every rank.
void DistributedTrainer::ShareState(const NamedTensors& state, std::int64_t steps_done) {
  NamedTensors numbered = state;
  numbered.emplace_back("steps", at::scalar_tensor(steps_done, at::kLong));
  numbered = UnpackTensors(
      communicator_.Broadcast(communicator_.IsFirst() ? PackTensors(numbered) : std::string()));
  const auto steps = numbered.back().second.item<std::int64_t>();
  numbered.pop_back();
  const internal::StateParts parts = internal::SplitState(numbered);
  SavedTensors saved(parts.own);
  const std::vector<at::Tensor> values = internal::TakeParameters(sums_->parameters(), saved);
  const std::int64_t updates = saved.TakeNumber(internal::kUpdates, is_noised_ ? steps : 0, steps);
  clipping_->Restore(saved);
  canaries_.Restore(saved);
  if (adaptive_) {
    RestoreMeasurements(*adaptive_, saved, plan_.Measurements(steps));
    plan_ = plan_.WithNoise(adaptive_->noise());
  }
  saved.CheckAllTaken();
  {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < values.size(); ++i) {
      sums_->parameters()[i].value.detach().copy_(values[i]);
    }
  }
  optimizer_.RestoreState(parts.of_optimizer, updates);
  first_ = steps;
  requested_ = steps;
  done_ = steps;
}

void DistributedTrainer::Serve() {
  SORDINO_CHECK(!communicator_.IsFirst(), "rank 0 leads, and does not serve");
  while (true) {
    const std::string what = communicator_.Broadcast("");
    if (what == kEnd) return;
    if (what == kStep) {
      SORDINO_CHECK(is_noised_, "a rank without privacy was asked for a private step");
      if (!MakeStep()) return;
    } else if (what == kOrdinaryStep) {
      SORDINO_CHECK(!is_noised_, "a private rank was asked for a step without privacy");
      MakeOrdinaryStep();
    } else if (what == kSave) {
      static_cast<void>(GatherState());
    } else {
      SORDINO_CHECK(what == kRestore, "rank 0 has announced what nobody knows");
      ShareState({}, 0);
    }
  }
}

}  // namespace sordino
