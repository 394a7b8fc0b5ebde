#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/io/stored_type.h"

namespace lathe::io {

/// One tensor of a safetensors file: bytes [begin, end) of its data.
struct TensorInfo {
  std::string name;
  StoredType dtype = StoredType::F32;
  std::vector<std::int64_t> dims;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool operator==(const TensorInfo&) const = default;
};

/// Free text by key; Hugging Face expects "format" to be "pt".
using Metadata = std::map<std::string, std::string, std::less<>>;

/// What a safetensors file says about itself; tensors are in the order of their data.
struct SafetensorsHeader {
  Metadata metadata;
  std::vector<TensorInfo> tensors;
};

/// Bounds that the reader enforces and the writer respects.
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
inline constexpr std::size_t kMaxTensors = 1'000'000;
inline constexpr std::size_t kMaxMetadataKeys = 100'000;
inline constexpr std::size_t kMaxTensorName = 4096;
inline constexpr std::size_t kMaxRank = 16;
inline constexpr std::string_view kMetadataKey = "__metadata__";

/// Parses the JSON text of a header and checks it against the `num_data_bytes` that follow it in
/// the file: the tensors are disjoint, leave no hole, and each has the bytes its shape and type
/// need.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t num_data_bytes);

/// The JSON text that the format's reference implementation writes, padded to a multiple of 8.
std::string print_safetensors_header(const SafetensorsHeader& header);

}  // namespace lathe::io
