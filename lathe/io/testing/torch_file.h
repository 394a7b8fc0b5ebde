#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Files as `torch.save` writes them, put together by hand.
namespace lathe::io::torch_file {

template <typename T>
std::string bytes_of(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes;
  for (const T value : values) bytes += bytes_of(value);
  return bytes;
}

inline std::string pickled(std::string_view text) {
  return "X" + bytes_of(static_cast<std::uint32_t>(text.size())) + std::string(text);
}

inline std::string pickled(std::int64_t value) {
  return "J" + bytes_of(static_cast<std::int32_t>(value));
}

inline std::string pickled(const std::vector<std::int64_t>& values) {
  std::string text = "(";
  for (const std::int64_t value : values) text += pickled(value);
  return text + "t";
}

/// A tensor as a pickle describes it: a part of the storage `key`.
struct TorchTensor {
  std::string type = "FloatStorage";
  std::string key = "0";
  std::int64_t storage_size = 0;
  std::int64_t offset = 0;
  std::vector<std::int64_t> dims = {};
  std::vector<std::int64_t> strides = {};
  bool is_old = false;
};

inline std::string pickled_tensor(const TorchTensor& tensor) {
  const std::string id = "(" + pickled("storage") + "ctorch\n" + tensor.type + "\n" +
                         pickled(tensor.key) + pickled("cpu") + pickled(tensor.storage_size) +
                         (tensor.is_old ? "Nt" : "t");
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + id + "Q" + pickled(tensor.offset) +
         pickled(tensor.dims) + pickled(tensor.strides) + "\x89" +
         "ccollections\nOrderedDict\n)RtR";
}

/// An OrderedDict of what is pickled, with the `_metadata` that modules add.
inline std::string pickled_weights(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string text =
      "\x80\x02"
      "ccollections\nOrderedDict\n)Rq\x01(";
  for (const auto& [name, value] : items) text += pickled(name) + value;
  return text + "u}" + pickled("_metadata") + "ccollections\nOrderedDict\n)Rsb.";
}

/// A zip archive of entries as they are.
inline std::string archive(const std::vector<std::pair<std::string, std::string>>& entries,
                           std::uint16_t method = 0) {
  std::string all, list;
  for (const auto& [name, bytes] : entries) {
    const auto size = static_cast<std::uint32_t>(bytes.size());
    const auto offset = static_cast<std::uint32_t>(all.size());
    // Version, flags, method, time, date, checksum, sizes, length of the name, no extra field.
    const std::string facts = bytes_of<std::uint16_t>(0) + bytes_of<std::uint16_t>(0) +
                              bytes_of(method) + std::string(8, '\0') + bytes_of(size) +
                              bytes_of(size) + bytes_of(static_cast<std::uint16_t>(name.size())) +
                              bytes_of<std::uint16_t>(0);
    all += bytes_of<std::uint32_t>(0x04034b50) + facts + name + bytes;
    list += bytes_of<std::uint32_t>(0x02014b50) + bytes_of<std::uint16_t>(0) + facts +
            std::string(10, '\0') + bytes_of(offset) + name;
  }
  const auto count = static_cast<std::uint16_t>(entries.size());
  return all + list + bytes_of<std::uint32_t>(0x06054b50) + std::string(4, '\0') + bytes_of(count) +
         bytes_of(count) + bytes_of(static_cast<std::uint32_t>(list.size())) +
         bytes_of(static_cast<std::uint32_t>(all.size())) + bytes_of<std::uint16_t>(0);
}

}  // namespace lathe::io::torch_file
