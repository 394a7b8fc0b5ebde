#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lathe/io/model.h"
#include "lathe/io/onnx/onnx_model.h"

namespace lathe::io::onnx {

/// What was written, and what another program must know to run it.
struct ExportedModel {
  OnnxModel model;
  int num_rounded = 0;  ///< values that ONNX's own ops round: QuantizeLinear and DequantizeLinear
  /// Nodes of the domain `lathe`, which other programs do not have: "NODE (FORMAT)".
  std::vector<std::string> custom = {};
};

/// The opset that is written: the first with layer norms, and one that everybody runs.
inline constexpr std::int64_t kExportedOpset = 17;
/// The domain of ops that ONNX has none for.
inline constexpr const char* kCustomDomain = "lathe";

/// Writes a model's graph for inference in ONNX's ops: without dropout and loss, with parameters as
/// plain arrays whatever they were stored as, and with scaled integers of up to 8 bits as
/// QuantizeLinear and DequantizeLinear. Whole numbers are taken as 64 bits, as other programs feed
/// them. Fails naming every op that it cannot write.
ExportedModel export_onnx(const Model& model);

/// Writes the file, whole or not at all.
void write_onnx(const std::filesystem::path& path, const OnnxModel& model);

}  // namespace lathe::io::onnx
