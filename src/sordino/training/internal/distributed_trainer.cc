#include "sordino/training/internal/distributed_trainer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <exception>
#include <span>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/gradients/saved_tensors.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/training/internal/data_check.h"
#include "sordino/training/internal/libtorch_seed.h"
#include "sordino/training/internal/ordinary_gradients.h"
#include "sordino/training/internal/packed_tensors.h"
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
constexpr const char* kNotCharged = "not charged";

// In a private run nobody but the ranks knows it.
RandomSource SharedSource(const TrainerOptions& options, Communicator& communicator) {
  if (options.insecure_seed) return RandomSource(*options.insecure_seed);
  const SharedSecret fresh;
  const std::string bytes = communicator.Broadcast(
      std::string(reinterpret_cast<const char*>(fresh.bytes().data()), SharedSecret::kBytes));
  SORDINO_CHECK(bytes.size() == SharedSecret::kBytes, "the shared secret has another length");
  return RandomSource(SharedSecret(std::as_bytes(std::span(bytes)).first<SharedSecret::kBytes>()));
}

// With the values of rank 0.
std::vector<NamedParameter> WithSharedValues(std::vector<NamedParameter> parameters,
                                             Communicator& communicator) {
  NamedTensors values;
  if (communicator.IsFirst()) {
    for (const NamedParameter& parameter : parameters) {
      values.emplace_back(parameter.name, parameter.value);
    }
  }
  values = UnpackTensors(communicator.Broadcast(PackTensors(values)));
  const at::NoGradGuard no_grad;
  bool fits = values.size() == parameters.size();
  for (std::size_t i = 0; fits && i < values.size(); ++i) {
    const at::Tensor& own = parameters[i].value;
    fits = values[i].first == parameters[i].name && values[i].second.sizes() == own.sizes() &&
           values[i].second.scalar_type() == own.scalar_type();
    if (fits) own.detach().copy_(values[i].second);
  }
  if (!fits) {
    throw Error(
        "the model of this process has other parameters than that of process 0; start all of them "
        "with the same model.");
  }
  return parameters;
}

// Before anything that all ranks do together, so that none waits for one that has refused.
const PrivacyPlan& Shared(const PrivacyPlan& plan, const std::vector<NamedParameter>& parameters,
                          const TrainerOptions& options) {
  CheckShared(plan, parameters, options);
  return plan;
}

}  // namespace

void CheckShared(const PrivacyPlan& plan, const std::vector<NamedParameter>& parameters,
                 const TrainerOptions& options) {
  if (options.canaries > 0 || options.canary_records) {
    throw Error("a run with canaries is not shared by several processes; use one process.");
  }
  if (plan.options().held_out) {
    throw Error(
        "noise that follows measurements on held-out records is not shared by several processes; "
        "use another noise schedule, or one process.");
  }
  const auto sums = plan.StartChunks(parameters, options.gradients);
  if (plan.StartClipping(sums->parameters())->StepPolicy(plan.StepClip(0)).transform() != nullptr) {
    throw Error(fmt::format(
        "clipping by '{}' needs all noised gradients in one process; use another way of clipping, "
        "or one process.",
        plan.options().clipping.name));
  }
}

DistributedTrainer::DistributedTrainer(const PrivacyPlan& plan,
                                       std::vector<NamedParameter> parameters, LossFunction losses,
                                       const Dataset& data, const OptimizerOptions& optimizer,
                                       TrainerOptions options, bool clip_and_noise)
    : plan_(Shared(plan, parameters, options)),
      parameters_(WithSharedValues(std::move(parameters), *options.communicator)),
      losses_(std::move(losses)),
      options_(std::move(options)),
      is_noised_(clip_and_noise),
      communicator_(*options_.communicator),
      shared_source_(SharedSource(options_, communicator_)),
      noise_source_(options_.insecure_seed ? RandomSource(*options_.insecure_seed)
                                           : RandomSource()),
      sums_(plan_.StartChunks(parameters_, options_.gradients)),
      clipping_(plan_.StartClipping(sums_->parameters())),
      optimizer_(sums_->parameters(), optimizer, plan_.steps(), communicator_),
      sampler_(plan_.sampler().Make(plan_.sampling(), static_cast<std::uint64_t>(data.size()),
                                    shared_source_)),
      loader_(data, options_.loader) {
  if (is_noised_) internal::CheckData(plan_, data, /*canaries=*/0);
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
  const auto stream = shared_source_.Stream({.step = step, .rank = 0, .tensor = kSamplingStream});
  const std::vector<std::uint64_t> batch = sampler_->Batch(requested_, *stream);
  const auto examples = static_cast<std::int64_t>(batch.size());
  if (is_noised_ && examples > plan_.LargestBatch()) {
    // How many there are is private where batches are drawn at random.
    throw Error(fmt::format("a batch is larger than the {} examples that the sensitivity covers.",
                            plan_.LargestBatch()));
  }
  const std::vector<Chunk> chunks = Cut(examples);
  Request request;
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

FixedPointSum DistributedTrainer::SumOfOwnChunks(const ClippingPolicy& policy) {
  const Request request = std::move(requests_.front());
  requests_.pop_front();
  std::size_t chunk = 0;
  const auto next = [&]() -> std::optional<Batch> {
    if (chunk == request.models.size()) return std::nullopt;
    SeedLibtorch(*request.models[chunk++]);
    return loader_.Take();
  };
  return sums_->Sum(losses_, next, policy);
}

std::vector<at::Tensor> DistributedTrainer::GradientsOfOwnPart() {
  const Request request = std::move(requests_.front());
  requests_.pop_front();
  SORDINO_CHECK(request.models.size() == 1, "a rank has one part of an ordinary batch");
  SeedLibtorch(*request.models.front());
  return OrdinaryGradients(losses_, loader_.Take(), sums_->parameters(), request.examples,
                           options_.gradients.physical_batch);
}

// A rank throws what it failed with itself; the others throw its sentence. What other libraries say
// does not leave the rank.
void DistributedTrainer::AgreeThatAllCan(const std::exception_ptr& failure) {
  std::string sentence;
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const Error& error) {
    sentence = error.what();
  } catch (const std::exception&) {
    sentence = fmt::format("process {} could not compute its part of a step; it says why itself.",
                           communicator_.Rank());
  }
  const std::vector<std::string> all = communicator_.AllGatherBytes(sentence);
  if (failure) std::rethrow_exception(failure);
  for (const std::string& other : all) {
    if (!other.empty()) throw Error(other);
  }
}

// The first step of an epoch pays for all of it, and so does the first one after a state was
// restored, whose batches are of a new allocation.
Event DistributedTrainer::ChargeOf(std::int64_t step) const {
  const bool begins = step == first_ || step % plan_.StepsPerEvent() == 0;
  return begins ? plan_.StepEvent(step) : Event::None(plan_.options().adjacency);
}

// Returns true on every rank once the charge of the step in hand is durable.
bool DistributedTrainer::WaitForCharge() {
  if (!communicator_.IsFirst()) return communicator_.Broadcast("") == kCharged;
  try {
    if (options_.charge) options_.charge(done_, ChargeOf(done_));
  } catch (...) {
    const std::exception_ptr why = std::current_exception();
    communicator_.Broadcast(kNotCharged);
    std::rethrow_exception(why);
  }
  communicator_.Broadcast(kCharged);
  return true;
}

// False: the step was not charged, and nothing was released.
bool DistributedTrainer::MakeStep() {
  const std::int64_t step = done_;
  const ClippingPolicy& policy = clipping_->StepPolicy(plan_.StepClip(step));
  std::optional<FixedPointSum> sum;
  std::exception_ptr failure;
  try {
    if (requested_ == done_) RequestNext();
    RequestNext();  // made ready while this step is computed
    sum.emplace(SumOfOwnChunks(policy));
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  AgreeThatAllCan(failure);
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
  const StepNoise noise = {.kind = &plan_.noise_kind(),
                           .multiplier = clipping_->GradientNoise(plan_.StepNoise(step)),
                           .unit_share = plan_.UnitShare(),
                           .divisor = plan_.Divisor(step),
                           .step = step};
  NoisedGradients mean = AddNoise(shard, noise, noise_source_);
  optimizer_.Step(clipping_->AfterNoise(std::move(mean), counts, step, shared_source_));
  return true;
}

void DistributedTrainer::MakeOrdinaryStep() {
  std::vector<at::Tensor> gradients;
  std::exception_ptr failure;
  bool is_empty = false;
  try {
    if (requested_ == done_) RequestNext();
    RequestNext();
    is_empty = requests_.front().examples == 0;
    gradients = GradientsOfOwnPart();
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  AgreeThatAllCan(failure);
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
