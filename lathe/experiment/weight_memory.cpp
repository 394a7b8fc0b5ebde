#include "lathe/experiment/weight_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

#include "lathe/compress/quantization_report.h"
#include "lathe/io/model.h"

namespace lathe::experiment {
namespace {

std::int64_t resident_bytes() {
  malloc_trim(0);  // what is free already would hide what comes
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

double share_saved(std::int64_t bytes, std::int64_t of) {
  return 100 * (1 - static_cast<double>(bytes) / static_cast<double>(of));
}

}  // namespace

std::optional<WeightMemory> measure_weight_memory(const std::string& model, const std::string& task,
                                                  const engine::ExecutionOptions& execution) {
  if (execution.device != "cpu") return std::nullopt;
  const std::int64_t before = resident_bytes();
  const io::Model loaded = io::load_model(model, {.task = task});
  const compress::ModelBits bits = compress::count_bits(loaded.graph, loaded.state);
  const auto executor = engine::make_executor(loaded.graph, loaded.state, execution);
  return WeightMemory{.float_bytes = static_cast<std::int64_t>(bits.floats / 8),
                      .stored_bytes = static_cast<std::int64_t>(bits.stored / 8),
                      .held_bytes = executor->report().weight_bytes,
                      .resident_bytes = resident_bytes() - before};
}

std::string to_text(const WeightMemory& memory) {
  const auto megabytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  return fmt::format(
      "{:.1f} MB held where floats take {:.1f} MB ({:.1f} % less; stored {:.1f} MB, {:.1f} %), "
      "the process grew by {:.1f} MB",
      megabytes(memory.held_bytes), megabytes(memory.float_bytes),
      share_saved(memory.held_bytes, memory.float_bytes), megabytes(memory.stored_bytes),
      share_saved(memory.stored_bytes, memory.float_bytes), megabytes(memory.resident_bytes));
}

}  // namespace lathe::experiment
