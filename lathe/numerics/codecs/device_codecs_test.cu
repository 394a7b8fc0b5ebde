// The codecs as a GPU runs them: device_codecs_test.cpp compares them with the host's, bit for bit.
#include "lathe/numerics/codecs/integer_codec.h"
#include "lathe/numerics/codecs/level_codec.h"
#include "lathe/numerics/codecs/minifloat_codec.h"
#include "lathe/numerics/codecs/shared_exponent.h"
#include "lathe/numerics/testing/recode_task.h"

namespace lathe::numerics {

template <typename Codec>
__device__ void recode(const Codec& codec, Rounding rounding, const RecodeTask& task) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= task.size) return;
  task.codes[i] = codec.encode(task.values[i], rounding, task.random[i]);
  task.decoded[i] = codec.decode(task.codes[i]);
}

extern "C" __global__ void recode_minifloat(MinifloatCodec codec, Rounding rounding,
                                            RecodeTask task) {
  recode(codec, rounding, task);
}
extern "C" __global__ void recode_integer(IntegerCodec codec, Rounding rounding, RecodeTask task) {
  recode(codec, rounding, task);
}
extern "C" __global__ void recode_level(LevelCodec codec, Rounding rounding, RecodeTask task) {
  recode(codec, rounding, task);
}
extern "C" __global__ void share_exponent(SharedExponent exponent, Rounding, RecodeTask task) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= task.size) return;
  const int code = exponent.code(bits_of(task.values[i]) & ~kSignBit);
  task.codes[i] = static_cast<std::uint32_t>(code);
  task.decoded[i] = SharedExponent::scale(code);
}

}  // namespace lathe::numerics
