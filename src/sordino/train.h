// Private training of a libtorch model of your own. Link sordino::training, which brings libtorch.
//
//   const auto plan = PrivacyPlan::ForBudget(options, Epsilon(3), Delta(1e-5));
//   Trainer trainer(*plan, NamedParameters(*model), losses, data, {.learning_rate = 0.5});
//   trainer.Run();
//   const double spent = plan->Epsilon(trainer.steps_done()).upper;
//
// Whole programs: examples/private_training.cc and examples/clipped_sum.cc. To charge the steps to
// a ledger, call a StepCharger (sordino/ledger.h) from TrainerOptions::charge. Everything is in the
// namespace sordino:
//
//   Epsilon, Delta, ClipNorm,         quantities as types: a swapped pair does not compile
//   NoiseMultiplier
//   Dataset, DatasetDeclaration,      tensors, and what is declared about them in advance
//   InputKind, CheckDeclaration
//   DataSplits, MakeDigits            60,000 drawn digits, to try things out
//   Batch, LossFunction               one loss for each example of {inputs, labels}
//   NamedParameter, NamedParameters   the parameters of a model under their names
//   ScriptModel, LoadScriptModel      a TorchScript file as a model
//   PlanOptions, PrivacyPlan          sampler, clipping, noise, steps; its event and its epsilon
//   OptimizerOptions                  the optimizer and its learning rate
//   Trainer, TrainerOptions           the loop; ChargeFunction is called before noise is drawn
//   Clipper, FlatClipping, BoundedSum the clipped sum of per-example gradients, for a loop of your
//                                     own
//   Error                             a mistake of the caller, in one sentence
#ifndef SORDINO_TRAIN_H_
#define SORDINO_TRAIN_H_

#include "sordino/base/error.h"               // IWYU pragma: export
#include "sordino/base/quantity.h"            // IWYU pragma: export
#include "sordino/data/dataset.h"             // IWYU pragma: export
#include "sordino/data/digits.h"              // IWYU pragma: export
#include "sordino/gradients/clipper.h"        // IWYU pragma: export
#include "sordino/gradients/loss_function.h"  // IWYU pragma: export
#include "sordino/gradients/norm_clipping.h"  // IWYU pragma: export
#include "sordino/gradients/script_model.h"   // IWYU pragma: export
#include "sordino/optimizers/optimizer.h"     // IWYU pragma: export
#include "sordino/training/privacy_plan.h"    // IWYU pragma: export
#include "sordino/training/trainer.h"         // IWYU pragma: export

#endif  // SORDINO_TRAIN_H_
