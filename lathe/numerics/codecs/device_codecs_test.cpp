// The codecs as a GPU runs them against the codecs as the host does: same codes, same numbers. The
// kernels are in device_codecs_test.cu; building them is a test by itself.
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <sstream>

#include "lathe/numerics/codecs/integer_codec.h"
#include "lathe/numerics/codecs/level_codec.h"
#include "lathe/numerics/codecs/minifloat_codec.h"
#include "lathe/numerics/codecs/shared_exponent.h"
#include "lathe/numerics/testing/gpu.h"
#include "lathe/numerics/testing/recode_task.h"

namespace lathe::numerics {
namespace {

class DeviceCodecs : public testing::Test {
 protected:
  void SetUp() override {
#ifndef LATHE_PTX_DIR
    GTEST_SKIP() << "no clang was found to compile device code (Debian: clang-16)";
#else
    gpu_ = Gpu::find();
    if (!gpu_) GTEST_SKIP() << "no NVIDIA GPU";
    std::ifstream file(LATHE_PTX_DIR "/device_codecs_test.ptx");
    ASSERT_TRUE(file) << LATHE_PTX_DIR "/device_codecs_test.ptx";
    std::stringstream text;
    text << file.rdbuf();
    gpu_->load(text.str());
    // Every sign, exponent and upper fifteen bits of the mantissa, exactly and with neighbours.
    values_.reserve(std::size_t{3} << 24);
    for (std::uint32_t upper = 0; upper < 1u << 24; ++upper)
      for (const std::uint32_t lower : {0u, 1u, 0xffffffffu})
        values_.push_back(float_of((upper << 8) + lower));
    random_.resize(values_.size());
    for (std::size_t i = 0; i < random_.size(); ++i)
      random_[i] = static_cast<std::uint32_t>(i) * 2654435761u;
    task_.size = static_cast<std::uint32_t>(values_.size());
    task_.values = gpu_->upload<float>(values_);
    task_.random = gpu_->upload<std::uint32_t>(random_);
    task_.codes = gpu_->allocate<std::uint32_t>(values_.size());
    task_.decoded = gpu_->allocate<float>(values_.size());
#endif
  }
  void TearDown() override {
    if (!gpu_) return;
    for (const void* memory :
         std::initializer_list<const void*>{task_.values, task_.random, task_.codes, task_.decoded})
      gpu_->free(memory);
  }

  // `on_device` is `codec` with the device's addresses, where it has any.
  template <typename Codec>
  void expect_same(const char* kernel, const Codec& codec, const Codec& on_device) {
    for (const Rounding rounding : {Rounding::NearestEven, Rounding::Floor, Rounding::Stochastic}) {
      expect_same(kernel, on_device, rounding, [&](std::size_t i) {
        const std::uint32_t code = codec.encode(values_[i], rounding, random_[i]);
        return std::pair(code, codec.decode(code));
      });
    }
  }
  template <typename Codec>
  void expect_same(const char* kernel, const Codec& codec) {
    expect_same(kernel, codec, codec);
  }
  template <typename Codec, typename Recode>
  void expect_same(const char* kernel, const Codec& codec, Rounding rounding, Recode&& recode) {
    gpu_->launch(kernel, values_.size(), codec, rounding, task_);
    const auto codes = gpu_->download(task_.codes, values_.size());
    const auto decoded = gpu_->download(task_.decoded, values_.size());
    int shown = 0;
    for (std::size_t i = 0; i < values_.size() && shown < 3; ++i) {
      const auto [code, number] = recode(i);
      if (codes[i] == code && bits_of(decoded[i]) == bits_of(number)) continue;
      ADD_FAILURE() << kernel << ", rounding " << static_cast<int>(rounding) << ", value "
                    << values_[i] << ": code " << codes[i] << " for " << decoded[i]
                    << " instead of " << code << " for " << number;
      ++shown;
    }
  }

  std::optional<Gpu> gpu_;
  std::vector<float> values_;
  std::vector<std::uint32_t> random_;
  RecodeTask task_;
};

TEST_F(DeviceCodecs, Minifloats) {
  for (const MinifloatCodec& codec : {
           MinifloatCodec{4, 3, 7, Specials::Nan, false},
           MinifloatCodec{5, 2, 15, Specials::InfinityAndNan, true},
           MinifloatCodec{2, 1, 1, Specials::None, false},
           MinifloatCodec{3, 2, 3, Specials::None, false},
           MinifloatCodec{5, 10, 15, Specials::InfinityAndNan, true},
           MinifloatCodec{8, 7, 127, Specials::InfinityAndNan, true},
           MinifloatCodec{7, 0, 63, Specials::None, false},
       })
    expect_same("recode_minifloat", codec);
}

TEST_F(DeviceCodecs, Integers) {
  for (const IntegerCodec& codec :
       {IntegerCodec{8, -127, 127, 0}, IntegerCodec{4, -8, 7, 0}, IntegerCodec{4, -3, 12, 3},
        IntegerCodec{16, -32768, 32767, 0}, IntegerCodec{32, -2147483648, 2147483647, 0}})
    expect_same("recode_integer", codec);
}

TEST_F(DeviceCodecs, Levels) {
  std::vector<float> levels(LevelCodec::kLevels);
  std::iota(levels.begin(), levels.end(), -7.0f);
  std::vector<float> thresholds(levels);
  for (float& threshold : thresholds) threshold += 0.5f;
  const LevelCodec on_device{gpu_->upload<float>(levels), gpu_->upload<float>(thresholds)};
  expect_same("recode_level", LevelCodec{levels.data(), thresholds.data()}, on_device);
  gpu_->free(on_device.levels);
  gpu_->free(on_device.thresholds);
}

TEST_F(DeviceCodecs, SharedExponents) {
  for (const SharedExponent& exponent :
       {SharedExponent{8, kFloorRule, 0}, SharedExponent{2, kCeilRule, 6},
        SharedExponent{0, even_rule(3), 0}})
    expect_same("share_exponent", exponent, Rounding::NearestEven, [&](std::size_t i) {
      const int code = exponent.code(bits_of(values_[i]) & ~kSignBit);
      return std::pair(static_cast<std::uint32_t>(code), SharedExponent::scale(code));
    });
}

}  // namespace
}  // namespace lathe::numerics
