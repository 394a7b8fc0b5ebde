// How fast every number format rounds, beside memcpy: 128 MiB of float32 out of place, one thread
// and two.
//
//   bench_formats [plain|avx2|avx512] [FORMAT...]
//
// A format and memcpy take turns on the same buffers and each reports its best round, because the
// clock and the memory of a shared machine drift by more than the difference between them.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "lathe/core/error.h"
#include "lathe/core/number_format.h"
#include "lathe/core/thread_pool.h"

namespace {

using namespace lathe;

constexpr std::int64_t kRows = 16384;
constexpr std::int64_t kColumns = 2048;
constexpr std::int64_t kCount = kRows * kColumns;
constexpr int kRounds = 9;

struct AlignedDelete {
  void operator()(float* values) const { std::free(values); }
};
using Buffer = std::unique_ptr<float[], AlignedDelete>;

Buffer make_buffer() {
  auto* values = static_cast<float*>(std::aligned_alloc(64, kCount * sizeof(float)));
  if (values == nullptr) throw std::bad_alloc();
  return Buffer(values);
}

double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Rates {
  double format = 0, copy = 0;  // bytes read and written a second
};

// The best rates of several rounds in turn.
Rates measure(const NumberFormat& format, ThreadPool& pool, const float* x, float* y, Isa isa) {
  const std::int64_t scales = format.num_given_scales(kRows, kColumns);
  const std::vector<float> all_scales(static_cast<std::size_t>(scales), 0.03f);
  const std::vector<float> zeros(static_cast<std::size_t>(scales), 3.0f);
  const std::int64_t pieces = pool.num_threads();
  const std::int64_t rows = kRows / pieces;
  const bool has_one_scale = format.facts().granularity == Granularity::Tensor;
  const auto quantize = [&] {
    pool.run(pieces, [&](std::int64_t piece, int) {
      const std::int64_t at = piece * rows * kColumns;
      const std::int64_t first = has_one_scale ? 0 : piece * (scales / pieces);
      format.quantize({.rows = rows,
                       .columns = kColumns,
                       .x = x + at,
                       .y = y + at,
                       .scales = scales > 0 ? all_scales.data() + first : nullptr,
                       .zeros = scales > 0 ? zeros.data() + first : nullptr,
                       .isa = isa});
    });
  };
  const auto copy = [&] {
    pool.run(pieces, [&](std::int64_t piece, int) {
      const std::int64_t at = piece * rows * kColumns;
      std::memcpy(y + at, x + at, static_cast<std::size_t>(rows * kColumns) * sizeof(float));
    });
  };
  Rates best;
  constexpr double kBytes = 2.0 * kCount * sizeof(float);
  for (int round = 0; round < kRounds; ++round) {
    const double copied = kBytes / seconds_of(copy);
    const double quantized = kBytes / seconds_of(quantize);
    best.copy = std::max(best.copy, copied);
    best.format = std::max(best.format, quantized);
  }
  return best;
}

void run(Isa isa, std::vector<std::string> formats) {
  const Buffer x = make_buffer();
  const Buffer y = make_buffer();
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < kCount; ++i)
    x[static_cast<std::size_t>(i)] =
        i < (1 << 20) ? normal(random) : x[static_cast<std::size_t>(i - (1 << 20))];
  std::fill_n(y.get(), kCount, 0.0f);
  if (formats.empty())
    for (const auto& [family, record] : FormatRegistry::instance().all())
      formats.insert(formats.end(), record.examples.begin(), record.examples.end());

  fmt::print("{}, 128 MiB out of place, GB/s read and written; ratio to memcpy\n", name(isa));
  fmt::print("{:<46}  {:^21}  {:^21}\n", "", "one thread", "two threads");
  fmt::print("{:<46} {:>7} {:>7} {:>6}  {:>7} {:>7} {:>6}\n", "format", "format", "memcpy", "ratio",
             "format", "memcpy", "ratio");
  ThreadPool one(1);
  ThreadPool two(2);
  for (const std::string& text : formats) {
    const auto format = parse_format(text);
    if (format == nullptr) continue;
    std::string line = fmt::format("{:<46}", text);
    for (ThreadPool* pool : {&one, &two}) {
      const Rates rates = measure(*format, *pool, x.get(), y.get(), isa);
      line += fmt::format(" {:7.1f} {:7.1f} {:5.0f} %", rates.format * 1e-9, rates.copy * 1e-9,
                          100 * rates.format / rates.copy);
    }
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> formats(argv + 1, argv + argc);
  Isa isa = best_isa();
  if (!formats.empty())
    if (const std::optional<Isa> named = parse_isa(formats.front())) {
      isa = *named;
      formats.erase(formats.begin());
    }
  try {
    if (!is_supported(isa)) fail("{}: this processor does not have it", name(isa));
    run(isa, formats);
  } catch (const UserError& error) {
    fmt::print(stderr, "bench_formats: {}\n", error.message());
    return 1;
  }
}
