// What share of one core's multiply-add peak the float32 kernels reach on BERT-tiny's shapes,
// beside oneDNN's sgemm, and what share of a copy's bandwidth the memory-bound ones reach: those of
// inference first, then those of a training step.
//
//   bench_kernels [plain|avx2|avx512]
//
// Contenders alternate in one run and each reports its best short window, because the clock of a
// shared machine drifts by more than the difference between them. Time is the thread's own: what
// others take of the processor is not counted.

#include "lathe/engine/cpu/kernels.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "bench/race.h"
#include "lathe/core/error.h"

#ifdef LATHE_HAVE_DNNL
#include <oneapi/dnnl/dnnl.h>
#endif

namespace {

using namespace lathe::engine;
using lathe::bench::random_floats;

/// The least seconds one call of each contender takes.
std::vector<double> race(const std::vector<std::function<void()>>& contenders) {
  std::vector<double> best;
  for (const std::vector<double>& times : lathe::bench::race(contenders, 40, 0.005))
    best.push_back(std::ranges::min(times));
  return best;
}

void bench_gemm(const Kernels& table, double peak, std::int64_t rows, std::int64_t n,
                std::int64_t k, Unary activation) {
  const std::vector<float> x = random_floats(rows * k);
  const std::vector<float> weight = random_floats(n * k);
  const std::vector<float> bias = random_floats(n);
  std::vector<float> y(static_cast<std::size_t>(rows * n));
  std::vector<float> packed(static_cast<std::size_t>(table.packed_size(n, k)));
  table.pack_b(weight.data(), n, k, k, 1, packed.data());
  std::vector<std::function<void()>> contenders = {[&] {
    table.gemm({.rows = rows,
                .n = n,
                .k = k,
                .x = x.data(),
                .x_stride = k,
                .packed = packed.data(),
                .bias = bias.data(),
                .activation = activation,
                .residual = nullptr,
                .residual_stride = 0,
                .y = y.data(),
                .y_stride = n,
                .accumulate = false});
  }};
#ifdef LATHE_HAVE_DNNL
  std::vector<float> theirs(y.size());
  contenders.emplace_back([&] {
    dnnl_sgemm('N', 'T', rows, n, k, 1.0f, x.data(), k, weight.data(), k, 0.0f, theirs.data(), n);
  });
#endif
  const std::vector<double> best = race(contenders);
  const double flops = 2e-9 * static_cast<double>(rows * n * k);
  fmt::print("gemm {:5} x {:4} x {:4} {:10} {:7.1f} GFLOP/s {:4.0f} % of peak", rows, n, k,
             activation == Unary::GeluErf ? "bias gelu" : "bias", flops / best[0],
             100 * flops / best[0] / peak);
  if (best.size() > 1)
    fmt::print("   oneDNN, product only {:7.1f}, ratio {:.2f}", flops / best[1], best[1] / best[0]);
  fmt::print("\n");
}

void bench_attention(const Kernels& table, double peak, std::int64_t length, bool causal) {
  // One head of a fused buffer of query, key and value, two heads of 64 each.
  constexpr std::int64_t kWidth = 64;
  constexpr std::int64_t kStride = 384;
  const std::vector<float> qkv = random_floats(length * kStride);
  std::vector<float> out(static_cast<std::size_t>(length * 128));
  std::vector<float> scratch(
      static_cast<std::size_t>(table.attention_scratch_size(length, length, kWidth)));
  const std::vector<double> best = race({[&] {
    table.attention({.lq = length,
                     .lk = length,
                     .d = kWidth,
                     .q_begin = 0,
                     .q_end = length,
                     .q = qkv.data(),
                     .k = qkv.data() + 128,
                     .v = qkv.data() + 256,
                     .out = out.data(),
                     .q_stride = kStride,
                     .k_stride = kStride,
                     .v_stride = kStride,
                     .out_stride = 128,
                     .scale = 0.125f,
                     .causal = causal,
                     .keep = nullptr,
                     .row_log_sum_exp = nullptr,
                     .scratch = scratch.data()});
  }});
  // A causal head does half the work; it is counted as half.
  const double flops = (causal ? 2e-9 : 4e-9) * static_cast<double>(length * length * kWidth);
  fmt::print("attention length {:4} d {} {:6} {:7.1f} GFLOP/s {:4.0f} % of peak\n", length, kWidth,
             causal ? "causal" : "", flops / best[0], 100 * flops / best[0] / peak);
}

void bench_weight_gradient(const Kernels& table, double peak, std::int64_t rows, std::int64_t n,
                           std::int64_t k) {
  const std::vector<float> dy = random_floats(rows * n);
  const std::vector<float> x = random_floats(rows * k);
  std::vector<float> dw(static_cast<std::size_t>(n * k));
  std::vector<std::function<void()>> contenders = {[&] {
    table.weight_gradient({.rows = rows,
                           .n = n,
                           .k = k,
                           .dy = dy.data(),
                           .dy_stride = n,
                           .x = x.data(),
                           .x_stride = k,
                           .dw = dw.data(),
                           .dw_stride = k,
                           .accumulate = false});
  }};
#ifdef LATHE_HAVE_DNNL
  std::vector<float> theirs(dw.size());
  contenders.emplace_back([&] {
    dnnl_sgemm('T', 'N', n, k, rows, 1.0f, dy.data(), n, x.data(), k, 0.0f, theirs.data(), k);
  });
#endif
  const std::vector<double> best = race(contenders);
  const double flops = 2e-9 * static_cast<double>(rows * n * k);
  fmt::print("weight gradient {:4} rows, {:3} x {:3} {:7.1f} GFLOP/s {:4.0f} % of peak", rows, n, k,
             flops / best[0], 100 * flops / best[0] / peak);
  if (best.size() > 1)
    fmt::print("   oneDNN {:7.1f}, ratio {:.2f}", flops / best[1], best[1] / best[0]);
  fmt::print("\n");
}

/// Forward and backward, each without and with a tenth of the weights dropped.
void bench_attention_training(const Kernels& table, double peak, std::int64_t length) {
  constexpr std::int64_t kWidth = 64;
  constexpr std::int64_t kStride = 384;
  const std::vector<float> qkv = random_floats(length * kStride);
  const std::vector<float> dout = random_floats(length * 128);
  std::vector<float> out(dout.size());
  std::vector<float> dqkv(qkv.size());
  std::vector<float> scratch(static_cast<std::size_t>(
      std::max(table.attention_scratch_size(length, length, kWidth),
               table.attention_backward_scratch_size(length, length, kWidth))));
  const auto forward = [&](std::uint32_t threshold) {
    return [&, threshold] {
      table.attention({.lq = length,
                       .lk = length,
                       .d = kWidth,
                       .q_begin = 0,
                       .q_end = length,
                       .q = qkv.data(),
                       .k = qkv.data() + 128,
                       .v = qkv.data() + 256,
                       .out = out.data(),
                       .q_stride = kStride,
                       .k_stride = kStride,
                       .v_stride = kStride,
                       .out_stride = 128,
                       .scale = 0.125f,
                       .causal = false,
                       .keep = nullptr,
                       .row_log_sum_exp = nullptr,
                       .scratch = scratch.data(),
                       .dropout = {.threshold = threshold, .seed = 1, .step = 1, .site = 1},
                       .head = 0,
                       .example = 0});
    };
  };
  const auto backward = [&](std::uint32_t threshold) {
    return [&, threshold] {
      table.attention_backward(
          {.lq = length,
           .lk = length,
           .d = kWidth,
           .q = qkv.data(),
           .k = qkv.data() + 128,
           .v = qkv.data() + 256,
           .dout = dout.data(),
           .q_stride = kStride,
           .k_stride = kStride,
           .v_stride = kStride,
           .dout_stride = 128,
           .dq = dqkv.data(),
           .dk = dqkv.data() + 128,
           .dv = dqkv.data() + 256,
           .dq_stride = kStride,
           .dk_stride = kStride,
           .dv_stride = kStride,
           .accumulate = false,
           .scale = 0.125f,
           .causal = false,
           .keep = nullptr,
           .dropout = {.threshold = threshold, .seed = 1, .step = 1, .site = 1},
           .head = 0,
           .example = 0,
           .scratch = scratch.data()});
    };
  };
  const std::vector<double> best = race({forward(0), forward(6554), backward(0), backward(6554)});
  const double product = 2e-9 * static_cast<double>(length * length * kWidth);
  fmt::print(
      "attention length {:4} d {}: backward {:7.1f} GFLOP/s {:3.0f} % of peak; dropout costs "
      "{:.0f} "
      "% forward, {:.0f} % backward\n",
      length, kWidth, 5 * product / best[2], 100 * 5 * product / best[2] / peak,
      100 * (best[1] / best[0] - 1), 100 * (best[3] / best[2] - 1));
}

/// The bandwidth of each kernel of a training step that is bound by memory, counting what it must
/// read and write, beside a copy's, over `rows` times 128 floats.
void bench_training_memory(const Kernels& table, std::int64_t rows) {
  constexpr std::int64_t kWidth = 128;
  const std::int64_t count = rows * kWidth;
  const std::vector<float> x = random_floats(count);
  const std::vector<float> dy = random_floats(count);
  const std::vector<float> gamma = random_floats(kWidth);
  const std::vector<std::int32_t> indices(static_cast<std::size_t>(rows), 1);
  std::vector<float> y(x.size()), m(x.size()), v(x.size(), 1.0f), sums(2 * kWidth);
  double squares = 0;
  struct Contender {
    const char* name;
    double arrays;  // read and written
    std::function<void()> body;
  };
  const std::vector<Contender> contenders = {
      {"memcpy", 2, [&] { std::memcpy(y.data(), x.data(), x.size() * sizeof(float)); }},
      {"layer norm backward", 3,
       [&] {
         table.layer_norm_backward({.rows = rows,
                                    .n = kWidth,
                                    .dy = dy.data(),
                                    .dy_stride = kWidth,
                                    .x = x.data(),
                                    .x_stride = kWidth,
                                    .gamma = gamma.data(),
                                    .eps = 1e-12f,
                                    .dx_add = nullptr,
                                    .dx_add_stride = 0,
                                    .dx = y.data(),
                                    .dx_stride = kWidth,
                                    .dgamma = sums.data(),
                                    .dbeta = sums.data() + kWidth});
       }},
      {"gelu backward", 3,
       [&] { table.unary_backward(Unary::GeluErf, dy.data(), x.data(), count, y.data()); }},
      {"dropout", 2,
       [&] {
         table.dropout_rows({.rows = rows,
                             .n = kWidth,
                             .x = x.data(),
                             .x_stride = kWidth,
                             .residual = nullptr,
                             .residual_stride = 0,
                             .y = y.data(),
                             .y_stride = kWidth,
                             .dropout = {.threshold = 6554, .seed = 1, .step = 1, .site = 1},
                             .positions = indices.data(),
                             .examples = indices.data()});
       }},
      {"adamw", 7,
       [&] {
         table.adamw({.count = count,
                      .param = y.data(),
                      .gradient = x.data(),
                      .m = m.data(),
                      .v = v.data(),
                      .scale = 1.0f,
                      .beta1 = 0.9f,
                      .one_minus_beta1 = 0.1f,
                      .beta2 = 0.999f,
                      .one_minus_beta2 = 0.001f,
                      .decay = 1.0f,
                      .step_size = 1e-5f,
                      .root_correction = 1.0f,
                      .eps = 1e-8f});
       }},
      {"sum of squares", 1, [&] { squares += table.sum_squares(x.data(), count); }},
      {"sum of rows", 1,
       [&] { table.sum_rows_accumulate(x.data(), rows, kWidth, kWidth, sums.data()); }},
  };
  std::vector<std::function<void()>> bodies;
  for (const Contender& contender : contenders) bodies.push_back(contender.body);
  const std::vector<double> best = race(bodies);
  fmt::print("{:6.1f} MB an array, GB/s and share of memcpy:", 4e-6 * static_cast<double>(count));
  const auto bandwidth = [&](std::size_t i) {
    return contenders[i].arrays * 4e-9 * static_cast<double>(count) / best[i];
  };
  for (std::size_t i = 0; i < contenders.size(); ++i)
    fmt::print("{} {} {:.1f} ({:.0f} %)", i == 0 ? "" : ",", contenders[i].name, bandwidth(i),
               100 * bandwidth(i) / bandwidth(0));
  fmt::print("\n");
}

/// Masked-language-model logits, a long row each.
void bench_cross_entropy(const Kernels& table, std::int64_t rows, std::int64_t classes) {
  const std::vector<float> logits = random_floats(rows * classes);
  std::vector<float> dlogits(logits.size());
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(rows), 1);
  double sum = 0;
  std::int64_t count = 0;
  const std::vector<double> best = race({
      [&] { std::memcpy(dlogits.data(), logits.data(), logits.size() * sizeof(float)); },
      [&] {
        table.cross_entropy_rows({.rows = rows,
                                  .classes = classes,
                                  .logits = logits.data(),
                                  .logits_stride = classes,
                                  .labels = labels.data(),
                                  .ignore_index = -100,
                                  .sum = &sum,
                                  .count = &count});
      },
      [&] {
        table.cross_entropy_backward_rows({.rows = rows,
                                           .classes = classes,
                                           .logits = logits.data(),
                                           .logits_stride = classes,
                                           .labels = labels.data(),
                                           .ignore_index = -100,
                                           .dsum = 1.0f,
                                           .dlogits = dlogits.data(),
                                           .dlogits_stride = classes});
      },
  });
  const double gigabytes = 4e-9 * static_cast<double>(rows * classes);
  fmt::print("cross entropy {} x {}: memcpy {:.1f} GB/s, loss {:.1f}, gradient {:.1f}\n", rows,
             classes, 2 * gigabytes / best[0], gigabytes / best[1], 2 * gigabytes / best[2]);
}

/// Bytes read and written by each, over buffers of `rows` times 128 floats.
void bench_memory(const Kernels& table, std::int64_t rows) {
  constexpr std::int64_t kWidth = 128;
  const std::int64_t count = rows * kWidth;
  const std::vector<float> x = random_floats(count);
  const std::vector<float> gamma = random_floats(kWidth);
  std::vector<float> y(x.size());
  const std::vector<double> best = race({
      [&] { std::memcpy(y.data(), x.data(), x.size() * sizeof(float)); },
      [&] {
        table.layer_norm({.rows = rows,
                          .n = kWidth,
                          .x = x.data(),
                          .x_stride = kWidth,
                          .residual = nullptr,
                          .residual_stride = 0,
                          .gamma = gamma.data(),
                          .beta = gamma.data(),
                          .eps = 1e-12f,
                          .y = y.data(),
                          .y_stride = kWidth,
                          .mean = nullptr,
                          .rstd = nullptr});
      },
      [&] { table.unary(Unary::GeluErf, x.data(), count, y.data()); },
      [&] {
        table.softmax_rows({.rows = rows,
                            .n = kWidth,
                            .x = x.data(),
                            .x_stride = kWidth,
                            .y = y.data(),
                            .y_stride = kWidth});
      },
  });
  const double gigabytes = 8e-9 * static_cast<double>(count);
  fmt::print("{:6.1f} MB in: memcpy {:.1f} GB/s, layer norm {:.1f}, gelu {:.1f}, softmax {:.1f}\n",
             4e-6 * static_cast<double>(count), gigabytes / best[0], gigabytes / best[1],
             gigabytes / best[2], gigabytes / best[3]);
}

void run(Isa isa) {
  const Kernels& table = kernels(isa);
  const double peak = fma_peak(isa, 0.5);
  fmt::print("{}, one thread: {:.1f} GFLOP/s in multiply-adds\n", table.isa, peak);
#ifndef LATHE_HAVE_DNNL
  fmt::print("oneDNN is absent (Debian: libdnnl-dev): no ratios\n");
#endif
  for (const std::int64_t rows : {128, 512, 4096})
    for (const auto& [n, k] : {std::pair{128, 128}, {384, 128}, {512, 128}, {128, 512}})
      bench_gemm(table, peak, rows, n, k, Unary::None);
  bench_gemm(table, peak, 4096, 512, 128, Unary::GeluErf);
  bench_gemm(table, peak, 512, 3072, 768, Unary::None);
  for (const std::int64_t length : {64, 128, 256, 512}) bench_attention(table, peak, length, false);
  bench_attention(table, peak, 512, true);
  bench_memory(table, 128);
  bench_memory(table, 65536);
  for (const std::int64_t rows : {42, 84, 336, 4096})
    for (const auto& [n, k] : {std::pair{128, 128}, {384, 128}, {512, 128}, {128, 512}})
      bench_weight_gradient(table, peak, rows, n, k);
  for (const std::int64_t length : {64, 128, 256, 512})
    bench_attention_training(table, peak, length);
  bench_training_memory(table, 336);
  bench_training_memory(table, 65536);
  bench_cross_entropy(table, 64, 30522);
}

}  // namespace

int main(int argc, char** argv) {
  // oneDNN runs on OpenMP and would use every core. The library came with it, so it is asked by
  // name.
  if (void* found = dlsym(RTLD_DEFAULT, "omp_set_num_threads"))
    reinterpret_cast<void (*)(int)>(found)(1);
  const Isa best = best_isa();
  const std::optional<Isa> isa = argc > 1 ? parse_isa(argv[1]) : std::optional(best);
  if (!isa || !is_supported(*isa)) {
    fmt::print(stderr, "bench_kernels: {}: expected plain, avx2 or avx512, up to {} here\n",
               argv[1], name(best));
    return 1;
  }
  run(*isa);
}
