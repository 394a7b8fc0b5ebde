#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "lathe/compress/pruning/method.h"
#include "lathe/core/graph_text.h"

namespace lathe::compress {
namespace {

// More columns than are chosen among at once, so that there is a second, narrower block.
constexpr std::size_t kRows = 6, kColumns = 152;

using Matrix = std::vector<double>;

const Graph& one_linear() {
  static const Graph graph = parse_graph(R"(
    x = input() : f32[B,152]
    w = state() : f32[6,152]
    y = linear(x, w)
    output y <- y
  )");
  return graph;
}

Tensor some_weights() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Tensor weights(DType::F32, {kRows, kColumns});
  for (float& value : weights.mutable_data<float>()) value = normal(random);
  return weights;
}

// The mean of x x^T for columns that are mixtures of 20 sources of unlike strength.
Matrix correlated_products() {
  std::mt19937 random(2);
  std::normal_distribution<double> normal;
  Matrix mixture(kColumns * 20);
  for (std::size_t i = 0; i < mixture.size(); ++i)
    mixture[i] = normal(random) * (1 + static_cast<double>(i / 20 % 5));
  Matrix products(kColumns * kColumns, 0.0);
  for (std::size_t i = 0; i < kColumns; ++i)
    for (std::size_t j = 0; j < kColumns; ++j) {
      for (std::size_t s = 0; s < 20; ++s)
        products[i * kColumns + j] += mixture[i * 20 + s] * mixture[j * 20 + s];
      if (i == j) products[i * kColumns + j] += 0.5;
    }
  return products;
}

// Gauss and Jordan, without pivots: for positive definite matrices.
Matrix inverse_by_elimination(Matrix a, std::size_t k) {
  Matrix result(k * k, 0.0);
  for (std::size_t i = 0; i < k; ++i) result[i * k + i] = 1;
  for (std::size_t p = 0; p < k; ++p) {
    const double pivot = a[p * k + p];
    for (std::size_t j = 0; j < k; ++j) {
      a[p * k + j] /= pivot;
      result[p * k + j] /= pivot;
    }
    for (std::size_t i = 0; i < k; ++i) {
      const double factor = i == p ? 0 : a[i * k + p];
      for (std::size_t j = 0; j < k && factor != 0; ++j) {
        a[i * k + j] -= factor * a[p * k + j];
        result[i * k + j] -= factor * result[p * k + j];
      }
    }
  }
  return result;
}

// The method by its definition, without any factorization: the inverse of what is left of the
// products is computed anew for every column.
struct Naive {
  Matrix weights;
  std::vector<float> mask = std::vector<float>(kRows * kColumns, 1);
  std::vector<Matrix> inverses = {};  // of the columns from c on

  explicit Naive(Matrix products) {
    const Tensor start = some_weights();
    weights.assign(start.data<float>().begin(), start.data<float>().end());
    double mean = 0;
    for (std::size_t i = 0; i < kColumns; ++i) mean += products[i * kColumns + i] / kColumns;
    for (std::size_t i = 0; i < kColumns; ++i) products[i * kColumns + i] += 0.01 * mean + 1e-12;
    for (std::size_t c = 0; c < kColumns; ++c) {
      const std::size_t k = kColumns - c;
      Matrix rest(k * k);
      for (std::size_t i = 0; i < k; ++i)
        for (std::size_t j = 0; j < k; ++j) rest[i * k + j] = products[(c + i) * kColumns + c + j];
      inverses.push_back(inverse_by_elimination(std::move(rest), k));
    }
  }
  double error_of(std::size_t r, std::size_t c) const {
    return weights[r * kColumns + c] * weights[r * kColumns + c] / inverses[c][0];
  }
  void spread(std::size_t c) {
    for (std::size_t r = 0; r < kRows; ++r) {
      if (mask[r * kColumns + c] != 0) continue;
      const double factor = weights[r * kColumns + c] / inverses[c][0];
      for (std::size_t j = c; j < kColumns; ++j)
        weights[r * kColumns + j] -= factor * inverses[c][j - c];
    }
  }
  // The `count` places of least error among these rows and columns go.
  void choose(std::size_t row, std::size_t rows, std::size_t first, std::size_t end,
              std::int64_t count) {
    std::vector<std::size_t> places;
    for (std::size_t r = row; r < row + rows; ++r)
      for (std::size_t c = first; c < end; ++c) places.push_back(r * kColumns + c);
    std::ranges::stable_sort(places, {},
                             [&](std::size_t i) { return error_of(i / kColumns, i % kColumns); });
    for (std::int64_t i = 0; i < count; ++i) mask[places[static_cast<std::size_t>(i)]] = 0;
  }
};

PrunedWeight prune(const char* granularity, double sparsity, const Matrix& products,
                   const Tensor* held = nullptr) {
  const std::vector<PruningUnit> units =
      make_units(one_linear(), find_prunable(one_linear()), parse_granularity(granularity));
  const State values{{"w", some_weights()}};
  const std::map<std::string, Matrix> by_state{{"w", products}};
  return find_pruning_method("sparsegpt")
      .prune({.units = units, .values = values, .products = &by_state}, units.front(), sparsity,
             held);
}

// Both work in double on a matrix whose condition is below 1e4; a float keeps seven digits of
// numbers below 10.
void expect_same(const PrunedWeight& pruned, const Naive& naive) {
  for (std::size_t i = 0; i < kRows * kColumns; ++i) {
    ASSERT_EQ(pruned.mask.data<float>()[i], naive.mask[i]) << i;
    const double expected = naive.mask[i] == 0 ? 0 : naive.weights[i];
    ASSERT_NEAR(pruned.values.data<float>()[i], expected, 1e-5) << i;
  }
}

TEST(SparseGpt, IsWhatItsDefinitionGives) {
  const Matrix products = correlated_products();
  Naive naive(products);
  // 0.6 of 6 x 128 is 461, and of 6 x 152 it is 547.
  for (const auto& [first, end, count] :
       {std::tuple<std::size_t, std::size_t, std::int64_t>{0, 128, 461}, {128, 152, 86}}) {
    naive.choose(0, kRows, first, end, count);
    for (std::size_t c = first; c < end; ++c) naive.spread(c);
  }
  expect_same(prune("element", 0.6, products), naive);
}

TEST(SparseGpt, IsWhatItsDefinitionGivesForTwoOfFour) {
  const Matrix products = correlated_products();
  Naive naive(products);
  for (std::size_t first = 0; first < kColumns; first += 4) {
    for (std::size_t r = 0; r < kRows; ++r) naive.choose(r, 1, first, first + 4, 2);
    for (std::size_t c = first; c < first + 4; ++c) naive.spread(c);
  }
  expect_same(prune("2:4", 0.5, products), naive);
}

// The mean square of what the linear's outputs lost.
double output_error(std::span<const float> pruned, const Matrix& products) {
  const Tensor weights = some_weights();
  double error = 0;
  for (std::size_t r = 0; r < kRows; ++r)
    for (std::size_t i = 0; i < kColumns; ++i)
      for (std::size_t j = 0; j < kColumns; ++j) {
        const auto lost = [&](std::size_t c) {
          const std::size_t at = r * kColumns + c;
          return double{weights.data<float>()[at]} - double{pruned[at]};
        };
        error += lost(i) * products[i * kColumns + j] * lost(j);
      }
  return error;
}

double error_by_score(const char* method, const char* granularity, PruningScope scope,
                      double sparsity, const Matrix& products) {
  const std::vector<PruningUnit> units =
      make_units(one_linear(), find_prunable(one_linear()), parse_granularity(granularity));
  State values{{"w", some_weights()}};
  const std::map<std::string, Matrix> by_state{{"w", products}};
  const State scores =
      find_pruning_method(method).score({.units = units, .values = values, .products = &by_state});
  const State masks = select_masks(units, scores, sparsity, scope);
  const std::span<float> weights = values.at("w").mutable_data<float>();
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] *= masks.at("w").data<float>()[i];
  return output_error(weights, products);
}

TEST(SparseGpt, LosesLessThanWandaAndThatLessThanMagnitudes) {
  const Matrix products = correlated_products();
  for (const char* const granularity : {"element", "2:4", "4:8"}) {
    const double compensated =
        output_error(prune(granularity, 0.5, products).values.data<float>(), products);
    const double wanda = error_by_score("wanda", granularity, PruningScope::Row, 0.5, products);
    const double l1 = error_by_score("l1", granularity, PruningScope::Local, 0.5, products);
    EXPECT_LT(compensated, 0.5 * wanda) << granularity;
    EXPECT_LT(wanda, l1) << granularity;
  }
}

TEST(SparseGpt, PrunesExactlyAndKeepsWhatIsOut) {
  const Matrix products = correlated_products();
  Tensor held(DType::F32, {kRows, kColumns});
  for (std::size_t i = 0; i < kRows * kColumns; ++i)
    held.mutable_data<float>()[i] = i % 4 == 0 ? 0 : 1;
  for (const double sparsity : {0.3, 0.5, 0.9}) {
    const PrunedWeight pruned = prune("element", sparsity, products, &held);
    EXPECT_EQ(std::ranges::count(pruned.mask.data<float>(), 0.0f), share_of(sparsity, 912));
    for (std::size_t i = 0; i < kRows * kColumns; i += 4)
      EXPECT_EQ(pruned.mask.data<float>()[i], 0);
    for (std::size_t i = 0; i < kRows * kColumns; ++i)
      if (pruned.mask.data<float>()[i] == 0) {
        EXPECT_EQ(pruned.values.data<float>()[i], 0);
      }
  }
  EXPECT_EQ(std::ranges::count(prune("2:4", 0.5, products).mask.data<float>(), 0.0f), 456);
  EXPECT_EQ(std::ranges::count(prune("2:4", 0.25, products).mask.data<float>(), 0.0f), 228);
}

}  // namespace
}  // namespace lathe::compress
