#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "lathe/core/quote_text.h"
#include "lathe/io/directory_access.h"
#include "lathe/io/mapped_file.h"
#include "lathe/io/onnx/onnx_model.h"
#include "lathe/io/onnx/wire.pb.h"

namespace lathe::io::onnx {
namespace {

namespace fs = std::filesystem;

struct ElementType {
  std::int64_t code;
  const char* name;
  std::optional<DType> dtype;
};

// As ONNX numbers them.
constexpr ElementType kElementTypes[] = {
    {1, "float32", DType::F32},
    {2, "uint8", DType::U8},
    {3, "int8", DType::I8},
    {4, "uint16", std::nullopt},
    {5, "int16", DType::I16},
    {6, "int32", DType::I32},
    {7, "int64", DType::I64},
    {8, "string", std::nullopt},
    {9, "bool", DType::Bool},
    {10, "float16", DType::F16},
    {11, "float64", DType::F64},
    {12, "uint32", std::nullopt},
    {13, "uint64", std::nullopt},
    {14, "complex64", std::nullopt},
    {15, "complex128", std::nullopt},
    {16, "bfloat16", DType::BF16},
    {17, "float8e4m3fn", std::nullopt},
    {19, "float8e5m2", std::nullopt},
    {21, "uint4", std::nullopt},
    {22, "int4", std::nullopt},
    {23, "float4e2m1", std::nullopt},
};

DType read_dtype(std::int64_t code) {
  for (const ElementType& type : kElementTypes) {
    if (type.code != code) continue;
    if (type.dtype) return *type.dtype;
    fail("elements of type {} are not supported", type.name);
  }
  fail("element type {} is none of ONNX's", code);
}

std::int64_t read_number(const std::string& text, std::string_view key) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0)
    fail("external data: {} is {}, expected a number", key, quote_text(text));
  return number;
}

// A run of bytes of another file beneath the model's folder.
Tensor read_external(const wire::Tensor& tensor, DType dtype, std::vector<std::int64_t> dims,
                     std::int64_t num_bytes, const fs::path& folder) {
  std::string location;
  std::int64_t offset = 0;
  std::optional<std::int64_t> length;
  for (const wire::KeyValue& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = read_number(entry.value(), "offset");
    if (entry.key() == "length") length = read_number(entry.value(), "length");
  }
  if (location.empty()) fail("external data: no location is given");
  if (folder.empty())
    fail("external data {}: there is no folder to read it from", quote_text(location));
  const std::shared_ptr<const MappedFile> file = map_beneath(folder, location);
  const auto size = static_cast<std::int64_t>(file->size());
  if (offset > size || num_bytes > size - offset || (length && *length != num_bytes))
    fail("external data {}: {} bytes at {} are asked for, {}; the file has {}",
         quote_text(location), length.value_or(num_bytes), offset,
         length && *length != num_bytes ? fmt::format("and the shape needs {}", num_bytes)
                                        : "which it has not",
         size);
  const std::byte* const begin = file->bytes().data() + offset;
  // Kernels read elements in place, where they must be aligned.
  if (reinterpret_cast<std::uintptr_t>(begin) % static_cast<std::uintptr_t>(size_of(dtype)) == 0)
    return Tensor::view(dtype, std::move(dims), begin, file);
  Tensor result(dtype, std::move(dims));
  std::memcpy(result.mutable_bytes(), begin, static_cast<std::size_t>(num_bytes));
  return result;
}

template <typename T, typename Field>
void copy_field(const Field& field, Tensor& tensor) {
  std::byte* const target = tensor.mutable_bytes();
  for (int i = 0; i < field.size(); ++i) {
    const auto value = static_cast<T>(field.Get(i));
    std::memcpy(target + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
  }
}

template <typename Field>
void check_count(const Field& field, const char* name, std::int64_t expected) {
  if (field.size() != expected)
    fail("{} has {} elements, and its shape {}", name, field.size(), expected);
}

Tensor read_tensor(const wire::Tensor& tensor, const fs::path& folder) {
  const DType dtype = read_dtype(tensor.data_type());
  std::vector<std::int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  constexpr std::size_t kMostAxes = 64;
  if (dims.size() > kMostAxes) fail("has {} axes: expected at most {}", dims.size(), kMostAxes);
  if (std::ranges::any_of(dims, [](std::int64_t size) { return size < 0; }))
    fail("its shape {} has a negative size", to_text(dims));
  const std::int64_t count = num_elements(dims);
  if (count > std::numeric_limits<std::int64_t>::max() / size_of(dtype))
    fail("{} is too large", to_text(dims));
  const std::int64_t num_bytes = count * size_of(dtype);
  if (tensor.data_location() == 1)
    return read_external(tensor, dtype, std::move(dims), num_bytes, folder);
  // Nothing is allocated before the file is seen to hold as much.
  if (tensor.has_raw_data()) {
    if (static_cast<std::int64_t>(tensor.raw_data().size()) != num_bytes)
      fail("holds {} bytes, and its shape {}{} needs {}", tensor.raw_data().size(), name(dtype),
           to_text(dims), num_bytes);
    Tensor result(dtype, std::move(dims));
    std::memcpy(result.mutable_bytes(), tensor.raw_data().data(),
                static_cast<std::size_t>(num_bytes));
    return result;
  }
  switch (dtype) {
    case DType::F32: {
      check_count(tensor.float_data(), "float_data", count);
      Tensor result(dtype, std::move(dims));
      copy_field<float>(tensor.float_data(), result);
      return result;
    }
    case DType::F64: {
      check_count(tensor.double_data(), "double_data", count);
      Tensor result(dtype, std::move(dims));
      copy_field<double>(tensor.double_data(), result);
      return result;
    }
    case DType::I64: {
      check_count(tensor.int64_data(), "int64_data", count);
      Tensor result(dtype, std::move(dims));
      copy_field<std::int64_t>(tensor.int64_data(), result);
      return result;
    }
    default:
      break;
  }
  check_count(tensor.int32_data(), "int32_data", count);
  Tensor result(dtype, std::move(dims));
  if (size_of(dtype) == 4)
    copy_field<std::int32_t>(tensor.int32_data(), result);
  else if (size_of(dtype) == 2)  // also the bits of half-size floats
    copy_field<std::uint16_t>(tensor.int32_data(), result);
  else
    copy_field<std::uint8_t>(tensor.int32_data(), result);
  return result;
}

// A bool is stored in a byte, of which 0 and 1 alone mean something.
Tensor read_checked(const wire::Tensor& tensor, const fs::path& folder) {
  Tensor result = read_tensor(tensor, folder);
  if (result.dtype() == DType::Bool)
    for (std::int64_t i = 0; i < result.num_elements(); ++i)
      if (std::to_integer<unsigned>(result.bytes()[i]) > 1)
        fail("a bool is {}: expected 0 or 1", std::to_integer<unsigned>(result.bytes()[i]));
  return result;
}

AttributeValue read_attribute(const wire::Attribute& attribute, const fs::path& folder) {
  // The kind is written in every file of the last years; older ones tell it by what is there.
  enum Kind { Real = 1, Integer, Text, TensorKind, Graph, Reals, Integers, Texts };
  int kind = attribute.type();
  if (!attribute.has_type()) {
    if (attribute.has_f())
      kind = Real;
    else if (attribute.has_i())
      kind = Integer;
    else if (attribute.has_s())
      kind = Text;
    else if (attribute.has_t())
      kind = TensorKind;
    else if (attribute.has_g() || attribute.graphs_size() > 0)
      kind = Graph;
    else if (attribute.floats_size() > 0)
      kind = Reals;
    else if (attribute.strings_size() > 0)
      kind = Texts;
    else
      kind = Integers;
  }
  switch (kind) {
    case Real:
      return static_cast<double>(attribute.f());
    case Integer:
      return attribute.i();
    case Text:
      return attribute.s();
    case TensorKind:
      return read_checked(attribute.t(), folder);
    case Graph:
    case 10:  // several
      return Subgraph{};
    case Reals:
      return std::vector<double>(attribute.floats().begin(), attribute.floats().end());
    case Integers:
      return std::vector<std::int64_t>(attribute.ints().begin(), attribute.ints().end());
    case Texts:
      return std::vector<std::string>(attribute.strings().begin(), attribute.strings().end());
    default:
      fail("its kind {} is not supported", kind);
  }
}

OnnxNode read_node(const wire::Node& node, const fs::path& folder) {
  OnnxNode result{.op = node.op_type(),
                  .domain = node.domain() == "ai.onnx" ? "" : node.domain(),
                  .name = node.name(),
                  .inputs = {node.input().begin(), node.input().end()},
                  .outputs = {node.output().begin(), node.output().end()}};
  for (const wire::Attribute& attribute : node.attribute()) {
    if (!attribute.ref_attr_name().empty())
      fail("node {}: attribute {} refers to one of a function", quote_text(node.name()),
           quote_text(attribute.name()));
    const bool is_new = with_place(
        fmt::format("node {}: attribute {}", quote_text(node.name()), quote_text(attribute.name())),
        [&] {
          return result.attributes.emplace(attribute.name(), read_attribute(attribute, folder))
              .second;
        });
    if (!is_new)
      fail("node {}: attribute {} is there twice", quote_text(node.name()),
           quote_text(attribute.name()));
  }
  return result;
}

OnnxValue read_value(const wire::ValueInfo& value) {
  OnnxValue result{.name = value.name()};
  with_place(fmt::format("value {}", quote_text(value.name())), [&] {
    if (!value.type().has_tensor_type()) fail("is no tensor, and nothing else is supported");
    const wire::TensorType& type = value.type().tensor_type();
    result.dtype = read_dtype(type.elem_type());
    result.has_shape = type.has_shape();
    for (const wire::Dimension& size : type.shape().dim()) {
      OnnxSize& axis = result.shape.emplace_back();
      if (size.has_dim_value()) axis.number = size.dim_value();
      axis.name = size.dim_param();
      if (axis.number && *axis.number < 0) fail("has an axis of {}", *axis.number);
    }
  });
  return result;
}

OnnxGraph read_graph(const wire::Graph& graph, const fs::path& folder) {
  OnnxGraph result{.name = graph.name()};
  if (graph.sparse_initializer_size() > 0) fail("sparse initializers are not supported");
  for (const wire::Tensor& tensor : graph.initializer())
    with_place(fmt::format("initializer {}", quote_text(tensor.name())), [&] {
      result.initializers.emplace_back(tensor.name(), read_checked(tensor, folder));
    });
  for (const wire::ValueInfo& input : graph.input()) result.inputs.push_back(read_value(input));
  for (const wire::ValueInfo& output : graph.output()) {
    // What is an output's type follows from the graph; some files leave it out.
    if (output.type().has_tensor_type() && output.type().tensor_type().elem_type() != 0)
      result.outputs.push_back(read_value(output));
    else
      result.outputs.push_back({.name = output.name(), .has_shape = false});
  }
  for (const wire::Node& node : graph.node()) result.nodes.push_back(read_node(node, folder));
  return result;
}

template <typename Message>
Message parse_message(std::string_view bytes, std::string_view what) {
  // Protobuf counts in ints.
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    fail("is {} bytes long, and {} has at most 2 GiB", bytes.size(), what);
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    fail("is no {}: its bytes cannot be parsed as protobuf", what);
  return message;
}

}  // namespace

std::optional<DType> dtype_of_onnx(std::int64_t code) {
  for (const ElementType& type : kElementTypes)
    if (type.code == code) return type.dtype;
  return std::nullopt;
}

std::int64_t onnx_code(DType dtype) {
  for (const ElementType& type : kElementTypes)
    if (type.dtype == dtype) return type.code;
  check(false, "every dtype to be one of ONNX's");
  return 0;
}

OnnxModel parse_onnx(std::string_view bytes, const fs::path& folder) {
  const auto message = parse_message<wire::Model>(bytes, "ONNX model");
  if (!message.has_graph()) fail("is no ONNX model: it has no graph");
  OnnxModel model{.ir_version = message.ir_version(), .producer = message.producer_name()};
  for (const wire::OperatorSet& set : message.opset_import())
    model.opsets[set.domain() == "ai.onnx" ? "" : set.domain()] = set.version();
  for (const wire::KeyValue& entry : message.metadata_props())
    model.metadata[entry.key()] = entry.value();
  if (message.functions_size() > 0)
    fail("function {} of the file's own domain {} is not supported: export it inlined",
         quote_text(message.functions(0).name()), quote_text(message.functions(0).domain()));
  model.graph = read_graph(message.graph(), folder);
  return model;
}

OnnxModel read_onnx(const fs::path& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return with_place(path.string(), [&] {
    fs::path folder = path.parent_path();
    if (folder.empty()) folder = ".";
    return parse_onnx(file->text(), folder);
  });
}

Tensor read_onnx_tensor(const fs::path& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return with_place(path.string(), [&] {
    return read_checked(parse_message<wire::Tensor>(file->text(), "ONNX tensor"), {});
  });
}

}  // namespace lathe::io::onnx
