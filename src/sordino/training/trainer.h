// Private training of any libtorch model.
//
//   Trainer trainer(plan, NamedParameters(*model), losses, data, {.learning_rate = 0.5});
//   trainer.Run();
//
// A step samples, clips, is charged, draws noise, and updates, in this order; the batch, the sum
// and the losses never leave it. Steps that were charged are never given back.
#ifndef SORDINO_TRAINING_TRAINER_H_
#define SORDINO_TRAINING_TRAINER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/data/batch_loader.h"
#include "sordino/data/dataset.h"
#include "sordino/data/record_source.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/gradients/named_tensors.h"
#include "sordino/gradients/noised_value.h"
#include "sordino/optimizers/optimizer.h"
#include "sordino/training/adaptive_noise.h"
#include "sordino/training/canaries.h"
#include "sordino/training/canary_records.h"
#include "sordino/training/privacy_plan.h"

namespace sordino {

class Communicator;

// Called with PrivacyPlan::ChargeOf, before the noise of the step is drawn. Throw to stop the run
// before the release.
using ChargeFunction = std::function<void(std::int64_t step, const Event& event)>;

// How a plan with held-out records measures them, and what follows from it (adaptive_noise.h).
struct HeldOutOptions {
  LossFunction
      is_right;  // above 1/2 for an example of {inputs, labels} that the model is right about
  NoiseRule rule;
  // Whether the budget has place for the steps from `step` to the next measurement with the lower
  // noise of this plan; empty: always.
  std::function<bool(const PrivacyPlan& plan, std::int64_t step)> admits = {};
};

// Moves the parameters by the noised mean gradients of a step, one for each parameter that is
// trained. Post-processing: it may do whatever it likes with them.
using UpdateFunction = std::function<void(const NoisedGradients& gradients)>;

// Records that a program has, instead of a Dataset.
struct ProgramRecords {
  RecordSource* source = nullptr;  // lives longer than the trainer
  std::int64_t size = 0;           // how many there are, which is private
  // The tensors of a batch of one record. Their types and shapes are public, and nothing
  // else of them is used: made-up records are of this form (internal/made_up_records.h).
  Batch form = {};
};

struct TrainerOptions {
  GradientOptions gradients = {};  // speed and memory
  LoaderOptions loader = {};       // device and augmentation
  ChargeFunction charge = {};
  // Noise, batches and libtorch's default generators at each step from this seed instead of the
  // operating system: not private, for tests.
  std::optional<std::uint64_t> insecure_seed = {};
  // Made-up records to audit the run with: gradients (canaries.h), or data
  // (internal/data_canaries.h), whose number the plan counts.
  std::int64_t canaries = 0;
  std::optional<CanaryRecords> canary_records = {};
  std::optional<HeldOutOptions> held_out = {};  // of a plan that has them
  // The ranks that make the steps together (internal/sum_source.h); null: this process
  // alone. It lives longer than the trainer. Rank 0 leads and charges; the others Serve().
  Communicator* communicator = nullptr;
  // Instead of the optimizer. Whatever it remembers is not part of the saved state.
  UpdateFunction update = {};
};

// Throws Error for what several ranks cannot do together, in a sentence that names it.
void CheckShared(const PrivacyPlan& plan, const std::vector<NamedParameter>& parameters,
                 const TrainerOptions& options);

class Trainer {
 public:
  // Seeds libtorch's default generators (dropout) with fresh randomness, as each step does.
  // One loss for each example of {inputs, labels} (data/batch_loader.h). With augmentation
  // multiplicity K the inputs are [n, K, ...]. Throws Error when the data do not fit the plan.
  Trainer(const PrivacyPlan& plan, std::vector<NamedParameter> parameters, LossFunction losses,
          const Dataset& data, const OptimizerOptions& optimizer, TrainerOptions options = {});
  // Records and updates are those of a program, in this process alone. Losses are those of the
  // tensors that the source gives. Throws Error for held-out records, records as canaries, several
  // rows a user and several ranks, which need a Dataset.
  Trainer(const PrivacyPlan& plan, std::vector<NamedParameter> parameters, LossFunction losses,
          const ProgramRecords& records, UpdateFunction update, TrainerOptions options = {});
  // The same loop without clipping and noise, for comparisons: batches by the plan's sampler, mean
  // losses, ordinary backward passes. Nothing about the result is private.
  static Trainer NonPrivate(const PrivacyPlan& plan, std::vector<NamedParameter> parameters,
                            LossFunction losses, const Dataset& data,
                            const OptimizerOptions& optimizer, TrainerOptions options = {});
  // The loop of a private run with clipping and without noise, to see what clipping alone does to a
  // training. Nothing is charged, and nothing about the result is private. Throws Error for a
  // clipping that learns from noised values.
  static Trainer WithoutNoise(const PrivacyPlan& plan, std::vector<NamedParameter> parameters,
                              LossFunction losses, const Dataset& data,
                              const OptimizerOptions& optimizer, TrainerOptions options = {});
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  // What the first step finds out about the model, before anything is charged: throws Error as Step
  // does for a model or a loss that cannot be trained, found with made-up records. In a process
  // alone.
  void Look();
  // One step; stops the program when the plan's steps are used up. After an exception the trainer
  // is used up.
  void Step();
  // All steps that are left, or until `go_on` says no (it is asked after each step with the number
  // of steps done).
  void Run(const std::function<bool(std::int64_t steps_done)>& go_on = {});

  // The other ranks of several: takes part in what rank 0 does until it has ended. Throws Error
  // with the sentence of a rank that could not do its part, and CommunicationError when one has
  // gone.
  void Serve();

  // Steps that were charged: one that failed after its charge counts.
  std::int64_t steps_done() const;
  bool is_private() const;  // false also for a seeded run
  // With the noise of the next step, where it was lowered.
  const PrivacyPlan& plan() const;
  Optimizer& optimizer();  // for its averaged weights
  // What was released about held-out records, those of a restored state included.
  std::vector<HeldOutMeasurement> measurements() const;
  // What the run released about its canaries; empty without them.
  CanaryScores canary_scores() const;

  // What later steps depend on, copied to the CPU: parameter.<name> of every parameter that is
  // trained, the state of the optimizer with the number of its updates, and what the clipping
  // policy learned (clip.bounds, clip.mean.<name>, ...) and what the noise remembers: counts of
  // held-out records, scales of draws. All of it was noised, or is public. Throws Error after an
  // exception, and while averaged weights are in use.
  NamedTensors SaveState() const;
  // Resumes after `steps_done` steps of a run of the same plan and settings. Call it before the
  // first step, with the model in training mode. Values are copied and storages kept. Throws Error
  // when the state does not fit; the trainer is used up then.
  //
  // On rank 0 of several, for all of them; their number may be another than that of the saved run.
  //
  // Nothing random is saved or restored. A private run keeps the nonce that it got from the
  // operating system when it was made: noise that came twice, with another batch under it, would
  // cancel, and the difference of the two would show the data. Noise that is correlated between
  // steps starts a new process, with nothing of the old draws (noise/noise_process.h). Steps that
  // are made again have to be charged again. A seeded run draws everything of a step from its seed
  // and the number of the step, so on the same machine it goes on bit for bit as if it had not been
  // interrupted.
  void RestoreState(const NamedTensors& state, std::int64_t steps_done);

 private:
  struct State;
  explicit Trainer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sordino

#endif  // SORDINO_TRAINING_TRAINER_H_
