// Options that tests of options and of components share.
#ifndef SORDINO_BASE_TESTING_SAMPLE_OPTIONS_H_
#define SORDINO_BASE_TESTING_SAMPLE_OPTIONS_H_

#include "sordino/base/options.h"

namespace sordino {

inline constexpr OptionSpec kMomentum{.key = "momentum",
                                      .flag = "--momentum",
                                      .value_name = "X",
                                      .help = "Share of the last step that is kept",
                                      .what = "the momentum",
                                      .fallback = 0.0,
                                      .recipe = 0.9,
                                      .high = 1};
inline constexpr OptionSpec kNesterov{.key = "nesterov",
                                      .flag = "--nesterov",
                                      .help = "Look ahead",
                                      .what = "Nesterov's momentum",
                                      .type = OptionType::kSwitch,
                                      .fallback = false};

}  // namespace sordino

#endif  // SORDINO_BASE_TESTING_SAMPLE_OPTIONS_H_
