#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "lathe/core/isa.h"
#include "lathe/engine/cpu/sparse_weights.h"

/// When a weight's zeros are worth leaving out: measured times as a rule.
namespace lathe::engine {

/// The ways to multiply with a linear layer's weight.
enum class LinearKernel {
  Dense,
  Reduced,   ///< dense, without the rows and columns that are all zero
  Groups,    ///< sparse_gemm by groups of kSparseGroup rows
  Elements,  ///< sparse_gemm by single rows
};
inline constexpr std::array<LinearKernel, 3> kSparseKernels{
    LinearKernel::Reduced, LinearKernel::Groups, LinearKernel::Elements};
/// "dense", "reduced", "groups", "elements".
std::string_view name(LinearKernel kernel);

/// What the kernels of one instruction set take, in multiplications of the dense kernel when it has
/// many rows. `bench_sparse ISA --costs` measures and prints it.
struct SparseCosts {
  /// Of `sparse_gemm` with so many vectors of rows at once, for each lane: a product with a weight
  /// that is kept, a group in a chunk, and a column of x or y that is transposed.
  struct Lane {
    double product, group, column;
  };
  std::int64_t width;         ///< lanes of a vector
  std::array<double, 3> few;  ///< how many rows 1, 2 and 3 rows are worth to the dense kernel
  std::array<Lane, 4> elements;
  std::array<Lane, 4> groups;  ///< two vectors at most unless they have 16 lanes
  double moved;                ///< a number that is taken from x or spread in y
};
const SparseCosts& sparse_costs(Isa isa);

/// The most vectors of rows that `sparse_gemm` takes at once.
int most_vectors(const SparseCosts& costs, LinearKernel kernel);

/// The time of a product with so many rows.
double expected_time(const SparseCosts& costs, LinearKernel kernel, const KeptWeights& kept,
                     std::int64_t rows);
/// The fastest, dense unless another is clearly so.
LinearKernel fastest_kernel(const SparseCosts& costs, const KeptWeights& kept, std::int64_t rows);

}  // namespace lathe::engine
