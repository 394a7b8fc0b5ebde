#pragma once

#include "lathe/engine/cuda/arguments/row_program.h"

// Row programs of the form that layers have, as one kernel whose values stay in registers.
namespace lathe::engine::cuda {

/// A row that a chain reads.
struct RowSource {
  enum class Kind : std::int32_t {
    Float,       ///< memory[row]
    Half,        ///< the same of bfloat16
    Raw,         ///< the same of floats that are rounded to bfloat16
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
/// number format.
struct RowChainArgs {
  enum class Stage : std::int32_t { None, Normalize, NormalizeGradient, Map, MapGradient };
  std::int64_t n = 0;
  Extent rows;
  std::int32_t num_sources = 0;
  RowSource sources[kMostRowSources];
  RowDropout first_dropout, sum_dropout, last_dropout;
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
  RowResult sum, staged, dropped, rounded;
};
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
/// Rows that a warp keeps in registers.
inline constexpr std::int64_t kWidestChain = 1024;

}  // namespace lathe::engine::cuda
