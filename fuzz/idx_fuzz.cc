// An IDX array, and the dataset of it with a declaration that its own shape suggests.
#include <vector>

#include "fuzz_target.h"
#include "sordino/data/idx_reader.h"

using namespace sordino;  // NOLINT: a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::Run([&] {
    const at::Tensor array = ParseIdx(fuzz::AsBytes(data, size), "input");
    fuzz::Require(array.nbytes() <= size, "the array is larger than its file");
    DatasetDeclaration declaration;
    declaration.name = "input";
    declaration.classes = 10;
    declaration.kind = static_cast<InputKind>(size % 3);
    declaration.vocabulary = declaration.kind == InputKind::kTokens ? 100 : 0;
    if (declaration.kind == InputKind::kImage) declaration.shape.push_back(1);
    for (const std::int64_t length : array.sizes().slice(1)) declaration.shape.push_back(length);
    const bool columns = array.dim() > 1 && array.numel() > 0;
    const at::Tensor labels = columns ? array.flatten(1).select(1, 0) : array;
    DatasetFromArrays(array, labels, declaration, "input", "labels");
  });
}
