#include "sordino/training/internal/rank_agreement.h"

#include <fmt/format.h>

#include <exception>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/distributed/agreement.h"

namespace sordino {

void DoTogether(Communicator& communicator, const std::function<void()>& does) {
  std::string sentence;
  std::exception_ptr failure;
  try {
    does();
  } catch (const Error& error) {
    failure = std::current_exception();
    sentence = error.what();
  } catch (const std::exception&) {
    failure = std::current_exception();
    sentence = fmt::format("process {} could not compute its part of a step; it says why itself.",
                           communicator.Rank());
  }
  const std::vector<std::string> all = GatherWithStops(communicator, sentence);
  if (failure) std::rethrow_exception(failure);
  for (const std::string& other : all) {
    if (!other.empty()) throw Error(other);
  }
}

std::string TellOthers(Communicator& communicator, const std::function<std::string()>& does) {
  if (!communicator.IsFirst()) return communicator.Broadcast("");
  std::string what;
  try {
    what = does();
  } catch (...) {
    const std::exception_ptr why = std::current_exception();
    communicator.Broadcast(kNotDone);
    std::rethrow_exception(why);
  }
  return communicator.Broadcast(what);
}

}  // namespace sordino
