#include <algorithm>
#include <cmath>

#include "lathe/engine/cpu/step.h"

namespace lathe::engine {
namespace {

// Elements a task updates. The weights of a small model are many tasks too: one after another they
// would be a tenth of a step on sixteen threads.
constexpr std::int64_t kGrain = kSquaresBlock;
constexpr std::int64_t kMostGrain = 8 * kGrain;
constexpr std::int64_t kTasks = 64;
// Blocks whose sums are added before those of the next ones: part of what the sum is.
constexpr std::int64_t kBlocksOfSum = 16;
// Numbers whose squares one thread adds while others add their own: to meet takes longer.
constexpr std::int64_t kSmallSum = 1 << 16;

std::int64_t grain_of(std::int64_t count) {
  return std::clamp(count / kTasks / kGrain * kGrain, kGrain, kMostGrain);
}

std::int64_t num_chunks(std::int64_t count, std::int64_t grain) {
  return (count + grain - 1) / grain;
}

float scalar(const WholeCall& call, std::size_t operand) {
  return *reinterpret_cast<const float*>(call.inputs[operand]);
}

float* floats(const std::byte* bytes) {
  return const_cast<float*>(reinterpret_cast<const float*>(bytes));
}

// Results must lie where their operands lie: the kernels update in place. A plan that could not
// arrange it copies the operand first.
float* in_place(const WholeCall& call, std::size_t output, std::size_t input, std::int64_t begin,
                std::int64_t count) {
  float* const target = reinterpret_cast<float*>(call.outputs[output]) + begin;
  const float* const source = floats(call.inputs[input]) + begin;
  if (target != source) std::copy(source, source + count, target);
  return target;
}

// The ranges of a parameter that tasks update. Without `places` the gradient is as large as the
// parameter; with it, it is the rows that are not zero, and `places` says where each row of the
// parameter has its own.
class Ranges {
 public:
  Ranges(const WholeCall& call, std::size_t places)
      : gradient_(floats(call.inputs[1])),
        places_(call.inputs.size() > places
                    ? reinterpret_cast<const std::int32_t*>(call.inputs[places])
                    : nullptr) {
    const std::vector<std::int64_t> dims = call.graph.types(call.node)[0].dims(call.symbols);
    std::int64_t count = 1;
    for (const std::int64_t size : dims) count *= size;
    width_ = places_ == nullptr ? 1 : dims[1];
    rows_ = places_ == nullptr ? count : dims[0];
    grain_ = std::max<std::int64_t>(1, grain_of(count) / std::max<std::int64_t>(1, width_));
  }

  std::int64_t num_tasks() const { return num_chunks(rows_, grain_); }

  // Calls update(begin, count, gradient), where the gradient is null for zeros.
  template <typename Update>
  void run(std::int64_t task, Update update) const {
    const std::int64_t begin = task * grain_, end = std::min(rows_, begin + grain_);
    if (places_ == nullptr) return update(begin, end - begin, gradient_ + begin);
    for (std::int64_t row = begin; row < end;) {
      // Neighbours that are both used are neighbours in the gradient too.
      const std::int32_t place = places_[row];
      std::int64_t next = row + 1;
      while (next < end && (places_[next] < 0) == (place < 0)) ++next;
      update(row * width_, (next - row) * width_, place < 0 ? nullptr : gradient_ + place * width_);
      row = next;
    }
  }

 private:
  const float* gradient_;
  const std::int32_t* places_;
  std::int64_t rows_, width_, grain_;
};

class AdamwStep final : public Step {
 public:
  AdamwStep(double beta1, double beta2, double eps, double decay)
      : beta1_(beta1), beta2_(beta2), eps_(eps), decay_(decay) {}
  std::vector<InPlace> in_place() const override { return {{0, 0}, {1, 2}, {2, 3}}; }

  bool has_tasks() const override { return true; }
  std::int64_t num_tasks(const WholeCall& call) const override {
    const double step = step_of(call);
    if (step < 1 && !std::isnan(scalar(call, 5))) fail("AdamW counts steps from 1, not {}", step);
    return Ranges(call, kAdamwPlaces).num_tasks();
  }
  void run_task(const WholeCall& call, std::int64_t task) const override {
    const double rate = scalar(call, 4), step = step_of(call);
    const float scale = scalar(call, 5);
    AdamwArgs args{};
    args.scale = scale;
    args.beta1 = static_cast<float>(beta1_);
    args.one_minus_beta1 = static_cast<float>(1 - beta1_);
    args.beta2 = static_cast<float>(beta2_);
    args.one_minus_beta2 = static_cast<float>(1 - beta2_);
    args.decay = static_cast<float>(1 - rate * decay_);
    args.step_size = static_cast<float>(rate / (1 - std::pow(beta1_, step)));
    args.root_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2_, step)));
    args.eps = static_cast<float>(eps_);
    Ranges(call, kAdamwPlaces)
        .run(task, [&](std::int64_t begin, std::int64_t count, const float* gradient) {
          AdamwArgs part = args;
          part.count = count;
          part.param = engine::in_place(call, 0, 0, begin, count);
          part.gradient = gradient;
          part.m = engine::in_place(call, 1, 2, begin, count);
          part.v = engine::in_place(call, 2, 3, begin, count);
          call.kernels.adamw(part);
        });
  }

 private:
  static constexpr std::size_t kAdamwPlaces = 7;
  static double step_of(const WholeCall& call) {
    return reinterpret_cast<const std::int32_t*>(call.inputs[6])[2];
  }

  double beta1_, beta2_, eps_, decay_;
};

class SgdStep final : public Step {
 public:
  SgdStep(double momentum, double decay) : momentum_(momentum), decay_(decay) {}
  std::vector<InPlace> in_place() const override { return {{0, 0}, {1, 2}}; }

  bool has_tasks() const override { return true; }
  std::int64_t num_tasks(const WholeCall& call) const override {
    return Ranges(call, kSgdPlaces).num_tasks();
  }
  void run_task(const WholeCall& call, std::int64_t task) const override {
    Ranges(call, kSgdPlaces)
        .run(task, [&](std::int64_t begin, std::int64_t count, const float* gradient) {
          call.kernels.sgd({.count = count,
                            .param = engine::in_place(call, 0, 0, begin, count),
                            .gradient = gradient,
                            .velocity = engine::in_place(call, 1, 2, begin, count),
                            .scale = scalar(call, 4),
                            .learning_rate = scalar(call, 3),
                            .momentum = static_cast<float>(momentum_),
                            .weight_decay = static_cast<float>(decay_)});
        });
  }

 private:
  static constexpr std::size_t kSgdPlaces = 5;

  double momentum_, decay_;
};

// The sum of squares of `count` numbers, block by block, from the blocks' own sums.
double total_of_blocks(std::span<const double> blocks) {
  double total = 0;
  for (std::size_t first = 0; first < blocks.size(); first += kBlocksOfSum) {
    double part = 0;
    for (std::size_t i = first; i < std::min(blocks.size(), first + kBlocksOfSum); ++i)
      part += blocks[i];
    total += part;
  }
  return total;
}

// sum_squares(x), and sum_squares_of_rows(rows, used) of the first rows alone.
class SumSquaresStep final : public Step {
 public:
  explicit SumSquaresStep(bool is_small) : is_small_(is_small) {}

  void run_whole(const WholeCall& call) const override { run(call, call.parallel); }
  // Small ones are a task each.
  bool has_tasks() const override { return is_small_; }
  std::int64_t num_tasks(const WholeCall&) const override { return 1; }
  void run_task(const WholeCall& call, std::int64_t) const override {
    run(call, [](std::int64_t tasks, const auto& task) {
      for (std::int64_t i = 0; i < tasks; ++i) task(i, 0);
    });
  }

 private:
  void run(const WholeCall& call, const auto& parallel) const {
    const std::vector<std::int64_t> dims =
        call.graph.type(call.graph.input(call.node, 0)).dims(call.symbols);
    std::int64_t count = 1;
    for (const std::int64_t size : dims) count *= size;
    if (call.inputs.size() > 1) {
      const std::int32_t used = *reinterpret_cast<const std::int32_t*>(call.inputs[1]);
      if (used < 0 || used > dims[0]) fail("{} rows are used, but there are {}", used, dims[0]);
      count = used * dims[1];
    }
    const float* const x = floats(call.inputs[0]);
    std::vector<double> blocks(static_cast<std::size_t>(num_chunks(count, kSquaresBlock)));
    const std::int64_t grain = grain_of(count);
    parallel(num_chunks(count, grain), [&](std::int64_t chunk, int) {
      for (std::int64_t begin = chunk * grain; begin < std::min(count, (chunk + 1) * grain);
           begin += kSquaresBlock)
        blocks[static_cast<std::size_t>(begin / kSquaresBlock)] =
            call.kernels.sum_squares(x + begin, std::min(kSquaresBlock, count - begin));
    });
    *reinterpret_cast<float*>(call.outputs[0]) = static_cast<float>(total_of_blocks(blocks));
  }

  bool is_small_;
};

bool all_f32(const Graph& graph, NodeId id, std::size_t operands) {
  for (std::size_t i = 0; i < operands; ++i)
    if (graph.type(graph.input(id, i)).dtype != DType::F32) return false;
  return true;
}

std::unique_ptr<Step> make_adamw(const Graph& graph, NodeId id) {
  if (!all_f32(graph, id, 6) || graph.type(graph.input(id, 6)).dtype != DType::I32) return nullptr;
  const AttributeReader attributes = graph.attribute(id);
  return std::make_unique<AdamwStep>(attributes.real("beta1"), attributes.real("beta2"),
                                     attributes.real("eps"), attributes.real("weight_decay"));
}

std::unique_ptr<Step> make_sgd(const Graph& graph, NodeId id) {
  if (!all_f32(graph, id, 5)) return nullptr;
  const AttributeReader attributes = graph.attribute(id);
  return std::make_unique<SgdStep>(attributes.real("momentum"), attributes.real("weight_decay"));
}

std::unique_ptr<Step> make_sum_squares(const Graph& graph, NodeId id) {
  if (!all_f32(graph, id, 1)) return nullptr;
  const Size count = graph.type(graph.input(id, 0)).num_elements();
  return std::make_unique<SumSquaresStep>(count.is_constant() && count.constant() <= kSmallSum);
}

const Register adamw{CpuKernel{"adamw", make_adamw}};
const Register adamw_of_rows{CpuKernel{"adamw_of_rows", make_adamw}};
const Register sgd{CpuKernel{"sgd", make_sgd}};
const Register sgd_of_rows{CpuKernel{"sgd_of_rows", make_sgd}};
const Register sum_squares{CpuKernel{"sum_squares", make_sum_squares}};
const Register sum_squares_of_rows{CpuKernel{"sum_squares_of_rows", make_sum_squares}};

}  // namespace
}  // namespace lathe::engine
