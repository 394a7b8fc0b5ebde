#include "lathe/engine/cpu/sparse_costs.h"

#include <algorithm>

namespace lathe::engine {
namespace {

// Printed by `bench_sparse ISA --costs` on machine A of docs/performance.md.
constexpr SparseCosts kAvx512{
    .width = 16,
    .few = {2.35, 2.89, 4.22},
    .elements = {{{2.67, 0.0, 4.5}, {1.57, 4.2, 4.3}, {1.36, 4.9, 4.2}, {1.29, 4.6, 4.2}}},
    .groups = {{{0.97, 10.5, 4.6}, {0.99, 7.9, 4.9}, {0.97, 8.8, 4.7}, {0.97, 10.2, 4.8}}},
    .moved = 47,
};
constexpr SparseCosts kAvx2{
    .width = 8,
    .few = {3.53, 3.76, 3.94},
    .elements = {{{4.77, 0.0, 3.1}, {2.48, 1.9, 4.5}, {1.72, 5.9, 4.3}, {1.47, 6.2, 3.6}}},
    .groups = {{{1.66, 7.6, 4.8}, {1.00, 10.1, 4.4}}},
    .moved = 31,
};
constexpr SparseCosts kPlain{
    .width = 4,
    .few = {2.04, 2.58, 3.18},
    .elements = {{{2.97, 2.5, 4.0}, {1.75, 3.4, 4.2}, {1.32, 3.8, 4.1}, {1.09, 4.3, 4.1}}},
    .groups = {{{1.33, 11.2, 5.7}, {1.03, 10.3, 4.9}}},
    .moved = 22,
};

// The rule is wrong by a few parts of a hundred: what is not clearly faster stays dense.
constexpr double kWorthIt = 0.95;

double number(std::int64_t count) {
  return static_cast<double>(count);
}
std::int64_t parts(std::int64_t whole, std::int64_t part) {
  return (whole + part - 1) / part;
}

// A panel is as long to multiply with when only some of its columns exist.
double dense_time(const SparseCosts& costs, std::int64_t n, std::int64_t k, std::int64_t rows) {
  const bool is_few = rows <= std::ssize(costs.few);
  return (is_few ? costs.few[static_cast<std::size_t>(rows - 1)] : number(rows)) *
         number(parts(n, costs.width) * costs.width * k);
}

double reduced_time(const SparseCosts& costs, const KeptWeights& kept, std::int64_t rows) {
  const std::int64_t n = std::ssize(kept.rows), k = std::ssize(kept.columns);
  const std::int64_t moved = (k < kept.k ? k : 0) + (n < kept.n ? n : 0);
  // The bias and what the other columns are, once a call, take as long as two rows.
  return dense_time(costs, n, k, rows) + number((rows + 2) * moved) * costs.moved;
}

double sparse_time(const SparseCosts& costs, LinearKernel kernel, const KeptWeights& kept,
                   std::int64_t rows) {
  const bool is_grouped = kernel == LinearKernel::Groups;
  const std::int64_t group = is_grouped ? kSparseGroup : 1;
  // Blocks of rows have equal numbers of vectors, to within one.
  const std::int64_t vectors = parts(rows, costs.width);
  const std::int64_t blocks = parts(vectors, most_vectors(costs, kernel));
  const auto at = static_cast<std::size_t>(parts(vectors, blocks) - 1);
  const SparseCosts::Lane& lane = is_grouped ? costs.groups[at] : costs.elements[at];
  return number(vectors * costs.width) *
         (lane.product * number(is_grouped ? group * kept.groups : kept.elements) +
          lane.group * number(parts(kept.n, group) * parts(kept.k, kSparseChunk)) +
          lane.column * number(kept.n + kept.k));
}

}  // namespace

std::string_view name(LinearKernel kernel) {
  constexpr std::array<std::string_view, 4> kNames{"dense", "reduced", "groups", "elements"};
  return kNames[static_cast<std::size_t>(kernel)];
}

const SparseCosts& sparse_costs(Isa isa) {
  return isa == Isa::Avx512 ? kAvx512 : isa == Isa::Avx2 ? kAvx2 : kPlain;
}

int most_vectors(const SparseCosts& costs, LinearKernel kernel) {
  return kernel == LinearKernel::Groups && costs.width < 16 ? 2 : 4;
}

double expected_time(const SparseCosts& costs, LinearKernel kernel, const KeptWeights& kept,
                     std::int64_t rows) {
  if (rows < 1) return 0;
  switch (kernel) {
    case LinearKernel::Dense:
      break;
    case LinearKernel::Reduced:
      return reduced_time(costs, kept, rows);
    case LinearKernel::Groups:
    case LinearKernel::Elements:
      return sparse_time(costs, kernel, kept, rows);
  }
  return dense_time(costs, kept.n, kept.k, rows);
}

LinearKernel fastest_kernel(const SparseCosts& costs, const KeptWeights& kept, std::int64_t rows) {
  LinearKernel best = LinearKernel::Dense;
  double least = kWorthIt * expected_time(costs, best, kept, rows);
  for (const LinearKernel kernel : kSparseKernels) {
    const double time = expected_time(costs, kernel, kept, rows);
    if (time >= least) continue;
    best = kernel;
    least = time;
  }
  return best;
}

}  // namespace lathe::engine
