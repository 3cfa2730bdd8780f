# SORDINO_CUDA: whether what needs a CUDA compiler is built (recorded steps, kernels, noise on a
# GPU). It needs a libtorch with CUDA, and nvcc. Without them everything runs on a GPU all the same,
# one operation of libtorch at a time.
option(SORDINO_USE_CUDA "Build what needs a CUDA compiler, where one is found" ON)
set(SORDINO_CUDA_ARCHITECTURES 80 90 CACHE STRING
  "Compute capabilities that kernels are compiled for; later ones use the code of the last")
set(SORDINO_CUDA OFF)
if(SORDINO_USE_CUDA AND SORDINO_TORCH_CUDA AND SORDINO_TORCH_C10_CUDA)
  find_package(CUDAToolkit QUIET)
  if(CUDAToolkit_NVCC_EXECUTABLE)
    set(SORDINO_CUDA ON)
  endif()
endif()

# sordino_cuda_objects(OUTPUT FILES...): the objects of kernels, to be listed among the sources of a
# module. nvcc is called by hand: with CUDA as a language of the project, CMake would link every
# program with nvcc, which does not know the options of the linker that libtorch needs.
function(sordino_cuda_objects OUTPUT)
  set(code)
  foreach(architecture IN LISTS SORDINO_CUDA_ARCHITECTURES)
    list(APPEND code -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  list(GET SORDINO_CUDA_ARCHITECTURES -1 last)
  list(APPEND code -gencode arch=compute_${last},code=compute_${last})
  set(objects)
  foreach(file IN LISTS ARGN)
    cmake_path(GET file STEM stem)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${stem}.cu.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} -std=c++20 -O3 --fmad=false -Xcompiler -fPIC ${code}
        -I${PROJECT_SOURCE_DIR}/src -MD -MF ${object}.d -c ${CMAKE_CURRENT_SOURCE_DIR}/${file}
        -o ${object}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file} DEPFILE ${object}.d VERBATIM
      COMMENT "Compiling kernels ${file}")
    list(APPEND objects ${object})
  endforeach()
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set(${OUTPUT} ${objects} PARENT_SCOPE)
endfunction()

# sordino_cuda_glue(FILES...): sources that include headers of libtorch's CUDA half.
function(sordino_cuda_glue)
  set_source_files_properties(${ARGN} PROPERTIES
    INCLUDE_DIRECTORIES "${CUDAToolkit_INCLUDE_DIRS}"
    SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
endfunction()
