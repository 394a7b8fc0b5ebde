#pragma once

#include "lathe/hardware/mapping/graph_mapper.h"
#include "lathe/ops/window.h"

namespace lathe::hardware {

/// The images that a node reads: channels, rows and columns, pixel by pixel. Fails where they come
/// in another way.
const MappedValue& image_operand(const GraphMapper& mapper, NodeId node);

/// The pixels under each place of a window, one after the other, in beats of so many lanes;
/// `outside` where the window leaves the image.
StreamId add_windows(GraphMapper& mapper, NodeId node, const ops::Window& window, int lanes,
                     std::int64_t outside);

/// An image of these dims (channels, rows, columns) that a stream brings pixel by pixel.
MappedValue mapped_image(StreamId stream, std::vector<std::int64_t> dims);

}  // namespace lathe::hardware
