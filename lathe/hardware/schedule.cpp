#include "lathe/hardware/schedule.h"

#include <algorithm>
#include <memory>

#include "lathe/core/error.h"

namespace lathe::hardware {
namespace {

// The handshake wires of one cycle, by stream.
struct Wires {
  std::vector<char> valid, ready;
};

// One block without its data. In each cycle `offer` is called in the order of the data, `accept`
// against it, then `clock`.
class Controller {
 public:
  virtual ~Controller() = default;
  virtual void offer(Wires& wires) const = 0;
  virtual void accept(Wires& wires) = 0;
  /// Takes the cycle's transfers; true if anything moved.
  virtual bool clock(const Wires& wires) = 0;
  virtual std::int64_t held() const { return 0; }
};

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
  std::int64_t held() const override { return count_ + (is_output_full_ ? 1 : 0); }

 private:
  StorageTiming timing_;
  StreamId input_, output_;
  std::int64_t count_ = 0;
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

}  // namespace

std::int64_t period_cycles(const Timing& timing) {
  if (const auto* sequence = std::get_if<SequenceTiming>(&timing)) {
    std::int64_t cycles = 0;
    for (const SequenceTiming::Phase& phase : sequence->period) cycles += phase.count;
    return cycles;
  }
  if (const auto* buffer = std::get_if<BufferTiming>(&timing))
    return static_cast<std::int64_t>(std::max(buffer->need.size(), buffer->free.size()));
  return 1;
}

std::int64_t bottleneck_cycles(const Netlist& netlist) {
  std::int64_t most = 1;
  for (const Netlist::NamedStream& stream : netlist.streams())
    most = std::max(most, stream.type.beats());
  for (std::size_t i = 0; i < netlist.instances().size(); ++i) {
    const BlockCall call = netlist.call(i);
    const Timing timing = call.block.timing(call);
    const auto* sequence = std::get_if<SequenceTiming>(&timing);
    if (sequence == nullptr) continue;
    std::int64_t given = 0;  // a period
    for (const SequenceTiming::Phase& phase : sequence->period)
      if (phase.gives) given += phase.count;
    check(given > 0 && call.outputs[0].beats() % given == 0, "a frame to be whole periods");
    most = std::max(most, call.outputs[0].beats() / given * period_cycles(timing));
  }
  return most;
}

std::int64_t Schedule::frame_interval() const {
  if (frame_ends.empty()) return 0;
  if (frame_ends.size() == 1) return frame_ends[0] + 1;
  return frame_ends.back() - frame_ends[frame_ends.size() - 2];
}

Schedule schedule(const Netlist& netlist, const ScheduleOptions& options) {
  const std::vector<std::size_t> order = topological_order(netlist);
  std::vector<std::unique_ptr<Controller>> controllers;
  for (std::size_t i = 0; i < netlist.instances().size(); ++i)
    controllers.push_back(make_controller(
        netlist.call(i), options.capacities.empty() ? 0 : options.capacities.at(i)));

  const std::size_t num_streams = netlist.streams().size();
  Wires wires{.valid = std::vector<char>(num_streams), .ready = std::vector<char>(num_streams)};
  Schedule result;
  result.streams.resize(num_streams);
  result.most_held.resize(controllers.size());
  std::vector<std::int64_t> left(num_streams);  // beats still to come through an input or output
  std::int64_t to_come = 0;
  for (const StreamId stream : netlist.inputs())
    left[stream] = options.frames * netlist.type(stream).beats();
  for (const StreamId stream : netlist.outputs()) {
    left[stream] = options.frames * netlist.type(stream).beats();
    to_come += left[stream];
    wires.ready[stream] = true;
  }
  std::vector<std::size_t> frames_done(num_streams);
  result.frame_ends.assign(static_cast<std::size_t>(options.frames), -1);

  for (std::int64_t cycle = 0; to_come > 0; ++cycle) {
    bool waits_for_time = false;
    for (const StreamId stream : netlist.inputs()) {
      const std::int64_t beats = netlist.type(stream).beats();
      const std::int64_t due = result.streams[stream].count * options.frame_interval / beats;
      wires.valid[stream] = left[stream] > 0 && due <= cycle;
      waits_for_time = waits_for_time || (left[stream] > 0 && due > cycle);
    }
    for (const std::size_t i : order) controllers[i]->offer(wires);
    for (auto i = order.rbegin(); i != order.rend(); ++i) controllers[*i]->accept(wires);
    bool moved = waits_for_time;
    for (StreamId stream = 0; stream < num_streams; ++stream) {
      if (!wires.valid[stream] || !wires.ready[stream]) continue;
      Schedule::Beats& beats = result.streams[stream];
      if (beats.count++ == 0) beats.first = cycle;
      beats.last = cycle;
    }
    for (const StreamId stream : netlist.inputs())
      if (wires.valid[stream] && wires.ready[stream]) --left[stream], moved = true;
    for (const StreamId stream : netlist.outputs()) {
      if (!wires.valid[stream]) continue;
      --left[stream], --to_come;
      if (result.streams[stream].count % netlist.type(stream).beats() != 0) continue;
      std::int64_t& end = result.frame_ends[frames_done[stream]++];
      end = std::max(end, cycle);
    }
    for (std::size_t i = 0; i < controllers.size(); ++i) {
      moved = controllers[i]->clock(wires) || moved;
      result.most_held[i] = std::max(result.most_held[i], controllers[i]->held());
    }
    result.cycles = cycle + 1;
    if (moved) continue;
    for (StreamId stream = 0; stream < num_streams; ++stream)
      if (wires.valid[stream]) result.stuck.push_back(stream);
    check(!result.stuck.empty(), "a design that stopped to have a beat waiting");
    break;
  }
  return result;
}

}  // namespace lathe::hardware
