#include "lathe/hardware/simulation/simulate.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>
#include <span>

#include "lathe/core/error.h"
#include "lathe/hardware/low_bits.h"
#include "lathe/hardware/simulation/simulation_model.h"
#include "lathe/hardware/simulation/simulator_cache.h"
#include "lathe/io/sha256.h"

namespace lathe::hardware {
namespace {

// Part of a model's key: another number when models are made or used in another way.
constexpr int kModelVersion = 2;

// The bytes Verilator keeps a signal in: the smallest integer, or words of 32 bits.
std::size_t stored_bytes(std::int64_t bits) {
  if (bits <= 8) return 1;
  if (bits <= 16) return 2;
  if (bits <= 32) return 4;
  if (bits <= 64) return 8;
  return static_cast<std::size_t>((bits + 31) / 32) * 4;
}

// A beat's bits, with room to read a word anywhere.
using Bits = std::vector<unsigned char>;

std::uint64_t read_bits(const Bits& bits, std::int64_t at, int width) {
  std::uint64_t low = 0;
  const auto byte = static_cast<std::size_t>(at / 8);
  const int shift = static_cast<int>(at % 8);
  std::memcpy(&low, bits.data() + byte, 8);
  low >>= shift;
  if (shift > 0) low |= static_cast<std::uint64_t>(bits[byte + 8]) << (64 - shift);
  return width == 64 ? low : low & ((std::uint64_t{1} << width) - 1);
}

void write_bits(Bits& bits, std::int64_t at, int width, std::uint64_t value) {
  for (int i = 0; i < width; ++i)
    if (value >> i & 1)
      bits[static_cast<std::size_t>((at + i) / 8)] |=
          static_cast<unsigned char>(1U << ((at + i) % 8));
}

enum class Side { Inside, Input, Output };

// One stream as the bench sees it.
struct Probe {
  StreamId stream;
  Stream type;
  Side side = Side::Inside;
  void* data = nullptr;
  unsigned char *valid = nullptr, *ready = nullptr;
  const Values* expected = nullptr;
  std::size_t bytes = 0;
  Bits bits = {}, before = {};  // this cycle's and the last one's
  bool waited = false;
  std::int64_t beats = 0, all_beats = 0;
};

class Bench {
 public:
  Bench(const Netlist& netlist, SimulationModel& model, const std::vector<StreamId>& visible,
        const std::vector<Values>& values, std::int64_t frames, const SimulationOptions& options)
      : model_(model),
        options_(options),
        random_(options.seed),
        patience_(1000 + 4 * bottleneck_cycles(netlist)) {
    const auto has = [](const std::vector<StreamId>& list, StreamId stream) {
      return std::find(list.begin(), list.end(), stream) != list.end();
    };
    auto signal = model.signals().begin();
    clk_ = static_cast<unsigned char*>(*signal++);
    rst_ = static_cast<unsigned char*>(*signal++);
    for (const StreamId stream : visible) {
      Probe probe{.stream = stream, .type = netlist.type(stream)};
      probe.side = has(netlist.inputs(), stream)    ? Side::Input
                   : has(netlist.outputs(), stream) ? Side::Output
                                                    : Side::Inside;
      probe.data = *signal++;
      probe.valid = static_cast<unsigned char*>(*signal++);
      probe.ready = static_cast<unsigned char*>(*signal++);
      probe.expected = &values[stream];
      probe.bytes = stored_bytes(probe.type.bits());
      probe.bits.resize(probe.bytes + 16);
      probe.before = probe.bits;
      probe.all_beats = frames * probe.type.beats();
      if (probe.side == Side::Output) to_come_ += probe.all_beats;
      probes_.push_back(std::move(probe));
    }
    result_.streams.resize(netlist.streams().size());
    result_.outputs.resize(netlist.outputs().size());
    for (std::size_t i = 0; i < netlist.outputs().size(); ++i)
      for (Probe& probe : probes_)
        if (probe.stream == netlist.outputs()[i]) output_of_[&probe - probes_.data()] = i;
  }

  Simulation run() {
    if (!options_.waves.empty()) model_.open_waves(options_.waves);
    reset();
    std::int64_t idle = 0;
    for (cycle_ = 0; to_come_ > 0; ++cycle_) {
      drive();
      tick_low();
      const bool moved = observe();
      result_.cycles = cycle_ + 1;
      tick_high();
      idle = moved ? 0 : idle + 1;
      if (idle <= patience_) continue;
      for (const Probe& probe : probes_)
        if (*probe.valid != 0) result_.stuck.push_back(probe.stream);
      if (result_.stuck.empty()) result_.stuck.push_back(probes_.front().stream);
      break;
    }
    return std::move(result_);
  }

 private:
  void tick_low() {
    *clk_ = 0;
    model_.evaluate();
    if (!options_.waves.empty()) model_.dump(time_);
    time_ += 5;
  }
  void tick_high() {
    *clk_ = 1;
    model_.evaluate();
    if (!options_.waves.empty()) model_.dump(time_);
    time_ += 5;
  }
  void reset() {
    *rst_ = 1;
    for (Probe& probe : probes_) {
      if (probe.side == Side::Input) *probe.valid = 0;
      if (probe.side == Side::Output) *probe.ready = 0;
    }
    for (int i = 0; i < 2; ++i) tick_low(), tick_high();
    *rst_ = 0;
  }
  bool stalls() {
    return options_.stall > 0 && static_cast<double>(random_() >> 11) * 0x1p-53 < options_.stall;
  }

  void drive() {
    for (Probe& probe : probes_) {
      if (probe.side == Side::Output) *probe.ready = stalls() ? 0 : 1;
      if (probe.side != Side::Input) continue;
      if (probe.waited) continue;  // what was offered stays
      *probe.valid = probe.beats < probe.all_beats && !stalls() ? 1 : 0;
      if (*probe.valid == 0) continue;
      std::fill(probe.bits.begin(), probe.bits.end(), static_cast<unsigned char>(0));
      for (int lane = 0; lane < probe.type.lanes; ++lane) {
        const std::int64_t* value = expected(probe, lane);
        // Empty lanes hold anything: nobody may look at them.
        const std::uint64_t pattern =
            value != nullptr ? static_cast<std::uint64_t>(*value) : random_();
        write_bits(probe.bits, static_cast<std::int64_t>(lane) * probe.type.element.width,
                   probe.type.element.width, pattern);
      }
      std::memcpy(probe.data, probe.bits.data(), probe.bytes);
    }
  }

  // What stands in a lane of the probe's next beat; nothing in a lane behind a vector's end or in a
  // beat too many.
  const std::int64_t* expected(const Probe& probe, int lane) const {
    const std::int64_t beats = probe.type.beats_per_vector();
    const std::int64_t element = probe.beats % beats * probe.type.lanes + lane;
    if (element >= probe.type.size || probe.beats >= probe.all_beats) return nullptr;
    return &(
        *probe.expected)[static_cast<std::size_t>(probe.beats / beats * probe.type.size + element)];
  }

  bool observe() {
    bool moved = false;
    for (Probe& probe : probes_) {
      const bool valid = *probe.valid != 0, ready = *probe.ready != 0;
      if (valid) std::memcpy(probe.bits.data(), probe.data, probe.bytes);
      if (probe.waited && (!valid || probe.bits != probe.before))
        report_violation(probe, valid ? "changed" : "was withdrawn");
      if (valid && !ready) probe.before = probe.bits;
      probe.waited = valid && !ready;
      if (!valid || !ready) continue;
      moved = true;
      transfer(probe);
    }
    return moved;
  }

  void transfer(Probe& probe) {
    Schedule::Beats& beats = result_.streams[probe.stream];
    if (beats.count++ == 0) beats.first = cycle_;
    beats.last = cycle_;
    if (probe.beats >= probe.all_beats) {
      report_violation(probe, "came after the last one");
      return;
    }
    const auto output = output_of_.find(&probe - probes_.data());
    for (int lane = 0; lane < probe.type.lanes; ++lane) {
      const std::int64_t* wanted = expected(probe, lane);
      if (wanted == nullptr) break;
      const int width = probe.type.element.width;
      const auto pattern = read_bits(probe.bits, static_cast<std::int64_t>(lane) * width, width);
      const std::int64_t got = low_bits(static_cast<std::int64_t>(pattern), probe.type.element);
      if (output != output_of_.end()) result_.outputs[output->second].push_back(got);
      ++result_.num_compared;
      if (got == *wanted) continue;
      if (result_.num_differences++ < 20)
        result_.differences.push_back({.stream = probe.stream,
                                       .beat = probe.beats,
                                       .lane = lane,
                                       .cycle = cycle_,
                                       .got = got,
                                       .expected = *wanted});
    }
    ++probe.beats;
    if (probe.side == Side::Output) --to_come_;
  }

  void report_violation(const Probe& probe, const char* what) {
    if (result_.violations.size() < 20)
      result_.violations.push_back(fmt::format("stream {}: beat {} {} in cycle {}", probe.stream,
                                               probe.beats, what, cycle_));
  }

  SimulationModel& model_;
  const SimulationOptions& options_;
  std::mt19937_64 random_;
  std::int64_t patience_;  // cycles in which nothing moves before we give up
  unsigned char *clk_ = nullptr, *rst_ = nullptr;
  std::vector<Probe> probes_;
  std::map<std::ptrdiff_t, std::size_t> output_of_;  // probe to output
  std::int64_t to_come_ = 0, cycle_ = 0;
  std::uint64_t time_ = 0;
  Simulation result_;
};

}  // namespace

std::string Simulation::text(const Netlist& netlist) const {
  std::string result;
  if (is_deadlocked()) {
    result += fmt::format("nothing moves after cycle {}; beats wait on", cycles);
    for (const StreamId stream : stuck) result += " " + netlist.stream_name(stream);
    result += '\n';
  }
  for (const std::string& violation : violations) result += violation + '\n';
  for (const Difference& d : differences)
    result +=
        fmt::format("{}: beat {}, lane {}, cycle {}: {} instead of {}\n",
                    netlist.stream_name(d.stream), d.beat, d.lane, d.cycle, d.got, d.expected);
  if (num_differences > static_cast<std::int64_t>(differences.size()))
    result += fmt::format("{} differences in all\n", num_differences);
  return result;
}

void Simulator::build(const std::string& key, const std::map<std::string, std::string>& files,
                      VerilatorDesign design, const ShouldStop& should_stop) {
  CacheEntry entry(simulator_cache() / "models", io::sha256(std::as_bytes(std::span(key))));
  was_cached_ = entry.exists();
  folder_ = entry.folder();
  if (was_cached_) return;
  design.folder = entry.begin();
  for (const auto& [path, text] : files) {
    std::filesystem::create_directories((design.folder / path).parent_path());
    std::ofstream stream(design.folder / path, std::ios::binary);
    stream << text;
    if (!stream.flush()) fail("{}: cannot be written", (design.folder / path).string());
  }
  build_model(design, waves_, should_stop);
  entry.commit();
}

namespace {

// The ports and nets that the bench looks at, in its order.
VerilatorDesign observed_design(const Netlist& netlist, const Emission& emission,
                                const std::vector<StreamId>& visible) {
  VerilatorDesign design{.top = emission.top, .signals = {"clk", "rst"}};
  for (const StreamId stream : visible) {
    const auto is_port = [&](const std::vector<StreamId>& list) {
      return std::find(list.begin(), list.end(), stream) != list.end();
    };
    const bool is_inside = !is_port(netlist.inputs()) && !is_port(netlist.outputs());
    for (const char* suffix : {"_data", "_valid", "_ready"}) {
      design.signals.push_back(emission.stream_names[stream] + suffix);
      if (is_inside) design.probes.push_back(design.signals.back());
    }
  }
  return design;
}

}  // namespace

Simulator::Simulator(const Netlist& netlist, Waves waves)
    : Simulator(netlist, emit(netlist), waves) {}

Simulator::Simulator(const Netlist& netlist, Emission emission, Waves waves,
                     const ShouldStop& should_stop)
    : netlist_(netlist), emission_(std::move(emission)), waves_(waves) {
  for (StreamId stream = 0; stream < netlist.streams().size(); ++stream) visible_.push_back(stream);
  VerilatorDesign design = observed_design(netlist, emission_, visible_);
  design.sources = emission_.sources();
  build(fmt::format("{} {} {}", kModelVersion, emission_.digest(), static_cast<int>(waves)),
        emission_.files, std::move(design), should_stop);
}

Simulator::Simulator(const Netlist& netlist, const std::string& source,
                     const std::vector<bool>& visible, const ShouldStop& should_stop)
    : netlist_(netlist), emission_(emit(netlist)) {
  for (StreamId stream = 0; stream < netlist.streams().size(); ++stream)
    if (visible.at(stream)) visible_.push_back(stream);
  VerilatorDesign design = observed_design(netlist, emission_, visible_);
  design.sources = {"netlist.v"};
  design.is_strict = false;
  std::map<std::string, std::string> files = {{"netlist.v", source}};
  for (const auto& [path, text] : emission_.files)
    if (path.ends_with(".mem")) files.emplace(path, text);
  build(fmt::format("{} {} {}", kModelVersion, fmt::join(design.signals, " "), source), files,
        std::move(design), should_stop);
}

Simulation Simulator::run(const std::vector<Values>& inputs,
                          const SimulationOptions& options) const {
  check(options.waves.empty() == (waves_ == Waves::None), "waves to be asked for twice or not");
  const std::vector<Values> values = evaluate(netlist_, inputs);
  const StreamId first = netlist_.inputs().at(0);
  const std::int64_t frames =
      static_cast<std::int64_t>(values[first].size()) / netlist_.type(first).num_elements();
  for (const StreamId stream : netlist_.inputs())
    if (static_cast<std::int64_t>(values[stream].size()) !=
        frames * netlist_.type(stream).num_elements())
      fail("input \"{}\" has another number of frames than \"{}\"", netlist_.stream_name(stream),
           netlist_.stream_name(first));
  SimulationModel model(folder_, 2 + 3 * visible_.size());
  Simulation result = Bench(netlist_, model, visible_, values, frames, options).run();
  for (const StreamId stream : netlist_.outputs()) result.expected.push_back(values[stream]);
  return result;
}

}  // namespace lathe::hardware
