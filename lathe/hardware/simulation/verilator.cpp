#include "lathe/hardware/simulation/verilator.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <span>

#include "lathe/core/child_process.h"
#include "lathe/core/error.h"
#include "lathe/hardware/simulation/simulator_cache.h"
#include "lathe/io/sha256.h"

namespace lathe::hardware {
namespace {

namespace fs = std::filesystem;

// -O1: a design simulates sixteen times as fast as with -O0 for a tenth of a second more, and -O2
// may take minutes on wide adders. A precompiled header is used only by calls with the same flags.
std::vector<std::string> compile_flags(const fs::path& include, Waves waves) {
  return {"-std=gnu++17",
          "-O1",
          "-fPIC",
          "-pthread",
          "-fvisibility=hidden",
          "-w",
          "-DVM_COVERAGE=0",
          "-DVM_SC=0",
          fmt::format("-DVM_TRACE={}", waves == Waves::None ? 0 : 1),
          fmt::format("-DVM_TRACE_VCD={}", waves == Waves::Vcd ? 1 : 0),
          fmt::format("-DVM_TRACE_FST={}", waves == Waves::Fst ? 1 : 0),
          "-I" + include.string(),
          "-I" + (include / "vltstd").string()};
}

// Fails with the last lines a tool wrote. What it says of files below `folder` is said of the
// design's.
void run_tool(const std::vector<std::string>& words, const std::string& what,
              const fs::path& folder, const ShouldStop& should_stop) {
  const auto result = run_program(words, "", should_stop);
  if (!result) fail("{}: {} cannot be started", what, words[0]);
  if (result->exit_status == 0) return;
  constexpr std::size_t kShownBytes = 2000;
  std::string said = result->errors + result->output;
  const std::string prefix = folder.string() + "/";
  for (std::size_t at = said.find(prefix); at != said.npos; at = said.find(prefix, at))
    said.erase(at, prefix.size());
  while (said.ends_with('\n')) said.pop_back();
  if (said.size() > kShownBytes) said = "..." + said.substr(said.size() - kShownBytes);
  fail("{}: {} failed:\n{}", what, words[0], said);
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary);
  stream << text;
  if (!stream.flush()) fail("{}: cannot be written", path.string());
}

std::vector<std::string> runtime_sources(Waves waves) {
  std::vector<std::string> names = {"verilated", "verilated_dpi", "verilated_threads"};
  if (waves == Waves::Vcd) names.push_back("verilated_vcd_c");
  if (waves == Waves::Fst) names.push_back("verilated_fst_c");
  return names;
}

std::string prefix_header(Waves waves) {
  std::string text =
      "#include \"verilated.h\"\n#include \"verilated_dpi.h\"\n#include \"verilated_syms.h\"\n"
      "#include <cstdio>\n#include <string>\n";
  if (waves == Waves::Vcd) text += "#include \"verilated_vcd_c.h\"\n";
  if (waves == Waves::Fst) text += "#include \"verilated_fst_c.h\"\n";
  return text;
}

VerilatorTools require_verilator() {
  VerilatorTools tools = find_verilator();
  if (!tools.are_there()) fail("{}", tools.hint);
  return tools;
}

fs::path verilator_include(const VerilatorTools& tools) {
  const auto answer = run_program({tools.verilator, "--getenv", "VERILATOR_ROOT"}, "");
  if (!answer || answer->exit_status != 0) fail("verilator does not say where its files are");
  std::string root = answer->output;
  while (!root.empty() && root.back() == '\n') root.pop_back();
  return fs::path(root) / "include";
}

// Changes when the compiler or Verilator is another one; asks neither, which would take longer
// than loading a model that is there.
std::string tools_digest(const VerilatorTools& tools, Waves waves) {
  std::string text = fmt::format("{}", fmt::join(compile_flags("", waves), " "));
  text += prefix_header(waves);
  for (const fs::path& program : {tools.verilator, tools.compiler}) {
    const fs::path real = fs::canonical(program);
    text += fmt::format("{} {} {}\n", real.string(), fs::file_size(real),
                        fs::last_write_time(real).time_since_epoch().count());
  }
  return io::sha256(std::as_bytes(std::span(text))).substr(0, 16);
}

// The functions by which a loaded model is used. Relative names of memory files mean the design's
// folder, wherever the process works: the linker sends Verilator's fopen here.
std::string interface_source(const VerilatorDesign& design, Waves waves) {
  std::string text = R"(
static const std::string& memory_folder(const char* folder = "") {
  static const std::string first = folder;
  return first;
}
extern "C" FILE* __real_fopen(const char* path, const char* mode);
extern "C" FILE* __wrap_fopen(const char* path, const char* mode) {
  return __real_fopen(path[0] == '/' ? path : (memory_folder() + '/' + path).c_str(), mode);
}
#define EXPORT extern "C" __attribute__((visibility("default")))
namespace {
struct Simulated {
  VerilatedContext context;
  Model model{&context};
  WaveFile* waves = nullptr;
};
}
EXPORT void* lathe_model_new(const char* folder) {
  memory_folder(folder);
  return new Simulated;
}
EXPORT void lathe_model_delete(void* model) { delete static_cast<Simulated*>(model); }
EXPORT void lathe_model_evaluate(void* model) { static_cast<Simulated*>(model)->model.eval(); }
)";
  const char* type = waves == Waves::Vcd   ? "VerilatedVcdC"
                     : waves == Waves::Fst ? "VerilatedFstC"
                                           : "void";
  text.insert(0, fmt::format("using WaveFile = {};\n", type));
  if (waves != Waves::None)
    text += R"(
EXPORT void lathe_model_open_waves(void* model, const char* path) {
  Simulated& s = *static_cast<Simulated*>(model);
  s.context.traceEverOn(true);
  s.waves = new WaveFile;
  s.model.trace(s.waves, 99);
  s.waves->open(path);
}
EXPORT void lathe_model_dump(void* model, unsigned long long time) {
  static_cast<Simulated*>(model)->waves->dump(static_cast<uint64_t>(time));
}
EXPORT void lathe_model_close_waves(void* model) {
  Simulated& s = *static_cast<Simulated*>(model);
  s.waves->close();
  delete s.waves;
  s.waves = nullptr;
}
)";
  text +=
      "EXPORT void lathe_model_signals(void* model, void** addresses) {\n"
      "  auto* root = static_cast<Simulated*>(model)->model.rootp;\n";
  const std::set<std::string> probes(design.probes.begin(), design.probes.end());
  for (const std::string& signal : design.signals)
    text += fmt::format("  *addresses++ = (void*)&root->{}{};\n",
                        probes.contains(signal) ? design.top + "__DOT__" : "", signal);
  return text + "}\n";
}

}  // namespace

VerilatorTools find_verilator() {
  VerilatorTools tools{
      .verilator = program_path("verilator"), .compiler = program_path("g++"), .hint = {}};
  if (tools.verilator.empty())
    tools.hint = "simulation needs Verilator, which is not installed (Debian: verilator)";
  else if (tools.compiler.empty())
    tools.hint = "simulation needs a C++ compiler, which is not installed (Debian: g++)";
  return tools;
}

fs::path prepare_verilator(Waves waves, const ShouldStop& should_stop) {
  const VerilatorTools tools = require_verilator();
  CacheEntry entry(simulator_cache() / "verilator", tools_digest(tools, waves));
  if (entry.exists()) return entry.folder();
  const fs::path include = verilator_include(tools);
  const fs::path& folder = entry.begin();
  const std::vector<std::string> flags = compile_flags(include, waves);
  const auto compile = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {tools.compiler};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), more.begin(), more.end());
    run_tool(words, "Verilator's library", folder, should_stop);
  };
  write_text(folder / "prefix.h", prefix_header(waves));
  compile({"-x", "c++-header", folder / "prefix.h", "-o", folder / "prefix.h.gch"});
  std::vector<std::string> archive = {"ar", "rcs", folder / "library.a"};
  for (const std::string& name : runtime_sources(waves)) {
    const fs::path object = folder / (name + ".o");
    compile({"-c", include / (name + ".cpp"), "-o", object});
    archive.push_back(object);
  }
  run_tool(archive, "Verilator's library", folder, should_stop);
  write_text(folder / "include", include.string());
  entry.commit();
  return entry.folder();
}

void build_model(const VerilatorDesign& design, Waves waves, const ShouldStop& should_stop) {
  const VerilatorTools tools = require_verilator();
  const fs::path prepared = prepare_verilator(waves, should_stop);
  std::string include;
  std::getline(std::ifstream(prepared / "include"), include);

  const fs::path work = design.folder / "verilated";
  fs::create_directories(work);
  std::string control = "`verilator_config\n";
  for (const std::string& probe : design.probes)
    control += fmt::format("public_flat_rd -module \"{}\" -var \"{}\"\n", design.top, probe);
  write_text(work / "probes.vlt", control);

  // Verilator 5.006 miscompiles some bit logic without -fno-const-bit-op-tree.
  std::vector<std::string> words = {
      tools.verilator, "--cc",    "--no-timing", "-fno-const-bit-op-tree",
      "--Mdir",        work,      "--prefix",    "Model",
      "--top-module",  design.top};
  if (design.is_strict)
    words.insert(words.end(), {"-Wall", "-Wno-fatal", "-Werror-WIDTH", "-Werror-LATCH",
                               "-Werror-MULTIDRIVEN", "-Werror-UNOPTFLAT"});
  else
    words.insert(words.end(), {"-Wno-lint", "-Wno-style", "-Wno-UNOPTFLAT", "-Wno-fatal"});
  if (waves == Waves::Vcd) words.push_back("--trace");
  if (waves == Waves::Fst) words.push_back("--trace-fst");
  words.push_back(work / "probes.vlt");
  for (const std::string& source : design.sources) words.push_back(design.folder / source);
  run_tool(words, design.top, design.folder, should_stop);

  std::vector<std::string> units;
  for (const fs::directory_entry& file : fs::directory_iterator(work))
    if (file.path().extension() == ".cpp") units.push_back(file.path().filename());
  std::sort(units.begin(), units.end());
  std::string unit;
  for (const std::string& name : units) unit += fmt::format("#include \"{}\"\n", name);
  unit += "#include \"Model___024root.h\"\n" + interface_source(design, waves);
  write_text(work / "model.cc", unit);

  words = {tools.compiler};
  const std::vector<std::string> flags = compile_flags(include, waves);
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(),
               {"-I" + work.string(), "-include", prepared / "prefix.h", "-shared", "-x", "c++",
                work / "model.cc", "-x", "none", prepared / "library.a", "-Wl,--wrap=fopen",
                "-Wl,-Bsymbolic", "-o", design.folder / "model.so"});
  if (!program_path("mold").empty()) words.push_back("-fuse-ld=mold");
  if (waves == Waves::Fst) words.push_back("-lz");
  run_tool(words, design.top, design.folder, should_stop);
  fs::remove_all(work);
}

}  // namespace lathe::hardware
