#pragma once

#include "lathe/engine/cuda/arguments/row_program.h"

// Row programs of the form that layers have, as one kernel whose values stay in registers.
namespace lathe::engine::cuda {

/// A row that a chain reads.
struct RowSource {
  enum class Kind : std::int32_t {
    Float,       ///< memory[row]
    Half,        ///< the same of bfloat16
    Table,       ///< memory[ids[row]]
    OfSequence,  ///< as RowInstruction has them
    ForToken,
  };
  Kind kind = Kind::Float;
  const void* memory = nullptr;
  Integers ids = {};
  std::int64_t index = 0, table_rows = 0;
  Extent others = {};
  Fault fault = {};
};

/// Where a value of a chain is left: as float, as bfloat16, both or nowhere; and its sum over rows,
/// in parts.
struct RowResult {
  float* y = nullptr;
  std::uint16_t* half = nullptr;
  float* sums = nullptr;
};

struct RowDropout {
  bool is_there = false;
  const std::int32_t* random = nullptr;
  Integers examples = {}, positions = {};
  std::uint32_t threshold = 0, site = 0;
  float scale = 1;
};

inline constexpr int kMostRowSources = 4;
/// sum = dropout(first source) + second + ..., or dropout of the sum; then a stage, dropout and a
/// number format. The gradient of a format, perhaps with a learned scale, may be taken of the first
/// sources.
struct RowChainArgs {
  enum class Stage : std::int32_t { None, Normalize, NormalizeGradient, Map, MapGradient };
  std::int64_t n = 0;
  Extent rows;
  std::int32_t num_sources = 0;
  RowSource sources[kMostRowSources];
  RowDropout first_dropout, sum_dropout, last_dropout;
  std::int32_t num_rounded = 0;  ///< sources that a format's gradient is taken of; 0: there is none
  RowSource rounded_x, rounded_y;
  bool is_gate = false;  ///< nothing is learned: it is 0 where x is not in low to high
  float low = 0, high = 0;
  LearnedStepArgs learned;
  float* learned_sums = nullptr;  ///< [parts]
  Stage stage = Stage::None;
  RowSource operand;  ///< x of a norm's gradient, or what a map's gradient is taken at
  const float* gamma = nullptr;
  const float* beta = nullptr;
  float eps = 0;
  bool is_rms = false;
  Map map = Map::Identity;
  float slope = 0;
  float* gamma_sums = nullptr;  ///< [parts, n]
  float* beta_sums = nullptr;
  bool has_format = false;
  QuantizeArgs format;  ///< one scale for all values
  RowResult unrounded, sum, staged, dropped, rounded;
};
/// Whether chains of a stage may sum over rows: those of a backward pass.
inline constexpr bool can_sum(RowChainArgs::Stage stage) {
  return stage != RowChainArgs::Stage::Normalize && stage != RowChainArgs::Stage::Map;
}
/// Maps and formats that chains have kernels for: each takes code for every number of a row.
inline constexpr bool is_chain_map(Map map) {
  return map == Map::GeluErf || map == Map::Tanh || map == Map::Relu;
}
inline constexpr bool is_chain_format(const QuantizeArgs& format) {
  const bool has_one_scale = format.rule == ScaleBy::Constant ||
                             (format.has_one_scale && (format.rule == ScaleBy::Given ||
                                                       format.rule == ScaleBy::GivenPowerOfTwo));
  return has_one_scale && format.codec == Codec::Integer && format.low >= -kMostWhole &&
         format.high <= kMostWhole;
}
/// Neighbours that a thread has: rows are made of whole groups of them.
inline constexpr std::int64_t kChainColumns = 8;
/// Rows that a team keeps in registers.
inline constexpr std::int64_t kWidestChain = 1024;
/// The same where the gradient of a scale is summed on the way.
inline constexpr std::int64_t kWidestLearnedChain = 512;

}  // namespace lathe::engine::cuda
