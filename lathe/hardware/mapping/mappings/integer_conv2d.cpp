#include "lathe/core/registry.h"
#include "lathe/hardware/mapping/image_windows.h"

// The pixels under a window are the vectors of one product of a matrix_vector, so the columns of
// its matrix go pixel by pixel, and channels within. Groups are columns of zeros.
namespace lathe::hardware::integer_conv2d_mapping {
namespace {

std::pair<std::int64_t, std::int64_t> sizes(const GraphMapper& mapper, NodeId node) {
  return {image_operand(mapper, node).dims[0],
          mapper.example_dims(mapper.graph().input(node, 1)).front()};
}

Values matrix(const Values& weight, std::int64_t outputs, std::int64_t channels,
              std::int64_t groups, std::int64_t taps) {
  const std::int64_t in_group = channels / groups, out_group = outputs / groups;
  Values result(static_cast<std::size_t>(outputs * taps * channels));
  for (std::int64_t o = 0; o < outputs; ++o)
    for (std::int64_t c = 0; c < in_group; ++c)
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t channel = o / out_group * in_group + c;
        result[static_cast<std::size_t>((o * taps + tap) * channels + channel)] =
            weight[static_cast<std::size_t>((o * in_group + c) * taps + tap)];
      }
  return result;
}

void map(GraphMapper& mapper, NodeId node) {
  const Graph& graph = mapper.graph();
  const AttributeReader attributes = graph.attribute(node);
  const auto [channels, outputs] = sizes(mapper, node);
  const Lanes lanes = mapper.lanes(node, channels, outputs);
  const std::vector<std::int64_t> kernel = mapper.example_dims(graph.input(node, 1));
  const ops::Window window =
      ops::read_window("integer_conv2d", kernel[2], kernel[3], attributes, true);
  const std::int64_t taps = kernel[2] * kernel[3];
  Instance instance{.name = "",
                    .block = "matrix_vector",
                    .parameters = {{"outputs", outputs}, {"lanes", lanes.out}, {"groups", taps}},
                    .tables = {{"weight", matrix(mapper.integers(graph.input(node, 1)), outputs,
                                                 channels, attributes.integer("groups"), taps)}}};
  if (const Value bias = graph.input(node, 2); !bias.is_none())
    instance.tables["bias"] = mapper.integers(bias);
  const NodeId result = mapper.requant_behind(node).value_or(node);
  mapper.add_requantization(instance, result);
  instance.inputs = {add_windows(mapper, node, window, lanes.in, 0)};
  const MappedValue y =
      mapped_image(mapper.add(node, std::move(instance), result), mapper.example_dims({node, 0}));
  mapper.set(node, y);
  mapper.set(result, y);
}

const Register registration{BlockMapping{.name = "integer_conv2d", .map = map, .sizes = sizes}};

}  // namespace
}  // namespace lathe::hardware::integer_conv2d_mapping
