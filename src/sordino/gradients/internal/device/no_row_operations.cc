// Without a CUDA compiler (cmake/SordinoCuda.cmake): nobody calls what HasRowOperations says no to.
#include "sordino/gradients/internal/device/not_built.h"
#include "sordino/gradients/internal/device/row_operations.h"

namespace sordino {

using device::NotBuilt;

bool HasRowOperations(const at::Tensor& /*values*/) { return false; }
at::Tensor DeviceSquaredNorms(const std::vector<at::Tensor>& /*matrices*/) { NotBuilt(); }
void DeviceAddPieces(const std::vector<device::NormPiece>& /*pieces*/,
                     const at::Tensor& /*squared*/, double /*limit*/, const at::Tensor& /*total*/) {
  NotBuilt();
}
void DeviceAddRowNorms(const std::vector<at::Tensor>& /*matrices*/,
                       const std::vector<device::NormPiece>& /*pieces*/, double /*limit*/,
                       const at::Tensor& /*total*/) {
  NotBuilt();
}
DeviceClipped DeviceClipToBound(const at::Tensor& /*squared*/, const at::Tensor& /*below*/,
                                const at::Tensor& /*bounds*/, const at::Tensor& /*mask*/,
                                double /*largest*/) {
  NotBuilt();
}
bool AreSmallProducts(const std::vector<FactoredProduct>& /*all*/, std::int64_t /*rows*/) {
  return false;
}
std::vector<at::Tensor> DeviceRowProducts(const std::vector<FactoredProduct>& /*all*/,
                                          const at::Tensor& /*factors*/) {
  NotBuilt();
}
DeviceFactors DeviceClip(const at::Tensor& /*norms*/, const at::Tensor& /*factors*/,
                         const at::Tensor& /*bounds*/, const at::Tensor& /*mask*/,
                         double /*largest*/) {
  NotBuilt();
}
std::vector<at::Tensor> DeviceScaledRows(const std::vector<FactoredRows>& /*all*/,
                                         const at::Tensor& /*factors*/) {
  NotBuilt();
}
std::vector<at::Tensor> DeviceRowSums(const std::vector<FactoredRows>& /*all*/,
                                      const at::Tensor& /*factors*/, bool /*wide*/) {
  NotBuilt();
}
at::Tensor DeviceExampleSums(const at::Tensor& /*rows*/, const ExampleLayout& /*layout*/) {
  NotBuilt();
}
at::Tensor DeviceNormalisedSums(const at::Tensor& /*rows*/, const NormalisedRows& /*normalised*/,
                                const ExampleLayout& /*layout*/) {
  NotBuilt();
}
bool HasLookupOperations(const LookupRows& /*lookup*/) { return false; }
at::Tensor DeviceLookupSum(const LookupRows& /*lookup*/, const at::Tensor& /*factors*/,
                           bool /*wide*/) {
  NotBuilt();
}
void DeviceAddLookupNorms(const LookupRows& /*lookup*/, const at::Tensor& /*squared*/) {
  NotBuilt();
}

}  // namespace sordino
