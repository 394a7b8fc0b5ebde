#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lathe/engine/cuda/arguments/few_rows.h"
#include "lathe/engine/cuda/cuda_memory.h"
#include "lathe/engine/cuda/cuda_plan.h"
#include "lathe/engine/cuda/cuda_products.h"
#include "lathe/engine/cuda/cuda_row_program.h"
#include "lathe/engine/executor.h"

namespace lathe::engine {

inline constexpr std::int64_t kLine = 256;  ///< bytes that device memory is aligned to
/// Runs that may be begun and not finished: one computes, the next one's inputs wait behind it.
inline constexpr std::size_t kMostBegun = 2;
constexpr std::int64_t to_lines(std::int64_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

/// Kernels read and write the host's memory more slowly than CUDA's own copies do, but begin
/// sooner.
constexpr bool are_few(std::int64_t bytes) {
  return bytes <= std::int64_t{256} << 10;
}

/// Values one after another in a block that is copied at once.
struct CudaBlock {
  std::vector<std::size_t> slots;
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
};

/// A plan on a GPU: its memory (cuda_layout.cpp), what its launches read beside values
/// (cuda_tables.cpp), the launches themselves (cuda_launch.cpp, of a single row
/// cuda_single_row.cpp), and what comes in and out (cuda_copies.cpp).
struct CudaMachine {
  CudaPlan plan;
  Graph source;  // as the user wrote it: says what its states are
  State host;    // states as they were given; those that runs update are on the device alone
  std::unique_ptr<Executor> parameters;  // computes states that come from others
  std::vector<std::string> parameter_sources;
  const cuda::KernelTable* kernels = nullptr;
  ThreadPool* pool = nullptr;  // copies inputs; null: the calling thread alone

  // The streams and what belongs to them.
  struct Work {
    explicit Work(const cuda::KernelTable& table) : device(table.device) {
      check_cuda(device.make_stream(&stream));
      const char* error = device.make_stream(&side);
      if (error == nullptr) error = device.make_gemm(stream, &gemm);
      for (cuda::Event*& end : ends)
        if (error == nullptr) error = device.make_event(&end);
      if (error == nullptr) return;
      drop_events();
      if (gemm != nullptr) device.drop_gemm(gemm);
      if (side != nullptr) device.drop_stream(side);
      device.drop_stream(stream);
      check_cuda(error);
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    ~Work() {
      device.synchronize(stream);
      drop_events();
      device.drop_gemm(gemm);
      device.drop_stream(side);
      device.drop_stream(stream);
    }
    const cuda::Device& device;
    cuda::Stream* stream = nullptr;
    cuda::Stream* side = nullptr;  // for launches, or their early parts, beside the others
    cuda::Gemm* gemm = nullptr;
    std::array<cuda::Event*, kMostBegun> ends = {};  // of runs, by their half of the staging memory

   private:
    void drop_events() {
      for (cuda::Event* const end : ends)
        if (end != nullptr) device.drop_event(end);
    }
  };
  std::unique_ptr<Work> work;

  // A run that was begun: what it will give, and where that lies in its half of the staging memory.
  struct Begun {
    std::size_t half = 0;
    Feed outputs;
    std::vector<std::pair<std::string, std::int64_t>> offsets = {};
    /// Inputs that the GPU reads where they lie: kept until it has.
    std::vector<Tensor> read_in_place = {};
    bool is_over = false;
  };
  std::deque<Begun> begun;
  std::size_t next_half = 0;

  // One size: what its launches read beside values, and its capture once it has run.
  struct Prepared {
    CudaSizes sizes;
    CudaBuffer tables;
    std::vector<CudaGroupTable> groups;       // of each launch
    std::vector<std::int64_t> table_offsets;  // of each launch
    // Launches that are stages of one, by the first of them.
    struct FewRows {
      std::size_t num_launches = 0;
      std::int32_t num_stages = 0;
      std::int64_t offset = 0;  // of the stages, in the tables
    };
    std::map<std::size_t, FewRows> few_rows;
    // Launches that are one of a single row, by the first of them; neither: they have more rows.
    struct SingleRow {
      std::size_t num_launches = 0;
      std::optional<cuda::RowProductsArgs> products = {};
      std::optional<cuda::CachedAttentionArgs> attention = {};
    };
    std::map<std::size_t, SingleRow> single_rows;
    // The bytes of each input, in the plan's order, with its padding.
    std::vector<std::int64_t> input_bytes;
    // With the copies of what comes in and out, by their half of the staging memory.
    std::array<cuda::Capture*, kMostBegun> captures = {};
    cuda::Capture* bare = nullptr;  // the launches alone, for whoever times them
    std::int32_t num_nodes = 0;
    bool has_run = false;
  };
  std::map<SymbolValues, Prepared> prepared;

  std::vector<std::byte*> bases;        // of each slot
  std::vector<std::byte*> parts;        // of each partial
  std::vector<std::byte*> scratch;      // of each launch
  std::vector<std::byte*> prepared_of;  // of each step, what it has made of states
  CudaBuffer residents, arena;
  CudaBuffer staging{CudaBuffer::Place::Pinned};
  CudaBlock inputs, outputs;      // the inputs begin behind the rounded symbols' real values
  std::int64_t fault_offset = 0;  // in the outputs' block
  SymbolValues capacity, last_sizes;
  std::int64_t unshared_bytes = 0;
  bool states_changed = false;
  int last_nodes = 0;

  ~CudaMachine() {
    if (work != nullptr) device().synchronize(work->stream);  // runs that nobody finished
    drop_captures();
  }
  void drop_captures() {
    for (auto& [sizes, one] : prepared) {
      if (one.bare != nullptr) device().drop_capture(one.bare);
      for (cuda::Capture* const capture : one.captures)
        if (capture != nullptr) device().drop_capture(capture);
    }
    prepared.clear();
  }

  void place_residents();
  void set_resident(std::size_t slot, const Tensor& tensor);
  void compute_parameters();
  /// Lets steps make what they make of states.
  void prepare_steps();
  void check_sizes(const SymbolValues& sizes) const;
  SymbolValues bucket(const SymbolValues& sizes) const;
  bool is_captured(const SymbolValues& bucket) const {
    const auto found = prepared.find(bucket);
    return found != prepared.end() && found->second.captures[next_half] != nullptr;
  }
  void ensure_capacity(const SymbolValues& bucket);
  Prepared& prepare(const SymbolValues& bucket);
  CudaCall call(const Prepared& one, std::size_t launch, std::size_t step,
                std::vector<std::byte*>& operands) const;
  void add_sums(CudaGroupTable& table, const Prepared& one, std::size_t launch) const;
  void add_halves(CudaGroupTable& table, const std::vector<int>& slots,
                  const CudaSizes& sizes) const;
  void copy_resident_halves();
  void fill_tables(Prepared& one);
  std::vector<cuda::FewRowsStage> few_rows_stages(const Prepared& one, std::size_t launch) const;
  std::optional<cuda::RowProductsArgs> row_products(const Prepared& one,
                                                    const CudaSingleRow& run) const;
  std::optional<cuda::CachedAttentionArgs> token_attention(const Prepared& one,
                                                           const CudaSingleRow& run) const;
  void find_single_rows(Prepared& one) const;
  void enqueue(const Prepared& one);
  void enqueue_with_copies(const Prepared& one, std::size_t half);
  /// What `launches` puts on the stream, as one graph.
  cuda::Capture* capture(const std::function<void()>& launches, std::int32_t& num_nodes) const;
  void launch_group(const Prepared& one, std::size_t launch);
  std::size_t launch_few_rows(const Prepared& one, std::size_t launch);
  std::size_t launch_single_row(const Prepared& one, std::size_t launch);
  void launch_early_parts(const Prepared& one, std::size_t launch);
  void join_side(std::size_t launch);
  CudaRowProgram row_program(const Prepared& one, std::size_t launch) const;
  CudaProducts products(const Prepared& one, std::size_t launch) const;
  std::byte* staging_half(std::size_t half) const {
    return staging.data() + static_cast<std::int64_t>(half) * block_bytes();
  }
  std::int64_t block_bytes() const { return to_lines(inputs.bytes) + to_lines(outputs.bytes); }
  /// Of inputs and of the word for a fault, which lies behind them.
  std::int64_t bytes_in() const {
    return to_lines(inputs.bytes) + fault_offset + static_cast<std::int64_t>(sizeof(std::int32_t));
  }
  struct Parcel;
  /// Puts inputs on their way to the GPU, and gives those that it reads where they lie.
  std::vector<Tensor> copy_in(const Feed& feed, const SymbolValues& sizes, const Prepared& one,
                              std::size_t half);
  std::vector<Tensor> send(std::vector<Parcel> parcels, std::byte* block);
  Begun copy_out(const SymbolValues& sizes, std::size_t half);
  void await(Begun& run) const;
  void report_fault(std::int32_t step) const;
  const cuda::Device& device() const { return kernels->device; }
};

}  // namespace lathe::engine
