#include "lathe/io/pytorch_file.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "lathe/core/error.h"
#include "lathe/core/quote_text.h"
#include "lathe/io/pickle.h"
#include "lathe/io/safetensors_header.h"
#include "lathe/io/stored_archive.h"

namespace lathe::io {
namespace {

using Kind = Pickle::Kind;
using Value = Pickle::Value;

constexpr std::string_view kRebuildTensor = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kRebuildParameter = "torch._utils._rebuild_parameter";
constexpr std::size_t kMostPickleBytes = 100'000'000;

// The low eight bytes of the number that old files begin with, 0x1950a86a20f9469cfc6c.
constexpr auto kOldMagic = static_cast<std::int64_t>(0xa86a20f9469cfc6c);
constexpr std::int64_t kOldVersion = 1001;

struct StorageType {
  std::string_view name;
  DType dtype;
};
constexpr StorageType kStorageTypes[] = {
    {"torch.FloatStorage", DType::F32}, {"torch.DoubleStorage", DType::F64},
    {"torch.HalfStorage", DType::F16},  {"torch.BFloat16Storage", DType::BF16},
    {"torch.LongStorage", DType::I64},  {"torch.IntStorage", DType::I32},
    {"torch.ShortStorage", DType::I16}, {"torch.CharStorage", DType::I8},
    {"torch.ByteStorage", DType::U8},   {"torch.BoolStorage", DType::Bool},
};

std::vector<std::string_view> known_names() {
  std::vector<std::string_view> names = {kRebuildTensor, kRebuildParameter};
  for (const StorageType& type : kStorageTypes) names.push_back(type.name);
  return names;
}

// The numbers that one or more tensors are made of, as the pickle says and as they lie in the file.
struct Storage {
  DType dtype = DType::F32;
  std::int64_t num_elements = 0;
  std::span<const std::byte> bytes = {};
};

// The bytes of a storage by its key.
using FindBytes = std::function<std::span<const std::byte>(const std::string& key)>;

class TensorReader {
 public:
  TensorReader(const Pickle& pickle, FindBytes find_bytes, std::shared_ptr<const void> owner)
      : pickle_(pickle), find_bytes_(std::move(find_bytes)), owner_(std::move(owner)) {}

  State read() const {
    const Value& root = pickle_.root();
    if (root.kind != Kind::Dictionary) fail("holds no dictionary of tensors");
    if (root.pairs.size() > kMaxTensors)
      fail("{} tensors, expected at most {}", root.pairs.size(), kMaxTensors);
    State tensors;
    for (const auto& [key, value] : root.pairs) {
      if (pickle_[key].kind != Kind::Text) fail("a tensor's name is no text");
      const std::string& name = pickle_[key].text;
      if (name.size() > kMaxTensorName)
        fail("a tensor's name has {} bytes, expected at most {}", name.size(), kMaxTensorName);
      Tensor tensor = with_place(fmt::format("tensor {}", quote_text(name)),
                                 [&] { return tensor_of(pickle_[value]); });
      if (!tensors.emplace(name, std::move(tensor)).second)
        fail("has two tensors {}", quote_text(name));
    }
    return tensors;
  }

 private:
  // _rebuild_tensor_v2(storage, offset, size, stride, ...), or a parameter made of such a tensor.
  Tensor tensor_of(const Value& value) const {
    if (value.kind != Kind::Call) fail("is none: expected tensors alone");
    if (value.text == kRebuildParameter) {
      if (value.items.empty() || pickle_[value.items[0]].text != kRebuildTensor)
        fail("is a parameter without a tensor");
      return tensor_of(pickle_[value.items[0]]);
    }
    if (value.text != kRebuildTensor || value.items.size() < 4) fail("is made in another way");
    const Storage storage = storage_of(pickle_[value.items[0]]);
    const std::int64_t offset = integer_of(pickle_[value.items[1]]);
    const std::vector<std::int64_t> dims = integers_of(pickle_[value.items[2]]);
    const std::vector<std::int64_t> strides = integers_of(pickle_[value.items[3]]);
    check_fits(storage, offset, dims, strides);
    return is_in_one_piece(dims, strides) ? view(storage, offset, dims)
                                          : gather(storage, offset, dims, strides);
  }

  // ("storage", type, key, place, number of elements), in old files also whose view it is.
  Storage storage_of(const Value& value) const {
    if (value.kind != Kind::Outside) fail("has no storage");
    const Value& id = pickle_[value.items[0]];
    if (id.kind != Kind::Tuple || id.items.size() < 5 || pickle_[id.items[0]].text != "storage" ||
        pickle_[id.items[1]].kind != Kind::Name || pickle_[id.items[2]].kind != Kind::Text)
      fail("its storage is described in another way");
    if (id.items.size() > 5 && pickle_[id.items[5]].kind != Kind::None)
      fail("its storage is a part of another, which is not read");
    const auto type =
        std::ranges::find(kStorageTypes, pickle_[id.items[1]].text, &StorageType::name);
    if (type == std::end(kStorageTypes)) fail("its storage has no type");
    Storage storage{.dtype = type->dtype, .num_elements = integer_of(pickle_[id.items[4]])};
    storage.bytes = find_bytes_(pickle_[id.items[2]].text);
    const std::uint64_t present =
        storage.bytes.size() / static_cast<std::size_t>(size_of(storage.dtype));
    if (storage.num_elements < 0 || static_cast<std::uint64_t>(storage.num_elements) > present)
      fail("its storage has {} bytes, too few for {} elements of {}", storage.bytes.size(),
           storage.num_elements, name(storage.dtype));
    return storage;
  }

  static std::int64_t integer_of(const Value& value) {
    if (value.kind != Kind::Integer) fail("has another value where an integer is expected");
    return value.integer;
  }
  std::vector<std::int64_t> integers_of(const Value& value) const {
    if (value.kind != Kind::Tuple) fail("has no tuple of sizes");
    if (value.items.size() > kMaxRank)
      fail("has {} axes, expected at most {}", value.items.size(), kMaxRank);
    std::vector<std::int64_t> numbers;
    for (const Pickle::Id id : value.items) numbers.push_back(integer_of(pickle_[id]));
    return numbers;
  }

  // Every element lies in the storage, and there are not more of them than it has: a stride of 0
  // would make a large tensor of a small file.
  static void check_fits(const Storage& storage, std::int64_t offset,
                         const std::vector<std::int64_t>& dims,
                         const std::vector<std::int64_t>& strides) {
    if (dims.size() != strides.size())
      fail("has {} sizes and {} strides", dims.size(), strides.size());
    for (const std::int64_t size : dims)
      if (size < 0) fail("has a size of {}", size);
    if (std::ranges::find(dims, 0) != dims.end()) return;
    bool fits = offset >= 0 && offset < storage.num_elements;
    for (std::int64_t room = storage.num_elements; const std::int64_t size : dims)
      fits = fits && (room /= size) > 0;
    std::int64_t behind = storage.num_elements - 1 - offset;  // elements that axes may step over
    for (std::size_t i = 0; fits && i < dims.size(); ++i) {
      if (strides[i] < 0) fail("has a stride of {}", strides[i]);
      fits = strides[i] == 0 || dims[i] - 1 <= behind / strides[i];
      if (fits) behind -= (dims[i] - 1) * strides[i];
    }
    if (!fits)
      fail("is {} at element {}, outside its storage of {} elements", to_text(dims), offset,
           storage.num_elements);
  }

  static bool is_in_one_piece(const std::vector<std::int64_t>& dims,
                              const std::vector<std::int64_t>& strides) {
    std::int64_t expected = 1;
    for (std::size_t i = dims.size(); i-- > 0;) {
      if (dims[i] != 1 && strides[i] != expected) return false;
      expected *= dims[i];
    }
    return true;
  }

  Tensor view(const Storage& storage, std::int64_t offset,
              const std::vector<std::int64_t>& dims) const {
    const auto size = static_cast<std::size_t>(size_of(storage.dtype));
    const std::int64_t count = num_elements(dims);
    const std::span<const std::byte> bytes =
        count == 0 ? std::span<const std::byte>()
                   : storage.bytes.subspan(static_cast<std::size_t>(offset) * size,
                                           static_cast<std::size_t>(count) * size);
    check_truth_values(storage.dtype, bytes);
    if (count > 0 && reinterpret_cast<std::uintptr_t>(bytes.data()) % size == 0)
      return Tensor::view(storage.dtype, dims, bytes.data(), owner_);
    Tensor copy(storage.dtype, dims);
    std::ranges::copy(bytes, copy.mutable_bytes());
    return copy;
  }

  static Tensor gather(const Storage& storage, std::int64_t offset,
                       const std::vector<std::int64_t>& dims,
                       const std::vector<std::int64_t>& strides) {
    Tensor tensor(storage.dtype, dims);
    const auto size = static_cast<std::size_t>(size_of(storage.dtype));
    std::byte* target = tensor.mutable_bytes();
    std::vector<std::int64_t> index(dims.size(), 0);
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i, target += size) {
      const std::int64_t from =
          std::inner_product(index.begin(), index.end(), strides.begin(), offset);
      std::memcpy(target, storage.bytes.data() + static_cast<std::size_t>(from) * size, size);
      for (std::size_t axis = dims.size(); axis-- > 0;) {
        if (++index[axis] < dims[axis]) break;
        index[axis] = 0;
      }
    }
    check_truth_values(storage.dtype,
                       {tensor.bytes(), static_cast<std::size_t>(tensor.num_bytes())});
    return tensor;
  }

  // Reading any other byte as a C++ bool is undefined.
  static void check_truth_values(DType dtype, std::span<const std::byte> bytes) {
    if (dtype != DType::Bool) return;
    if (std::ranges::any_of(bytes, [](std::byte b) { return b > std::byte{1}; }))
      fail("has an element that is neither 0 nor 1");
  }

  const Pickle& pickle_;
  FindBytes find_bytes_;
  std::shared_ptr<const void> owner_;
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// NAME/data.pkl, and NAME/data/KEY for each storage.
State read_archive(const std::shared_ptr<const MappedFile>& file) {
  const StoredArchive archive(file);
  const std::string program = archive.only_entry("/data.pkl");
  const std::string root = program.substr(0, program.size() - std::strlen("data.pkl"));
  return with_place(file->path().string(), [&] {
    if (archive.has(root + "byteorder") && as_text(archive.bytes(root + "byteorder")) != "little")
      fail("its byte order is {}, expected little",
           quote_text(as_text(archive.bytes(root + "byteorder"))));
    std::string_view text = as_text(archive.bytes(program));
    if (text.size() > kMostPickleBytes)
      fail("data.pkl: {} bytes, expected at most {}", text.size(), kMostPickleBytes);
    const Pickle pickle =
        with_place("data.pkl", [&] { return Pickle::parse(text, known_names()); });
    const auto find_bytes = [&](const std::string& key) {
      return archive.bytes(root + "data/" + key);
    };
    return TensorReader(pickle, find_bytes, file).read();
  });
}

// Five pickles (a magic number, a version, facts about the machine, the tensors, the keys of the
// storages in order), then for each storage its number of elements and those.
class OldFile {
 public:
  explicit OldFile(const MappedFile& file) : rest_(file.text()) {}

  State read(const std::shared_ptr<const void>& owner) {
    if (next().root().integer != kOldMagic)
      fail("is no file of torch.save: neither a zip archive nor its older form");
    if (const std::int64_t version = next().root().integer; version != kOldVersion)
      fail("version {}, expected {}", version, kOldVersion);
    const Pickle machine = next();
    for (const auto& [key, value] : machine.root().pairs)
      if (machine[key].text == "little_endian" && machine[value].integer == 0)
        fail("its byte order is big, expected little");
    const Pickle tensors = next();
    const Pickle keys = next();
    // The lengths of storages count elements: how many bytes an element has, the tensors say.
    collect_types(tensors);
    for (const Pickle::Id id : keys.root().items) add_storage(keys[id].text);
    const auto find_bytes = [&](const std::string& key) {
      const auto found = storages_.find(key);
      if (found == storages_.end()) fail("storage {} is not in the file", quote_text(key));
      return found->second;
    };
    return TensorReader(tensors, find_bytes, owner).read();
  }

 private:
  Pickle next() {
    if (rest_.size() > kMostPickleBytes) {
      std::string_view part = rest_.substr(0, kMostPickleBytes);
      const std::size_t before = part.size();
      Pickle pickle = Pickle::parse(part, known_names());
      rest_.remove_prefix(before - part.size());
      return pickle;
    }
    return Pickle::parse(rest_, known_names());
  }

  void collect_types(const Pickle& pickle) {
    for (Pickle::Id id = 0; id < pickle.size(); ++id) {
      if (pickle[id].kind != Kind::Outside) continue;
      const Value& described = pickle[pickle[id].items[0]];
      if (described.kind != Kind::Tuple || described.items.size() < 3) continue;
      const auto type =
          std::ranges::find(kStorageTypes, pickle[described.items[1]].text, &StorageType::name);
      if (type != std::end(kStorageTypes))
        element_bytes_[pickle[described.items[2]].text] = size_of(type->dtype);
    }
  }

  void add_storage(const std::string& key) {
    const auto found = element_bytes_.find(key);
    if (found == element_bytes_.end()) fail("storage {} belongs to no tensor", quote_text(key));
    std::int64_t count = 0;
    if (rest_.size() < sizeof(count)) fail("ends before storage {}", quote_text(key));
    std::memcpy(&count, rest_.data(), sizeof(count));
    rest_.remove_prefix(sizeof(count));
    if (count < 0 || static_cast<std::uint64_t>(count) >
                         rest_.size() / static_cast<std::uint64_t>(found->second))
      fail("ends inside storage {} of {} elements", quote_text(key), count);
    const auto size = static_cast<std::size_t>(count * found->second);
    storages_[key] = std::as_bytes(std::span(rest_.data(), size));
    rest_.remove_prefix(size);
  }

  std::string_view rest_;
  std::map<std::string, std::int64_t> element_bytes_;
  std::map<std::string, std::span<const std::byte>> storages_;
};

}  // namespace

State read_pytorch_file(const std::shared_ptr<const MappedFile>& file) {
  if (StoredArchive::recognizes(*file)) return read_archive(file);
  return with_place(file->path().string(), [&] { return OldFile(*file).read(file); });
}

}  // namespace lathe::io
