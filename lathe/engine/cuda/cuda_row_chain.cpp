#include "lathe/engine/cuda/cuda_row_chain.h"

#include <map>

namespace lathe::engine {
namespace {

using cuda::RowChainArgs;
using cuda::RowInstruction;
using Kind = RowInstruction::Kind;
using Stage = RowChainArgs::Stage;

// Follows a program as long as it does what a chain does, in a chain's order.
class Matcher {
 public:
  Matcher(std::int64_t width, cuda::Extent rows, const std::vector<const float*>& vectors,
          const std::vector<cuda::QuantizeArgs>& formats,
          const std::vector<cuda::LearnedStepArgs>& learned_steps)
      : vectors_(vectors), formats_(formats), learned_steps_(learned_steps) {
    chain_.n = width;
    chain_.rows = rows;
  }

  bool takes(const RowInstruction& step) {
    switch (step.kind) {
      case Kind::Load:
      case Kind::LoadHalf:
      case Kind::LoadOfTable:
      case Kind::LoadOfSequence:
      case Kind::LoadForToken:
        loaded_[step.to] = source_of(step);
        return true;
      case Kind::Widen:
        return renames(step);
      case Kind::Pair:
        return adds(step);
      case Kind::Dropout:
        return drops(step);
      case Kind::Normalize:
      case Kind::NormalizeGradient:
      case Kind::Map:
      case Kind::MapGradient:
        return stages(step);
      case Kind::Quantize:
        return rounds(step);
      case Kind::LearnedStep:
      case Kind::Gate:
        return unrounds(step);
      case Kind::Store:
      case Kind::StoreHalf:
      case Kind::Sum:
        return leaves(step);
      default:
        return false;
    }
  }
  bool is_complete() const {
    return phase_ != Phase::Start && loaded_.empty() && (!has_sum_ || cuda::can_sum(chain_.stage));
  }
  const RowChainArgs& chain() const { return chain_; }

 private:
  // How far the chain is: its value is the sum, the sum dropped, and so on.
  enum class Phase { Start, Unrounded, Sum, SumDropped, Staged, Dropped, Rounded };

  static cuda::RowSource source_of(const RowInstruction& step) {
    cuda::RowSource source;
    using Source = cuda::RowSource::Kind;
    source.kind = step.kind == Kind::LoadHalf         ? Source::Half
                  : step.kind == Kind::LoadOfTable    ? Source::Table
                  : step.kind == Kind::LoadOfSequence ? Source::OfSequence
                  : step.kind == Kind::LoadForToken   ? Source::ForToken
                                                      : Source::Float;
    source.memory = step.memory;
    source.ids = step.ids;
    source.index = step.index;
    source.table_rows = step.table_rows;
    source.others = step.others;
    source.fault = step.fault;
    return source;
  }

  // Takes what was loaded into a register, which nobody may read again.
  bool take(int number, cuda::RowSource& source) {
    const auto found = loaded_.find(number);
    if (found == loaded_.end()) return false;
    source = found->second;
    loaded_.erase(found);
    return true;
  }

  // The chain's value, which is the first source if there is none yet.
  bool is_value(int number) {
    if (phase_ != Phase::Start) return number == value_;
    if (!take(number, chain_.sources[0])) return false;
    chain_.num_sources = 1;
    go(Phase::Sum, number);
    return true;
  }
  void go(Phase phase, int value) {
    phase_ = phase;
    value_ = value;
  }

  bool renames(const RowInstruction& step) {
    cuda::RowSource source;
    if (!take(step.a, source)) return false;
    loaded_[step.to] = source;
    return true;
  }

  bool adds(const RowInstruction& step) {
    if (step.pair != cuda::Pair::Add || phase_ > Phase::Sum || is_sum_left_ || step.a == step.b)
      return false;
    const bool is_first = phase_ == Phase::Start ? true : step.a == value_;
    const int value = is_first ? step.a : step.b, other = is_first ? step.b : step.a;
    if (!loaded_.contains(other) || !is_value(value) || chain_.num_sources == cuda::kMostRowSources)
      return false;
    take(other, chain_.sources[chain_.num_sources++]);
    go(Phase::Sum, step.to);
    return true;
  }

  bool unrounds(const RowInstruction& step) {
    if (!is_value(step.a) || phase_ > Phase::Sum || is_sum_left_ || chain_.num_rounded != 0 ||
        chain_.first_dropout.is_there || !take(step.b, chain_.rounded_x))
      return false;
    chain_.num_rounded = chain_.num_sources;
    chain_.is_gate = step.kind == Kind::Gate;
    chain_.low = step.low;
    chain_.high = step.high;
    go(Phase::Unrounded, step.to);
    if (chain_.is_gate) return true;
    chain_.learned = learned_steps_[static_cast<std::size_t>(step.format)];
    chain_.learned_sums = step.sums;
    return chain_.n <= cuda::kWidestLearnedChain && take(step.c, chain_.rounded_y);
  }

  bool drops(const RowInstruction& step) {
    if (!is_value(step.a)) return false;
    cuda::RowDropout dropout{.is_there = true,
                             .random = step.random,
                             .examples = step.ids,
                             .positions = step.positions,
                             .threshold = step.threshold,
                             .site = step.site,
                             .scale = step.scale};
    const bool is_first = phase_ == Phase::Sum && chain_.num_sources == 1 && !is_sum_left_ &&
                          !chain_.first_dropout.is_there && chain_.num_rounded == 0;
    if (is_first) {
      chain_.first_dropout = dropout;
      go(Phase::Sum, step.to);
    } else if (phase_ == Phase::Sum || phase_ == Phase::Unrounded) {
      chain_.sum_dropout = dropout;
      go(Phase::SumDropped, step.to);
    } else if (phase_ == Phase::Staged) {
      chain_.last_dropout = dropout;
      go(Phase::Dropped, step.to);
    } else {
      return false;
    }
    return true;
  }

  const float* vector(int number) const {
    return number < 0 ? nullptr : vectors_[static_cast<std::size_t>(number - cuda::kFirstVector)];
  }

  bool stages(const RowInstruction& step) {
    const bool is_norm = step.kind == Kind::Normalize || step.kind == Kind::NormalizeGradient;
    const bool has_operand = step.kind == Kind::NormalizeGradient || step.kind == Kind::MapGradient;
    if (is_norm ? chain_.n > cuda::kWidestChain : !cuda::is_chain_map(step.map)) return false;
    if (!is_value(step.a) || phase_ > Phase::SumDropped) return false;
    if (has_operand && !take(step.b, chain_.operand)) return false;
    chain_.stage = step.kind == Kind::Normalize           ? Stage::Normalize
                   : step.kind == Kind::NormalizeGradient ? Stage::NormalizeGradient
                   : step.kind == Kind::Map               ? Stage::Map
                                                          : Stage::MapGradient;
    if (step.kind == Kind::Normalize) {
      chain_.gamma = vector(step.b);
      chain_.beta = vector(step.c);
    }
    if (step.kind == Kind::NormalizeGradient) {
      chain_.gamma = vector(step.c);
      chain_.gamma_sums = step.sums;
      chain_.beta_sums = step.more_sums;
    }
    chain_.eps = step.low;
    chain_.is_rms = step.is_rms;
    chain_.map = step.map;
    chain_.slope = step.slope;
    go(Phase::Staged, step.to);
    return true;
  }

  bool rounds(const RowInstruction& step) {
    const cuda::QuantizeArgs& format = formats_[static_cast<std::size_t>(step.format)];
    if (!cuda::is_chain_format(format) || !is_value(step.a) || phase_ == Phase::Rounded ||
        phase_ == Phase::SumDropped)
      return false;
    chain_.has_format = true;
    chain_.format = format;
    go(Phase::Rounded, step.to);
    return true;
  }

  bool leaves(const RowInstruction& step) {
    if (!is_value(step.a) || phase_ == Phase::SumDropped) return false;
    cuda::RowResult& result = phase_ == Phase::Unrounded ? chain_.unrounded
                              : phase_ == Phase::Sum     ? chain_.sum
                              : phase_ == Phase::Staged  ? chain_.staged
                              : phase_ == Phase::Dropped ? chain_.dropped
                                                         : chain_.rounded;
    is_sum_left_ = is_sum_left_ || phase_ == Phase::Sum;
    if (step.kind == Kind::Sum) {
      if (has_sum_) return false;
      has_sum_ = true;
      result.sums = step.sums;
    } else if (step.kind == Kind::Store) {
      result.y = static_cast<float*>(step.result);
    } else {
      result.half = static_cast<std::uint16_t*>(step.result);
    }
    return true;
  }

  RowChainArgs chain_;
  const std::vector<const float*>& vectors_;
  const std::vector<cuda::QuantizeArgs>& formats_;
  const std::vector<cuda::LearnedStepArgs>& learned_steps_;
  std::map<int, cuda::RowSource> loaded_;  // what registers hold that nobody has read
  Phase phase_ = Phase::Start;
  int value_ = -1;
  bool is_sum_left_ = false, has_sum_ = false;
};

}  // namespace

std::optional<RowChainArgs> find_row_chain(
    std::int64_t width, cuda::Extent rows, const std::vector<RowInstruction>& instructions,
    const std::vector<const float*>& vectors, const std::vector<cuda::QuantizeArgs>& formats,
    const std::vector<cuda::LearnedStepArgs>& learned_steps) {
  if (width % cuda::kChainColumns != 0) return std::nullopt;
  Matcher matcher(width, rows, vectors, formats, learned_steps);
  for (const RowInstruction& step : instructions)
    if (!matcher.takes(step)) return std::nullopt;
  if (!matcher.is_complete()) return std::nullopt;
  return matcher.chain();
}

}  // namespace lathe::engine
