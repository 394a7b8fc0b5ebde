#include "lathe/engine/cpu/cpu_measure.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include "lathe/core/error.h"
#include "lathe/core/number_format.h"
#include "lathe/engine/aligned_buffer.h"
#include "lathe/engine/executor.h"
#include "lathe/engine/packed_chain.h"
#include "lathe/numerics/unpack.h"

namespace lathe::engine {
namespace {

constexpr int kWarmUps = 2;
constexpr double kBeyondCaches = 5e8;  // bytes that no third-level cache holds
constexpr std::int64_t kFewRows = 64;

class CpuMeasure final : public DeviceMeasure {
 public:
  explicit CpuMeasure(ThreadPool* pool) : pool_(pool) {}

  std::string description() const override {
    const int threads = pool_ == nullptr ? 1 : pool_->num_threads();
    return fmt::format("cpu, {} thread{}", threads, threads == 1 ? "" : "s");
  }
  std::optional<DeviceMemory> memory() const override { return std::nullopt; }

  std::vector<double> time_copy(std::int64_t bytes, int repeats) override {
    // A piece for each thread: memcpy goes past the caches where a piece is large.
    const int threads = pool_ == nullptr ? 1 : pool_->num_threads();
    const std::int64_t each = bytes / threads;
    const AlignedBuffer from(each * threads), to(each * threads);
    std::memset(from.data(), 1, static_cast<std::size_t>(from.size()));
    std::memset(to.data(), 0, static_cast<std::size_t>(to.size()));
    return time(repeats, [&] {
      const auto copy = [&](std::int64_t task, int) {
        std::memcpy(to.data() + task * each, from.data() + task * each,
                    static_cast<std::size_t>(each));
      };
      if (pool_ != nullptr) return pool_->run(threads, copy);
      copy(0, 0);
    });
  }

  std::vector<Tile> tiles() const override { return {}; }
  std::int64_t run_of_tile(bool) const override { return 0; }

  std::vector<double> time_dequantize(const DequantizeCase& what, int repeats) override {
    const auto format = parse_format(fmt::format("mxint:8,block={}", what.group));
    const std::int64_t count = what.rows * what.columns;
    const AlignedBuffer codes(count), scales(count / what.group);
    const AlignedBuffer result(count * (what.to_float ? 4 : 2));
    auto* const numbers = reinterpret_cast<std::uint8_t*>(codes.data());
    for (std::int64_t i = 0; i < count; ++i) numbers[i] = static_cast<std::uint8_t>(i * 37 >> 3);
    std::memset(scales.data(), 127, static_cast<std::size_t>(scales.size()));
    std::memset(result.data(), 0, static_cast<std::size_t>(result.size()));
    const numerics::PackedRows rows{what.rows, what.columns, numbers,
                                    reinterpret_cast<const std::uint8_t*>(scales.data())};
    return time(repeats, [&] {
      if (what.to_float)
        numerics::unpack(*format, rows, result.floats(), pool_);
      else
        numerics::unpack(*format, rows, reinterpret_cast<std::uint16_t*>(result.data()), pool_);
    });
  }

  std::vector<double> time_packed_linear(const PackedLinearCase& what, int repeats) override {
    if (what.n != what.k)
      fail("weight {}x{}: expected a square one, which can be multiplied again", what.n, what.k);
    const double numbers = static_cast<double>(what.n) * static_cast<double>(what.k);
    const std::shared_ptr<const NumberFormat> format = parse_format(what.format);
    const double bits = format == nullptr ? 32 : format->bits_per_element(what.n, what.k);
    // Many rows wait for multiplications, not for weights.
    const auto layers =
        what.rows > kFewRows
            ? 2
            : static_cast<std::int64_t>(std::clamp(kBeyondCaches / (numbers * bits / 8), 2., 256.));
    const PackedChain chain = make_packed_chain({.weight = format == nullptr ? "" : what.format,
                                                 .x = what.encodes ? what.format : "",
                                                 .size = what.n,
                                                 .layers = layers});
    const std::unique_ptr<Executor> executor = make_executor(
        chain.graph, chain.state,
        {.pool = pool_, .precision = what.precision, .uses_integers = format != nullptr});
    const Feed feed{{"x0", packed_chain_input(what.rows, what.k)}};
    std::vector<double> seconds = time(repeats, [&] { executor->run(feed); });
    for (double& one : seconds) one /= static_cast<double>(layers);
    return seconds;
  }

 private:
  std::vector<double> time(int repeats, const std::function<void()>& execution) {
    std::vector<double> seconds;
    for (int i = -kWarmUps; i < repeats; ++i) {
      between();
      const auto start = std::chrono::steady_clock::now();
      execution();
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      if (i >= 0) seconds.push_back(taken.count());
    }
    return seconds;
  }

  ThreadPool* pool_;
};

}  // namespace

std::unique_ptr<DeviceMeasure> make_cpu_measure(ThreadPool* pool) {
  return std::make_unique<CpuMeasure>(pool);
}

}  // namespace lathe::engine
