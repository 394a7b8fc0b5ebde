#include "lathe/cli/bench_text.h"

#include "lathe/cli/print_json.h"
#include "lathe/cli/say.h"
#include "lathe/core/error.h"
#include "lathe/io/atomic_file.h"

namespace lathe::cli {

void add_bench_options(Flags flags, BenchArguments& arguments) {
  flags
      .add_option("--repeats", arguments.repeats.samples,
                  fmt::format("samples that count [{}]", arguments.repeats.samples))
      .range(1, 100000);
  flags
      .add_option("--warm-up", arguments.repeats.warm_up,
                  fmt::format("runs before the first that counts [{}]", arguments.repeats.warm_up))
      .range(0, 100000);
  flags.add_option("--out", arguments.out, "chart of the medians, an .svg");
}

void check_picture(const std::string& flag, const std::string& path) {
  if (!path.empty() && !path.ends_with(".svg"))
    fail("{} {}: expected a name that ends in .svg", flag, path);
}

experiment::Callbacks bench_callbacks(const Settings& settings) {
  experiment::Callbacks callbacks;
  callbacks.should_stop = is_interrupted;
  if (!settings.quiet) callbacks.notice = [](const std::string& line) { say("note: {}\n", line); };
  return callbacks;
}

void print_bench(const experiment::bench::Result& result, const BenchArguments& arguments,
                 const Settings& settings) {
  if (!arguments.out.empty()) io::write_atomically(arguments.out, to_svg(result));
  if (settings.json) {
    print_json(to_json(result));
    return;
  }
  fmt::print("{}\n{}, median of {} after warm-up\n", result.title, result.device,
             result.rows.empty() ? 0 : result.rows.back().time.samples);
  if (result.limits.bytes_per_second > 0)
    fmt::print("bandwidth      {:.1f} GB/s, by a copy, read plus written\n",
               result.limits.bytes_per_second / 1e9);
  if (result.limits.flops_per_second > 0)
    fmt::print("peak           {:.1f} GFLOP/s, by a large product\n",
               result.limits.flops_per_second / 1e9);
  fmt::print("\n{}", to_table(result).to_text());
  if (!result.drawing.empty()) fmt::print("\n{}", result.drawing);
  if (!result.notes.empty()) fmt::print("\n");
  for (const std::string& note : result.notes) fmt::print("{}\n", note);
  if (!arguments.out.empty()) fmt::print("wrote {}\n", arguments.out);
}

}  // namespace lathe::cli
