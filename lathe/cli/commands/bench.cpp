#include <charconv>

#include "lathe/cli/bench_text.h"
#include "lathe/cli/command.h"
#include "lathe/cli/execution.h"
#include "lathe/cli/print_json.h"
#include "lathe/core/error.h"
#include "lathe/experiment/bench/attention.h"
#include "lathe/experiment/bench/fusion.h"
#include "lathe/experiment/bench/memory.h"
#include "lathe/experiment/bench/mxint8.h"
#include "lathe/experiment/bench/op_call.h"
#include "lathe/experiment/bench/products.h"
#include "lathe/experiment/bench/training_step.h"
#include "lathe/io/atomic_file.h"

// The experiments of experiment/bench: flags in, tables and charts out.
namespace lathe::cli::bench_command {
namespace {

namespace bench = experiment::bench;

// A command whose options are `Options` and whose work is `time`.
template <typename Options>
struct Bench {
  BenchArguments shared;
  Options options;
};
template <typename Options, typename Time>
std::function<int(const Settings&)> action_of(std::shared_ptr<Bench<Options>> arguments,
                                              Time time) {
  return [arguments, time](const Settings& settings) {
    check_picture("--out", arguments->shared.out);
    arguments->options.repeats = arguments->shared.repeats;
    Execution execution(settings);
    const bench::Result result =
        time(arguments->options, execution.options(), bench_callbacks(settings));
    print_bench(result, arguments->shared, settings);
    return 0;
  };
}

// Positive whole numbers in place of the defaults, where any are given.
void read_counts(const char* flag, const std::vector<std::string>& words,
                 std::vector<std::int64_t>& counts) {
  if (!words.empty()) counts.clear();
  for (const std::string& word : words) {
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
    if (error != std::errc() || end != word.data() + word.size() || count < 1)
      fail("{} {}: expected a positive whole number", flag, word);
    counts.push_back(count);
  }
}

std::function<int(const Settings&)> setup_attention(Flags flags) {
  auto arguments = std::make_shared<Bench<bench::AttentionOptions>>();
  bench::AttentionOptions& options = arguments->options;
  flags.add_option("--batch", options.batch, "sequences [32]").at_least(1);
  flags.add_option("--heads", options.heads, "heads [8]").at_least(1);
  flags.add_option("--length", options.length, "tokens of a sequence [128]").at_least(1);
  flags.add_option("--head-size", options.head_size, "numbers of a head [64]").at_least(1);
  flags.add_flag("--causal", options.causal, "a token sees those before it (the fused form alone)");
  add_bench_options(flags, arguments->shared);
  return action_of(arguments, bench::time_attention);
}
const Register attention{Command{
    .name = "bench attention",
    .summary = "attention as one kernel, against product, softmax, product",
    .examples = "  lathe bench attention                          # 32x8x128x64\n"
                "  lathe bench attention --batch 4 --heads 16 --length 4096 --device cuda",
    .setup = setup_attention,
}};

std::function<int(const Settings&)> setup_products(Flags flags) {
  auto arguments = std::make_shared<Bench<bench::ProductOptions>>();
  auto sizes = std::make_shared<std::vector<std::string>>();
  flags.add_option("--sizes", *sizes, "ROWSxNxK, separated by commas [128^3, 512^3, 1024^3]")
      .separated_by(',')
      .repeatable();
  add_bench_options(flags, arguments->shared);
  return action_of(arguments, [sizes](bench::ProductOptions options, const auto& execution,
                                      const auto& callbacks) {
    if (!sizes->empty()) options.sizes.clear();
    for (const std::string& size : *sizes) options.sizes.push_back(bench::parse_product_size(size));
    return bench::time_products(options, execution, callbacks);
  });
}
const Register products{Command{
    .name = "bench gemm",
    .summary = "products of matrices, by share of peak and bandwidth",
    .examples = "  lathe bench gemm\n"
                "  lathe bench gemm --sizes 1x4096x4096,512x4096x1024 --device cuda --out gemm.svg",
    .setup = setup_products,
}};

std::function<int(const Settings&)> setup_step(Flags flags) {
  auto arguments = std::make_shared<Bench<bench::StepOptions>>();
  bench::StepOptions& options = arguments->options;
  flags.add_option("--model", options.model,
                   "model directory, or a builder that reads tokens [bert-tiny]");
  flags.add_option("--rows", options.rows, "texts of a batch [8]").at_least(1);
  flags.add_option("--length", options.length, "tokens of each [128]").at_least(1);
  add_bench_options(flags, arguments->shared);
  return action_of(arguments, bench::time_step);
}
const Register step{Command{
    .name = "bench step",
    .summary = "a training step: one captured graph, against kernel by kernel",
    .examples = "  lathe bench step --rows 8 --length 512 --device cuda\n"
                "  lathe bench step --model bert-mini --threads 1 --json",
    .setup = setup_step,
}};

std::function<int(const Settings&)> setup_fusion(Flags flags) {
  auto arguments = std::make_shared<Bench<bench::FusionOptions>>();
  bench::FusionOptions& options = arguments->options;
  auto iterations = std::make_shared<std::vector<std::string>>();
  flags.add_option("--model", options.model, "model directory or a builder's name [bert-tiny]");
  flags.add_option("--task", options.task, "what the model is for [its own]");
  flags.add_option("--rows", options.rows, "sequences or examples of a batch [8]")
      .range(1, 1 << 20);
  flags.add_option("--length", options.length, "tokens of a sequence [128, or the model's most]")
      .range(1, 1 << 20);
  flags.add_flag("--training", options.is_training, "a step of training, not the model");
  flags.add_option("--iterations", *iterations, "runs to add up [5,50,200]").separated_by(',');
  add_bench_options(flags, arguments->shared);
  return action_of(arguments, [iterations](bench::FusionOptions chosen, const auto& execution,
                                           const auto& callbacks) {
    read_counts("--iterations", *iterations, chosen.iterations);
    return bench::time_fusion(chosen, execution, callbacks);
  });
}
const Register fusion{Command{
    .name = "bench compile",
    .summary = "what is compiled, against a kernel for every node; where compiling pays",
    .examples = "  lathe bench compile\n"
                "  lathe bench compile --model bert-base --task classify --rows 4 --repeats 5\n"
                "  lathe bench compile --model bert-tiny --training --iterations 5,50,200 --json",
    .setup = setup_fusion,
}};

std::function<int(const Settings&)> setup_op(Flags flags) {
  auto arguments = std::make_shared<Bench<bench::OpCallOptions>>();
  flags
      .add_option("call", arguments->options.call,
                  "the op with its operands' types, such as 'gelu(f32[1024,1024])'")
      .required();
  add_bench_options(flags, arguments->shared);
  return action_of(arguments,
                   [](bench::OpCallOptions options, const auto& execution, const auto& callbacks) {
                     return bench::time_op_call(options, execution, callbacks);
                   });
}
const Register op{Command{
    .name = "bench op",
    .summary = "one op, of a plugin perhaps, against its definition",
    .examples =
        "  lathe bench op 'gelu(f32[1024,1024])'\n"
        "  lathe bench op 'soft_clip(f32[4096,4096])' --plugin libsoft_clip.so --device cuda",
    .setup = setup_op,
}};

struct Mxint8Arguments : Bench<bench::Mxint8Options> {
  std::string tile, figure;
  std::vector<std::string> sizes, batches;
  bool no_products = false;
};

std::function<int(const Settings&)> setup_mxint8(Flags flags) {
  auto arguments = std::make_shared<Mxint8Arguments>();
  bench::Mxint8Options& options = arguments->options;
  flags.add_option("--tile", arguments->tile,
                   "ROWSxCOLUMNS of codes that a block of --threads copies [all there are]");
  flags.add_option("--group", options.group, "numbers that share an exponent: 16 to 128 [32]")
      .at_least(1);
  flags.add_option("--rows", options.rows, "of the matrix to decode [16384; on a CPU 8192]")
      .at_least(1);
  flags.add_option("--columns", options.columns, "of the matrix to decode [16384; on a CPU 4096]")
      .at_least(1);
  flags.add_flag("--float", options.to_float, "decode to float instead of bfloat16");
  flags
      .add_option("--sizes", arguments->sizes,
                  "of square packed weights [4096,8192; on a CPU 4096]")
      .separated_by(',');
  flags
      .add_option("--batches", arguments->batches,
                  "rows that are multiplied with them [1,4,16; on a CPU 1,4,512]")
      .separated_by(',');
  flags.add_option("--formats", options.formats, "of packed weights, as often as wanted [mxint:8]")
      .repeatable()
      .one_word();
  flags.add_flag("--no-products", arguments->no_products, "decode only");
  flags.add_option("--figure", arguments->figure, "which thread copies what, an .svg");
  add_bench_options(flags, arguments->shared);
  return [arguments](const Settings& settings) {
    check_picture("--out", arguments->shared.out);
    check_picture("--figure", arguments->figure);
    bench::Mxint8Options chosen = arguments->options;
    chosen.repeats = arguments->shared.repeats;
    read_counts("--sizes", arguments->sizes, chosen.sizes);
    read_counts("--batches", arguments->batches, chosen.batches);
    if (!arguments->tile.empty()) chosen.tile = bench::parse_tile(arguments->tile);
    // A GPU's threads are those of a block.
    if (settings.device == "cuda") chosen.threads = settings.threads;
    chosen.multiplies = !arguments->no_products;
    Execution execution(settings);
    const bench::Result result =
        bench::time_mxint8(chosen, execution.options(), bench_callbacks(settings));
    if (!arguments->figure.empty()) {
      if (result.drawing_svg.empty())
        fail("--figure {}: only a GPU works by tiles", arguments->figure);
      io::write_atomically(arguments->figure, result.drawing_svg);
    }
    print_bench(result, arguments->shared, settings);
    return 0;
  };
}
const Register mxint8{Command{
    .name = "bench mxint8",
    .summary = "MXINT8: decode by tiles against a copy, multiply with packed weights",
    .examples =
        "  lathe bench mxint8 --device cuda\n"
        "  lathe bench mxint8 --tile 8x512 --threads 256 --group 32 --figure tile.svg "
        "--device cuda\n"
        "  lathe bench mxint8 --formats mxint:8 --formats int:4,group=32 --device cuda\n"
        "  lathe bench mxint8                             # the same of a CPU, floats beside",
    .has_own_threads = true,
    .setup = setup_mxint8,
}};

std::function<int(const Settings&)> setup_memory(Flags flags) {
  auto options = std::make_shared<bench::MemoryOptions>();
  flags.add_option("--layers", options->layers, "of the encoder [48]").at_least(1);
  flags.add_option("--hidden", options->hidden, "its width [1024]").at_least(1);
  flags.add_option("--intermediate", options->intermediate, "width inside a layer [4096]")
      .at_least(1);
  flags.add_option("--heads", options->heads, "of attention [16]").at_least(1);
  flags.add_option("--vocabulary", options->vocabulary, "words of its table [50265]").at_least(1);
  flags.add_option("--format", options->format, "of packed weights [mxint:8]");
  return [options](const Settings& settings) {
    options->seed = settings.seed;
    Execution execution(settings);
    const bench::MemoryResult result =
        bench::measure_memory(*options, execution.options(), bench_callbacks(settings));
    if (settings.json) {
      print_json(to_json(result));
      return 0;
    }
    fmt::print("{}\n{}, {:.1f} million parameters\n\n{}", result.title, result.device,
               static_cast<double>(result.parameters) / 1e6, to_table(result).to_text());
    return 0;
  };
}
const Register memory{Command{
    .name = "bench memory",
    .summary = "what an encoder's weights take, as floats and packed",
    .examples = "  lathe bench memory                             # 48 layers, 1024 wide\n"
                "  lathe bench memory --format mxint:4 --device cuda --json",
    .setup = setup_memory,
}};

}  // namespace
}  // namespace lathe::cli::bench_command
