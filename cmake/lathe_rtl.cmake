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
