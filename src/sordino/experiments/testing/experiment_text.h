// What tests of experiments are written with.
#ifndef SORDINO_EXPERIMENTS_TESTING_EXPERIMENT_TEXT_H_
#define SORDINO_EXPERIMENTS_TESTING_EXPERIMENT_TEXT_H_

#include <string>

#include "sordino/base/error.h"

namespace sordino {

// The beginning of a part that runs this command.
inline std::string PartOf(const std::string& command) {
  return "[[part]]\ncommand = \"" + command + "\"\n";
}

inline constexpr const char* kNothingRefused = "nothing was refused";

// The sentence with which an action is refused.
template <typename Action>
std::string RefusalBy(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return kNothingRefused;
}

}  // namespace sordino

#endif  // SORDINO_EXPERIMENTS_TESTING_EXPERIMENT_TEXT_H_
