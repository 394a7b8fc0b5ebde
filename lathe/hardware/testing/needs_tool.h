#pragma once

#include <gtest/gtest.h>

#include "lathe/hardware/simulation/simulator_cache.h"

/// Skips a test where a program is not installed; the package has the program's name.
#define LATHE_NEEDS(program)                           \
  if (lathe::hardware::program_path(#program).empty()) \
  GTEST_SKIP() << "needs " #program ", which is not installed (scripts/install-packages test)"
