#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lathe/hardware/netlist.h"
#include "lathe/hardware/passes/insert_forks.h"
#include "lathe/hardware/testing/expect_exact.h"

namespace lathe::hardware::testing {

/// Draws small networks of any blocks an MLP or a CNN is made of: chains, forks, residuals, several
/// outputs, lanes that divide nothing.
class RandomDesign {
 public:
  explicit RandomDesign(std::uint64_t seed) : random_(seed), netlist_("random") {}

  /// With forks, without FIFOs.
  Netlist draw_netlist() {
    const bool is_image = draw(random_, 0, 1) != 0;
    height_ = is_image ? draw(random_, 2, 6) : 1;
    columns_ = is_image ? draw(random_, 2, 6) : draw(random_, 1, 3);
    StreamId x =
        netlist_.add_input("x", {.element = draw_element(random_, 8),
                                 .lanes = static_cast<int>(draw(random_, 1, 4)),
                                 .size = is_image ? draw(random_, 1, 5) : draw(random_, 1, 16),
                                 .vectors = height_ * columns_});
    const std::int64_t steps = draw(random_, 1, 4);
    for (std::int64_t i = 0; i < steps; ++i) {
      const StreamId before = x;
      x = step(x);
      // Now and then a stream inside leaves too.
      if (i > 0 && draw(random_, 0, 7) == 0) netlist_.add_output(before);
    }
    netlist_.add_output(x);
    return insert_forks(netlist_);
  }

 private:
  std::string name(const char* kind) { return kind + std::to_string(++count_); }
  int lanes() { return static_cast<int>(draw(random_, 1, 4)); }
  Stream type(StreamId x) const { return netlist_.type(x); }

  StreamId step(StreamId x) {
    if (height_ > 1 && draw(random_, 0, 2) == 0) return pooled(x);
    switch (draw(random_, 0, 4)) {
      case 0:
        return residual(x);
      case 1:
        return activated(x);
      default:
        return height_ > 1 && draw(random_, 0, 1) == 0 ? convolved(x)
                                                       : linear(x, draw(random_, 1, 12));
    }
  }

  // A layer of as many outputs, and x beside it.
  StreamId residual(StreamId x) {
    const StreamId inner = draw(random_, 0, 1) == 0 ? activated(linear(x, draw(random_, 1, 9))) : x;
    const StreamId y = linear(inner, type(x).size);
    return netlist_.add_single({.name = name("sum"),
                                .block = "element_wise",
                                .parameters = {{"multiplier_a", draw(random_, 1, 5)},
                                               {"multiplier_b", draw(random_, 1, 200)},
                                               {"width", draw(random_, 2, 9)},
                                               {"shift", draw(random_, 0, 4)}},
                                .inputs = {convert_lanes(netlist_, y, type(x).lanes), x}});
  }

  StreamId product(StreamId x, std::int64_t outputs, std::int64_t groups) {
    const std::int64_t inputs = groups * type(x).size;
    Instance layer{
        .name = name("layer"),
        .block = "matrix_vector",
        .parameters = {{"outputs", outputs},
                       {"lanes", lanes()},
                       {"groups", groups},
                       {"width", draw(random_, 2, 8)},
                       {"signed", draw(random_, 0, 1)},
                       {"shift", draw(random_, 0, 9)},
                       {"mode", draw(random_, 0, 2)}},
        .tables = {{"weight", draw_values(random_, {.width = static_cast<int>(draw(random_, 2, 6))},
                                          outputs * inputs)}},
        .inputs = {x}};
    if (draw(random_, 0, 1) != 0)
      layer.tables["bias"] = draw_values(random_, {.width = 9}, outputs);
    if (draw(random_, 0, 3) == 0) {
      layer.tables["multiplier"] = draw_values(random_, {.width = 12, .is_signed = false}, outputs);
      layer.parameters["shift"] += 11;
    }
    return netlist_.add_single(std::move(layer));
  }
  StreamId linear(StreamId x, std::int64_t outputs) {
    return product(convert_lanes(netlist_, x, lanes()), outputs, 1);
  }

  StreamId windowed(StreamId x, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
    const StreamId y = netlist_.add_single({.name = name("window"),
                                            .block = "sliding_window",
                                            .parameters = {{"height", height_},
                                                           {"columns", columns_},
                                                           {"kernel_h", kernel},
                                                           {"kernel_w", kernel},
                                                           {"stride_h", stride},
                                                           {"stride_w", stride},
                                                           {"top", padding},
                                                           {"left", padding},
                                                           {"bottom", padding},
                                                           {"right", padding}},
                                            .inputs = {x}});
    height_ = (height_ + 2 * padding - kernel) / stride + 1;
    columns_ = (columns_ + 2 * padding - kernel) / stride + 1;
    return y;
  }
  StreamId convolved(StreamId x) {
    const std::int64_t kernel = draw(random_, 1, std::min<std::int64_t>({3, height_, columns_}));
    const StreamId windows = windowed(convert_lanes(netlist_, x, lanes()), kernel,
                                      draw(random_, 1, 2), draw(random_, 0, kernel - 1));
    return product(windows, draw(random_, 1, 5), kernel * kernel);
  }
  StreamId pooled(StreamId x) {
    const std::int64_t kernel = draw(random_, 1, std::min<std::int64_t>({2, height_, columns_}));
    const StreamId windows = windowed(x, kernel, kernel, 0);
    return netlist_.add_single({.name = name("pool"),
                                .block = "window_reduce",
                                .parameters = {{"count", kernel * kernel},
                                               {"op", draw(random_, 0, 1)},
                                               {"width", draw(random_, 2, 8)},
                                               {"shift", draw(random_, 0, 2)}},
                                .inputs = {windows}});
  }

  StreamId requantized(StreamId x) {
    return netlist_.add_single({.name = name("round"),
                                .block = "requantize",
                                .parameters = {{"width", draw(random_, 2, 8)},
                                               {"multiplier", draw(random_, 1, 9)},
                                               {"shift", draw(random_, 0, 4)}},
                                .inputs = {x}});
  }
  StreamId activated(StreamId x) {
    if (draw(random_, 0, 2) == 0) {
      const Element to = draw_element(random_, 7);
      return netlist_.add_single(
          {.name = name("table"),
           .block = "table_function",
           .parameters = {{"width", to.width}, {"signed", to.is_signed ? 1 : 0}},
           .tables = {{"table",
                       draw_values(random_, to, std::int64_t{1} << type(x).element.width)}},
           .inputs = {x}});
    }
    if (!type(x).element.is_signed) return requantized(x);
    Instance instance{.name = name("act"), .block = "relu", .inputs = {x}};
    if (draw(random_, 0, 2) == 0) instance.block = "random_leaky_relu";
    if (draw(random_, 0, 2) == 0) {
      instance.block = "leaky_relu";
      instance.parameters = {{"slope", draw(random_, 0, 9)}, {"shift", 3}};
    }
    return netlist_.add_single(std::move(instance));
  }

  Random random_;
  Netlist netlist_;
  int count_ = 0;
  std::int64_t height_ = 1, columns_ = 1;
};

/// Puts a copy of a design beside others, its names behind a prefix; gives its outputs in `all`.
inline std::vector<StreamId> add_beside(Netlist& all, const Netlist& part,
                                        const std::string& prefix) {
  std::vector<StreamId> copies(part.streams().size());
  for (const StreamId stream : part.inputs())
    copies[stream] = all.add_input(prefix + part.stream_name(stream), part.type(stream));
  for (const std::size_t i : topological_order(part)) {
    Instance instance = part.instances()[i];
    instance.name = prefix + instance.name;
    const std::vector<StreamId> outputs = std::exchange(instance.outputs, {});
    for (StreamId& stream : instance.inputs) stream = copies[stream];
    const std::vector<StreamId> added = all.add(std::move(instance));
    for (std::size_t o = 0; o < added.size(); ++o) copies[outputs[o]] = added[o];
  }
  std::vector<StreamId> outputs;
  for (const StreamId stream : part.outputs()) {
    outputs.push_back(copies[stream]);
    all.add_output(copies[stream]);
  }
  return outputs;
}

}  // namespace lathe::hardware::testing
