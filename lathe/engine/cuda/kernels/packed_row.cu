// One row by a packed weight of whole numbers, as fast as the codes come from memory.
//
// A lane keeps 16 inputs and goes down the outputs; the warps of a block share the inputs, so that
// outputs are read from end to end, one after another. The 16 inputs become whole numbers, too:
// fixed-point numbers that reach from the largest of them 30 bits down, as four digits of base 256,
// whose dot products with the codes are exact. Only sums over lanes round.

#include "lathe/engine/cuda/kernels/packed_linear.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr int kLaneInputs = 16, kSliceInputs = kWarp * kLaneInputs;  // of a warp: a slice
constexpr int kDigits = 4, kTogether = 4;                            // sums that lanes join at once

// How a word of codes becomes words of bytes, each of which has every kWords-th of its codes.
struct Bytes {
  static constexpr int kWords = 1;
  static constexpr float kStep = 1;  // of a byte
  __device__ static void spread(Word codes, Word* bytes) { bytes[0] = codes; }
};
struct Nibbles {
  static constexpr int kWords = 2;
  static constexpr float kStep = 1.0f / 16;
  __device__ static void spread(Word codes, Word* bytes) {
    bytes[0] = codes << 4 & 0xf0f0f0f0u;
    bytes[1] = codes & 0xf0f0f0f0u;
  }
};

// A lane's inputs from `input` on as digits, the first one the highest, and the scale of its unit.
template <typename Codes>
__device__ float make_digits(const PackedLinearArgs& args, int input, bool is_inside,
                             Word (&digits)[kDigits][4]) {
  float x[kLaneInputs];
  Word largest = 0;
#pragma unroll
  for (int i = 0; i < kLaneInputs; i += 4) {
    const float4 four = is_inside ? __ldcg(reinterpret_cast<const float4*>(args.x + input + i))
                                  : make_float4(0, 0, 0, 0);
    x[i] = four.x;
    x[i + 1] = four.y;
    x[i + 2] = four.z;
    x[i + 3] = four.w;
  }
#pragma unroll
  for (int i = 0; i < kLaneInputs; ++i) {
    x[i] = rounded_operand(args.precision, x[i]);
    largest = max(largest, numerics::bits_of(x[i]) & ~numerics::kSignBit);
  }
  // The first digit has six bits and a sign, the others eight; 128 is added to and taken from each
  // of these, so that they have signs, too.
  constexpr Word kSigns = 0x00808080u;
  constexpr int kSmallest = -90;  // of exponents: what is below this is nothing
  const int exponent = max(static_cast<int>(largest >> 23) - 127, kSmallest);
  const bool is_finite = largest < numerics::kInfinityBits;
  const float inverse = numerics::power_of_two(-exponent);
  Word whole[kLaneInputs];
#pragma unroll
  for (int i = 0; i < kLaneInputs; ++i) {
    const float y = is_finite ? x[i] * inverse : 0.0f;
    whole[i] = (static_cast<Word>(__float2int_rn(y * 0x1p29f)) + kSigns) ^ kSigns;
  }
#pragma unroll
  for (int digit = 0; digit < kDigits; ++digit) {
    const int byte = kDigits - 1 - digit;
    const Word pick = static_cast<Word>(byte | (byte + 4) << 4);
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      // The inputs in order; for nibbles every second of eight.
      constexpr int kBy = Codes::kWords;
      const int first = kBy == 1 ? word * 4 : word / 2 * 8 + word % 2;
      digits[digit][word] =
          __byte_perm(__byte_perm(whole[first], whole[first + kBy], pick),
                      __byte_perm(whole[first + 2 * kBy], whole[first + 3 * kBy], pick), 0x5410);
    }
  }
  return is_finite ? numerics::power_of_two(exponent - 29) : numerics::float_of(numerics::kNanBits);
}

// The exact sum of 16 products, rounded once.
template <typename Codes>
__device__ float multiply_lane(const Word (&codes)[4 / Codes::kWords],
                               const Word (&digits)[kDigits][4]) {
  int parts[kDigits] = {};
#pragma unroll
  for (int word = 0; word < 4 / Codes::kWords; ++word) {
    Word bytes[Codes::kWords];
    Codes::spread(codes[word], bytes);
#pragma unroll
    for (int i = 0; i < Codes::kWords; ++i)
#pragma unroll
      for (int digit = 0; digit < kDigits; ++digit)
        parts[digit] =
            __dp4a(static_cast<int>(bytes[i]),
                   static_cast<int>(digits[digit][word * Codes::kWords + i]), parts[digit]);
  }
  // Below 2^18 each, so that two of them are an integer.
  const float low = __int2float_rn(parts[2] * 256 + parts[3]);
  return fmaf(__int2float_rn(parts[0] * 256 + parts[1]), 0x1p16f, low);
}

// Makes sums[0] of each lane the sum over all lanes of one of them and says which: half of the
// sums go to the lane that is so far away, until one is left.
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
  __host__ __device__ RowShares(std::int64_t k, int warps)
      : slices(static_cast<int>((k + kSliceInputs - 1) / kSliceInputs)),
        slots(slices < warps ? slices : warps),
        teams(warps / slots) {}
};

// kAhead: outputs whose codes a warp asks for before it needs the first.
template <typename Codes, bool kExponents, int kAhead, int kWarps>
__global__ void __launch_bounds__(kWarps* kWarp)
    packed_row_kernel(const __grid_constant__ PackedLinearArgs args,
                      const __grid_constant__ PackedScales scales) {
  constexpr int kWords = 4 / Codes::kWords, kScaleBytes = kExponents ? 1 : 4;
  extern __shared__ float sums_of_slots[];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const RowShares shares(args.k, kWarps);
  const int team = warp / shares.slots, slot = warp % shares.slots;
  const std::int64_t first = args.n * blockIdx.x / gridDim.x;
  const int outputs = static_cast<int>(args.n * (blockIdx.x + 1) / gridDim.x - first);
  const int own = team < shares.teams ? (outputs - team + shares.teams - 1) / shares.teams : 0;

  const std::uint8_t* codes = nullptr;
  const std::uint8_t* scale_bytes = nullptr;
  const std::int64_t codes_stride = shares.teams * args.weight.row_bytes;
  const std::int64_t scales_stride = std::int64_t{shares.teams} * scales.of_output * kScaleBytes;
  bool is_inside = false;
  Word read[kAhead][kWords] = {}, bits[kAhead] = {};
  const auto load = [&](int ahead, int output) {
    if (output >= own || !is_inside) return;
    load_words_once(codes, read[ahead]);
    bits[ahead] =
        kExponents ? __ldg(scale_bytes) : __ldg(reinterpret_cast<const Word*>(scale_bytes));
    codes += codes_stride;
    scale_bytes += scales_stride;
  };
  const auto begin_slice = [&](int slice) {
    const int input = slice * kSliceInputs + lane * kLaneInputs;
    is_inside = input < args.k;
    codes = args.weight.codes + (first + team) * args.weight.row_bytes + input / Codes::kWords;
    scale_bytes = static_cast<const std::uint8_t*>(scales.from) +
                  ((first + team) * scales.of_output + (input >> scales.group_bits)) * kScaleBytes;
#pragma unroll
    for (int ahead = 0; ahead < kAhead; ++ahead) load(ahead, ahead);
    return input;
  };

  int input = begin_slice(slot);
  let_next_begin();
  wait_for_previous();
  const bool is_real = real_size(args.rows) > 0;
  for (int slice = slot; slice < shares.slices; slice += shares.slots) {
    if (slice != slot) input = begin_slice(slice);
    Word digits[kDigits][4];
    const float by = make_digits<Codes>(args, input, is_inside && is_real, digits) *
                     (scales.step * Codes::kStep);
    for (int base = 0; base < own; base += kAhead) {
#pragma unroll
      for (int start = 0; start < kAhead; start += kTogether) {
        float sums[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          const int ahead = start + i;
          const float scale =
              kExponents ? exponent_scale(bits[ahead], by) : __uint_as_float(bits[ahead]) * by;
          sums[i] = is_inside ? multiply_lane<Codes>(read[ahead], digits) * scale : 0.0f;
          load(ahead, base + kAhead + ahead);
        }
        const int output = base + start + join_lanes(sums, lane);
        if (lane % (kWarp / kTogether) == 0 && output < own) {
          float& sum = sums_of_slots[(output * shares.teams + team) * shares.slots + slot];
          sum = slice == slot ? sums[0] : sum + sums[0];
        }
      }
    }
  }
  __syncthreads();
  for (int output = threadIdx.x; output < outputs; output += kWarps * kWarp) {
    float sum = 0;
    for (int i = 0; i < shares.slots; ++i) sum += sums_of_slots[output * shares.slots + i];
    finish_output(args, 0, first + output, sum, is_real);
  }
}

template <typename Codes, bool kExponents, int kAhead = 8, int kWarps = 16>
bool multiply(const PackedLinearArgs& args, Stream* stream) {
  const std::int64_t blocks =
      args.n < num_multiprocessors() ? args.n : std::int64_t{num_multiprocessors()};
  const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(args.n / blocks + 1) *
                            RowShares(args.k, kWarps).slots;
  if (bytes > kMostShared) return false;
  launch_early(args.may_begin_early, packed_row_kernel<Codes, kExponents, kAhead, kWarps>,
               dim3(static_cast<unsigned>(blocks)), kWarps * kWarp, bytes, stream, args,
               scales_of(args.weight));
  return true;
}

}  // namespace

bool packed_row(const PackedLinearArgs& args, Stream* stream) {
  const PackedScales scales = scales_of(args.weight);
  if (args.rows.capacity != 1 || scales.from == nullptr || scales.is_one || scales.to_power_of_two)
    return false;
  if (args.code == PackedCode::Int8)
    return scales.are_exponents ? multiply<Bytes, true>(args, stream)
                                : multiply<Bytes, false>(args, stream);
  if (args.code == PackedCode::Int4)
    return scales.are_exponents ? multiply<Nibbles, true>(args, stream)
                                : multiply<Nibbles, false>(args, stream);
  return false;
}

}  // namespace lathe::engine::cuda
