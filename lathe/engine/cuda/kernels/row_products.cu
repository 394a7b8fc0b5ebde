// A single row by weights, as fast as these come from memory.
//
// A lane keeps 16 inputs and goes down the outputs; the warps of a block share the inputs, so that
// outputs are read from end to end, one after another. With codes of whole numbers the 16 inputs
// become whole numbers, too: fixed-point numbers that reach from the largest of them 30 bits down,
// as four digits of base 256, whose dot products with the codes are exact. Only sums over lanes
// round.
//
// Weights are asked for before the kernel in front has ended. What makes the row and what follows
// the products is done here, by every block or by whoever has the sum: a launch of its own takes
// longer.

#include "lathe/engine/cuda/arguments/row_products.h"
#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/packed_linear.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kLaneInputs = 16, kSliceInputs = kWarp * kLaneInputs;  // of a warp: a slice
constexpr int kDigits = 4;

// The weights of an output that a lane has, and its inputs as they are multiplied with them.

// Floats: every 128 inputs four neighbours, so that lanes read side by side.
struct Floats {
  static constexpr int kWords = 16, kAhead = 4;
  static constexpr bool kHasScales = false;
  float x[kLaneInputs];

  __device__ static int input_of(int lane, int i) { return i / 4 * (4 * kWarp) + lane * 4 + i % 4; }
  __device__ static std::int64_t byte_of(int input) { return std::int64_t{input} * 4; }
  __device__ float prepare(const float (&row)[kLaneInputs]) {
#pragma unroll
    for (int i = 0; i < kLaneInputs; ++i) x[i] = row[i];
    return 1;
  }
  __device__ static void load(const std::uint8_t* from, int left, Word (&words)[kWords]) {
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const uint4 four =
          part * 4 * kWarp < left ? load_once(from + part * 16 * kWarp) : make_uint4(0, 0, 0, 0);
      words[part * 4] = four.x;
      words[part * 4 + 1] = four.y;
      words[part * 4 + 2] = four.z;
      words[part * 4 + 3] = four.w;
    }
  }
  __device__ float multiply(const Word (&words)[kWords]) const {
    float sums[4] = {};
#pragma unroll
    for (int i = 0; i < kLaneInputs; ++i)
      sums[i % 4] = fmaf(__uint_as_float(words[i]), x[i], sums[i % 4]);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
};

// How a word of codes becomes words of bytes, each of which has every kBy-th of its codes.
struct Bytes {
  static constexpr int kBy = 1;
  static constexpr float kStep = 1;  // of a byte
  __device__ static void spread(Word codes, Word* bytes) { bytes[0] = codes; }
};
struct Nibbles {
  static constexpr int kBy = 2;
  static constexpr float kStep = 1.0f / 16;
  __device__ static void spread(Word codes, Word* bytes) {
    bytes[0] = codes << 4 & 0xf0f0f0f0u;
    bytes[1] = codes & 0xf0f0f0f0u;
  }
};

template <typename Codes>
struct Integers16 {
  static constexpr int kWords = 4 / Codes::kBy, kAhead = 8;
  static constexpr bool kHasScales = true;
  Word digits[kDigits][4];

  __device__ static int input_of(int lane, int i) { return lane * kLaneInputs + i; }
  __device__ static std::int64_t byte_of(int input) { return input / Codes::kBy; }

  // The inputs as digits, the first one the highest, and the scale of their unit.
  __device__ float prepare(const float (&row)[kLaneInputs]) {
    Word largest = 0;
#pragma unroll
    for (int i = 0; i < kLaneInputs; ++i)
      largest = max(largest, numerics::bits_of(row[i]) & ~numerics::kSignBit);
    // The first digit has six bits and a sign, the others eight; 128 is added to and taken from
    // each of these, so that they have signs, too.
    constexpr Word kSigns = 0x00808080u;
    constexpr int kSmallest = -90;  // of exponents: what is below this is nothing
    const int exponent = max(static_cast<int>(largest >> 23) - 127, kSmallest);
    const bool is_finite = largest < numerics::kInfinityBits;
    const float inverse = numerics::power_of_two(-exponent);
    Word whole[kLaneInputs];
#pragma unroll
    for (int i = 0; i < kLaneInputs; ++i) {
      const float y = is_finite ? row[i] * inverse : 0.0f;
      whole[i] = (static_cast<Word>(__float2int_rn(y * 0x1p29f)) + kSigns) ^ kSigns;
    }
#pragma unroll
    for (int digit = 0; digit < kDigits; ++digit) {
      const int byte = kDigits - 1 - digit;
      const Word pick = static_cast<Word>(byte | (byte + 4) << 4);
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        // The inputs in order; for nibbles every second of eight.
        constexpr int kBy = Codes::kBy;
        const int first = kBy == 1 ? word * 4 : word / 2 * 8 + word % 2;
        digits[digit][word] =
            __byte_perm(__byte_perm(whole[first], whole[first + kBy], pick),
                        __byte_perm(whole[first + 2 * kBy], whole[first + 3 * kBy], pick), 0x5410);
      }
    }
    const float unit =
        is_finite ? numerics::power_of_two(exponent - 29) : numerics::float_of(numerics::kNanBits);
    return unit * Codes::kStep;
  }

  __device__ static void load(const std::uint8_t* from, int, Word (&words)[kWords]) {
    load_words_once(from, words);
  }

  // The exact sum of 16 products, rounded once.
  __device__ float multiply(const Word (&codes)[kWords]) const {
    int parts[kDigits] = {};
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
      Word bytes[Codes::kBy];
      Codes::spread(codes[word], bytes);
#pragma unroll
      for (int i = 0; i < Codes::kBy; ++i)
#pragma unroll
        for (int digit = 0; digit < kDigits; ++digit)
          parts[digit] =
              __dp4a(static_cast<int>(bytes[i]),
                     static_cast<int>(digits[digit][word * Codes::kBy + i]), parts[digit]);
    }
    // Below 2^18 each, so that two of them are an integer.
    const float low = __int2float_rn(parts[2] * 256 + parts[3]);
    return fmaf(__int2float_rn(parts[0] * 256 + parts[1]), 0x1p16f, low);
  }
};

// Makes sums[0] of each lane the sum over all lanes of one of them and says which: half of the
// sums go to the lane that is so far away, until one is left.
template <int kTogether>
__device__ int join_lanes(float (&sums)[kTogether], int lane) {
  int place = 0;
#pragma unroll
  for (int distance = kWarp / 2, left = kTogether; distance > 0; distance /= 2) {
    if (left == 1) {
      sums[0] += __shfl_xor_sync(kAllLanes, sums[0], distance);
      continue;
    }
    left /= 2;
    const bool is_high = (lane & distance) != 0;
#pragma unroll
    for (int i = 0; i < left; ++i) {
      const float sent = is_high ? sums[i] : sums[left + i];
      sums[i] = (is_high ? sums[left + i] : sums[i]) + __shfl_xor_sync(kAllLanes, sent, distance);
    }
    if (is_high) place += left;
  }
  return place;
}

// How warps share a row of k inputs: a slice each or, in teams, several outputs at once.
struct RowShares {
  int slices, slots, teams;
  __host__ __device__ explicit RowShares(std::int64_t k)
      : slices(static_cast<int>((k + kSliceInputs - 1) / kSliceInputs)),
        slots(slices < kWarps ? slices : kWarps),
        teams(kWarps / slots) {}
};

// The outputs of a block: of a gate and what it lets pass in turns, else of the products in order.
struct BlockOutputs {
  std::int64_t first;
  int count;
  bool are_gated;

  __device__ explicit BlockOutputs(const RowProductsArgs& args) : are_gated(args.gated != nullptr) {
    std::int64_t all = args.products[0].n;
    for (int i = 1; i < args.count && !are_gated; ++i) all += args.products[i].n;
    first = all * blockIdx.x / gridDim.x;
    count = static_cast<int>(all * (blockIdx.x + 1) / gridDim.x - first) * (are_gated ? 2 : 1);
  }
  struct Place {
    int product;
    std::int64_t output;
  };
  __device__ Place place(const RowProductsArgs& args, int index) const {
    if (are_gated) return {index % 2, first + index / 2};
    Place at{0, first + index};
    while (at.output >= args.products[at.product].n) at.output -= args.products[at.product++].n;
    return at;
  }
};

// The sum over a row of what each lane has of it, in one order: that of slices. `room` is used
// once.
__device__ float join_slices(float value, int slots, float* room) {
  value = join_warp(value, Add());
  const int warp = threadIdx.x / kWarp;
  if (threadIdx.x % kWarp == 0 && warp < slots) room[warp] = value;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < slots; ++i) sum += room[i];
  return sum;
}

// What a lane has of the row, 0 beyond its end.
template <typename Weights>
struct LaneRow {
  float x[kLaneInputs] = {}, gamma[kLaneInputs] = {};
  int first, end;  // the first input of the slice, and k

  template <typename Visit>
  __device__ void for_fours(Visit visit) {
    const int lane = threadIdx.x % kWarp;
#pragma unroll
    for (int i = 0; i < kLaneInputs; i += 4) {
      const int input = first + Weights::input_of(lane, i);
      if (input < end) visit(i, input);
    }
  }
  __device__ static void add(float* to, const float* from) {
    const float4 four = __ldcg(reinterpret_cast<const float4*>(from));
    to[0] += four.x;
    to[1] += four.y;
    to[2] += four.z;
    to[3] += four.w;
  }
  __device__ void read_gamma(const RowInput& input) {
    for_fours([&](int i, int at) { add(gamma + i, input.gamma + at); });
  }
  __device__ void read(const RowInput& input) {
    for (float& value : x) value = 0;
    for_fours([&](int i, int at) {
      add(x + i, input.sources[0] + at);
      if (input.sources[1] != nullptr) add(x + i, input.sources[1] + at);
    });
  }
  __device__ void leave(float* to) {
    if (to == nullptr || blockIdx.x != 0) return;
    for_fours([&](int i, int at) {
      *reinterpret_cast<float4*>(to + at) = make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]);
    });
  }
  // All threads of the block call it; each warp has the slice of its slot.
  __device__ void normalize(const RowInput& input, int slots, float* room) {
    const float count = static_cast<float>(end);
    float mean = 0, squares = 0;
    if (!input.is_rms) {
      for (const float value : x) mean += value;
      mean = join_slices(mean, slots, room) / count;
    }
    for_fours([&](int i, int) {
#pragma unroll
      for (int j = i; j < i + 4; ++j) {
        x[j] -= mean;
        squares = fmaf(x[j], x[j], squares);
      }
    });
    const float rate = 1.0f / sqrtf(join_slices(squares, slots, room + kWarps) / count + input.eps);
    for_fours([&](int i, int at) {
#pragma unroll
      for (int j = i; j < i + 4; ++j) {
        const float scaled = x[j] * rate;
        x[j] = input.beta == nullptr ? scaled * gamma[j]
                                     : fmaf(scaled, gamma[j], input.beta[at + j - i]);
      }
    });
  }
};

// What becomes of a sum. A function of its own: the maps would be compiled in twice.
__device__ __noinline__ float finish(const RowProductsArgs& args, const BlockOutputs::Place& at,
                                     float sum) {
  const RowProduct& product = args.products[at.product];
  if (product.bias != nullptr) sum += rounded_bias(args.precision, product.bias[at.output]);
  if (args.precision == Precision::Bf16) sum = __bfloat162float(__float2bfloat16_rn(sum));
  if (product.map != Map::Identity) sum = apply(product.map, sum, 0);
  return product.residual == nullptr ? sum : sum + product.residual[at.output];
}

// kAhead: outputs whose weights a warp asks for before it needs the first.
template <typename Weights, bool kExponents>
__global__ void __launch_bounds__(kWarps* kWarp, 2)
    row_products_kernel(const __grid_constant__ RowProductsArgs args) {
  constexpr int kAhead = Weights::kAhead, kTogether = 4, kScaleBytes = kExponents ? 1 : 4;
  extern __shared__ float sums_of_slots[];
  __shared__ float room[2 * kWarps];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const RowShares shares(args.k);
  const int team = warp / shares.slots, slot = warp % shares.slots;
  const BlockOutputs outputs(args);
  const int own =
      team < shares.teams ? (outputs.count - team + shares.teams - 1) / shares.teams : 0;

  Word read[kAhead][Weights::kWords] = {}, bits[kAhead] = {};
  LaneRow<Weights> row;
  row.end = static_cast<int>(args.k);
  int input = 0;  // the lane's first
  const auto load = [&](int ahead, int output) {
    if (output >= own || input >= row.end) return;
    const BlockOutputs::Place at = outputs.place(args, output * shares.teams + team);
    const RowProduct& product = args.products[at.product];
    Weights::load(static_cast<const std::uint8_t*>(product.weight) + at.output * product.row_bytes +
                      Weights::byte_of(input),
                  row.end - input, read[ahead]);
    if constexpr (Weights::kHasScales) {
      const auto* const scale =
          static_cast<const std::uint8_t*>(product.scales) +
          (at.output * product.scales_of_row + (input >> args.group_bits)) * kScaleBytes;
      bits[ahead] = kExponents ? __ldg(scale) : __ldg(reinterpret_cast<const Word*>(scale));
    }
  };
  const auto begin_slice = [&](int slice) {
    row.first = slice * kSliceInputs;
    input = row.first + Weights::input_of(lane, 0);
#pragma unroll
    for (int ahead = 0; ahead < kAhead; ++ahead) load(ahead, ahead);
  };

  begin_slice(slot);
  if (args.input.has_norm) row.read_gamma(args.input);
  wait_for_previous();
  let_next_begin();
  const bool is_real = real_size(args.rows) > 0;
  for (int slice = slot; slice < shares.slices; slice += shares.slots) {
    if (slice != slot) begin_slice(slice);
    row.read(args.input);
    if (team == 0) row.leave(args.input.sum);
    if (args.input.has_norm) row.normalize(args.input, shares.slots, room);
    if (team == 0) row.leave(args.input.normalized);
    if constexpr (Weights::kHasScales)
      for (float& x : row.x) x = rounded_operand(args.precision, x);
    Weights inputs;
    const float by = inputs.prepare(row.x) * args.step;
    const bool is_inside = input < row.end;
    for (int base = 0; base < own; base += kAhead) {
#pragma unroll
      for (int start = 0; start < kAhead; start += kTogether) {
        if (base + start >= own) break;
        float sums[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          const int ahead = start + i;
          float scale = 1;
          if constexpr (Weights::kHasScales)
            scale =
                kExponents ? exponent_scale(bits[ahead], by) : __uint_as_float(bits[ahead]) * by;
          sums[i] = is_inside ? inputs.multiply(read[ahead]) * scale : 0.0f;
          load(ahead, base + kAhead + ahead);
        }
        const int output = base + start + join_lanes<kTogether>(sums, lane);
        if (lane % (kWarp / kTogether) == 0 && output < own) {
          float& sum = sums_of_slots[(output * shares.teams + team) * shares.slots + slot];
          sum = slice == slot ? sums[0] : sum + sums[0];
        }
      }
    }
  }
  __syncthreads();
  const auto sum_of = [&](int index) {
    float sum = 0;
    for (int i = 0; i < shares.slots; ++i) sum += sums_of_slots[index * shares.slots + i];
    return finish(args, outputs.place(args, index), sum);
  };
  const int each = outputs.are_gated ? 2 : 1;
  for (int index = threadIdx.x * each; index < outputs.count; index += kWarps * kWarp * each) {
    const BlockOutputs::Place at = outputs.place(args, index);
    float result = sum_of(index);
    if (outputs.are_gated) result *= sum_of(index + 1);
    (outputs.are_gated ? args.gated : args.products[at.product].y)[at.output] =
        is_real ? result : 0.0f;
  }
}

template <typename Weights, bool kExponents>
bool multiply(const RowProductsArgs& args, Stream* stream) {
  std::int64_t outputs = 0, bytes = 0;
  for (int i = 0; i < args.count; ++i) {
    outputs += args.products[i].n;
    bytes += args.products[i].n * args.products[i].row_bytes;
  }
  const std::int64_t each = args.gated != nullptr ? args.count : 1;
  // Two blocks find room on a multiprocessor: small products leave one of them to the next launch.
  constexpr std::int64_t kMany = std::int64_t{8} << 20;
  std::int64_t blocks = num_multiprocessors() * (bytes > kMany ? 2 : 1);
  if (outputs / each < blocks) blocks = outputs / each;
  const RowShares shares(args.k);
  const std::size_t room =
      sizeof(float) * static_cast<std::size_t>((outputs / each / blocks + 1) * each * shares.slots);
  constexpr std::size_t kMostRoom = std::size_t{96} << 10;
  if (blocks == 0 || room > kMostRoom || (args.input.has_norm && shares.slices > shares.slots))
    return false;
  launch_early(args.may_begin_early, row_products_kernel<Weights, kExponents>,
               dim3(static_cast<unsigned>(blocks)), kWarps * kWarp, room, stream, args);
  return true;
}

}  // namespace

bool row_products(const RowProductsArgs& args, Stream* stream) {
  switch (args.code) {
    case RowCode::Float:
      return multiply<Floats, false>(args, stream);
    case RowCode::Int8:
      return args.are_exponents ? multiply<Integers16<Bytes>, true>(args, stream)
                                : multiply<Integers16<Bytes>, false>(args, stream);
    case RowCode::Int4:
      return args.are_exponents ? multiply<Integers16<Nibbles>, true>(args, stream)
                                : multiply<Integers16<Nibbles>, false>(args, stream);
  }
  return false;
}

}  // namespace lathe::engine::cuda
