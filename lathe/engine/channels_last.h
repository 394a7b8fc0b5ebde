#pragma once

#include "lathe/core/graph.h"
#include "lathe/engine/backend.h"
#include "lathe/ops/window.h"

namespace lathe::engine {

/// Lets images lie as [N,H,W,C] between convolutions, where a backend can run them so: there the
/// numbers under a window are a few long runs, which products read where they lie.
///
/// conv2d, pooling and functions of elements behind a convolution become ops of image_ops.cpp or
/// themselves in the other layout. A convolution reads and writes either layout, so that images are
/// turned where they come in and go out; whoever else needs [N,C,H,W] reads a transpose. What the
/// transposes turn back and forth is left to remove-dead-nodes.
void use_channels_last(Graph& graph, const Backend& backend);

/// What follows a convolution becomes its epilogue: an addition, and then an activation. A batch
/// norm of given statistics has become part of it before, where no state is updated.
void fuse_convolutions(Graph& graph, const Backend& backend);

/// Batch norms as they are trained become part of the convolutions around them, and their gradients
/// of those of these; a part of fuse_convolutions.
void fuse_batch_norms(Graph& graph, const Backend& backend);

/// The window of the second convolution of an image_summed_conv2d, whose weight is constant.
ops::Window shortcut_window(const AttributeReader& attributes, const Type& weight);
/// The window of the pool of an image_pooled_conv2d.
ops::Window pool_behind(const AttributeReader& attributes);

/// [N,C,H,W] as [N,H,W,C], and back.
Type with_channels_last(const Type& type);
Type with_planes(const Type& type);

}  // namespace lathe::engine
