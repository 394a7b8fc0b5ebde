#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace lathe::numerics {

/// The first NVIDIA GPU, through its driver's own interface: tests of device code need no CUDA
/// toolkit, neither to build nor to run.
class Gpu {
 public:
  /// Nothing where there is no driver or no GPU.
  static std::optional<Gpu> find() {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == nullptr) return std::nullopt;
    Gpu gpu(driver);
    int device = 0;
    void* context = nullptr;
    if (gpu.function<int(unsigned)>("cuInit")(0) != 0) return std::nullopt;
    if (gpu.function<int(int*, int)>("cuDeviceGet")(&device, 0) != 0) return std::nullopt;
    gpu.check("cuDevicePrimaryCtxRetain",
              gpu.function<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, device));
    gpu.check("cuCtxSetCurrent", gpu.function<int(void*)>("cuCtxSetCurrent")(context));
    return gpu;
  }

  void load(const std::string& ptx) {
    check("cuModuleLoadData",
          function<int(void**, const void*)>("cuModuleLoadData")(&module_, ptx.c_str()));
  }

  /// Pointers are the device's and mean nothing to the host.
  template <typename T>
  T* upload(std::span<const T> values) {
    T* const memory = allocate<T>(values.size());
    check("cuMemcpyHtoD", function<int(Address, const void*, std::size_t)>("cuMemcpyHtoD_v2")(
                              address_of(memory), values.data(), values.size_bytes()));
    return memory;
  }
  template <typename T>
  T* allocate(std::size_t size) {
    Address address = 0;
    check("cuMemAlloc",
          function<int(Address*, std::size_t)>("cuMemAlloc_v2")(&address, size * sizeof(T)));
    return reinterpret_cast<T*>(address);
  }
  template <typename T>
  std::vector<T> download(const T* memory, std::size_t size) {
    std::vector<T> values(size);
    check("cuMemcpyDtoH", function<int(void*, Address, std::size_t)>("cuMemcpyDtoH_v2")(
                              values.data(), address_of(memory), size * sizeof(T)));
    return values;
  }
  void free(const void* memory) {
    check("cuMemFree", function<int(Address)>("cuMemFree_v2")(address_of(memory)));
  }

  /// One thread for each element; the arguments must have the kernel's own types.
  template <typename... Arguments>
  void launch(const char* kernel, std::size_t elements, Arguments... arguments) {
    void* entry = nullptr;
    check(kernel, function<int(void**, void*, const char*)>("cuModuleGetFunction")(&entry, module_,
                                                                                   kernel));
    constexpr unsigned kThreads = 256;
    void* addresses[] = {&arguments...};
    using Launch = int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       void*, void**, void**);
    check(kernel, function<Launch>("cuLaunchKernel")(
                      entry, static_cast<unsigned>((elements + kThreads - 1) / kThreads), 1, 1,
                      kThreads, 1, 1, 0, nullptr, addresses, nullptr));
  }

 private:
  using Address = std::uint64_t;
  static Address address_of(const void* memory) { return reinterpret_cast<Address>(memory); }

  explicit Gpu(void* driver) : driver_(driver) {}

  template <typename Signature>
  Signature* function(const char* name) const {
    void* const address = dlsym(driver_, name);
    if (address == nullptr) throw std::runtime_error(std::string(name) + " is not in libcuda");
    return reinterpret_cast<Signature*>(address);
  }
  static void check(const char* what, int status) {
    if (status != 0)
      throw std::runtime_error(std::string(what) + ": CUDA error " + std::to_string(status));
  }

  void* driver_ = nullptr;
  void* module_ = nullptr;
};

}  // namespace lathe::numerics
