#pragma once

#include <memory>

#include "lathe/core/tensor.h"
#include "lathe/io/mapped_file.h"

namespace lathe::io {

/// Reads the tensors of a file that `torch.save` made of a model's weights, as a zip archive or in
/// the form before it: a dictionary of names and tensors.
///
/// Such a file holds a pickle, a program. It is read as a description (pickle.h): whatever is no
/// tensor is refused by name, and nothing is run. Tensors that lie in one piece view the file.
State read_pytorch_file(const std::shared_ptr<const MappedFile>& file);

}  // namespace lathe::io
