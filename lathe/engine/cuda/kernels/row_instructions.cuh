#pragma once

// What the instructions of a row program do: on registers that are rows in shared memory, of which
// a thread has groups of four neighbours.

#include "lathe/engine/cuda/kernels/dropout.cuh"
#include "lathe/engine/cuda/kernels/formats.cuh"
#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/maps.cuh"
#include "lathe/engine/cuda/kernels/tensor_core.cuh"

namespace lathe::engine::cuda {
namespace {

using Kind = RowInstruction::Kind;

struct Four {
  float v[4];
};
__device__ Four four_at(const float* x) {
  const float4 four = *reinterpret_cast<const float4*>(x);
  return {{four.x, four.y, four.z, four.w}};
}
template <typename Function>
__device__ void put_four(float* y, Function function) {
  *reinterpret_cast<float4*>(y) = make_float4(function(0), function(1), function(2), function(3));
}
__device__ void add_to(float* sums, const float (&more)[4]) {
  const Four old = four_at(sums);
  put_four(sums, [&](int j) { return old.v[j] + more[j]; });
}

// What a row has of single numbers; each lane of a team holds those of one instruction.
struct RowNumbers {
  std::int64_t id = 0;
  std::uint32_t position = 0;
};
__device__ RowNumbers numbers_of(const RowInstruction& step, std::int64_t row) {
  RowNumbers numbers;
  numbers.id = integer_at(step.ids, row);
  if (step.kind == Kind::Dropout)
    numbers.position = static_cast<std::uint32_t>(integer_at(step.positions, row));
  return numbers;
}

// The token number `index` of a sequence; -1: it has none.
__device__ std::int64_t token_of(const RowInstruction& step, std::int64_t sequence) {
  const std::int64_t begin = integer_at(step.ids, sequence);
  const std::int64_t end = integer_at(step.ids, sequence + 1);
  const std::int64_t token = (step.index < 0 ? end : begin) + step.index;
  return token < 0 || token < begin || token >= end ? -1 : token;
}

// A team's row, registers and sums, and the block's vectors.
struct Rows {
  std::int64_t row;
  bool is_real;  // else nothing may be left of it
  float* registers;
  float* sums;
  float* vectors;
  int n, stride;  // stride: from the registers of a team to the next one's
  __device__ float* at(int number) const {
    if (number >= kFirstVector) return vectors + (number - kFirstVector) * n;
    return number < 0 ? nullptr : registers + number * n;
  }
};

struct Statistics {
  float mean, rate;  // rate: the reciprocal deviation
};

template <typename Team>
struct Interpreter {
  // The groups of four that a thread has.
  template <typename Visit>
  static __device__ void each_group(int n, Visit visit) {
#pragma unroll 1
    for (int i = Team::rank() * 4; i < n; i += Team::size() * 4) visit(i);
  }

  // to = function(a), and of a and b, for all numbers of a thread.
  template <typename Function>
  static __device__ void each_of(int n, const float* a, float* to, Function function) {
    each_group(n, [&](int i) {
      const Four x = four_at(a + i);
      put_four(to + i, [&](int j) { return function(x.v[j]); });
    });
  }
  template <typename Function>
  static __device__ void each_of(int n, const float* a, const float* b, float* to,
                                 Function function) {
    each_group(n, [&](int i) {
      const Four x = four_at(a + i), y = four_at(b + i);
      put_four(to + i, [&](int j) { return function(x.v[j], y.v[j]); });
    });
  }

  static __device__ void fill(float* to, int n, float value) {
    each_group(n, [&](int i) { put_four(to + i, [&](int) { return value; }); });
  }

  static __device__ Statistics statistics_of(const float* x, int n, float eps, bool is_rms) {
    const float count = static_cast<float>(n);
    float mean = 0;
    if (!is_rms) {
      float sum = 0;
      each_group(n, [&](int i) {
        const Four four = four_at(x + i);
        sum += (four.v[0] + four.v[1]) + (four.v[2] + four.v[3]);
      });
      mean = Team::sum(sum) / count;
    }
    float squares = 0;
    each_group(n, [&](int i) {
      const Four four = four_at(x + i);
      for (int j = 0; j < 4; ++j) {
        const float centred = four.v[j] - mean;
        squares = fmaf(centred, centred, squares);
      }
    });
    squares = Team::sum(squares) / count;
    return {mean, 1.0f / sqrtf(squares + eps)};
  }

  // Puts the copies of a row on their way.
  static __device__ void load(float* to, const void* memory, std::int64_t row, int n) {
    const float* const from = static_cast<const float*>(memory) + row * n;
    each_group(n, [&](int i) { copy_async(to + i, from + i); });
  }

  // The same of bfloat16, into the second half of a register. The thread that copies four numbers
  // is the one that widens them.
  static __device__ void load_half(float* to, const void* memory, std::int64_t row, int n) {
    const std::uint16_t* const from = static_cast<const std::uint16_t*>(memory) + row * n;
    each_group(n, [&](int i) {
      const auto place = static_cast<std::uint32_t>(
          __cvta_generic_to_shared(reinterpret_cast<std::uint16_t*>(to + n / 2) + i));
      asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(place), "l"(from + i)
                   : "memory");
    });
  }

  // Floats of a round of threads end where the next round's halves begin, at most; within a round
  // all are read before one is written.
  static __device__ void widen(float* to, const float* a, int n) {
    const auto* const halves = reinterpret_cast<const std::uint16_t*>(a + n / 2);
#pragma unroll 1
    for (int first = 0; first < n; first += Team::size() * 4) {
      const int i = first + Team::rank() * 4;
      uint2 four = make_uint2(0, 0);
      if (i < n) four = *reinterpret_cast<const uint2*>(halves + i);
      Team::wait();
      if (i >= n) continue;
      const std::uint32_t bits[4] = {four.x << 16, four.x & 0xffff0000u, four.y << 16,
                                     four.y & 0xffff0000u};
      put_four(to + i, [&](int j) { return __uint_as_float(bits[j]); });
    }
  }

  // The sequence whose token number `index` the row is; -1: none.
  static __device__ std::int64_t sequence_of(const RowInstruction& step, std::int64_t row) {
    const std::int64_t count = real_size(step.others);
    const int lanes = Team::size() < kWarp ? Team::size() : kWarp;
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    std::int64_t sequence = -1;
    for (std::int64_t first = 0; first < count; first += lanes) {
      const int found =
          Team::first_lane(first + lane < count && token_of(step, first + lane) == row);
      if (sequence < 0 && found >= 0) sequence = first + found;
    }
    return sequence;
  }

  static __device__ void start_load(const RowInstruction& step, const RowNumbers& numbers,
                                    const Rows& rows) {
    const int n = rows.n;
    float* const to = rows.at(step.to);
    std::int64_t row = rows.row;
    switch (step.kind) {
      case Kind::LoadHalf:
        return load_half(to, step.memory, row, n);
      case Kind::LoadOfTable:
        row = step.number < 0 ? integer_at(step.ids, row) : Team::of_lane(numbers.id, step.number);
        if (row >= step.table_rows) row = -1;
        break;
      case Kind::LoadOfSequence:
        row = token_of(step, row);
        if (row >= real_size(step.others)) row = -1;
        break;
      case Kind::LoadForToken:
        row = sequence_of(step, row);
        break;
      default:
        break;
    }
    if (row >= 0) return load(to, step.memory, row, n);
    if (step.kind == Kind::LoadForToken) return fill(to, n, 0);
    // NaN, so that no optimizer moves before the fault is seen.
    report(step.fault);
    fill(to, n, NAN);
  }

  static __device__ void normalize(const RowInstruction& step, int n, const float* a,
                                   const float* gamma, const float* beta, float* to) {
    const Statistics s = statistics_of(a, n, step.low, step.is_rms);
    each_group(n, [&](int i) {
      const Four x = four_at(a + i), scale = four_at(gamma + i);
      const Four shift = beta == nullptr ? Four() : four_at(beta + i);
      put_four(to + i, [&](int j) {
        const float scaled = (x.v[j] - s.mean) * s.rate;
        return beta == nullptr ? scaled * scale.v[j] : fmaf(scaled, scale.v[j], shift.v[j]);
      });
    });
  }

  static __device__ void normalize_gradient(const RowInstruction& step, int n, const float* dy,
                                            const float* x, const float* gamma, float* dx,
                                            float* gamma_sums, float* beta_sums) {
    const Statistics s = statistics_of(x, n, step.low, step.is_rms);
    const float count = static_cast<float>(n);
    float sum_g = 0, sum_gh = 0;
    each_group(n, [&](int i) {
      const Four out = four_at(dy + i), in = four_at(x + i), scale = four_at(gamma + i);
      for (int j = 0; j < 4; ++j) {
        const float g = out.v[j] * scale.v[j];
        sum_g += g;
        sum_gh = fmaf(g, (in.v[j] - s.mean) * s.rate, sum_gh);
      }
    });
    const float mean_g = step.is_rms ? 0.0f : Team::sum(sum_g) / count;
    const float mean_gh = Team::sum(sum_gh) / count;
    each_group(n, [&](int i) {
      const Four out = four_at(dy + i), in = four_at(x + i), scale = four_at(gamma + i);
      float products[4], gradient[4];
      for (int j = 0; j < 4; ++j) {
        const float h = (in.v[j] - s.mean) * s.rate;
        products[j] = out.v[j] * h;
        gradient[j] = s.rate * (out.v[j] * scale.v[j] - mean_g - h * mean_gh);
      }
      if (gamma_sums != nullptr) add_to(gamma_sums + i, products);
      if (beta_sums != nullptr) add_to(beta_sums + i, out.v);
      put_four(dx + i, [&](int j) { return gradient[j]; });
    });
  }

  // By eights, which one block of random bits decides: not the threads' own numbers.
  static __device__ void drop(const RowInstruction& step, int n, const ops::DropoutStream& stream,
                              std::uint32_t example, std::uint32_t position, const float* a,
                              float* to) {
    Team::wait();
#pragma unroll 1
    for (int i = Team::rank() * 8; i < n; i += Team::size() * 8) {
      const PhiloxCounter bits =
          ops::row_dropout_block(stream, example, position, static_cast<std::uint32_t>(i / 8));
      // A product, not a choice: what is not a number stays that where it is dropped too.
      const auto dropped = [&](const Four& x, int j, std::uint32_t two) {
        const std::uint32_t own = two >> (16 * (j % 2)) & 0xffffu;
        return x.v[j] * (own < step.threshold ? 0.0f : step.scale);
      };
      const Four low = four_at(a + i);
      put_four(to + i, [&](int j) { return dropped(low, j, j < 2 ? bits[0] : bits[1]); });
      if (i + 4 >= n) continue;
      const Four high = four_at(a + i + 4);
      put_four(to + i + 4, [&](int j) { return dropped(high, j, j < 2 ? bits[2] : bits[3]); });
    }
    Team::wait();
  }

  // What is rare and long is called, so that the other instructions need not leave it registers.
  static __device__ __noinline__ void quantize(const QuantizeArgs& format, std::int64_t own_row,
                                               int n, int stride, const float* a, float* to) {
    const bool has_one_scale = format.rule == ScaleBy::Constant ||
                               (format.has_one_scale && (format.rule == ScaleBy::Given ||
                                                         format.rule == ScaleBy::GivenPowerOfTwo));
    if (has_one_scale) {
      with_rounding(format, scale_from(format, {}, 0),
                    [&](const auto& round) { each_of(n, a, to, round); });
      return;
    }
    // A warp has a block of values, whichever of its teams they belong to.
    const std::int64_t blocks = (n + format.block - 1) / format.block;
    const int teams = Team::teams_of_warp(), own = Team::number() % teams;
    Team::wait();
    for (int team = 0; team < teams; ++team) {
      const std::int64_t row = __shfl_sync(kAllLanes, own_row, team * (kWarp / teams));
      const std::int64_t offset = static_cast<std::int64_t>(team - own) * stride;
      for (std::int64_t block = Team::rank() / kWarp; block < blocks;
           block += (Team::size() + kWarp - 1) / kWarp) {
        const std::int64_t first = block * format.block;
        const std::int64_t width = n - first < format.block ? n - first : format.block;
        quantize_block(format, a + offset + first, to + offset + first, width,
                       row * blocks + block);
      }
    }
    Team::wait();
  }
  static __device__ __noinline__ void learned_step(const LearnedStepArgs& args, int n, bool is_real,
                                                   const float* dy, const float* x, const float* y,
                                                   float* dx, double* total) {
    const LearnedScale scale = learned_scale(args, 0);
    double sum = 0;
    each_group(n, [&](int i) {
      const Four out = four_at(dy + i), in = four_at(x + i), rounded = four_at(y + i);
      put_four(dx + i, [&](int j) {
        const LearnedGradient gradient = differentiate(scale, out.v[j], in.v[j], rounded.v[j]);
        sum += gradient.dscale;
        return gradient.dx;
      });
    });
    sum = Team::sum(sum) / scale.scale;
    if (Team::rank() == 0 && is_real) *total += sum;
  }
  static __device__ __noinline__ void map_row(const RowInstruction& step, int n, const float* a,
                                              float* to) {
    if (step.map == Map::GeluErf)
      return each_of(n, a, to, [](float x) { return apply(Map::GeluErf, x, 0); });
    each_of(n, a, to, [&](float x) { return apply(step.map, x, step.slope); });
  }
  static __device__ __noinline__ void differentiate_row(const RowInstruction& step, int n,
                                                        const float* dy, const float* x,
                                                        float* to) {
    if (step.map == Map::GeluErf)
      return each_of(n, dy, x, to,
                     [](float out, float in) { return out * derivative(Map::GeluErf, in, 0); });
    each_of(n, dy, x, to,
            [&](float out, float in) { return out * derivative(step.map, in, step.slope); });
  }
  static __device__ __noinline__ void pair_rows(const RowInstruction& step, int n, const float* a,
                                                const float* b, float* to) {
    each_of(n, a, b, to, [&](float x, float y) { return apply(step.pair, x, y); });
  }

  static __device__ void store(void* result, std::int64_t row, int n, const float* a) {
    float* const y = static_cast<float*>(result) + row * n;
    each_group(n, [&](int i) {
      *reinterpret_cast<float4*>(y + i) = *reinterpret_cast<const float4*>(a + i);
    });
  }
  static __device__ void store_half(void* result, std::int64_t row, int n, const float* a) {
    std::uint16_t* const y = static_cast<std::uint16_t*>(result) + row * n;
    each_group(n, [&](int i) {
      const Four x = four_at(a + i);
      *reinterpret_cast<uint2*>(y + i) =
          make_uint2(to_bf16_pair(x.v[0], x.v[1]), to_bf16_pair(x.v[2], x.v[3]));
    });
  }

  // Any other instruction than a load.
  static __device__ void run(const RowProgramArgs& program, const RowInstruction& step,
                             const RowNumbers& numbers, const ops::DropoutStream& stream,
                             const Rows& rows) {
    const int n = rows.n;
    float* const to = rows.at(step.to);
    const float* const a = rows.at(step.a);
    const float* const b = rows.at(step.b);
    const float* const c = rows.at(step.c);
    float* const sums = rows.sums + step.sum * n;
    switch (step.kind) {
      case Kind::Widen:
        return widen(to, a, n);
      case Kind::Store:
        if (rows.is_real) store(step.result, rows.row, n, a);
        return;
      case Kind::StoreHalf:
        if (rows.is_real) store_half(step.result, rows.row, n, a);
        return;
      case Kind::Map:
        return map_row(step, n, a, to);
      case Kind::MapGradient:
        return differentiate_row(step, n, a, b, to);
      case Kind::Pair:
        if (step.pair == Pair::Add)
          return each_of(n, a, b, to, [](float x, float y) { return x + y; });
        return pair_rows(step, n, a, b, to);
      case Kind::Gate:
        return each_of(n, a, b, to, [&](float dy, float x) {
          return x < step.low || x > step.high ? 0.0f : dy;
        });
      case Kind::Dropout: {
        const RowNumbers own = step.number < 0 ? numbers_of(step, rows.row) : RowNumbers();
        const std::int64_t example =
            step.number < 0 ? own.id : Team::of_lane(numbers.id, step.number);
        const std::uint32_t position =
            step.number < 0 ? own.position : Team::of_lane(numbers.position, step.number);
        return drop(step, n, {stream.seed, stream.step, step.site},
                    static_cast<std::uint32_t>(example), position, a, to);
      }
      case Kind::Normalize:
        return normalize(step, n, a, b, c, to);
      case Kind::NormalizeGradient:
        return normalize_gradient(step, n, a, b, c, to, rows.is_real ? sums : nullptr,
                                  rows.is_real && step.more_sums != nullptr ? sums + n : nullptr);
      case Kind::Sum:
        if (rows.is_real) each_group(n, [&](int i) { add_to(sums + i, four_at(a + i).v); });
        return;
      case Kind::Quantize:
        return quantize(program.formats[step.format], rows.row, n, rows.stride, a, to);
      case Kind::LearnedStep:
        return learned_step(program.learned_steps[step.format], n, rows.is_real, a, b, c, to,
                            reinterpret_cast<double*>(sums));
      default:
        return;
    }
  }

  // Zeros where a row is not real.
  static __device__ void clear_row(const RowProgramArgs& program, std::int64_t row) {
    const int n = static_cast<int>(program.n);
    for (int index = 0; index < program.count; ++index) {
      const RowInstruction& step = program.instructions[index];
      if (step.kind == Kind::Store) fill(static_cast<float*>(step.result) + row * n, n, 0);
      if (step.kind == Kind::StoreHalf)
        each_group(n, [&](int i) {
          *reinterpret_cast<uint2*>(static_cast<std::uint16_t*>(step.result) + row * n + i) =
              make_uint2(0, 0);
        });
    }
  }
};

}  // namespace
}  // namespace lathe::engine::cuda
