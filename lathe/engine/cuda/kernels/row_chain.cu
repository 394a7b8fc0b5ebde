// Which kernel takes a chain (row_chain.cuh): by its stage, and by the width of its rows.

#include "lathe/engine/cuda/kernels/launch.cuh"
#include "lathe/engine/cuda/kernels/row_chains.cuh"

namespace lathe::engine::cuda {

void row_chain(const RowChainArgs& args, Stream* stream) {
  using Stage = RowChainArgs::Stage;
  const std::int64_t capacity = args.rows.capacity;
  if (capacity == 0 || args.n == 0) return;
  bool has_sums =
      args.gamma_sums != nullptr || args.beta_sums != nullptr || args.learned_sums != nullptr;
  for (const RowResult* result :
       {&args.unrounded, &args.sum, &args.staged, &args.dropped, &args.rounded})
    has_sums = has_sums || result->sums != nullptr;
  bool is_general = args.num_rounded > 0 || args.has_format;
  const auto look_at = [&](const RowSource& source) {
    is_general = is_general || source.kind >= RowSource::Kind::Table;
  };
  for (int i = 0; i < args.num_sources; ++i) look_at(args.sources[i]);
  if (args.stage == Stage::NormalizeGradient || args.stage == Stage::MapGradient)
    look_at(args.operand);
  const std::int64_t blocks = has_sums ? row_parts(capacity, args.n) : 0;
  const cudaStream_t on = stream_of(stream);
  switch (args.stage) {
    case Stage::None:
      return row_chains::launch_none(args, is_general, blocks, on);
    case Stage::Normalize:
      return row_chains::launch_normalize(args, is_general, blocks, on);
    case Stage::NormalizeGradient:
      return row_chains::launch_normalize_gradient(args, is_general, blocks, on);
    case Stage::Map:
      return row_chains::launch_map(args, is_general, blocks, on);
    case Stage::MapGradient:
      return row_chains::launch_map_gradient(args, is_general, blocks, on);
  }
}

}  // namespace lathe::engine::cuda
