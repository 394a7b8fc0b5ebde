# Configures, builds and runs an example outside this tree, against an installed Lathe, and compares
# what it prints with the example's expected_output.txt. One without a CMakeLists.txt is a run.sh that
# uses the installed program:
#   cmake -D SOURCE=folder -D PREFIX=folder -D BINARY=folder -D CXX=compiler -P run_example.cmake

if(EXISTS ${SOURCE}/CMakeLists.txt)
  execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${SOURCE} -B ${BINARY}
    -D CMAKE_PREFIX_PATH=${PREFIX} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_BUILD_TYPE=Release
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${BINARY} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${BINARY}/example OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
else()
  set(ENV{PATH} "${PREFIX}/bin:$ENV{PATH}")
  execute_process(COMMAND ${SOURCE}/run.sh OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
endif()
file(READ ${SOURCE}/expected_output.txt expected)
if(NOT printed STREQUAL expected)
  message("printed:\n${printed}\nexpected:\n${expected}")
  message(FATAL_ERROR "${SOURCE} does not print its expected_output.txt")
endif()
