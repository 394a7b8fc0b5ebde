#include "lathe/hardware/emission.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <set>
#include <span>

#include "lathe/core/error.h"
#include "lathe/hardware/rtl_library.h"
#include "lathe/hardware/verilog.h"
#include "lathe/io/sha256.h"

namespace lathe::hardware {
namespace {

using Direction = VerilogModule::Direction;

// Names of the model as identifiers, each once.
class Identifiers {
 public:
  std::string make(const std::string& name) {
    const std::string wanted = verilog_identifier(name);
    std::string result = wanted;
    for (int i = 2; is_used(result); ++i) result = fmt::format("{}_v{}", wanted, i);
    for (const char* suffix : kSuffixes) used_.insert(lower(result + suffix));
    return result;
  }

 private:
  // A stream's name is also the beginning of its nets' names.
  static constexpr std::array<const char*, 4> kSuffixes = {"", "_data", "_valid", "_ready"};

  bool is_used(const std::string& name) const {
    return std::any_of(kSuffixes.begin(), kSuffixes.end(),
                       [&](const char* suffix) { return used_.contains(lower(name + suffix)); });
  }
  // Files of memories must differ where capitals do not count.
  static std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  }
  std::set<std::string> used_;
};

// The nets of a port: one stream's, or of several those of the last in front.
std::string joined(const std::vector<std::string>& prefixes, const char* suffix) {
  if (prefixes.size() == 1) return prefixes[0] + suffix;
  std::string text = "{";
  for (auto prefix = prefixes.rbegin(); prefix != prefixes.rend(); ++prefix)
    text += (prefix == prefixes.rbegin() ? "" : ", ") + *prefix + suffix;
  return text + "}";
}

// A number without a size has 32 bits in Verilog.
std::string literal(std::int64_t value) {
  const bool is_short = value >= INT32_MIN && value <= INT32_MAX;
  return is_short ? fmt::format("{}", value) : fmt::format("64'd{}", value);
}

class Emitter {
 public:
  explicit Emitter(const Netlist& netlist) : netlist_(netlist) {}

  Emission run() {
    verify(netlist_);
    for (const char* taken : {"clk", "rst"}) identifiers_.make(taken);
    emission_.top = identifiers_.make(netlist_.name);
    for (const Netlist::NamedStream& stream : netlist_.streams())
      emission_.stream_names.push_back(identifiers_.make(stream.name));
    module_.name = emission_.top;
    module_.comment = {
        fmt::format("{}: {} blocks. A beat moves when valid and ready are high; "
                    "element 0 stands in the low bits.",
                    netlist_.name, netlist_.instances().size())};
    add_ports();
    for (const std::size_t i : topological_order(netlist_)) add_instance(i);
    emission_.files[emission_.top + ".sv"] = print(module_);
    return std::move(emission_);
  }

 private:
  void add_ports() {
    module_.ports = {{.name = "clk"}, {.name = "rst"}};
    std::set<StreamId> outside;
    const auto add = [&](StreamId stream, bool is_input) {
      const std::string& prefix = emission_.stream_names[stream];
      const Direction forward = is_input ? Direction::Input : Direction::Output;
      const Direction back = is_input ? Direction::Output : Direction::Input;
      const Stream& type = netlist_.type(stream);
      module_.comment.push_back(
          fmt::format("{} {}: {}", is_input ? "input " : "output", prefix, type.text()));
      module_.ports.push_back({forward, prefix + "_data", type.bits()});
      module_.ports.push_back({forward, prefix + "_valid", 1});
      module_.ports.push_back({back, prefix + "_ready", 1});
      outside.insert(stream);
    };
    for (const StreamId stream : netlist_.inputs()) add(stream, true);
    for (const StreamId stream : netlist_.outputs()) {
      if (outside.contains(stream))
        fail("stream \"{}\" goes straight from an input to an output",
             netlist_.stream_name(stream));
      add(stream, false);
    }
    for (StreamId stream = 0; stream < netlist_.streams().size(); ++stream) {
      if (outside.contains(stream)) continue;
      const std::string& prefix = emission_.stream_names[stream];
      module_.nets.push_back({prefix + "_data", netlist_.type(stream).bits()});
      module_.nets.push_back({prefix + "_valid", 1});
      module_.nets.push_back({prefix + "_ready", 1});
    }
  }

  void add_instance(std::size_t index) {
    const BlockCall call = netlist_.call(index);
    // Named like the stream it writes, and told apart from it by the suffixes of the nets.
    const std::string name = call.outputs.size() == 1
                                 ? emission_.stream_names[call.instance.outputs[0]]
                                 : identifiers_.make(call.instance.name);
    VerilogModule::Instance instance{.comment = {}, .module = call.block.name, .name = name};
    if (!call.instance.note.empty()) instance.comment.push_back(call.instance.note);
    instance.comment.push_back(
        fmt::format("{}: {}", call.instance.name, call.block.describe(call)));
    const ModuleParameters parameters = call.block.module_parameters(call);
    for (const auto& [parameter, value] : parameters.integers)
      instance.parameters.push_back({parameter, literal(value)});
    for (const auto& [parameter, image] : parameters.memories) {
      std::string suffix = parameter;
      for (char& c : suffix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      const std::string path = fmt::format("memory/{}_{}.mem", name, suffix);
      emission_.files[path] = image.text();
      instance.parameters.push_back({parameter, fmt::format("\"{}\"", path)});
    }
    instance.connections = {{"clk", "clk"}, {"rst", "rst"}};
    const auto connect = [&](const std::string& port, const std::vector<StreamId>& streams) {
      std::vector<std::string> prefixes;
      for (const StreamId stream : streams) prefixes.push_back(emission_.stream_names[stream]);
      for (const char* suffix : {"_data", "_valid", "_ready"})
        instance.connections.push_back({port + suffix, joined(prefixes, suffix)});
    };
    for (std::size_t i = 0; i < call.block.input_ports.size(); ++i)
      connect(call.block.input_ports[i], {call.instance.inputs[i]});
    if (call.block.has_any_outputs)
      connect(call.block.output_ports[0], call.instance.outputs);
    else
      for (std::size_t i = 0; i < call.block.output_ports.size(); ++i)
        connect(call.block.output_ports[i], {call.instance.outputs[i]});
    module_.instances.push_back(std::move(instance));
    if (call.block.source.empty())
      add_source(call.block.name);
    else
      emission_.files["rtl/" + call.block.name + ".sv"] = call.block.source;
    for (const std::string& part : call.block.parts) add_source(part);
  }

  void add_source(const std::string& module) {
    emission_.files["rtl/" + module + ".sv"] = rtl_source(module);
  }

  const Netlist& netlist_;
  Identifiers identifiers_;
  Emission emission_;
  VerilogModule module_;
};

}  // namespace

std::vector<std::string> Emission::sources() const {
  std::vector<std::string> result;
  for (const auto& [path, text] : files)
    if (path.starts_with("rtl/")) result.push_back(path);
  result.push_back(top + ".sv");
  return result;
}

std::string Emission::digest() const {
  io::Sha256 sha;
  for (const auto& [path, text] : files) {
    const std::string head = fmt::format("{} {}\n", path, text.size());
    sha.update(std::as_bytes(std::span(head)));
    sha.update(std::as_bytes(std::span(text)));
  }
  return sha.hex();
}

Emission emit(const Netlist& netlist) {
  return Emitter(netlist).run();
}

void write(const Emission& emission, const std::filesystem::path& folder) {
  for (const auto& [path, text] : emission.files) {
    const std::filesystem::path file = folder / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream stream(file, std::ios::binary);
    stream << text;
    if (!stream.flush()) fail("{}: cannot be written", file.string());
  }
}

}  // namespace lathe::hardware
