#pragma once

#include "lathe/engine/cuda/arguments/operand.h"

// Tables and rows that integers choose, and the integers that describe packed batches.
namespace lathe::engine::cuda {

inline constexpr int kMostTables = 3;
struct EmbeddingArgs {
  std::int32_t num_tables = 1;
  Integers ids[kMostTables];
  const float* tables[kMostTables] = {};
  std::int64_t table_rows[kMostTables] = {};
  float* y = nullptr;
  std::int64_t n = 0;
  Extent rows;
  Fault fault;
};

/// Sums of the dy rows of each id. Dense (`places` null): y[id] = base[id] + sum. Otherwise y has a
/// row for each token in the order of their ids: the sum at the first of an id, whose number is
/// places[id], and zeros at the others; places is -1 where an id does not occur, and `used` counts
/// the rows. `order` holds rows integers, which `embedding_order` makes from the ids alone, by way
/// of `sorted`; it also clears places. `partial` holds rows / kTokenSegment + 1 rows of n.
inline constexpr std::int64_t kTokenSegment = 16;
struct EmbeddingGradientArgs {
  const float* dy = nullptr;
  Integers ids;
  const float* base = nullptr;
  float* y = nullptr;
  std::int32_t* places = nullptr;
  std::int32_t* used = nullptr;
  std::int32_t* order = nullptr;
  std::uint64_t* sorted = nullptr;
  float* partial = nullptr;
  std::int64_t table_rows = 0, n = 0;
  Extent rows;
  Fault fault;
};
inline constexpr int kMostGradients = 4;
struct EmbeddingGradientsArgs {
  std::int32_t count = 0;
  EmbeddingGradientArgs tables[kMostGradients];
};

/// The same of a table of few rows, left in kSmallTableParts parts: parts[part, id] = sum.
inline constexpr std::int64_t kSmallTable = 32, kSmallTableParts = 128;
struct SmallTableGradientArgs {
  const float* dy = nullptr;
  Integers ids;
  float* parts = nullptr;
  std::int64_t table_rows = 0, n = 0;
  Extent rows;
  Fault fault;
};

/// Rows of `bytes` bytes: y[i] = x[indices[i]].
struct GatherRowsArgs {
  const void* x = nullptr;
  Integers indices;
  void* y = nullptr;
  std::int64_t bytes = 0, x_rows = 0;
  Extent rows;
  Fault fault;
};

/// One row of each sequence of a packed batch, or back into rows of zeros.
struct SelectArgs {
  bool is_gradient = false;
  const void* x = nullptr;
  Integers offsets;
  void* y = nullptr;
  std::int64_t bytes = 0, index = 0;
  Extent tokens, sequences;
  Fault fault;
};

/// The last marked token of each row of [rows, length], or back into zeros.
struct LastTokenArgs {
  bool is_gradient = false;
  const void* x = nullptr;
  Integers mask;
  void* y = nullptr;
  std::int64_t bytes = 0, length = 0;
  Extent rows;
};

/// Numbers that describe packed batches, several in one launch.
struct IndexOperation {
  enum class Kind : std::int32_t { Position, Example, Share, Fill, Select };
  Kind kind = Kind::Position;
  Integers offsets = {};
  Integers values = {};  ///< of Example and Select
  void* y = nullptr;     ///< float for Share
  bool is_wide = false;
  std::uint32_t pattern = 0;  ///< of Fill
  std::int64_t index = 0;     ///< of Select, negative: counted from the end; of Position: the first
  Extent tokens = {}, sequences = {};  ///< of y: the sequences for Select, else the tokens
  Fault fault = {};
};
inline constexpr int kMostIndices = 8;
struct IndexArgs {
  std::int32_t count = 0;
  IndexOperation operations[kMostIndices];
};

struct PositionsArgs {
  void* y = nullptr;
  bool is_wide = false;
  std::int64_t first = 0;  ///< of each row
  std::int64_t length = 0;
  Extent count;
};

}  // namespace lathe::engine::cuda
