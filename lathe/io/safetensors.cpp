#include "lathe/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"

namespace lathe::io {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

constexpr std::size_t kLengthBytes = 8;

// The header's text, once its length is known to lie inside the file.
std::string_view header_text(const MappedFile& file) {
  if (file.size() < kLengthBytes)
    fail("is {} bytes long, expected at least the 8 of a safetensors header length", file.size());
  std::uint64_t length = 0;
  std::memcpy(&length, file.bytes().data(), kLengthBytes);
  if (length > kMaxHeaderBytes)
    fail("header length {} exceeds the limit of {} bytes", length, kMaxHeaderBytes);
  const std::size_t rest = file.size() - kLengthBytes;
  if (length > rest) fail("header length {} exceeds the {} bytes that follow it", length, rest);
  return file.text().substr(kLengthBytes, static_cast<std::size_t>(length));
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  return SafetensorsFile(MappedFile::open(path));
}

SafetensorsFile::SafetensorsFile(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {
  with_place(path().string(), [&] {
    const std::string_view text = header_text(*file_);
    data_begin_ = kLengthBytes + text.size();
    header_ = std::make_shared<const SafetensorsHeader>(
        parse_safetensors_header(text, file_->size() - data_begin_));
  });
  std::map<std::string_view, std::size_t> index;
  for (std::size_t i = 0; i < tensors().size(); ++i) index.emplace(tensors()[i].name, i);
  index_ = std::make_shared<const std::map<std::string_view, std::size_t>>(std::move(index));
}

const TensorInfo* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_->find(name);
  return found == index_->end() ? nullptr : &tensors()[found->second];
}

const TensorInfo& SafetensorsFile::info(std::string_view name) const {
  const TensorInfo* found = find(name);
  if (!found) fail("{}: has no tensor {}", path().string(), quote_text(name));
  return *found;
}

std::span<const std::byte> SafetensorsFile::bytes(const TensorInfo& info) const {
  return file_->bytes().subspan(data_begin_ + info.begin, info.end - info.begin);
}

std::span<const std::byte> SafetensorsFile::bytes(std::string_view name) const {
  return bytes(info(name));
}

Tensor SafetensorsFile::tensor(std::string_view tensor_name) const {
  const TensorInfo& tensor = info(tensor_name);
  const std::optional<DType> dtype = dtype_of(tensor.dtype);
  if (!dtype)
    fail(
        "{}: tensor {}: dtype {} cannot be computed with, expected one of BOOL, U8, I8, I16, I32, "
        "I64, F16, BF16, F32, F64",
        path().string(), quote_text(tensor_name), name(tensor.dtype));
  const std::span<const std::byte> data = bytes(tensor);
  if (dtype == DType::Bool) {
    // Reading any other byte as a C++ bool is undefined.
    const auto bad = std::ranges::find_if(data, [](std::byte b) { return b > std::byte{1}; });
    if (bad != data.end())
      fail("{}: tensor {}: element {} is {}, expected 0 or 1", path().string(),
           quote_text(tensor_name), bad - data.begin(), static_cast<int>(*bad));
  }
  const auto address = reinterpret_cast<std::uintptr_t>(data.data());
  if (address % static_cast<std::uintptr_t>(size_of(*dtype)) == 0)
    return Tensor::view(*dtype, tensor.dims, data.data(), file_);
  Tensor copy(*dtype, tensor.dims);
  std::ranges::copy(data, copy.mutable_bytes());
  return copy;
}

}  // namespace lathe::io
