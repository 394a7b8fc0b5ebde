#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lathe/core/tensor.h"

/// An ONNX file as values of our own: what the importer reads and the exporter writes, without a
/// word of protobuf.
namespace lathe::io::onnx {

/// The oldest and the newest operator set of the default domain that are understood.
inline constexpr std::int64_t kOldestOpset = 7;
inline constexpr std::int64_t kNewestOpset = 27;

/// Under which key of its metadata a file of ours holds the names of its labels, as a JSON array.
inline constexpr const char* kLabelsKey = "lathe.labels";

/// What an attribute holds that is a graph: control flow, which is not read further.
struct Subgraph {
  bool operator==(const Subgraph&) const = default;
};

using AttributeValue =
    std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                 std::vector<std::string>, Tensor, Subgraph>;

struct OnnxNode {
  std::string op;
  std::string domain = {};  ///< empty: the default one
  std::string name = {};
  std::vector<std::string> inputs = {};  ///< empty: an optional one that is absent
  std::vector<std::string> outputs = {};
  std::map<std::string, AttributeValue, std::less<>> attributes = {};
};

/// The size of an axis: a number, a name, or neither.
struct OnnxSize {
  std::optional<std::int64_t> number = {};
  std::string name = {};
};

/// An input or an output of a graph.
struct OnnxValue {
  std::string name;
  DType dtype = DType::F32;
  bool has_shape = true;
  std::vector<OnnxSize> shape = {};
};

struct OnnxGraph {
  std::string name = {};
  std::vector<OnnxNode> nodes = {};
  std::vector<std::pair<std::string, Tensor>> initializers = {};
  std::vector<OnnxValue> inputs = {};  ///< initializers may stand among them
  std::vector<OnnxValue> outputs = {};
};

struct OnnxModel {
  std::int64_t ir_version = 8;
  std::string producer = {};
  std::map<std::string, std::int64_t> opsets = {};  ///< by domain; the default one is ""
  std::map<std::string, std::string> metadata = {};
  OnnxGraph graph = {};
};

/// Reads a file. Tensors it keeps beside itself are read beneath its folder and from nowhere else.
/// Whatever the bytes are, it gives a model or fails in one line.
OnnxModel read_onnx(const std::filesystem::path& path);
/// The same of bytes; `folder` is where tensors outside lie.
OnnxModel parse_onnx(std::string_view bytes, const std::filesystem::path& folder);
/// Reads a file that holds one tensor, such as the data of ONNX's own tests.
Tensor read_onnx_tensor(const std::filesystem::path& path);

/// The bytes of a file.
std::string serialize_onnx(const OnnxModel& model);

/// What ONNX calls an element type: 1 is F32. Nothing where Lathe has none.
std::optional<DType> dtype_of_onnx(std::int64_t code);
std::int64_t onnx_code(DType dtype);

}  // namespace lathe::io::onnx
