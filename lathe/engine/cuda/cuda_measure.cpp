#include "lathe/engine/cuda/cuda_measure.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "lathe/engine/cuda/cuda_format.h"
#include "lathe/engine/cuda/cuda_memory.h"
#include "lathe/engine/cuda/cuda_packed_linear.h"

namespace lathe::engine {
namespace {

constexpr int kWarmUps = 3;
constexpr double kShortestSample = 2e-3;  // seconds: what the clock adds to it is nothing
constexpr std::int64_t kBeyondCaches = std::int64_t{400} << 20;
constexpr std::int64_t kSampleRows = 64;  // of a weight that are made; the others repeat them

class CudaMeasure final : public DeviceMeasure {
 public:
  CudaMeasure() : library_(cuda_library()), kernels_(*library_.kernels) {
    check_cuda(kernels_.device.make_stream(&stream_));
  }
  CudaMeasure(const CudaMeasure&) = delete;
  CudaMeasure& operator=(const CudaMeasure&) = delete;
  ~CudaMeasure() override {
    kernels_.device.synchronize(stream_);
    kernels_.device.drop_gemm(gemm_);
    kernels_.device.drop_stream(stream_);
  }

  std::string description() const override { return library_.device.name; }
  std::optional<DeviceMemory> memory() const override {
    DeviceMemory result;
    check_cuda(kernels_.free_memory(&result.free, &result.total));
    return result;
  }

  std::vector<double> time_copy(std::int64_t bytes, int repeats) override {
    CudaBuffer from, to;
    from.reserve(bytes);
    to.reserve(bytes);
    check_cuda(kernels_.device.fill(from.data(), 1, bytes, stream_));
    return time(1, repeats,
                [&](int) { kernels_.stream_copy(to.data(), from.data(), bytes, stream_); });
  }

  std::vector<Tile> tiles() const override {
    std::vector<Tile> result;
    for (const cuda::TileShape& tile : cuda::kTileShapes)
      result.push_back({tile.rows, tile.columns, tile.threads});
    return result;
  }
  std::int64_t run_of_tile(bool to_float) const override {
    return cuda::run_of_tile(to_float ? cuda::Number::F32 : cuda::Number::BF16);
  }

  std::vector<double> time_dequantize(const DequantizeCase& what, int repeats) override {
    const std::int64_t numbers = what.rows * what.columns;
    CudaBuffer codes, exponents, results;
    codes.reserve(numbers);
    exponents.reserve(numbers / what.group);
    results.reserve(numbers * (what.to_float ? 4 : 2));
    check_cuda(kernels_.device.fill(codes.data(), 0x35, numbers, stream_));
    check_cuda(kernels_.device.fill(exponents.data(), 120, numbers / what.group, stream_));
    cuda::DequantizeArgs args;
    args.tile = {static_cast<std::int32_t>(what.tile.rows),
                 static_cast<std::int32_t>(what.tile.columns),
                 static_cast<std::int32_t>(what.tile.threads)};
    args.codes = reinterpret_cast<const std::uint8_t*>(codes.data());
    args.exponents = reinterpret_cast<const std::uint8_t*>(exponents.data());
    args.to = what.to_float ? cuda::Number::F32 : cuda::Number::BF16;
    args.y = results.data();
    args.rows = what.rows;
    args.columns = what.columns;
    args.group = static_cast<std::int32_t>(what.group);
    return time(1, repeats, [&](int) {
      if (!kernels_.dequantize(args, stream_))
        fail("tile {}x{} with {} threads: there is no such kernel", what.tile.rows,
             what.tile.columns, what.tile.threads);
    });
  }

  std::vector<double> time_packed_linear(const PackedLinearCase& what, int repeats) override {
    const std::shared_ptr<const NumberFormat> format = parse_format(what.format);
    if (format == nullptr) fail("format float is not packed");
    const std::optional<cuda::PackedMatrix> shape = cuda_packed_matrix(*format, what.n, what.k);
    if (!shape) fail("format {}: there is no kernel that decodes it", what.format);
    const CudaPackedLinear linear{
        .code = packed_code(*shape), .encodes = what.encodes, .n = what.n, .k = what.k};
    if (what.encodes && linear.code != cuda::PackedCode::Int8)
      fail("format {}: rows of {} inputs are not multiplied as whole numbers", what.format, what.k);
    const Weight weight = make_weight(*format, *shape);
    CudaBuffer x, y, scratch;
    x.reserve(what.rows * what.k * 4);
    y.reserve(what.rows * what.n * 4);
    check_cuda(kernels_.device.fill(x.data(), 0x3e, what.rows * what.k * 4, stream_));
    cuda::PackedLinearArgs args;
    args.x = reinterpret_cast<const float*>(x.data());
    args.y = reinterpret_cast<float*>(y.data());
    args.precision = static_cast<cuda::Precision>(what.precision);
    args.rows.capacity = what.rows;
    scratch.reserve(linear.scratch_bytes(what.rows));
    args.scratch = scratch.data();
    return time(weight.copies, repeats, [&](int i) {
      args.weight = *shape;
      args.weight.codes = bytes(weight.codes) + i * shape->rows * shape->row_bytes;
      args.weight.local = bytes(weight.local) + i * weight.local_bytes;
      args.weight.format.scales =
          reinterpret_cast<const float*>(weight.scales.data()) + i * weight.num_scales;
      args.weight.format.zeros =
          shape->format.low == 0 && shape->format.codec == cuda::Codec::Integer
              ? reinterpret_cast<const float*>(weight.zeros.data()) + i * weight.num_scales
              : nullptr;
      linear.launch(kernels_, gemm(), args, stream_);
    });
  }

 private:
  struct Weight {
    CudaBuffer codes, local, scales, zeros;
    std::int64_t local_bytes = 0, num_scales = 0;  // of a copy
    int copies = 1;
  };

  static const std::uint8_t* bytes(const CudaBuffer& buffer) {
    return reinterpret_cast<const std::uint8_t*>(buffer.data());
  }

  Weight make_weight(const NumberFormat& format, const cuda::PackedMatrix& shape) {
    const std::int64_t n = shape.rows, k = shape.format.columns;
    Weight weight;
    weight.copies =
        static_cast<int>(std::clamp<std::int64_t>(kBeyondCaches / (n * shape.row_bytes), 2, 1024));
    const std::int64_t sample = std::min(n, kSampleRows);
    std::vector<float> numbers(static_cast<std::size_t>(sample * k));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<float>(i * 2654435761u % 1999) / 999 - 1;
    const std::vector<float> scales(
        static_cast<std::size_t>(std::max<std::int64_t>(1, format.num_given_scales(n, k))), 0.01f);
    const EncodedMatrix encoded = format.encode({.rows = sample,
                                                 .columns = k,
                                                 .x = numbers.data(),
                                                 .scales = scales.data(),
                                                 .zeros = scales.data()});
    weight.local_bytes = n * static_cast<std::int64_t>(encoded.scales.size()) / sample;
    weight.num_scales = format.num_given_scales(n, k);
    fill(weight.codes, encoded.codes.data(), sample * shape.row_bytes,
         weight.copies * n * shape.row_bytes);
    fill(weight.local, encoded.scales.data(), static_cast<std::int64_t>(encoded.scales.size()),
         weight.copies * weight.local_bytes);
    for (CudaBuffer* buffer : {&weight.scales, &weight.zeros})
      fill(*buffer, scales.data(), weight.num_scales * 4, weight.copies * weight.num_scales * 4);
    return weight;
  }

  cuda::Gemm* gemm() {
    if (gemm_ == nullptr) check_cuda(kernels_.device.make_gemm(stream_, &gemm_));
    return gemm_;
  }

  // The same bytes again and again.
  void fill(CudaBuffer& buffer, const void* from, std::int64_t size, std::int64_t total) {
    if (total == 0) return;
    buffer.reserve(total);
    for (std::int64_t at = 0; at < total; at += size)
      check_cuda(
          kernels_.device.copy(buffer.data() + at, from, std::min(size, total - at), stream_));
    check_cuda(kernels_.device.synchronize(stream_));
  }

  // Launches 0, 1, ... in turn, captured: what a launch costs the processor is not measured. A
  // sample has as many as the clock needs, and at least one of each.
  std::vector<double> time(int different, int repeats, const std::function<void(int)>& launch) {
    const cuda::Device& device = kernels_.device;
    for (int i = 0; i < kWarmUps; ++i) launch(i % different);
    check_cuda(device.launch_error());
    const auto timed = [&](const std::function<void()>& work) {
      check_cuda(device.synchronize(stream_));
      const auto start = std::chrono::steady_clock::now();
      work();
      check_cuda(device.synchronize(stream_));
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const double once = timed([&] { launch(0); });
    const int wanted = static_cast<int>(std::clamp(kShortestSample / once, 1.0, 1000.0));
    const int count = (std::max(wanted, different) + different - 1) / different * different;
    cuda::Capture* capture = nullptr;
    std::int32_t nodes = 0;
    check_cuda(device.begin_capture(stream_));
    for (int i = 0; i < count; ++i) launch(i % different);
    check_cuda(device.end_capture(stream_, &capture, &nodes));
    std::vector<double> seconds;
    try {
      for (int i = -1; i < repeats; ++i) {
        between();
        const double taken = timed([&] { check_cuda(device.launch(capture, stream_)); });
        if (i >= 0) seconds.push_back(taken / count);
      }
    } catch (...) {
      device.drop_capture(capture);
      throw;
    }
    device.drop_capture(capture);
    return seconds;
  }

  const CudaLibrary& library_;
  const cuda::KernelTable& kernels_;
  cuda::Stream* stream_ = nullptr;
  cuda::Gemm* gemm_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceMeasure> make_cuda_measure() {
  return std::make_unique<CudaMeasure>();
}

}  // namespace lathe::engine
