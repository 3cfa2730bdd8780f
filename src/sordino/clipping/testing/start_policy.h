// A policy of the list as a run starts it, for tests.
#ifndef SORDINO_CLIPPING_TESTING_START_POLICY_H_
#define SORDINO_CLIPPING_TESTING_START_POLICY_H_

#include <memory>
#include <vector>

#include "sordino/clipping/clipping_component.h"

namespace sordino {

inline std::unique_ptr<ClippingState> StartPolicy(
    const Choice& choice, ClipNorm clip, const std::vector<NamedParameter>& parameters = {}) {
  const ClippingComponent& component = ClippingPolicies().Checked(choice);
  const ClippingTerms terms{.clip = clip, .batch = 5};
  component.CheckTerms(terms, choice.options);
  return component.Start(terms, choice.options, parameters);
}

}  // namespace sordino

#endif  // SORDINO_CLIPPING_TESTING_START_POLICY_H_
