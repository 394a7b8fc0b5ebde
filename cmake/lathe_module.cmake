# lathe_module(NAME DEPENDS modules... LIBRARIES targets... STRICT APART)
#
# A folder lathe/NAME is one module and the folder is its source list. The sources become an OBJECT
# library `NAME_objects`, wrapped in the INTERFACE library `NAME` that carries the objects and the
# dependencies. Whole objects matter: an archive would drop every file that only registers itself.
# `*_test.cpp` becomes the program NAME_test. A file named *_avx2.cpp or *_avx512.cpp is compiled
# for that instruction set. STRICT adds warnings; APART compiles every file by itself.

set_property(GLOBAL PROPERTY LATHE_MODULES "")
# An installed program finds its library wherever the two were installed together.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

# The headers that nearly every file includes, compiled once: they are a third of the time of a
# build. Two sets, because tests read gtest as well. Kernel files, which have flags of their own and
# may share nothing inline, go without.
function(lathe_precompiled target)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${target}.cpp CONTENT "")
  add_library(${target} OBJECT ${PROJECT_BINARY_DIR}/${target}.cpp)
  target_link_libraries(${target} PRIVATE fmt::fmt ${ARGN})
  target_precompile_headers(${target} PRIVATE <algorithm> <array> <cstdint> <functional>
    <map> <memory> <optional> <span> <string> <string_view> <vector> <fmt/format.h>)
endfunction()
# A program is compiled like the library, position-independent code and all, or it could not.
function(lathe_reuse_headers program headers)
  set_target_properties(${program} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${program} PRIVATE -fPIC)
  target_precompile_headers(${program} REUSE_FROM ${headers})
endfunction()
lathe_precompiled(library_headers)
lathe_precompiled(test_headers GTest::gtest GTest::gmock)
# Tests call what is measured and are not measured themselves: at -O1 they compile a quarter faster.
set(test_options $<$<CONFIG:Release>:-O1>)
target_compile_options(test_headers PRIVATE ${test_options})
target_precompile_headers(test_headers PRIVATE <gtest/gtest.h> <gmock/gmock.h>)

# Half the time of a file goes into headers and into templates that its neighbours instantiate too,
# so several are compiled as one. Batches are small: a change of one file compiles them all anew.
# Modules of hot loops stay apart, because what is inlined there must not depend on neighbours.
option(LATHE_UNITY "compile the sources of most modules several at once" ON)
function(lathe_compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${LATHE_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# *_test.cu becomes PTX that the test program reads from LATHE_PTX_DIR. clang needs no CUDA toolkit
# for that, only the words of cuda_words.h.
find_program(LATHE_DEVICE_CLANG NAMES clang++-16 clang++)
function(lathe_device_code program folder)
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${folder}/*_test.cu)
  if(NOT kernels OR NOT LATHE_DEVICE_CLANG)
    return()
  endif()
  foreach(kernel ${kernels})
    get_filename_component(stem ${kernel} NAME_WE)
    set(ptx ${PROJECT_BINARY_DIR}/ptx/${stem}.ptx)
    add_custom_command(OUTPUT ${ptx} DEPENDS ${kernel} ${PROJECT_SOURCE_DIR}/cmake/cuda_words.h
      DEPFILE ${ptx}.d COMMENT "Compiling ${stem}.cu for GPUs"
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/ptx
      COMMAND ${LATHE_DEVICE_CLANG} -std=c++20 -O2 -Wall -Wextra -Wno-unknown-cuda-version
        -ffp-contract=off -I${PROJECT_SOURCE_DIR} -x cuda --cuda-gpu-arch=sm_80 --cuda-device-only
        -nocudainc -nocudalib -D__CUDACC__ -include ${PROJECT_SOURCE_DIR}/cmake/cuda_words.h
        -MD -MF ${ptx}.d -MT ${ptx} -S -o ${ptx} ${kernel})
    target_sources(${program} PRIVATE ${ptx})
  endforeach()
  target_compile_definitions(${program} PRIVATE LATHE_PTX_DIR="${PROJECT_BINARY_DIR}/ptx")
endfunction()

function(lathe_module name)
  cmake_parse_arguments(ARG "STRICT;APART" "" "DEPENDS;LIBRARIES" ${ARGN})
  set(folder ${PROJECT_SOURCE_DIR}/lathe/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${folder}/*_test.cpp)
  if(tests)
    list(REMOVE_ITEM sources ${tests})
  endif()
  if(NOT sources)
    # A module of headers alone still needs an object to wrap.
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${name}_empty.cpp CONTENT "")
    set(sources ${PROJECT_BINARY_DIR}/${name}_empty.cpp)
  endif()

  add_library(${name}_objects OBJECT ${sources})
  target_include_directories(${name}_objects PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name}_objects PUBLIC ${ARG_LIBRARIES})
  foreach(dependency ${ARG_DEPENDS})
    target_link_libraries(${name}_objects PUBLIC ${dependency}_usage)
  endforeach()
  if(ARG_STRICT)
    target_compile_options(${name}_objects PRIVATE -Wconversion)
  endif()
  if(NOT ARG_APART)
    lathe_compile_together(${name}_objects)
  endif()
  target_precompile_headers(${name}_objects REUSE_FROM library_headers)
  # Kernel files are large: g++ takes minutes to optimize one with every sanitizer in it, so there
  # they look for wrong addresses alone, and less is optimized.
  set(level "-O3")
  if(LATHE_SANITIZE)
    set(level "-O1;-fno-sanitize=undefined")
  endif()
  foreach(source ${sources})
    if(source MATCHES "_(avx512|avx512bf16|avx512vnni|amx|avx2|plain)\\.cpp$")
      set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
    # AMX's instructions are written out: the compiler needs no leave to use them. Processors with AMX
    # have VNNI.
    set(avx512 "${level};-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx2;-mfma;-mprefer-vector-width=512")
    if(source MATCHES "_avx512\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${avx512}")
    elseif(source MATCHES "_(avx512vnni|amx)\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${avx512};-mavx512vnni")
    elseif(source MATCHES "_avx512bf16\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${avx512};-mavx512bf16")
    elseif(source MATCHES "_avx2\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${level};-mavx2;-mfma")
    elseif(source MATCHES "_plain\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${level}")
    endif()
  endforeach()

  # Headers and libraries without the objects: what another module compiles against.
  add_library(${name}_usage INTERFACE)
  target_include_directories(${name}_usage INTERFACE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name}_usage INTERFACE ${ARG_LIBRARIES})
  foreach(dependency ${ARG_DEPENDS})
    target_link_libraries(${name}_usage INTERFACE ${dependency}_usage)
  endforeach()

  # Object files do not travel through INTERFACE libraries more than one level deep and would be
  # linked twice on a diamond, so the closure of modules is computed here, each object once.
  set(closure ${name})
  foreach(dependency ${ARG_DEPENDS})
    get_target_property(inner ${dependency} LATHE_CLOSURE)
    list(APPEND closure ${inner})
  endforeach()
  list(REMOVE_DUPLICATES closure)
  add_library(${name} INTERFACE)
  set_target_properties(${name} PROPERTIES LATHE_CLOSURE "${closure}")
  target_link_libraries(${name} INTERFACE ${name}_usage)
  foreach(module ${closure})
    target_link_libraries(${name} INTERFACE $<TARGET_OBJECTS:${module}_objects>)
  endforeach()

  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE ${name} GTest::gtest_main GTest::gmock)
    lathe_reuse_headers(${name}_test test_headers)
    target_compile_options(${name}_test PRIVATE ${test_options})
    target_compile_definitions(${name}_test PRIVATE
      LATHE_SHARED_DIR="${PROJECT_SOURCE_DIR}/../shared" LATHE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    lathe_device_code(${name}_test ${folder})
    add_test(NAME ${name}_test COMMAND ${name}_test)
  endif()
  set_property(GLOBAL APPEND PROPERTY LATHE_MODULES ${name})
endfunction()

# lathe_library(): all modules together as the one library that is installed and exported. It is
# shared, so that every self-registering file is in it whoever links to it.
function(lathe_library)
  get_property(modules GLOBAL PROPERTY LATHE_MODULES)
  add_library(lathe SHARED)
  set_target_properties(lathe PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0 INSTALL_RPATH "")
  foreach(module ${modules})
    target_sources(lathe PRIVATE $<TARGET_OBJECTS:${module}_objects>)
    target_link_libraries(lathe PRIVATE ${module}_usage)
  endforeach()
  # What the headers themselves need; latheConfig.cmake finds the same.
  target_link_libraries(lathe PUBLIC fmt::fmt Threads::Threads)
  target_compile_features(lathe PUBLIC cxx_std_20)
  target_include_directories(lathe PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  add_library(lathe::lathe ALIAS lathe)

  install(TARGETS lathe EXPORT latheTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/lathe DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "cli" EXCLUDE
    # What only tests or the kernels' own files include.
    PATTERN "testing" EXCLUDE PATTERN "*_test.h" EXCLUDE PATTERN "test_*.h" EXCLUDE
    PATTERN "every_isa.h" EXCLUDE PATTERN "*.inl.h" EXCLUDE PATTERN "vector_*.h" EXCLUDE)
  install(EXPORT latheTargets NAMESPACE lathe:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lathe)
  include(CMakePackageConfigHelpers)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/latheConfigVersion.cmake
    COMPATIBILITY SameMajorVersion)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/latheConfig.cmake @ONLY CONTENT
"include(CMakeFindDependencyMacro)
find_dependency(fmt)
find_dependency(Threads)
include(\${CMAKE_CURRENT_LIST_DIR}/latheTargets.cmake)
")
  install(FILES ${PROJECT_BINARY_DIR}/latheConfig.cmake ${PROJECT_BINARY_DIR}/latheConfigVersion.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lathe)
endfunction()
