#include "lathe/io/stored_sizes.h"

#include "lathe/io/weight_directory.h"

namespace lathe::io {

std::vector<StoredSize> stored_sizes(const std::filesystem::path& directory) {
  const StoredWeights stored = read_stored_weights(directory);
  std::vector<StoredSize> sizes;
  for (const auto& [name, tensor] : stored.tensors) {
    StoredSize size{
        name, tensor.dtype(), tensor.dims(), tensor.num_bytes(), tensor.num_bytes(), "as it is"};
    if (const auto form = stored.forms.find(name); form != stored.forms.end()) {
      size.dtype = form->second.dtype;
      size.dims = form->second.dims;
      size.bytes = num_elements(size.dims) * size_of(size.dtype);
      size.form = describe(form->second);
    }
    sizes.push_back(std::move(size));
  }
  return sizes;
}

}  // namespace lathe::io
