# lathe_cuda(): the CUDA kernels as a library of their own, liblathe_cuda.so, that liblathe loads
# when a GPU is asked for. Built where nvcc is found. nvcc is called as a command: CMake's CUDA
# language would look for a GPU compiler on every machine and try it out when configuring.
#
# The runtime is linked statically, cuBLASLt is found when the program runs, and nothing of liblathe
# is linked: only lathe/engine/cuda/kernel_table.h and headers without code are shared.
find_program(LATHE_NVCC nvcc PATHS /usr/local/cuda/bin ENV CUDA_PATH PATH_SUFFIXES bin)
option(LATHE_CUDA "build the CUDA kernels where nvcc is found" ON)

# What the program and its kernels must agree on: the headers that both read.
file(GLOB shared CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lathe/engine/cuda/arguments/*.h)
list(APPEND shared ${PROJECT_SOURCE_DIR}/lathe/engine/cuda/kernel_table.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shared})
set(text "")
foreach(header ${shared})
  file(READ ${header} content)
  string(APPEND text "${content}")
endforeach()
string(SHA256 LATHE_TABLE_VERSION "${text}")
string(SUBSTRING ${LATHE_TABLE_VERSION} 0 12 LATHE_TABLE_VERSION)
set_source_files_properties(lathe/engine/cuda/cuda_library.cpp PROPERTIES
  COMPILE_DEFINITIONS LATHE_TABLE_VERSION="${LATHE_TABLE_VERSION}")

function(lathe_cuda)
  if(NOT LATHE_CUDA OR NOT LATHE_NVCC)
    message(STATUS "CUDA kernels: not built")
    return()
  endif()
  get_filename_component(nvcc ${LATHE_NVCC} REALPATH)
  get_filename_component(toolkit ${nvcc} DIRECTORY)
  get_filename_component(toolkit ${toolkit} DIRECTORY)
  find_library(LATHE_CUDART cudart_static PATHS ${toolkit}/lib64 ${toolkit}/targets/x86_64-linux/lib)
  if(NOT LATHE_CUDART)
    message(STATUS "CUDA kernels: not built, ${toolkit} has no libcudart_static.a")
    return()
  endif()
  set(folder ${PROJECT_SOURCE_DIR}/lathe/engine/cuda/kernels)
  file(GLOB kernels CONFIGURE_DEPENDS ${folder}/*.cu)
  # Machine code for Ampere and Hopper; the former's PTX serves whatever is newer. No contraction,
  # as everywhere: where a product and a sum are one operation, the code says so.
  set(flags -std=c++20 -O3 --fmad=false --expt-relaxed-constexpr
    -gencode arch=compute_80,code=[sm_80,compute_80] -gencode arch=compute_90a,code=sm_90a
    -Xcompiler=-fPIC,-fvisibility=hidden -I${PROJECT_SOURCE_DIR})
  # By the files an object was made from, not by preprocessed text: that shows one architecture alone.
  set(cached "")
  if(LATHE_CCACHE)
    set(cached ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 ${LATHE_CCACHE})
  endif()
  set(objects "")
  foreach(kernel ${kernels})
    get_filename_component(stem ${kernel} NAME_WE)
    set(object ${PROJECT_BINARY_DIR}/cuda/${stem}.o)
    set(version "")
    if(stem STREQUAL table)
      set(version "-DLATHE_TABLE_VERSION=\"${LATHE_TABLE_VERSION}\"")
    endif()
    add_custom_command(OUTPUT ${object} DEPENDS ${kernel} DEPFILE ${object}.d
      COMMENT "Compiling ${stem}.cu for GPUs" VERBATIM
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/cuda
      COMMAND ${cached} ${LATHE_NVCC} ${flags} ${version} -MD -MF ${object}.d -MT ${object} -c ${kernel} -o ${object})
    list(APPEND objects ${object})
  endforeach()
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  add_library(lathe_cuda MODULE ${objects})
  set_target_properties(lathe_cuda PROPERTIES LINKER_LANGUAGE CXX INSTALL_RPATH ""
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_link_libraries(lathe_cuda PRIVATE ${LATHE_CUDART} ${CMAKE_DL_LIBS} rt Threads::Threads)
  install(TARGETS lathe_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
