#include "lathe/hardware/schedule.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "lathe/core/error.h"
#include "lathe/hardware/controller.h"

namespace lathe::hardware {

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

std::int64_t frame_cycles(const BlockCall& call) {
  std::int64_t most = 1;
  for (const std::vector<Stream>* streams : {&call.inputs, &call.outputs})
    for (const Stream& stream : *streams) most = std::max(most, stream.beats());
  const Timing timing = call.block.timing(call);
  const auto* sequence = std::get_if<SequenceTiming>(&timing);
  if (sequence == nullptr) return most;
  std::int64_t given = 0;  // a period
  for (const SequenceTiming::Phase& phase : sequence->period)
    if (phase.gives) given += phase.count;
  check(given > 0 && call.outputs[0].beats() % given == 0, "a frame to be whole periods");
  return std::max(most, call.outputs[0].beats() / given * period_cycles(timing));
}

std::int64_t bottleneck_cycles(const Netlist& netlist) {
  std::int64_t most = 1;
  for (std::size_t i = 0; i < netlist.instances().size(); ++i)
    most = std::max(most, frame_cycles(netlist.call(i)));
  return most;
}

std::int64_t Schedule::frame_interval() const {
  if (frame_ends.empty()) return 0;
  if (frame_ends.size() == 1) return frame_ends[0] + 1;
  return frame_ends.back() - frame_ends[frame_ends.size() - 2];
}

namespace {

// The controllers that something may happen to, by their place in the order of the data.
class Places {
 public:
  explicit Places(std::size_t count) : words_((count + 63) / 64) {}
  void add(std::size_t place) { words_[place / 64] |= std::uint64_t{1} << (place % 64); }
  void clear() { std::ranges::fill(words_, 0); }
  // Calls for each, in order; what `visit` adds behind the present place is met too.
  template <typename Visit>
  void forward(const Visit& visit) const {
    for (std::size_t w = 0; w < words_.size(); ++w)
      for (std::uint64_t done = 0; const std::uint64_t left = words_[w] & ~done;) {
        const int bit = std::countr_zero(left);
        done |= (std::uint64_t{2} << bit) - 1;
        visit(w * 64 + static_cast<std::size_t>(bit));
      }
  }
  // Against the order; what `visit` adds before the present place is met too.
  template <typename Visit>
  void backward(const Visit& visit) const {
    for (std::size_t w = words_.size(); w-- > 0;)
      for (std::uint64_t open = ~std::uint64_t{0}; const std::uint64_t left = words_[w] & open;) {
        const int bit = 63 - std::countl_zero(left);
        open = (std::uint64_t{1} << bit) - 1;
        visit(w * 64 + static_cast<std::size_t>(bit));
      }
  }

 private:
  std::vector<std::uint64_t> words_;
};

// Steps controllers from cycle to cycle. One that did not move in the last cycle and sees the same
// wires does not move in this one: only the others are asked, a tenth of a folded design.
class Scheduler {
 public:
  Scheduler(const Netlist& netlist, const ScheduleOptions& options)
      : netlist_(netlist),
        options_(options),
        order_(topological_order(netlist)),
        reader_(netlist.streams().size(), kOutside),
        writer_(reader_),
        left_(reader_.size()),
        due_(reader_.size()),
        frames_done_(reader_.size()),
        active_(order_.size()),
        next_(order_.size()) {
    for (std::size_t place = 0; place < order_.size(); ++place) {
      const std::size_t i = order_[place];
      controllers_.push_back(make_controller(
          netlist.call(i), options.capacities.empty() ? 0 : options.capacities.at(i)));
      for (const StreamId stream : netlist.instances()[i].inputs) reader_[stream] = place;
      for (const StreamId stream : netlist.instances()[i].outputs) writer_[stream] = place;
      active_.add(place);
    }
    wires_ = {.valid = std::vector<char>(reader_.size()),
              .ready = std::vector<char>(reader_.size())};
    result_.streams.resize(reader_.size());
    result_.room.resize(order_.size());
    result_.frame_ends.assign(static_cast<std::size_t>(options.frames), -1);
    for (const StreamId stream : netlist.inputs())
      left_[stream] = options.frames * netlist.type(stream).beats();
    for (const StreamId stream : netlist.outputs()) {
      to_come_ += options.frames * netlist.type(stream).beats();
      wires_.ready[stream] = true;
    }
  }

  Schedule run() {
    while (to_come_ > 0) {
      const std::optional<std::int64_t> next_due = offer_inputs();
      settle();
      const bool moved = step();
      result_.cycles = ++cycle_;
      if (moved) continue;
      if (next_due) {
        cycle_ = std::max(cycle_, *next_due);
        continue;
      }
      for (StreamId stream = 0; stream < wires_.valid.size(); ++stream)
        if (wires_.valid[stream]) result_.stuck.push_back(stream);
      check(!result_.stuck.empty(), "a design that stopped to have a beat waiting");
      break;
    }
    return std::move(result_);
  }

 private:
  static constexpr std::size_t kOutside = static_cast<std::size_t>(-1);

  // Returns when the first beat enters that is not due yet.
  std::optional<std::int64_t> offer_inputs() {
    std::optional<std::int64_t> next_due;
    for (const StreamId stream : netlist_.inputs()) {
      const std::int64_t due =
          result_.streams[stream].count * options_.frame_interval / netlist_.type(stream).beats();
      const bool is_offered = left_[stream] > 0 && due <= cycle_;
      if (left_[stream] > 0 && due > cycle_) next_due = std::min(next_due.value_or(due), due);
      if (wires_.valid[stream] == static_cast<char>(is_offered)) continue;
      wires_.valid[stream] = is_offered;
      if (reader_[stream] != kOutside) active_.add(reader_[stream]);
    }
    return next_due;
  }

  const Instance& instance(std::size_t place) const { return netlist_.instances()[order_[place]]; }

  // Lets the wires take this cycle's values; who sees a change becomes active.
  void settle() {
    active_.forward([&](std::size_t place) {
      notice(instance(place).outputs, wires_.valid, reader_,
             [&] { controllers_[place]->offer(wires_); });
    });
    active_.backward([&](std::size_t place) {
      notice(instance(place).inputs, wires_.ready, writer_,
             [&] { controllers_[place]->accept(wires_); });
    });
  }
  template <typename Change>
  void notice(const std::vector<StreamId>& streams, const std::vector<char>& wires,
              const std::vector<std::size_t>& other_end, const Change& change) {
    before_.clear();
    for (const StreamId stream : streams) before_.push_back(wires[stream]);
    change();
    for (std::size_t i = 0; i < streams.size(); ++i)
      if (wires[streams[i]] != before_[i] && other_end[streams[i]] != kOutside)
        active_.add(other_end[streams[i]]);
  }

  // Moves the beats of this cycle; false if there are none and no controller changes.
  bool step() {
    bool moved = false;
    for (const StreamId stream : netlist_.inputs()) {
      if (!transfers(stream)) continue;
      moved = true;
      --left_[stream];
      due_[stream] =
          result_.streams[stream].count * options_.frame_interval / netlist_.type(stream).beats();
    }
    active_.forward([&](std::size_t place) {
      for (const StreamId stream : instance(place).outputs) transfers(stream);
    });
    for (const StreamId stream : netlist_.outputs()) {
      if (!wires_.valid[stream]) continue;
      --to_come_;
      if (result_.streams[stream].count % netlist_.type(stream).beats() != 0) continue;
      std::int64_t& end = result_.frame_ends[frames_done_[stream]++];
      end = std::max(end, cycle_);
    }
    next_.clear();
    active_.forward([&](std::size_t place) {
      ++result_.work;
      if (!controllers_[place]->clock(wires_)) return;
      moved = true;
      next_.add(place);
      result_.room[order_[place]] = controllers_[place]->needed();
    });
    std::swap(active_, next_);
    return moved;
  }
  bool transfers(StreamId stream) {
    if (!wires_.valid[stream] || !wires_.ready[stream]) return false;
    Schedule::Beats& beats = result_.streams[stream];
    if (beats.count++ == 0) beats.first = cycle_;
    beats.last = cycle_;
    return true;
  }

  const Netlist& netlist_;
  const ScheduleOptions& options_;
  std::vector<std::size_t> order_;
  std::vector<std::size_t> reader_, writer_;  // of streams, by place
  std::vector<std::int64_t> left_;            // beats still to come through an input
  std::vector<std::int64_t> due_;             // when the next may
  std::vector<std::size_t> frames_done_;      // by output
  Places active_, next_;
  std::vector<std::unique_ptr<Controller>> controllers_;  // by place
  Wires wires_;
  std::vector<char> before_;
  std::int64_t to_come_ = 0, cycle_ = 0;
  Schedule result_;
};

}  // namespace

Schedule schedule(const Netlist& netlist, const ScheduleOptions& options) {
  return Scheduler(netlist, options).run();
}

}  // namespace lathe::hardware
