#include "lathe/hardware/passes/size_fifos.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <span>

#include "lathe/core/error.h"
#include "lathe/hardware/netlist_copy.h"
#include "lathe/hardware/schedule.h"

namespace lathe::hardware {
namespace {

constexpr std::int64_t kFrames = 3;  // the first fills the pipeline, the others follow it
constexpr std::int64_t kAnyDepth = std::int64_t{1} << 40;
// Steps of controllers that may be spent on making FIFOs smaller: some seconds.
constexpr std::int64_t kMostWork = 300'000'000;

// The depth of the FIFO in front of a stream's reader; 0 or absent: none.
using Depths = std::map<StreamId, std::int64_t>;

Netlist with_fifos(const Netlist& netlist, const Depths& depths) {
  NetlistCopy copy(netlist);
  const auto behind_fifo = [&](StreamId stream) {
    const auto found = depths.find(stream);
    if (found == depths.end() || found->second == 0) return copy.copy_of(stream);
    const StreamId result = copy.result.add_single({.name = netlist.stream_name(stream) + "_fifo",
                                                    .block = "stream_fifo",
                                                    .parameters = {{"depth", found->second}},
                                                    .inputs = {copy.copy_of(stream)}});
    copy.result.set_meaning(result, netlist.type(stream).element.meaning);
    return result;
  };
  for (const std::size_t i : topological_order(netlist)) {
    std::vector<StreamId> inputs;
    for (const StreamId stream : netlist.instances()[i].inputs)
      inputs.push_back(behind_fifo(stream));
    copy.add(i, std::move(inputs));
  }
  for (const StreamId stream : netlist.outputs()) copy.result.add_output(copy.copy_of(stream));
  return copy.result;
}

class FifoSizer {
 public:
  FifoSizer(const Netlist& netlist, FifoGoal goal) : netlist_(netlist), goal_(goal) {
    verify(netlist);
  }

  SizedNetlist run() {
    start_from_unlimited();
    if (goal_ == FifoGoal::Liveness) target_ = kAnyDepth;
    drop_needless();
    for (const StreamId stream : by_memory()) reduce(stream, depths_.at(stream));
    std::erase_if(depths_, [](const auto& entry) { return entry.second == 0; });

    SizedNetlist result{.netlist = with_fifos(netlist_, depths_)};
    for (const auto& [stream, depth] : depths_) {
      Depths less = depths_;
      --less[stream];
      result.fifos.push_back({.stream = netlist_.stream_name(stream),
                              .depth = depth,
                              .is_tight = can_afford() && !is_live(less),
                              .is_least = least_.contains(stream)});
    }
    const Schedule schedule = scheduled(depths_);
    if (schedule.is_deadlocked()) fail_stuck(schedule);
    result.frame_interval = schedule.frame_interval();
    return result;
  }

 private:
  Schedule scheduled(const Depths& depths, std::int64_t interval = 0, bool is_unlimited = false) {
    const Netlist design = with_fifos(netlist_, depths);
    ScheduleOptions options{.frames = kFrames, .frame_interval = interval};
    if (is_unlimited) {
      options.capacities.resize(design.instances().size());
      for (std::size_t i = 0; i < design.instances().size(); ++i)
        if (design.instances()[i].block == "stream_fifo") options.capacities[i] = kAnyDepth;
    }
    Schedule result = schedule(design, options);
    work_ += result.work;
    return result;
  }
  bool can_afford() const { return work_ < kMostWork; }
  bool is_live(const Depths& depths) { return !scheduled(depths).is_deadlocked(); }
  bool meets_goal(const Depths& depths) {
    const Schedule schedule = scheduled(depths);
    return !schedule.is_deadlocked() && schedule.frame_interval() <= target_;
  }
  [[noreturn]] void fail_stuck(const Schedule& schedule) const {
    fail("netlist \"{}\" stops for ever after {} cycles, whatever its FIFOs", netlist_.name,
         schedule.cycles);
  }

  void start_from_unlimited() {
    Depths all;
    for (const Instance& instance : netlist_.instances())
      for (const StreamId stream : instance.inputs) all[stream] = 1;
    const std::int64_t bottleneck = bottleneck_cycles(netlist_);
    const Schedule schedule = scheduled(all, bottleneck, true);
    if (schedule.is_deadlocked()) fail_stuck(schedule);
    target_ = std::max(bottleneck, schedule.frame_interval());
    const Netlist design = with_fifos(netlist_, all);
    std::map<std::string, std::int64_t> room;
    for (std::size_t i = 0; i < design.instances().size(); ++i)
      room[design.instances()[i].name] = schedule.room[i];
    // In block RAM a beat stays a cycle longer.
    for (const auto& [stream, depth] : all) {
      const std::int64_t beats = room.at(netlist_.stream_name(stream) + "_fifo");
      depths_[stream] = beats > 2 ? beats + 1 : beats;
    }
  }

  // A FIFO of which a beat left before the next came, or as it came, as a rule only passed it on.
  void drop_needless() {
    std::vector<StreamId> needless;
    for (const auto& [stream, depth] : depths_)
      if (depth <= 2) needless.push_back(stream);
    drop(needless);
  }
  // All of them, or of each half what can be.
  void drop(std::span<const StreamId> streams) {
    if (streams.empty() || !can_afford()) return;
    Depths fewer = depths_;
    for (const StreamId stream : streams) fewer.erase(stream);
    if (meets_goal(fewer)) {
      depths_ = std::move(fewer);
    } else if (streams.size() > 1) {
      drop(streams.first(streams.size() / 2));
      drop(streams.subspan(streams.size() / 2));
    }
  }

  std::vector<StreamId> by_memory() const {
    std::vector<StreamId> streams;
    for (const auto& [stream, depth] : depths_) streams.push_back(stream);
    std::ranges::stable_sort(streams, std::greater(), [&](StreamId stream) {
      return depths_.at(stream) * netlist_.type(stream).bits();
    });
    return streams;
  }

  // None and one are tried by themselves: a FIFO of one beat takes a beat only every second cycle,
  // and can be worse than none.
  void reduce(StreamId stream, std::int64_t& depth) {
    Depths less = depths_;
    const auto is_enough = [&](std::int64_t beats) {
      less[stream] = beats;
      return can_afford() && meets_goal(less);
    };
    const std::int64_t most = depth;
    for (const std::int64_t few : {0, 1})
      if (few < most && is_enough(few)) {
        depth = few;
        if (can_afford()) least_.insert(stream);
        return;
      }
    // Most often what it held is what it needs: one less is tried before half.
    if (most > 2 && is_enough(most - 1)) {
      depth = most - 1;
      std::int64_t too_few = 1;
      while (depth - too_few > 1 && can_afford()) {
        const std::int64_t middle = too_few + (depth - too_few) / 2;
        (is_enough(middle) ? depth : too_few) = middle;
      }
    }
    if (can_afford()) least_.insert(stream);
  }

  const Netlist& netlist_;
  FifoGoal goal_;
  Depths depths_;
  std::set<StreamId> least_;  // whose depth cannot be less
  std::int64_t target_ = 0;
  std::int64_t work_ = 0;
};

}  // namespace

SizedNetlist size_fifos(const Netlist& netlist, FifoGoal goal) {
  return FifoSizer(netlist, goal).run();
}

}  // namespace lathe::hardware
