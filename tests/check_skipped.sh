#!/bin/bash
# scripts/check-skipped on logs of a made-up run: a test that wanted a package is a failure, one that
# wanted hardware is not, and one that gave no reason is found all the same. Those that were lost
# stand last, behind one line for each reason of the others.
set -euo pipefail
script=$(cd "$(dirname "$0")/.." && pwd)/scripts/check-skipped
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
mkdir -p "$build/Testing/Temporary"

expect() {
  local status=0 actual
  actual=$("$script" "$build" 2>&1) || status=$?
  if [[ $status -ne $1 || $actual != "$2" ]]; then
    printf 'expected status %d and:\n%s\ngot status %d and:\n%s\n' "$1" "$2" "$status" "$actual"
    exit 1
  fi
}

printf '%s\n' '1/2 Test #1: gpu_test ........   Passed    0.01 sec' >"$build/tests.log"
printf '%s\n' '1/2 Testing: gpu_test' '[ RUN      ] Device.Rounds' '/a/device_test.cpp:26: Skipped' \
  'no NVIDIA GPU: none' '' '[  SKIPPED ] Device.Rounds (0 ms)' '[ RUN      ] All/Device.Adds/1' \
  '/a/device_test.cpp:30: Skipped' 'no NVIDIA GPU: none' '' '[  SKIPPED ] All/Device.Adds/1 (0 ms)' \
  '[ RUN      ] Device.Loads' '[       OK ] Device.Loads (0 ms)' '[  SKIPPED ] Device.Rounds' \
  >"$build/Testing/Temporary/LastTest.log"
expect 0 'skipped, as they must: gpu_test: no NVIDIA GPU: none (2 tests)'

printf '%s\n' '2/3 Test #2: on_haswell ......***Skipped   0.01 sec' \
  '3/3 Test #3: chaos ...........***Skipped   0.01 sec' >>"$build/tests.log"
printf '%s\n' '2/3 Testing: on_haswell' 'skipped: qemu-user is not installed' '3/3 Testing: chaos' \
  >>"$build/Testing/Temporary/LastTest.log"
expect 1 'skipped, as they must: gpu_test: no NVIDIA GPU: none (2 tests)
SKIPPED, THOUGH IT COULD RUN: chaos: did not run
SKIPPED, THOUGH IT COULD RUN: on_haswell: qemu-user is not installed
check-skipped: 2 tests were skipped that could have run'
