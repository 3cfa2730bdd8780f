// The text form of an accounting event: what is parsed can be printed and parsed again.
#include "fuzz_target.h"
#include "sordino/accounting/event.h"

using namespace sordino;  // NOLINT: a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::Run([&] {
    const Event event = Event::Parse(fuzz::AsText(data, size));
    fuzz::Require(Event::Parse(event.ToString()) == event, "the printed event is another one");
  });
}
