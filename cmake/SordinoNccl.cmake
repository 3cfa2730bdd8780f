# NCCL, which adds up between GPUs. libtorch's CUDA half brings the library, whose functions are looked
# up when a program runs; only nccl.h has to be found, beside the CUDA toolkit or in the wheel of NCCL
# that stands beside that of libtorch. Without it, or without SORDINO_CUDA, ranks add up over Gloo.
#
# Sets SORDINO_NCCL to whether it was found.
set(SORDINO_NCCL OFF)
if(SORDINO_CUDA)
  find_path(SORDINO_NCCL_INCLUDE nccl.h
    HINTS ${CUDAToolkit_INCLUDE_DIRS} ${SORDINO_TORCH_INCLUDE}/../../nvidia/nccl/include)
  if(SORDINO_NCCL_INCLUDE)
    # Since NCCL 2.14: communicators that do not block.
    file(STRINGS ${SORDINO_NCCL_INCLUDE}/nccl.h sordino_nccl_config REGEX "ncclCommInitRankConfig")
    if(sordino_nccl_config)
      set(SORDINO_NCCL ON)
    endif()
  endif()
  if(NOT SORDINO_NCCL)
    message(STATUS "nccl.h of NCCL 2.14 or later was not found: ranks on GPUs will add up over Gloo.")
  endif()
endif()

# sordino_nccl_glue(FILES...): sources that include nccl.h.
function(sordino_nccl_glue)
  sordino_cuda_glue(${ARGN})
  set_source_files_properties(${ARGN} PROPERTIES
    INCLUDE_DIRECTORIES "${CUDAToolkit_INCLUDE_DIRS};${SORDINO_NCCL_INCLUDE}")
endfunction()
