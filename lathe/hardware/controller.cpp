#include "lathe/hardware/controller.h"

#include <algorithm>

#include "lathe/core/error.h"

namespace lathe::hardware {
namespace {

// Registers that each move on when the next is free.
class Stages {
 public:
  Stages(int count, int merge) : stages_(static_cast<std::size_t>(count)), merge_(merge) {
    check(count >= 1 && merge >= 1 && merge <= count, "a pipeline of at least one stage");
  }
  enum Content : char { Nothing, Part, Beat };

  bool has_output() const { return stages_.back() == Beat; }
  // True when the first is free, given whether the output is taken.
  bool is_free(bool is_taken) const {
    bool free = stages_.back() == Nothing || is_taken;
    for (std::size_t s = stages_.size() - 1; s-- > 0;) free = stages_[s] == Nothing || free;
    return free;
  }
  bool clock(bool is_taken, Content entering) {
    bool moved = false;
    bool free = stages_.back() == Nothing || is_taken;
    for (std::size_t s = stages_.size(); s-- > 0;) {
      const bool before_is_free = s == 0 || stages_[s - 1] == Nothing || free;
      if (free) {
        Content next = s == 0 ? entering : stages_[s - 1];
        moved = moved || next != Nothing || stages_[s] != Nothing;
        if (next == Part && static_cast<int>(s) + 1 >= merge_) next = Nothing;
        stages_[s] = next;
      }
      free = before_is_free;
    }
    return moved;
  }

 private:
  std::vector<Content> stages_;
  int merge_;
};

class Sequence final : public Controller {
 public:
  Sequence(SequenceTiming timing, const Instance& instance)
      : timing_(std::move(timing)),
        stages_(timing_.stages, timing_.merge),
        inputs_(instance.inputs),
        output_(instance.outputs[0]) {
    check(!timing_.period.empty(), "a sequence with phases");
  }
  void offer(Wires& wires) const override { wires.valid[output_] = stages_.has_output(); }
  void accept(Wires& wires) override {
    const std::uint32_t takes = timing_.period[phase_].takes;
    const bool has_store = timing_.store.beats > 0;
    const std::size_t num_taken = has_store ? 1 : inputs_.size();
    const bool is_free = stages_.is_free(wires.ready[output_]) && (!has_store || full_stores_ > 0);
    if (has_store) wires.ready[inputs_[1]] = full_stores_ < 2;
    std::uint32_t offered = 0;
    for (std::size_t i = 0; i < num_taken; ++i)
      if (wires.valid[inputs_[i]]) offered |= 1U << i;
    for (std::size_t i = 0; i < num_taken; ++i) {
      const std::uint32_t others = takes & ~(1U << i);
      wires.ready[inputs_[i]] = is_free && (takes >> i & 1) != 0 && (others & offered) == others;
    }
    fires_ = is_free && (takes & offered) == takes;
  }
  bool clock(const Wires& wires) override {
    const SequenceTiming::Phase& phase = timing_.period[phase_];
    const Stages::Content entering = !fires_       ? Stages::Nothing
                                     : phase.gives ? Stages::Beat
                                                   : Stages::Part;
    bool moved = stages_.clock(wires.ready[output_], entering) || fires_;
    if (timing_.store.beats > 0 && wires.valid[inputs_[1]] && wires.ready[inputs_[1]]) {
      moved = true;
      if (++stored_ == timing_.store.beats) ++full_stores_, stored_ = 0;
    }
    if (fires_ && ++fired_ == phase.count) {
      fired_ = 0;
      if (++phase_ == timing_.period.size()) end_period();
    }
    return moved;
  }

 private:
  void end_period() {
    phase_ = 0;
    if (timing_.store.beats == 0 || ++periods_ < timing_.store.periods) return;
    periods_ = 0;
    --full_stores_;
  }

  SequenceTiming timing_;
  Stages stages_;
  std::vector<StreamId> inputs_;
  StreamId output_;
  std::size_t phase_ = 0;
  std::int64_t fired_ = 0;  // of this phase
  bool fires_ = false;
  std::int64_t stored_ = 0, full_stores_ = 0, periods_ = 0;
};

class Storage final : public Controller {
 public:
  Storage(StorageTiming timing, const Instance& instance)
      : timing_(timing), input_(instance.inputs[0]), output_(instance.outputs[0]) {}
  void offer(Wires& wires) const override {
    wires.valid[output_] = timing_.has_output_register ? is_output_full_ : count_ > 0;
  }
  void accept(Wires& wires) override {
    const std::int64_t capacity = timing_.capacity - (timing_.has_output_register ? 1 : 0);
    wires.ready[input_] = count_ < capacity;
  }
  bool clock(const Wires& wires) override {
    const bool push = wires.valid[input_] && wires.ready[input_];
    const bool pop = wires.valid[output_] && wires.ready[output_];
    bool moved = push || pop;
    if (push) needed_ = std::max(needed_, count_ + (is_output_full_ ? 1 : 0) + 1);
    if (timing_.has_output_register) {
      if (!is_output_full_ || pop) {
        is_output_full_ = count_ > 0;
        if (count_ > 0) --count_;
        moved = moved || is_output_full_;
      }
    } else if (pop) {
      --count_;
    }
    if (push) ++count_;
    return moved;
  }
  std::int64_t needed() const override { return needed_; }

 private:
  StorageTiming timing_;
  StreamId input_, output_;
  std::int64_t count_ = 0, needed_ = 0;
  bool is_output_full_ = false;
};

class Fork final : public Controller {
 public:
  explicit Fork(const Instance& instance)
      : input_(instance.inputs[0]), outputs_(instance.outputs), done_(outputs_.size()) {}
  void offer(Wires& wires) const override {
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      wires.valid[outputs_[i]] = wires.valid[input_] && !done_[i];
  }
  void accept(Wires& wires) override {
    bool all = true;
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      all = all && (wires.ready[outputs_[i]] || done_[i]);
    wires.ready[input_] = all;
  }
  bool clock(const Wires& wires) override {
    if (!wires.valid[input_]) return false;
    bool moved = wires.ready[input_];
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      moved = moved || (!done_[i] && wires.ready[outputs_[i]]);
      done_[i] = !wires.ready[input_] && (done_[i] || wires.ready[outputs_[i]]);
    }
    return moved;
  }

 private:
  StreamId input_;
  std::vector<StreamId> outputs_;
  std::vector<char> done_;
};

class Buffer final : public Controller {
 public:
  Buffer(BufferTiming timing, const Instance& instance)
      : timing_(std::move(timing)),
        stages_(std::max(timing_.stages, 1), std::max(timing_.stages, 1)),
        input_(instance.inputs[0]),
        output_(instance.outputs[0]) {
    check(!timing_.need.empty() && !timing_.free.empty(), "a buffer with beats");
  }
  void offer(Wires& wires) const override {
    wires.valid[output_] = timing_.stages == 0 ? can_read() : stages_.has_output();
  }
  void accept(Wires& wires) override {
    reads_ = can_read() &&
             (timing_.stages == 0 ? wires.ready[output_] : stages_.is_free(wires.ready[output_]));
    const std::int64_t read = read_ + (reads_ && timing_.frees_at_once ? 1 : 0);
    const auto period = static_cast<std::int64_t>(timing_.free.size());
    const std::int64_t free = written_ / period * static_cast<std::int64_t>(timing_.need.size()) +
                              timing_.free[static_cast<std::size_t>(written_ % period)];
    wires.ready[input_] = read >= free;
  }
  bool clock(const Wires& wires) override {
    bool moved = reads_;
    if (timing_.stages > 0)
      moved = stages_.clock(wires.ready[output_], reads_ ? Stages::Beat : Stages::Nothing) || moved;
    if (reads_) ++read_;
    if (!wires.valid[input_] || !wires.ready[input_]) return moved;
    ++written_;
    return true;
  }

 private:
  bool can_read() const {
    const auto period = static_cast<std::int64_t>(timing_.need.size());
    return written_ >= read_ / period * static_cast<std::int64_t>(timing_.free.size()) +
                           timing_.need[static_cast<std::size_t>(read_ % period)];
  }
  BufferTiming timing_;
  Stages stages_;
  StreamId input_, output_;
  std::int64_t written_ = 0, read_ = 0;
  bool reads_ = false;
};

}  // namespace

std::unique_ptr<Controller> make_controller(const BlockCall& call, std::int64_t capacity) {
  const Instance& instance = call.instance;
  Timing timing = call.block.timing(call);
  if (auto* sequence = std::get_if<SequenceTiming>(&timing))
    return std::make_unique<Sequence>(std::move(*sequence), instance);
  if (auto* storage = std::get_if<StorageTiming>(&timing)) {
    if (capacity > 0) *storage = {.capacity = capacity};
    return std::make_unique<Storage>(*storage, instance);
  }
  if (auto* buffer = std::get_if<BufferTiming>(&timing))
    return std::make_unique<Buffer>(std::move(*buffer), instance);
  return std::make_unique<Fork>(instance);
}

}  // namespace lathe::hardware
