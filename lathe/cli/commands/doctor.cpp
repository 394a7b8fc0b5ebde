#include <dlfcn.h>
#include <sys/sysinfo.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "lathe/cli/command.h"
#include "lathe/core/thread_pool.h"
#include "lathe/engine/cpu/kernels.h"

namespace lathe::cli::doctor_command {
namespace {

// Where a program lies on the PATH.
std::optional<std::string> find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  if (path == nullptr) return std::nullopt;
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::filesystem::path candidate = std::filesystem::path(folder) / name;
    std::error_code error;
    if (std::filesystem::is_regular_file(candidate, error)) return candidate.string();
  }
  return std::nullopt;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown";
}

// The CUDA driver's own count, without linking to it.
int num_cuda_devices() {
  const std::unique_ptr<void, int (*)(void*)> driver(dlopen("libcuda.so.1", RTLD_LAZY), dlclose);
  if (!driver) return 0;
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver.get(), "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(dlsym(driver.get(), "cuDeviceGetCount"));
  int devices = 0;
  if (init == nullptr || count == nullptr || init(0) != 0 || count(&devices) != 0) return 0;
  return devices;
}

struct Tool {
  const char* program;
  const char* purpose;
};
constexpr std::array<Tool, 5> kTools{{{"dot", "draws graphs (package graphviz)"},
                                      {"rsvg-convert", "turns SVG into PNG (package librsvg2-bin)"},
                                      {"verilator", "simulates hardware (package verilator)"},
                                      {"yosys", "estimates hardware area (package yosys)"},
                                      {"nvcc", "builds CUDA kernels (CUDA toolkit)"}}};

int run(const Settings& settings) {
  struct sysinfo memory = {};
  sysinfo(&memory);
  const double total = static_cast<double>(memory.totalram) * memory.mem_unit / 1e9;
  const double available =
      static_cast<double>(memory.freeram + memory.bufferram) * memory.mem_unit / 1e9;
  std::vector<std::string> sets;
  for (const Isa isa : {Isa::Avx512, Isa::Avx2, Isa::Plain})
    if (is_supported(isa)) sets.emplace_back(name(isa));
  const double peak = engine::fma_peak(settings.isa, 0.1);
  const int devices = num_cuda_devices();
  if (settings.json) {
    nlohmann::ordered_json line;
    line["processor"] = processor_name();
    line["instruction_sets"] = sets;
    line["chosen"] = name(settings.isa);
    line["fma_peak_gflops_per_core"] = peak;
    line["threads"] = num_available_threads();
    line["memory_gb"] = total;
    line["cuda_devices"] = devices;
    for (const Tool& tool : kTools) {
      const auto path = find_program(tool.program);
      line["tools"][tool.program] = path ? nlohmann::ordered_json(*path) : nlohmann::ordered_json();
    }
    fmt::print("{}\n", line.dump());
    return 0;
  }
  fmt::print("processor      {}\n", processor_name());
  fmt::print("instructions   {} (uses {})\n", fmt::join(sets, ", "), name(settings.isa));
  fmt::print("FMA peak       {:.0f} GFLOP/s a core, measured\n", peak);
  fmt::print("threads        {}\n", num_available_threads());
  fmt::print("memory         {:.1f} GB, {:.1f} GB free\n", total, available);
  fmt::print("CUDA           {}\n", devices > 0
                                        ? fmt::format("{} device{}; this build has no CUDA backend",
                                                      devices, devices == 1 ? "" : "s")
                                        : std::string("no device found"));
  for (const Tool& tool : kTools) {
    const auto path = find_program(tool.program);
    fmt::print("{:<14} {}\n", tool.program,
               path ? *path : fmt::format("not installed; {}", tool.purpose));
  }
  return 0;
}

const Register registration{Command{
    .name = "doctor",
    .summary = "what this machine has and can do",
    .examples = "  lathe doctor\n  lathe doctor --json",
    .setup = [](Flags) { return [](const Settings& settings) { return run(settings); }; },
}};

}  // namespace
}  // namespace lathe::cli::doctor_command
