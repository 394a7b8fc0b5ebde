#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/core/tensor.h"
#include "lathe/io/mapped_file.h"
#include "lathe/io/safetensors_header.h"

namespace lathe::io {

/// A safetensors file open for reading, checked in full when opened. Cheap to copy.
class SafetensorsFile {
 public:
  static SafetensorsFile open(const std::filesystem::path& path);
  explicit SafetensorsFile(std::shared_ptr<const MappedFile> file);

  const std::filesystem::path& path() const { return file_->path(); }
  const Metadata& metadata() const { return header_->metadata; }
  /// The tensors in the order of their data.
  const std::vector<TensorInfo>& tensors() const { return header_->tensors; }

  bool has(std::string_view name) const { return find(name) != nullptr; }
  const TensorInfo& info(std::string_view name) const;
  /// The bytes of a tensor of any type, valid while this file or a copy of it lives.
  std::span<const std::byte> bytes(std::string_view name) const;
  /// The tensor as a view of the file, which it keeps open, or as a copy where the file does not
  /// align it. Types that Tensor lacks are a UserError; read those with `bytes`.
  Tensor tensor(std::string_view name) const;

 private:
  const TensorInfo* find(std::string_view name) const;
  std::span<const std::byte> bytes(const TensorInfo& info) const;

  // Both are shared so that copies are cheap; nothing is written after the constructor.
  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<const SafetensorsHeader> header_;
  std::shared_ptr<const std::map<std::string_view, std::size_t>> index_;
  std::size_t data_begin_ = 0;
};

/// A tensor to be written as it is, whether or not we compute with its type.
struct StoredTensor {
  StoredType dtype = StoredType::F32;
  std::vector<std::int64_t> dims;
  std::span<const std::byte> bytes;
};

/// Writes a safetensors file, whole or not at all. The bytes are those of the format's reference
/// implementation; it leaves the order of two or more metadata keys open, here they are sorted.
void write_safetensors(const std::filesystem::path& path, const State& tensors,
                       const Metadata& metadata = {});
void write_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, StoredTensor, std::less<>>& tensors,
                       const Metadata& metadata = {});

}  // namespace lathe::io
