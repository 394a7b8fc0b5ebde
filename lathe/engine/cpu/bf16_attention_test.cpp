#include <bit>
#include <cmath>
#include <limits>

#include "lathe/engine/aligned_buffer.h"
#include "lathe/engine/cpu/attention_cases.h"
#include "lathe/engine/cpu/bf16_kernels.h"
#include "lathe/engine/cpu/every_isa.h"

namespace lathe::engine {
namespace {

struct Problem {
  std::int64_t lq, lk, d;
  bool causal = false;
  std::vector<std::uint8_t> keep = {};
  float scale = 0.0f;
  Matrix q, k, v;

  Problem(std::int64_t query_length, std::int64_t key_length, std::int64_t width)
      : lq(query_length),
        lk(key_length),
        d(width),
        scale(1.0f / std::sqrt(static_cast<float>(d))),
        q(Matrix::random(lq, d, 2 * d, 1)),
        k(Matrix::random(lk, d, 2 * d + 1, 2)),
        v(Matrix::random(lk, d, 3, 3)) {}

  std::int64_t visible(std::int64_t query) const { return causal ? query + 1 + lk - lq : lk; }
};

class EveryBf16Attention : public testing::TestWithParam<const Bf16Kernels*> {
 protected:
  const Bf16Kernels& table() const { return *GetParam(); }

  // Rows [begin, end) into an otherwise untouched result.
  void run(const Problem& problem, std::int64_t begin, std::int64_t end, bool packs_before,
           Matrix& out) const {
    const AlignedBuffer scratch(table().attention_scratch_bytes(problem.lk, problem.d));
    std::memset(scratch.data(), 0xff, static_cast<std::size_t>(scratch.size()));
    Bf16AttentionArgs args{};
    args.lq = problem.lq;
    args.lk = problem.lk;
    args.d = problem.d;
    args.q_begin = begin;
    args.q_end = end;
    args.q = problem.q.data();
    args.k = problem.k.data();
    args.v = problem.v.data();
    args.out = out.data();
    args.q_stride = problem.q.stride();
    args.k_stride = problem.k.stride();
    args.v_stride = problem.v.stride();
    args.out_stride = out.stride();
    args.scale = problem.scale;
    args.causal = problem.causal;
    args.keep = problem.keep.empty() ? nullptr : problem.keep.data();
    args.scratch = scratch.floats();
    attend(table(), args, packs_before);
    EXPECT_TRUE(out.guards_are_intact());
  }
  Matrix run(const Problem& problem) const {
    Matrix out(problem.lq, problem.d, 5);
    run(problem, 0, problem.lq, false, out);
    return out;
  }
  Matrix rounded(const Matrix& matrix) const {
    Matrix result(matrix.rows(), matrix.columns());
    for (std::int64_t r = 0; r < matrix.rows(); ++r)
      table().round(matrix.row(r), matrix.columns(), result.row(r));
    return result;
  }

  // Products of rounded operands are exact in float. With S the largest scale |q||k| of a row, a
  // score is within (d + 3) S units, its weight within twice that, 7.5e-5 of the exponential and
  // four units more, and a rounded weight within 2^-8 of it; the sum that divides them is of
  // weights that are not rounded. The sums over lk keys add lk units each, and the result is
  // rounded to eight bits.
  void expect_attention(const Problem& problem, const Matrix& out) const {
    const Matrix q = rounded(problem.q), k = rounded(problem.k), v = rounded(problem.v);
    for (std::int64_t i = 0; i < problem.lq; ++i) {
      const std::int64_t visible = problem.visible(i);
      std::vector<double> weights;
      double largest_magnitude = 0, total = 0;
      bool any_kept = problem.keep.empty();
      for (std::int64_t j = 0; j < visible; ++j)
        any_kept = any_kept || problem.keep[static_cast<std::size_t>(j)] != 0;
      for (std::int64_t j = 0; j < visible; ++j) {
        double score = 0, magnitude = 0;
        for (std::int64_t c = 0; c < problem.d; ++c) {
          score += double{q(i, c)} * double{k(j, c)};
          magnitude += std::abs(double{q(i, c)} * double{k(j, c)});
        }
        largest_magnitude = std::max(largest_magnitude, magnitude * problem.scale);
        const bool is_kept = problem.keep.empty() || problem.keep[static_cast<std::size_t>(j)] != 0;
        weights.push_back(!any_kept ? 1.0 : is_kept ? std::exp(score * problem.scale) : 0.0);
        total += weights.back();
      }
      const double units =
          2 * static_cast<double>(problem.d + 3) * largest_magnitude + 4 + 2.0 * problem.lk;
      const double relative = 0x1p-8 + 2 * 7.5e-5 + 2 * units * kUnit;
      for (std::int64_t c = 0; c < problem.d; ++c) {
        double exact = 0, magnitude = 0;
        for (std::int64_t j = 0; j < visible; ++j) {
          exact += weights[static_cast<std::size_t>(j)] * double{v(j, c)} / total;
          magnitude += weights[static_cast<std::size_t>(j)] * std::abs(double{v(j, c)}) / total;
        }
        const double before = relative * magnitude;
        ASSERT_NEAR(out(i, c), exact, before + 0x1p-8 * (std::abs(exact) + before))
            << "row " << i << " column " << c;
      }
    }
    const Matrix again = rounded(out);
    for (std::int64_t i = 0; i < problem.lq; ++i)
      for (std::int64_t c = 0; c < problem.d; ++c) ASSERT_EQ(again(i, c), out(i, c));
  }
};

constexpr std::int64_t kShapes[][3] = {{1, 1, 1},    {1, 40, 64},  {3, 5, 7},   {33, 33, 64},
                                       {40, 70, 33}, {70, 70, 80}, {5, 1500, 9}};

TEST_P(EveryBf16Attention, AgreesWithADoubleLoopOverRoundedOperands) {
  for (const auto& [lq, lk, d] : kShapes) {
    SCOPED_TRACE(testing::Message() << lq << " x " << lk << " x " << d);
    const Problem problem(lq, lk, d);
    expect_attention(problem, run(problem));
  }
}

TEST_P(EveryBf16Attention, LeavesOutKeysThatAreMaskedOrLater) {
  for (const auto& [lq, lk, d] : kShapes) {
    SCOPED_TRACE(testing::Message() << lq << " x " << lk << " x " << d);
    over_masks(Problem(lq, lk, d),
               [this](const Problem& problem) { expect_attention(problem, run(problem)); });
  }
}

TEST_P(EveryBf16Attention, GivesARangeOfQueriesTheBitsOfTheWhole) {
  expect_bits_of_the_whole_in_ranges<Problem>(
      [this](const Problem& problem, std::int64_t begin, std::int64_t end, bool packs_before,
             Matrix& out) { run(problem, begin, end, packs_before, out); });
}

TEST_P(EveryBf16Attention, SaysWhereItsTilesBegin) {
  expect_tiles(table().attention_tile);
}

TEST_P(EveryBf16Attention, ReadsAndWritesNumbersThatAreRounded) {
  for (const auto& [lq, lk, d] : kShapes) {
    SCOPED_TRACE(testing::Message() << lq << " x " << lk << " x " << d);
    const Problem problem(lq, lk, d);
    const Matrix expected = run(problem);
    const auto halves = [&](const Matrix& matrix) {
      const Matrix numbers = rounded(matrix);
      std::vector<std::uint16_t> result;
      for (std::int64_t r = 0; r < matrix.rows(); ++r)
        for (std::int64_t c = 0; c < matrix.columns(); ++c)
          result.push_back(
              static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(numbers(r, c)) >> 16));
      return result;
    };
    const std::vector<std::uint16_t> q = halves(problem.q), k = halves(problem.k);
    const std::vector<std::uint16_t> v = halves(problem.v);
    std::vector<std::uint16_t> out(q.size() + 1, 0x7fc0);
    const AlignedBuffer scratch(table().attention_scratch_bytes(lk, d));
    Bf16AttentionArgs args{};
    args.lq = args.q_end = lq;
    args.lk = lk;
    args.d = d;
    args.narrow_q = q.data();
    args.narrow_k = k.data();
    args.narrow_v = v.data();
    args.narrow_out = out.data();
    args.q_stride = args.k_stride = args.v_stride = args.out_stride = d;
    args.scale = problem.scale;
    args.scratch = scratch.floats();
    table().attention(args);
    EXPECT_EQ(out.back(), 0x7fc0);
    out.pop_back();
    ASSERT_EQ(out, halves(expected));
  }
}

// Scores far below the largest have weight 0, not a subnormal one, and none overflows.
TEST_P(EveryBf16Attention, TakesScoresFarApart) {
  Problem problem(20, 50, 16);
  problem.scale = 40.0f;
  const Matrix out = run(problem);
  for (std::int64_t i = 0; i < problem.lq; ++i)
    for (std::int64_t c = 0; c < problem.d; ++c) ASSERT_TRUE(std::isfinite(out(i, c)));
  const Matrix q = rounded(problem.q), k = rounded(problem.k), v = rounded(problem.v);
  // The query looks at one key alone where that is far ahead of all others.
  int alone = 0;
  for (std::int64_t i = 0; i < problem.lq; ++i) {
    std::vector<std::pair<double, std::int64_t>> scores;
    for (std::int64_t j = 0; j < problem.lk; ++j) {
      double score = 0;
      for (std::int64_t c = 0; c < problem.d; ++c) score += double{q(i, c)} * double{k(j, c)};
      scores.emplace_back(score * problem.scale, j);
    }
    std::sort(scores.rbegin(), scores.rend());
    if (scores[0].first - scores[1].first < 45) continue;
    ++alone;
    for (std::int64_t c = 0; c < problem.d; ++c) ASSERT_EQ(out(i, c), v(scores[0].second, c));
  }
  EXPECT_GT(alone, 0);
}

// A query all of whose scores are NaN has kept keys nevertheless.
TEST_P(EveryBf16Attention, GivesNanToAQueryThatIsOne) {
  for (const bool has_mask : {false, true}) {
    Problem problem(20, 50, 16);
    problem.q(3, 5) = std::numeric_limits<float>::quiet_NaN();
    if (has_mask) {
      problem.keep.assign(50, 1);
      problem.keep[7] = 0;
    }
    const Matrix out = run(problem);
    for (std::int64_t i = 0; i < problem.lq; ++i)
      for (std::int64_t c = 0; c < problem.d; ++c) ASSERT_EQ(std::isnan(out(i, c)), i == 3);
  }
}

INSTANTIATE_TEST_SUITE_P(, EveryBf16Attention, testing::ValuesIn(every_bf16_kernels()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace lathe::engine
