// Rows of CIFAR-10 and CIFAR-100. The first byte chooses the labels.
#include "fuzz_target.h"
#include "sordino/data/cifar_reader.h"

using namespace sordino;  // NOLINT: a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto labels = static_cast<CifarLabels>(data[0] % 3);
  return fuzz::Run([&] {
    const CifarRows rows = ParseCifar(fuzz::AsBytes(data + 1, size - 1), "input", 100, labels);
    fuzz::Require(rows.images.nbytes() < size, "the images are larger than their file");
    fuzz::Require(rows.images.size(0) == rows.labels.size(0), "images and labels differ in number");
  });
}
