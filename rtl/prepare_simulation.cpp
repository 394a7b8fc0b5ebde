// Compiles what every simulation needs into the cache, so that the first one does not wait for it.
// `make` runs this; without Verilator it says so and that is all.
#include <exception>
#include <iostream>

#include "lathe/hardware/simulation/verilator.h"

int main() {
  try {
    const lathe::hardware::VerilatorTools tools = lathe::hardware::find_verilator();
    if (!tools.are_there())
      std::cout << tools.hint << '\n';
    else
      lathe::hardware::prepare_verilator();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "prepare_simulation: " << error.what() << '\n';
    return 1;
  }
}
