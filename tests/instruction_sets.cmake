# Fails when code that every processor runs could hold instructions that only some have:
#   cmake -D BUILD=folder -D NM=nm -D SANITIZE=... -P instruction_sets.cmake
#
# 1. Only files named *_avx2.cpp, *_avx512.cpp, *_avx512bf16.cpp, *_avx512vnni.cpp and
#    *_amx.cpp are compiled with
#    -mavx or -march.
# 2. Those files define no weak symbol. The linker keeps one copy of an inline function, from
#    whichever object it likes: std::vector::push_back from an AVX-512 file would then run
#    everywhere. (Functions in the instruction set's own namespace exist only there.)

file(READ ${BUILD}/compile_commands.json commands)
string(JSON last LENGTH "${commands}")
math(EXPR last "${last} - 1")
set(kernels "")
foreach(index RANGE ${last})
  string(JSON file GET "${commands}" ${index} file)
  string(JSON command GET "${commands}" ${index} command)
  if(file MATCHES "_(avx2|avx512|avx512bf16|avx512vnni|amx)\\.cpp$")
    string(REGEX MATCH " -o ([^ ]+) " ignored "${command}")
    list(APPEND kernels ${BUILD}/${CMAKE_MATCH_1})
  elseif(command MATCHES " (-mavx|-mfma|-march|-mtune=native)")
    message(SEND_ERROR "${file}: compiled with ${CMAKE_MATCH_1}; only files named after an instruction set may be")
  endif()
endforeach()

# Sanitizers and builds that are not optimised leave inline functions of the standard library behind.
if(SANITIZE)
  return()
endif()
foreach(object ${kernels})
  if(NOT EXISTS ${object})
    continue()
  endif()
  execute_process(COMMAND ${NM} --defined-only ${object}
    OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[0-9a-f]+ [WVu] [^\n]*" weak "${symbols}")
  foreach(symbol ${weak})
    # The namespace in a mangled name; a reference to the handler of exceptions has no instructions.
    if(NOT symbol MATCHES "4avx2|6avx512|[0-9](bf16|code|split|split_window)_(avx2|avx512|avx512bf16|avx512vnni|amx|tiles|dots)|DW\\.ref\\.")
      message(SEND_ERROR "${object}: defines an inline function that other files share: ${symbol}")
    endif()
  endforeach()
endforeach()
