#include "lathe/experiment/hardware/wave_picture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lathe/core/error.h"
#include "lathe/hardware/emission.h"
#include "lathe/hardware/low_bits.h"
#include "lathe/hardware/simulation/vcd_file.h"
#include "lathe/io/mapped_file.h"
#include "lathe/report/waveform.h"

namespace lathe::experiment {
namespace {

constexpr std::int64_t kPeriod = 10;      // of the bench's clock, in its unit
constexpr std::int64_t kMostCycles = 40;  // that a picture shows

// "8 -16 3 127": the lanes of a beat, the first one first.
std::string beat_text(const std::string& bits, const hardware::Stream& type) {
  std::vector<std::int64_t> lanes;
  const auto width = static_cast<std::size_t>(type.element.width);
  const std::string whole =
      std::string(static_cast<std::size_t>(type.bits()) -
                      std::min<std::size_t>(bits.size(), static_cast<std::size_t>(type.bits())),
                  '0') +
      bits;
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(type.lanes); ++lane) {
    std::uint64_t pattern = 0;
    for (const char bit : whole.substr(whole.size() - (lane + 1) * width, width))
      pattern = pattern << 1 | (bit == '1' ? 1U : 0U);
    lanes.push_back(hardware::low_bits(static_cast<std::int64_t>(pattern), type.element));
  }
  return fmt::format("{}", fmt::join(lanes, " "));
}

}  // namespace

std::string wave_picture(const hardware::Design& design, const std::filesystem::path& vcd) {
  const hardware::VcdFile file = hardware::parse_vcd(io::MappedFile::open(vcd.string())->text());
  const hardware::Emission emission = hardware::emit(design.netlist);
  std::vector<report::WaveSignal> signals;
  const auto add = [&](const std::string& name, const hardware::Stream* type) {
    const hardware::VcdSignal* found = file.find(name);
    if (found == nullptr) fail("{}: has no signal {}", vcd.string(), name);
    report::WaveSignal signal{.name = name, .is_bus = found->width > 1 || type != nullptr};
    for (const auto& [time, bits] : found->changes)
      signal.changes.push_back({time, type == nullptr ? bits : beat_text(bits, *type)});
    signals.push_back(std::move(signal));
  };
  add("clk", nullptr);
  add("rst", nullptr);
  const auto add_stream = [&](hardware::StreamId stream) {
    const std::string& prefix = emission.stream_names[stream];
    add(prefix + "_valid", nullptr);
    add(prefix + "_ready", nullptr);
    add(prefix + "_data", &design.netlist.type(stream));
  };
  for (const hardware::StreamId stream : design.netlist.inputs()) add_stream(stream);
  for (const hardware::StreamId stream : design.netlist.outputs()) add_stream(stream);
  const std::int64_t end = std::min(file.end, kMostCycles * kPeriod);
  return report::waveform("Waves of " + design.netlist.name, signals, end, kPeriod);
}

}  // namespace lathe::experiment
