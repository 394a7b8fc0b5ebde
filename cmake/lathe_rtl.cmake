# lathe_rtl(): compiles the modules of rtl/ into the module `hardware` as text.
function(lathe_rtl)
  set(output ${PROJECT_BINARY_DIR}/rtl_library.cpp)
  file(GLOB modules CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/rtl/*.sv)
  add_custom_command(OUTPUT ${output} COMMENT "Embedding rtl/"
    DEPENDS ${modules} ${PROJECT_SOURCE_DIR}/cmake/embed_rtl.cmake
    COMMAND ${CMAKE_COMMAND} -D FOLDER=${PROJECT_SOURCE_DIR}/rtl -D OUTPUT=${output}
      -P ${PROJECT_SOURCE_DIR}/cmake/embed_rtl.cmake)
  target_sources(hardware_objects PRIVATE ${output})
endfunction()

# lathe_simulation(): the target `simulation_library` compiles Verilator's own library into the
# user's cache, where Verilator is installed.
function(lathe_simulation)
  add_executable(prepare_simulation EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/rtl/prepare_simulation.cpp)
  target_link_libraries(prepare_simulation PRIVATE lathe)
  add_custom_target(simulation_library COMMAND prepare_simulation
    COMMENT "Preparing the simulation of hardware" VERBATIM)
endfunction()
