#include "lathe/engine/cuda/kernels/convolution.cuh"

namespace lathe::engine::cuda {

void convolution_float(const ConvolutionArgs& args, Stream* stream) {
  launch_tile<Precision::Float32>(args, stream);
}

}  // namespace lathe::engine::cuda
