// The one symbol that the library shows.

#include "lathe/engine/cuda/kernels/kernels.cuh"

extern "C" __attribute__((visibility("default"))) const lathe::engine::cuda::KernelTable*
lathe_cuda_kernels() {
  using namespace lathe::engine::cuda;
  static const KernelTable table{kTableVersion,
                                 device_functions(),
                                 gemm,
                                 epilogue,
                                 map,
                                 map_gradient,
                                 pair,
                                 pair_gradient,
                                 copy,
                                 fill,
                                 cast,
                                 scalars,
                                 reduce,
                                 max_gradient,
                                 sum_rows,
                                 softmax,
                                 normalize,
                                 normalize_gradient,
                                 cross_entropy,
                                 cross_entropy_gradient,
                                 squared_error,
                                 squared_error_gradient,
                                 embedding,
                                 embedding_gradient,
                                 gather_rows,
                                 select,
                                 last_token,
                                 packed_index,
                                 positions,
                                 rope,
                                 dropout,
                                 attention,
                                 attention_gradient,
                                 update,
                                 sum_squares,
                                 gradient_scale,
                                 gate,
                                 quantize,
                                 quantize_terms,
                                 quantize_mase,
                                 learned_step};
  return &table;
}
