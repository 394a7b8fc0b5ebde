#include <algorithm>
#include <cstring>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/io/atomic_file.h"
#include "lathe/io/safetensors.h"

namespace lathe::io {
namespace {

// Nothing is written that our own reader would refuse.
void check_tensor(const std::string& tensor_name, const StoredTensor& tensor) {
  if (tensor_name == kMetadataKey) fail("tensor {}: the name is reserved", quote_text(tensor_name));
  if (tensor_name.size() > kMaxTensorName)
    fail("tensor {}: name of {} bytes, expected at most {}", quote_text(tensor_name),
         tensor_name.size(), kMaxTensorName);
  if (tensor.dims.size() > kMaxRank)
    fail("tensor {}: rank {}, expected at most {}", quote_text(tensor_name), tensor.dims.size(),
         kMaxRank);
  check(num_stored_bytes(tensor.dtype, tensor.dims) == tensor.bytes.size(),
        "as many bytes as the tensor's shape and type need");
}

}  // namespace

void write_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, StoredTensor, std::less<>>& tensors,
                       const Metadata& metadata) {
  // Types with wide elements come first, so that each tensor is aligned to its element without
  // gaps. The map is sorted by name and the sort is stable.
  std::vector<const std::pair<const std::string, StoredTensor>*> order;
  order.reserve(tensors.size());
  for (const auto& entry : tensors) order.push_back(&entry);
  std::ranges::stable_sort(order, std::greater<>(),
                           [](const auto* entry) { return entry->second.dtype; });

  const std::string text = with_place(path.string(), [&] {
    if (tensors.size() > kMaxTensors)
      fail("{} tensors, expected at most {}", tensors.size(), kMaxTensors);
    if (metadata.size() > kMaxMetadataKeys)
      fail("{} metadata keys, expected at most {}", metadata.size(), kMaxMetadataKeys);
    SafetensorsHeader header{.metadata = metadata, .tensors = {}};
    std::uint64_t offset = 0;
    for (const auto* entry : order) {
      const auto& [tensor_name, tensor] = *entry;
      check_tensor(tensor_name, tensor);
      const std::uint64_t end = offset + tensor.bytes.size();
      header.tensors.push_back({tensor_name, tensor.dtype, tensor.dims, offset, end});
      offset = end;
    }
    std::string printed = print_safetensors_header(header);
    if (printed.size() > kMaxHeaderBytes)
      fail("header of {} bytes, expected at most {}", printed.size(), kMaxHeaderBytes);
    return printed;
  });

  AtomicFile file(path);
  const std::uint64_t length = text.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  for (const auto* entry : order) file.write(entry->second.bytes);
  file.commit();
}

void write_safetensors(const std::filesystem::path& path, const State& tensors,
                       const Metadata& metadata) {
  std::map<std::string, StoredTensor, std::less<>> stored;
  for (const auto& [tensor_name, tensor] : tensors)
    stored.emplace(tensor_name,
                   StoredTensor{stored_type_of(tensor.dtype()),
                                tensor.dims(),
                                {tensor.bytes(), static_cast<std::size_t>(tensor.num_bytes())}});
  write_safetensors(path, stored, metadata);
}

}  // namespace lathe::io
