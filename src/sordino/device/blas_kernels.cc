#include "sordino/device/blas_kernels.h"

#ifdef __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include <cstdlib>
#endif

namespace sordino {

void ChooseBlasKernels() {
#ifdef __aarch64__
  constexpr const char* kWithoutSve = "1";
  const bool has_sve = (getauxval(AT_HWCAP) & HWCAP_SVE) != 0;
  if (!has_sve) setenv("NVPL_BLAS_DEBUG_CPU_TYPE", kWithoutSve, /*overwrite=*/0);
#endif
}

}  // namespace sordino
