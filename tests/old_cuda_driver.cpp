// libcuda.so.1 as far as the first question of CUDA's runtime goes: a driver of CUDA 12.4.

extern "C" int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}
