// Names in the saved state of a trainer, beside those of the optimizer and of the clipping policy.
#ifndef SORDINO_TRAINING_INTERNAL_STATE_NAMES_H_
#define SORDINO_TRAINING_INTERNAL_STATE_NAMES_H_

namespace sordino::internal {

inline constexpr const char* kParameterPrefix = "parameter.";
inline constexpr const char* kUpdates = "updates";

}  // namespace sordino::internal

#endif  // SORDINO_TRAINING_INTERNAL_STATE_NAMES_H_
