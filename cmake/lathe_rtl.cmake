# lathe_rtl(): compiles the modules of rtl/ into the module `hardware` as text.
function(lathe_rtl)
  lathe_embed(hardware OUTPUT rtl_library.cpp FOLDER rtl SUFFIX sv
    HEADER lathe/hardware/rtl_library.h NAMESPACE lathe::hardware FUNCTION rtl_source
    MISSING "rtl has no module")
endfunction()

# lathe_simulation(): the target `simulation_library` compiles Verilator's own library into the
# user's cache, where Verilator is installed.
function(lathe_simulation)
  add_executable(prepare_simulation EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/rtl/prepare_simulation.cpp)
  target_link_libraries(prepare_simulation PRIVATE lathe)
  add_custom_target(simulation_library COMMAND prepare_simulation
    COMMENT "Preparing the simulation of hardware" VERBATIM)
endfunction()
