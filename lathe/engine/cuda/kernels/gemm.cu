// Matrix products by cuBLASLt, which is looked for when the first one is asked for.
//
// Exact float32, TF32 or bfloat16 operands; results are float or bfloat16. The algorithm of a shape
// is the first that the library's own table proposes for it and the workspace, never one chosen by
// timing, so that the bits are the same in every run; sums that are split over blocks are joined in
// the workspace in a fixed order, never in place.

#include <cublasLt.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <tuple>

#include "lathe/engine/cuda/kernels/kernels.cuh"
#include "lathe/engine/cuda/kernels/launch.cuh"

namespace lathe::engine::cuda {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

thread_local char error_line[512];

struct Library {
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulDescCreate) make_operation = nullptr;
  decltype(&cublasLtMatmulDescDestroy) drop_operation = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) make_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) drop_layout = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) make_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) drop_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) propose = nullptr;
  char error[512] = {};
};

// Where the system looks, then where CUDA is installed. A path in LATHE_CUBLASLT_LIBRARY is the
// only one tried.
const Library& library() {
  static const Library loaded = [] {
    Library found;
    const char* const given = std::getenv("LATHE_CUBLASLT_LIBRARY");
    char name[256];
    if (given != nullptr)
      std::snprintf(name, sizeof name, "%s", given);
    else
      std::snprintf(name, sizeof name, "libcublasLt.so.%d", CUBLAS_VER_MAJOR);
    void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr && given == nullptr) {
      char path[300];
      std::snprintf(path, sizeof path, "/usr/local/cuda/lib64/%s", name);
      handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    if (handle == nullptr) {
      std::snprintf(found.error, sizeof found.error,
                    "%s is not found: install CUDA %d's libraries or name their folder in "
                    "LD_LIBRARY_PATH",
                    name, CUBLAS_VER_MAJOR);
      return found;
    }
    const auto look_up = [&](auto& function, const char* symbol) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
      if (function == nullptr && found.error[0] == 0)
        std::snprintf(found.error, sizeof found.error, "%s has no function %s", name, symbol);
    };
    look_up(found.version, "cublasLtGetVersion");
    if (found.version == nullptr) return found;
    if (const auto version = static_cast<int>(found.version());
        version / 10000 < CUBLAS_VER_MAJOR) {
      std::snprintf(found.error, sizeof found.error,
                    "%s is of version %d.%d, but %d.0 or newer is needed", name, version / 10000,
                    version / 100 % 100, CUBLAS_VER_MAJOR);
      return found;
    }
    look_up(found.create, "cublasLtCreate");
    look_up(found.destroy, "cublasLtDestroy");
    look_up(found.matmul, "cublasLtMatmul");
    look_up(found.make_operation, "cublasLtMatmulDescCreate");
    look_up(found.drop_operation, "cublasLtMatmulDescDestroy");
    look_up(found.set_operation, "cublasLtMatmulDescSetAttribute");
    look_up(found.make_layout, "cublasLtMatrixLayoutCreate");
    look_up(found.drop_layout, "cublasLtMatrixLayoutDestroy");
    look_up(found.set_layout, "cublasLtMatrixLayoutSetAttribute");
    look_up(found.make_preference, "cublasLtMatmulPreferenceCreate");
    look_up(found.drop_preference, "cublasLtMatmulPreferenceDestroy");
    look_up(found.set_preference, "cublasLtMatmulPreferenceSetAttribute");
    look_up(found.propose, "cublasLtMatmulAlgoGetHeuristic");
    return found;
  }();
  return loaded;
}

using Shape = std::tuple<bool, bool, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                         std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                         std::int64_t, std::int64_t, bool, Precision, Number>;

Shape shape_of(const GemmArgs& args) {
  return {args.transpose_a, args.transpose_b,
          args.m,           args.n,
          args.k,           args.lda,
          args.ldb,         args.ldc,
          args.batches,     args.stride_a,
          args.stride_b,    args.stride_c,
          args.stride_bias, args.bias != nullptr,
          args.precision,   args.c_as};
}

const char* explain(cublasStatus_t status, const GemmArgs& args) {
  if (status == CUBLAS_STATUS_SUCCESS) return nullptr;
  std::snprintf(error_line, sizeof error_line,
                "cuBLASLt cannot multiply %lld x %lld by %lld x %lld (status %d)",
                static_cast<long long>(args.m), static_cast<long long>(args.k),
                static_cast<long long>(args.k), static_cast<long long>(args.n),
                static_cast<int>(status));
  return error_line;
}

}  // namespace

// A product's descriptions and algorithm are made once.
struct Gemm {
  struct Product {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
  };
  cublasLtHandle_t handle = nullptr;
  void* workspace = nullptr;
  std::map<Shape, Product> products;
};

namespace {

const char* make_product(Gemm& gemm, const GemmArgs& args, Gemm::Product& product) {
  const Library& lt = library();
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  const auto then = [&](cublasStatus_t next) {
    if (status == CUBLAS_STATUS_SUCCESS) status = next;
  };
  const cublasComputeType_t compute =
      args.precision == Precision::Tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  then(lt.make_operation(&product.operation, compute, CUDA_R_32F));
  if (status != CUBLAS_STATUS_SUCCESS) return explain(status, args);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    then(lt.set_operation(product.operation, attribute, &value, sizeof value));
  };
  const cublasOperation_t a_as = args.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t b_as = args.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(CUBLASLT_MATMUL_DESC_TRANSA, a_as);
  set(CUBLASLT_MATMUL_DESC_TRANSB, b_as);
  if (args.bias != nullptr) {
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, args.bias);
    if (args.batches > 1) set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, args.stride_bias);
  }
  const cudaDataType_t operand = args.precision == Precision::Bf16 ? CUDA_R_16BF : CUDA_R_32F;
  const auto layout = [&](cublasLtMatrixLayout_t& made, cudaDataType_t type, std::int64_t rows,
                          std::int64_t columns, std::int64_t stride, std::int64_t batch_stride) {
    then(lt.make_layout(&made, type, static_cast<std::uint64_t>(rows),
                        static_cast<std::uint64_t>(columns), stride));
    if (args.batches == 1 || status != CUBLAS_STATUS_SUCCESS) return;
    const auto batches = static_cast<std::int32_t>(args.batches);
    then(lt.set_layout(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof batches));
    then(lt.set_layout(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch_stride,
                       sizeof batch_stride));
  };
  layout(product.a, operand, args.transpose_a ? args.k : args.m, args.transpose_a ? args.m : args.k,
         args.lda, args.stride_a);
  layout(product.b, operand, args.transpose_b ? args.n : args.k, args.transpose_b ? args.k : args.n,
         args.ldb, args.stride_b);
  const cudaDataType_t result = args.c_as == Number::BF16 ? CUDA_R_16BF : CUDA_R_32F;
  layout(product.c, result, args.m, args.n, args.ldc, args.stride_c);
  cublasLtMatmulPreference_t preference = nullptr;
  then(lt.make_preference(&preference));
  if (status != CUBLAS_STATUS_SUCCESS) return explain(status, args);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    then(lt.set_preference(preference, attribute, &value, sizeof value));
  };
  const std::uint64_t bytes = kWorkspaceBytes;
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes);
  // Parts of a sum are float: as bfloat16 they would lose what the sum is to have.
  std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if (result == CUDA_R_32F) schemes |= CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
  // Values begin on 16 bytes; whether their rows and matrices do is in the strides.
  const auto alignment = [](std::int64_t stride, std::int64_t batch_stride,
                            cudaDataType_t type) -> std::uint32_t {
    const std::uint32_t bytes = type == CUDA_R_16BF ? 2 : 4;
    const std::int64_t each = 16 / bytes;
    return stride % each == 0 && batch_stride % each == 0 ? 16 : bytes;
  };
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(args.lda, args.stride_a, operand));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(args.ldb, args.stride_b, operand));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(args.ldc, args.stride_c, result));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(args.ldc, args.stride_c, result));
  cublasLtMatmulHeuristicResult_t proposal{};
  int found = 0;
  if (status == CUBLAS_STATUS_SUCCESS)
    then(lt.propose(gemm.handle, product.operation, product.a, product.b, product.c, product.c,
                    preference, 1, &proposal, &found));
  lt.drop_preference(preference);
  if (status == CUBLAS_STATUS_SUCCESS && found == 0) status = CUBLAS_STATUS_NOT_SUPPORTED;
  product.algorithm = proposal.algo;
  return explain(status, args);
}

}  // namespace

const char* make_gemm(Stream* stream, Gemm** made) {
  *made = nullptr;
  const Library& lt = library();
  if (lt.error[0] != 0) return lt.error;
  auto* const gemm = new Gemm;
  if (const cublasStatus_t status = lt.create(&gemm->handle); status != CUBLAS_STATUS_SUCCESS) {
    delete gemm;
    std::snprintf(error_line, sizeof error_line, "cuBLASLt cannot start (status %d)",
                  static_cast<int>(status));
    return error_line;
  }
  if (cudaMalloc(&gemm->workspace, kWorkspaceBytes) != cudaSuccess) {
    cudaGetLastError();
    drop_gemm(gemm);
    return "out of GPU memory: 33554432 bytes are needed for products";
  }
  static_cast<void>(stream);
  *made = gemm;
  return nullptr;
}

void drop_gemm(Gemm* gemm) {
  if (gemm == nullptr) return;
  const Library& lt = library();
  for (auto& [shape, product] : gemm->products) {
    if (product.operation != nullptr) lt.drop_operation(product.operation);
    for (cublasLtMatrixLayout_t layout : {product.a, product.b, product.c})
      if (layout != nullptr) lt.drop_layout(layout);
  }
  if (gemm->workspace != nullptr) cudaFree(gemm->workspace);
  if (gemm->handle != nullptr) lt.destroy(gemm->handle);
  delete gemm;
}

const char* gemm(Gemm* gemm, const GemmArgs& args, Stream* stream) {
  if (args.m == 0 || args.n == 0 || args.batches == 0) return nullptr;
  const Library& lt = library();
  const auto [found, is_new] = gemm->products.try_emplace(shape_of(args));
  Gemm::Product& product = found->second;
  if (is_new) {
    if (const char* error = make_product(*gemm, args, product)) {
      // What was made of it is kept until the end, but never used.
      gemm->products.erase(found);
      return error;
    }
  }
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  if (args.bias != nullptr)
    status = lt.set_operation(product.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &args.bias,
                              sizeof args.bias);
  const float one = 1, zero = 0;  // with k = 0 the step fills C instead
  if (status == CUBLAS_STATUS_SUCCESS)
    status = lt.matmul(gemm->handle, product.operation, &one, args.a, product.a, args.b, product.b,
                       &zero, args.c, product.c, args.c, product.c, &product.algorithm,
                       gemm->workspace, kWorkspaceBytes, stream_of(stream));
  return explain(status, args);
}

}  // namespace lathe::engine::cuda
