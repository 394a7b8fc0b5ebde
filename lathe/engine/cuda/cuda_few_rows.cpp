#include "lathe/engine/cuda/cuda_few_rows.h"

namespace lathe::engine {

std::optional<cuda::FewRowsStage> few_rows_stage(const cuda::Product& product) {
  const bool are_halves = product.a_as == cuda::Number::BF16 && product.b_as == cuda::Number::BF16;
  const bool is_plain = product.parts == 1 && product.before == nullptr &&
                        product.sums == nullptr && product.is_rounded;
  if (!are_halves || !is_plain || product.a_by_k || product.b_by_k ||
      product.m.capacity > cuda::kMostFewRows || product.k.symbol != nullptr ||
      product.k.capacity % cuda::kFewDepth != 0)
    return std::nullopt;
  return cuda::FewRowsStage{.is_product = true, .product = product, .norm = {}};
}

std::optional<cuda::FewRowsStage> few_rows_stage(const cuda::RowChainArgs& chain) {
  using Kind = cuda::RowSource::Kind;
  const auto is_left = [](const cuda::RowResult& result) {
    return result.y != nullptr || result.half != nullptr || result.sums != nullptr;
  };
  const bool is_norm = chain.stage == cuda::RowChainArgs::Stage::Normalize &&
                       !chain.first_dropout.is_there && !chain.sum_dropout.is_there &&
                       !chain.last_dropout.is_there && chain.num_rounded == 0 && !chain.has_format;
  if (!is_norm || is_left(chain.unrounded) || is_left(chain.dropped) || is_left(chain.rounded) ||
      chain.sum.sums != nullptr || chain.staged.sums != nullptr || chain.n % 4 != 0 ||
      chain.n > cuda::kMostFewColumns || chain.rows.capacity > cuda::kMostFewRows)
    return std::nullopt;
  cuda::FewRowsStage stage{.is_product = false, .product = {}, .norm = {}};
  stage.norm = {.num_sources = chain.num_sources,
                .sources = {},
                .gamma = chain.gamma,
                .beta = chain.beta,
                .eps = chain.eps,
                .is_rms = chain.is_rms,
                .sum = chain.sum,
                .result = chain.staged,
                .n = chain.n,
                .rows = chain.rows};
  for (int i = 0; i < chain.num_sources; ++i) {
    const cuda::RowSource& source = chain.sources[i];
    if (source.kind != Kind::Float && source.kind != Kind::Half) return std::nullopt;
    stage.norm.sources[i] = {.x = source.memory, .is_half = source.kind == Kind::Half};
  }
  return stage;
}

}  // namespace lathe::engine
