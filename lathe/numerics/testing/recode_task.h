#pragma once

#include <cstdint>

namespace lathe::numerics {

/// What a kernel of device_codecs_test.cu works on; pointers are the device's.
struct RecodeTask {
  const float* values = nullptr;
  const std::uint32_t* random = nullptr;
  std::uint32_t size = 0;
  std::uint32_t* codes = nullptr;
  float* decoded = nullptr;
};

}  // namespace lathe::numerics
