// Labelled sentences. The first byte chooses the order and whether there are labels.
#include "fuzz_target.h"
#include "sordino/data/text_reader.h"

using namespace sordino;  // NOLINT: a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  return fuzz::Run([&] {
    const Vocabulary vocabulary({"a", "good", "bad", "film"}, "words");
    DatasetDeclaration declaration;
    declaration.name = "input";
    declaration.kind = InputKind::kTokens;
    declaration.shape = {4};
    declaration.classes = 2;
    declaration.vocabulary = vocabulary.size();
    TextOptions options;
    options.order = data[0] % 2 == 0 ? TextOrder::kLabelFirst : TextOrder::kSentenceFirst;
    options.labelled = data[0] / 2 % 2 == 0;
    const Dataset text =
        ParseText(fuzz::AsText(data + 1, size - 1), "input", vocabulary, declaration, options);
    fuzz::Require(text.inputs.size(0) <= static_cast<std::int64_t>(size),
                  "there are more records than bytes");
  });
}
