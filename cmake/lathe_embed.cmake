# lathe_embed(MODULE OUTPUT name FOLDER folder SUFFIX suffix HEADER header NAMESPACE namespace
#   FUNCTION function MISSING text LIST function): compiles the files of a folder into a module as
# text (embed_files.cmake).
function(lathe_embed module)
  cmake_parse_arguments(ARG "" "OUTPUT;FOLDER;SUFFIX;HEADER;NAMESPACE;FUNCTION;MISSING;LIST" "" ${ARGN})
  set(output ${PROJECT_BINARY_DIR}/${ARG_OUTPUT})
  set(folder ${PROJECT_SOURCE_DIR}/${ARG_FOLDER})
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*.${ARG_SUFFIX})
  add_custom_command(OUTPUT ${output} COMMENT "Embedding ${ARG_FOLDER}/" VERBATIM
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
    COMMAND ${CMAKE_COMMAND} -D FOLDER=${folder} -D SUFFIX=${ARG_SUFFIX} -D OUTPUT=${output}
      -D HEADER=${ARG_HEADER} -D NAMESPACE=${ARG_NAMESPACE} -D FUNCTION=${ARG_FUNCTION}
      -D MISSING=${ARG_MISSING} -D LIST=${ARG_LIST}
      -P ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake)
  target_sources(${module}_objects PRIVATE ${output})
endfunction()
