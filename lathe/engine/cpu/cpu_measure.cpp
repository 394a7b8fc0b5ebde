#include "lathe/engine/cpu/cpu_measure.h"

#include <chrono>
#include <cstring>
#include <functional>

#include "lathe/core/error.h"
#include "lathe/core/number_format.h"

namespace lathe::engine {
namespace {

constexpr int kWarmUps = 2;
constexpr std::int64_t kTasks = 16;  // more than threads, so that none waits long

class CpuMeasure final : public DeviceMeasure {
 public:
  explicit CpuMeasure(ThreadPool* pool) : pool_(pool) {}

  std::string description() const override {
    const int threads = pool_ == nullptr ? 1 : pool_->num_threads();
    return fmt::format("cpu, {} thread{}", threads, threads == 1 ? "" : "s");
  }
  std::optional<DeviceMemory> memory() const override { return std::nullopt; }

  std::vector<double> time_copy(std::int64_t bytes, int repeats) override {
    const auto each = static_cast<std::size_t>(bytes / kTasks);
    std::vector<std::byte> from(each * kTasks, std::byte{1}), to(each * kTasks);
    return time(repeats, [&](std::int64_t task) {
      const std::size_t at = static_cast<std::size_t>(task) * each;
      std::memcpy(to.data() + at, from.data() + at, each);
    });
  }

  std::vector<Tile> tiles() const override { return {}; }
  std::int64_t run_of_tile(bool) const override { return 0; }

  std::vector<double> time_dequantize(const DequantizeCase& what, int repeats) override {
    if (!what.to_float) fail("device cpu decodes to float, not to bfloat16");
    const auto format = parse_format(fmt::format("mxint:8,block={}", what.group));
    const std::int64_t rows = (what.rows + kTasks - 1) / kTasks;
    std::vector<float> numbers(static_cast<std::size_t>(rows * what.columns));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<float>(i * 2654435761u % 1999) / 999 - 1;
    const EncodedMatrix encoded =
        format->encode({.rows = rows, .columns = what.columns, .x = numbers.data()});
    const std::vector<EncodedMatrix> parts(kTasks, encoded);
    std::vector<std::vector<float>> results(kTasks, numbers);
    return time(repeats, [&](std::int64_t task) {
      const auto i = static_cast<std::size_t>(task);
      format->decode(parts[i], nullptr, nullptr, results[i].data());
    });
  }

  std::vector<double> time_packed_linear(const PackedLinearCase&, int) override {
    fail("device cpu unpacks weights when they are set: products with packed ones need a GPU");
  }

 private:
  std::vector<double> time(int repeats, const std::function<void(std::int64_t)>& task) {
    std::vector<double> seconds;
    for (int i = -kWarmUps; i < repeats; ++i) {
      between();
      const auto start = std::chrono::steady_clock::now();
      if (pool_ != nullptr)
        pool_->run(kTasks, [&](std::int64_t index, int) { task(index); });
      else
        for (std::int64_t index = 0; index < kTasks; ++index) task(index);
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
