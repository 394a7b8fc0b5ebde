#include "lathe/experiment/bench/fusion.h"

#include <chrono>
#include <cmath>

#include "lathe/core/error.h"
#include "lathe/core/graph_text.h"
#include "lathe/experiment/compilation.h"

namespace lathe::experiment::bench {
namespace fusion {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Case {
  std::string name;
  Graph fused, alone;  // the same function; equal but where a graph has an op for the fused form
  State state;
  Feed feed;
};

State made_up_state(const Graph& graph, std::uint64_t seed) {
  // Named as inputs, they are made up as those are.
  Graph inputs;
  for (const NodeId id : graph.nodes_of("state"))
    inputs.add({.name = graph.name(id), .op = "input", .inputs = {}, .types = graph.types(id)});
  State state;
  for (auto& [name, tensor] : made_up_feed(inputs, {}, seed)) state[name] = std::move(tensor);
  return state;
}

Case chain(std::string name, const std::string& text, const std::string& alone = "") {
  Case result{
      std::move(name), parse_graph(text), parse_graph(alone.empty() ? text : alone), {}, {}};
  result.state = made_up_state(result.fused, 2);
  result.feed = made_up_feed(result.fused, {}, 1);
  return result;
}

Case linear_and_relu() {
  return chain("linear + relu, 4096x1024x256", R"(
    x = input() : f32[4096,256]
    w = state() : f32[1024,256]
    b = state() : f32[1024]
    a = linear(x, w, b) : f32[4096,1024]
    y = relu(a) : f32[4096,1024]
    output y <- y
  )");
}

Case norms() {
  return chain("add + layer norm, twice, 4096x768", R"(
    x = input() : f32[4096,768]
    r = input() : f32[4096,768]
    w = state() : f32[768]
    b = state() : f32[768]
    a = add(x, r) : f32[4096,768]
    n = layer_norm(a, w, b) : f32[4096,768]
    g = gelu(n) : f32[4096,768]
    c = add(g, n) : f32[4096,768]
    y = layer_norm(c, w, b) : f32[4096,768]
    output y <- y
  )");
}

// Functions of elements alone, of which each costs next to nothing beside what it reads and writes.
Case elements() {
  return chain("12 functions of elements, 4096x768", R"(
    x = input() : f32[4096,768]
    r = input() : f32[4096,768]
    w = state() : f32[768]
    b = state() : f32[768]
    half = constant() {values=[0.5]} : f32[]
    a = mul(x, w) : f32[4096,768]
    c = add(a, b) : f32[4096,768]
    d = relu(c) : f32[4096,768]
    e = sub(d, r) : f32[4096,768]
    f = mul(e, half) : f32[4096,768]
    g = mul(f, f) : f32[4096,768]
    h = add(g, x) : f32[4096,768]
    i = mul(h, w) : f32[4096,768]
    j = add(i, r) : f32[4096,768]
    k = sub(j, b) : f32[4096,768]
    l = mul(k, half) : f32[4096,768]
    y = relu(l) : f32[4096,768]
    output y <- y
  )");
}

// Heads as attention reads them, so that only what is multiplied differs.
Case attention() {
  const std::string inputs =
      "q = input() : f32[32,128,512]\nk = input() : f32[32,128,512]\nv = input() : "
      "f32[32,128,512]\n";
  return chain("attention, 32x8x128x64", inputs + R"(
    y = attention(q, k, v) {heads=8} : f32[32,128,512]
    output y <- y
  )",
               inputs + R"(
    scale = constant() {values=[0.125]} : f32[]
    q4 = reshape(q) : f32[32,128,8,64]
    k4 = reshape(k) : f32[32,128,8,64]
    v4 = reshape(v) : f32[32,128,8,64]
    qh = transpose(q4) {axes=[0,2,1,3]} : f32[32,8,128,64]
    kh = transpose(k4) {axes=[0,2,1,3]} : f32[32,8,128,64]
    vh = transpose(v4) {axes=[0,2,1,3]} : f32[32,8,128,64]
    product = matmul(qh, kh) {transpose_b=true} : f32[32,8,128,128]
    scores = mul(product, scale) : f32[32,8,128,128]
    weights = softmax(scores) : f32[32,8,128,128]
    yh = matmul(weights, vh) : f32[32,8,128,64]
    y4 = transpose(yh) {axes=[0,2,1,3]} : f32[32,128,8,64]
    y = reshape(y4) : f32[32,128,512]
    output y <- y
  )");
}

Case model_case(const FusionOptions& options) {
  Compilable model = load_for_compilation({.model = options.model,
                                           .task = options.task,
                                           .rows = options.rows,
                                           .length = options.length,
                                           .is_training = options.is_training,
                                           .seed = options.seed});
  // A batch of texts is of so many tokens each.
  std::string batch = std::to_string(options.rows);
  if (const auto length = model.sizes.find("L"); length != model.sizes.end())
    batch += fmt::format("x{}", length->second);
  else if (const auto tokens = model.sizes.find("T"); tokens != model.sizes.end())
    batch += fmt::format("x{}", tokens->second / options.rows);
  return {fmt::format("{}{}, {}", options.model, options.is_training ? ", training" : "", batch),
          model.graph, model.graph, std::move(model.state), std::move(model.feed)};
}

struct Form {
  std::unique_ptr<engine::Executor> executor;
  double compile_seconds = 0;
  std::vector<double> seconds = {};
  double bytes = 0;
  std::size_t kernels = 0;
};

Form compile_form(const Graph& graph, const State& state, const Feed& feed,
                  engine::ExecutionOptions execution, const char* device) {
  execution.device = device;
  const auto start = Clock::now();
  Form form{engine::make_executor(graph, state, execution)};
  form.compile_seconds = since(start);
  form.executor->run(feed);
  const engine::PlanReport report = form.executor->report();
  for (const engine::PlannedStep& step : report.steps) {
    if (step.is_for_states) continue;
    form.bytes += value_of(step.bytes, report.last_sizes);
    ++form.kernels;
  }
  return form;
}

void time_case(const Case& what, const FusionOptions& options,
               const engine::ExecutionOptions& execution, const Callbacks& callbacks,
               Result& result) {
  Form fused = compile_form(what.fused, what.state, what.feed, execution, "cpu");
  Form alone = compile_form(what.alone, what.state, what.feed, execution, "cpu-unfused");
  for (int i = -options.repeats.warm_up; i < options.repeats.samples; ++i)
    for (Form* form : {&fused, &alone}) {
      check_stop(callbacks);
      const auto start = Clock::now();
      form->executor->run(what.feed);
      if (i >= 0) form->seconds.push_back(since(start));
    }
  const Timing fast = timing_of(fused.seconds), slow = timing_of(alone.seconds);
  result.rows.push_back({.name = what.name + ": fused",
                         .time = fast,
                         .bytes = fused.bytes,
                         .note = fmt::format("{} kernels", fused.kernels)});
  result.rows.push_back({.name = what.name + ": alone",
                         .time = slow,
                         .bytes = alone.bytes,
                         .note = fmt::format("{} kernels", alone.kernels)});
  const double saved = alone.bytes - fused.bytes;
  result.notes.push_back(
      fmt::format("{}: {:.2f}x as fast; {:.1f} of {:.1f} MB are not read and written, which a copy "
                  "does in {:.2f} ms; {:.2f} ms were saved",
                  what.name, slow.median / fast.median, saved / 1e6, alone.bytes / 1e6,
                  saved / result.limits.bytes_per_second * 1e3, (slow.median - fast.median) * 1e3));
  std::vector<std::string> sums;
  for (const std::int64_t count : options.iterations) {
    const auto all = [&](const Form& form, const Timing& time) {
      return (form.compile_seconds + static_cast<double>(count) * time.median) * 1e3;
    };
    sums.push_back(
        fmt::format("{} runs {:.1f} and {:.1f} ms", count, all(fused, fast), all(alone, slow)));
  }
  const double gained = slow.median - fast.median;
  const double later = fused.compile_seconds - alone.compile_seconds;
  const std::string even = gained <= 0 ? "never pays"
                                       : fmt::format("pays from run {:.0f} on",
                                                     std::max(1.0, std::ceil(later / gained)));
  result.notes.push_back(fmt::format("  compiled in {:.1f} and {:.1f} ms; with that {}: {}",
                                     fused.compile_seconds * 1e3, alone.compile_seconds * 1e3,
                                     fmt::join(sums, ", "), even));
}

}  // namespace
}  // namespace fusion

Result time_fusion(const FusionOptions& options, const engine::ExecutionOptions& execution,
                   const Callbacks& callbacks) {
  if (execution.device != "cpu")
    fail("device {}: only the CPU can run nodes one by one: --device cpu", execution.device);
  for (const std::int64_t count : options.iterations)
    if (count < 1) fail("iterations {}: must be positive", count);
  Result result{.bench = "compile",
                .title = "fused, and a kernel for every node alone",
                .device = device_name(execution)};
  result.limits.bytes_per_second = copy_bandwidth(execution, callbacks);
  const fusion::Case cases[] = {fusion::linear_and_relu(), fusion::elements(), fusion::norms(),
                                fusion::attention(), fusion::model_case(options)};
  std::int64_t done = 0;
  for (const fusion::Case& each : cases) {
    if (!callbacks.goes_on({"timing", "cases", done++, std::ssize(cases)})) throw Interrupted();
    fusion::time_case(each, options, execution, callbacks, result);
  }
  return result;
}

}  // namespace lathe::experiment::bench
