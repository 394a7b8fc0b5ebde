// Random networks, emitted and simulated: `make test` draws some, `make test-hardware` 300.
#include <gtest/gtest.h>

#include "lathe/hardware/passes/size_fifos.h"
#include "lathe/hardware/simulation/gate_level.h"
#include "lathe/hardware/simulation/icarus.h"
#include "lathe/hardware/testing/expect_exact.h"
#include "lathe/hardware/testing/needs_tool.h"
#include "lathe/hardware/testing/num_designs.h"
#include "lathe/hardware/testing/random_design.h"

namespace lathe::hardware {
namespace {

using namespace testing;

std::uint64_t seed_of(int design) {
  return 1000 + static_cast<std::uint64_t>(design);
}

// Several under one top, because a model costs most of its time once.
constexpr int kBeside = 10;

TEST(RandomDesigns, AreExactAndOnTimeWhateverTheStalls) {
  LATHE_NEEDS(verilator);
  for (int begin = 0; begin < num_designs(20); begin += kBeside) {
    SCOPED_TRACE(fmt::format("designs from {} on", begin));
    Random random(seed_of(begin));
    Netlist all("designs");
    for (int i = begin; i < begin + kBeside; ++i) {
      const FifoGoal goal = i % 2 == 0 ? FifoGoal::Throughput : FifoGoal::Liveness;
      add_beside(all, size_fifos(RandomDesign(seed_of(i)).draw_netlist(), goal).netlist,
                 fmt::format("d{}.", i));
    }
    expect_exact(all, random, 2);
  }
}

// What was left out of a FIFO that is said to be tight is missed, with and without stalls; nothing
// that comes out is wrong.
TEST(RandomDesigns, DeadlockWithOneBeatLessWhereAFifoIsTight) {
  LATHE_NEEDS(verilator);
  int num_tight = 0;
  for (int begin = 0; begin < num_designs(20); begin += 3 * kBeside) {
    Random random(seed_of(begin));
    Netlist all("designs");
    std::vector<std::vector<StreamId>> outputs;
    for (int i = begin; i < begin + 3 * kBeside; ++i) {
      SizedNetlist sized = size_fifos(RandomDesign(seed_of(i)).draw_netlist(), FifoGoal::Liveness);
      for (const FifoChoice& fifo : sized.fifos) {
        if (!fifo.is_tight || fifo.depth < 2) continue;
        for (std::size_t j = 0; j < sized.netlist.instances().size(); ++j)
          if (sized.netlist.instances()[j].name == fifo.stream + "_fifo")
            sized.netlist.set_parameter(j, "depth", fifo.depth - 1);
        outputs.push_back(add_beside(all, sized.netlist, fmt::format("d{}.", i)));
        ++num_tight;
        break;
      }
    }
    if (outputs.empty()) continue;
    const Simulator simulator(all);
    for (const double stall : {0.0, 0.5}) {
      const Simulation simulation =
          simulator.run(draw_inputs(random, all, 2), {.stall = stall, .seed = random()});
      EXPECT_EQ(simulation.num_differences, 0);
      EXPECT_TRUE(simulation.is_deadlocked());
      for (const std::vector<StreamId>& design : outputs) {
        bool is_complete = true;
        for (const StreamId stream : design)
          is_complete =
              is_complete && simulation.streams[stream].count == 2 * all.type(stream).beats();
        EXPECT_FALSE(is_complete) << all.stream_name(design[0]);
      }
    }
  }
  EXPECT_GT(num_tight, 0);
}

TEST(RandomDesigns, AreTheSameInIcarus) {
  LATHE_NEEDS(iverilog);
  for (int i = 0; i < num_designs(4, 10); ++i) {
    Random random(seed_of(i));
    const Netlist netlist = size_fifos(RandomDesign(seed_of(i)).draw_netlist()).netlist;
    const IcarusResult result = run_icarus(netlist, draw_inputs(random, netlist, 2), 64);
    EXPECT_TRUE(result.is_exact())
        << i << ": " << result.differences << " of " << result.beats << " beats differ, "
        << (result.is_finished ? "" : "not ") << "finished";
  }
}

TEST(RandomDesigns, AreTheSameAsGates) {
  LATHE_NEEDS(verilator);
  LATHE_NEEDS(yosys);
  for (int i = 0; i < num_designs(1, 10); ++i) {
    Random random(seed_of(i));
    const Netlist netlist = size_fifos(RandomDesign(seed_of(i)).draw_netlist()).netlist;
    const GateLevelDesign gates = synthesize_gates(netlist);
    EXPECT_EQ(std::count(gates.visible.begin(), gates.visible.end(), false), 0);
    const Simulation simulation =
        gate_level_simulator(netlist, gates).run(draw_inputs(random, netlist, 2), {.stall = 0.25});
    EXPECT_TRUE(simulation.is_exact()) << i << "\n" << simulation.text(netlist);
  }
}

}  // namespace
}  // namespace lathe::hardware
