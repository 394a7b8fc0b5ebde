#include "lathe/numerics/unpack.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "lathe/core/error.h"
#include "lathe/numerics/code_layout.h"
#include "lathe/numerics/kernels/kernels.h"
#include "lathe/numerics/scaled_format.h"

namespace lathe::numerics {
namespace {

// Numbers that a task unpacks: enough to be worth a thread's attention, and few enough for threads
// to end together.
constexpr std::int64_t kNumbersOfTask = std::int64_t{1} << 18;

// `place(args, first)` adds where the results from number `first` on go.
void unpack_rows(const NumberFormat& format, const PackedRows& rows, std::int64_t element_bytes,
                 ThreadPool* pool, Isa isa,
                 const std::function<void(UnpackArgs&, std::int64_t)>& place) {
  check(can_unpack(format), "a format that can be unpacked");
  if (rows.rows == 0 || rows.columns == 0) return;
  const ScaledSpec& spec = *find_scaled_spec(format);
  const std::int64_t block =
      spec.facts.block_columns == 0 ? rows.columns : spec.facts.block_columns;
  const std::int64_t blocks = (rows.columns + block - 1) / block;
  const Kernels& table = kernels(isa);
  const UnpackArgs whole{.numbers = reinterpret_cast<const std::int8_t*>(rows.codes),
                         .codes = rows.scales,
                         .count = 0,
                         .block = block,
                         .step_exponent = static_cast<std::int32_t>(std::ilogb(spec.element_step)),
                         .floats = nullptr,
                         .bf16 = nullptr,
                         .streams = should_stream(rows.rows * rows.columns * element_bytes)};
  const auto run = [&](std::int64_t first_row, std::int64_t num_rows) {
    UnpackArgs args = whole;
    const std::int64_t first = first_row * rows.columns;
    args.numbers += first;
    args.codes += first_row * blocks;
    args.count = num_rows * rows.columns;
    place(args, first);
    table.unpack_bytes(args);
  };
  // Rows of whole blocks are one run of blocks.
  const bool is_one_run = rows.columns % block == 0;
  const std::int64_t of_task = std::max<std::int64_t>(1, kNumbersOfTask / rows.columns);
  const std::int64_t tasks = (rows.rows + of_task - 1) / of_task;
  const auto task = [&](std::int64_t index, int) {
    const std::int64_t begin = index * of_task, end = std::min(rows.rows, begin + of_task);
    if (is_one_run) return run(begin, end - begin);
    for (std::int64_t row = begin; row < end; ++row) run(row, 1);
  };
  if (pool != nullptr && tasks > 1) return pool->run(tasks, task);
  for (std::int64_t index = 0; index < tasks; ++index) task(index, 0);
}

}  // namespace

bool can_unpack(const NumberFormat& format) {
  const ScaledSpec* const spec = find_scaled_spec(format);
  return spec != nullptr && spec->rule == ScaleRule::SharedExponent &&
         spec->facts.granularity == Granularity::Block && spec->facts.block_rows == 1 &&
         spec->facts.element_bits == 8 && code_layout(format) == CodeLayout::TwosComplement;
}

void unpack(const NumberFormat& format, const PackedRows& rows, float* y, ThreadPool* pool,
            Isa isa) {
  unpack_rows(format, rows, sizeof(float), pool, isa,
              [&](UnpackArgs& args, std::int64_t first) { args.floats = y + first; });
}

void unpack(const NumberFormat& format, const PackedRows& rows, std::uint16_t* y, ThreadPool* pool,
            Isa isa) {
  unpack_rows(format, rows, sizeof(std::uint16_t), pool, isa,
              [&](UnpackArgs& args, std::int64_t first) { args.bf16 = y + first; });
}

}  // namespace lathe::numerics
