// How many examples of a batch something is true of, each seen alone.
//
// The count has the sensitivity 1 under add-remove: an example adds 0 or 1, and no example can
// reach what is computed of another one, whatever the model does (the passes are those of clipping,
// see docs/decisions/isolation.md).
#ifndef SORDINO_GRADIENTS_EXAMPLE_COUNT_H_
#define SORDINO_GRADIENTS_EXAMPLE_COUNT_H_

#include <cstdint>

#include "sordino/gradients/loss_function.h"
#include "sordino/gradients/private_value.h"

namespace sordino {

// The examples for which `indicator` gives more than 1/2; one number for each, as a LossFunction. A
// number that is not one counts as 0. `one_by_one`: for models with layers that have no rule
// (GradientOptions::fallback). Throws Error for a model that mixes examples; `hide_errors`: an
// example that fails is not counted, and nothing is thrown. `padded_examples`: the model sees as
// many, copies of the first one behind the others, so that no value depends on their number.
PrivateValue<std::int64_t> CountExamples(const LossFunction& indicator, const Batch& batch,
                                         bool one_by_one = false, bool hide_errors = false,
                                         std::int64_t padded_examples = 0);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_EXAMPLE_COUNT_H_
