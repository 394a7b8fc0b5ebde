# lathe_protobuf(MODULE schema.proto): the messages of a schema as part of a module. The header is
# found under the schema's own path, and is nobody's but the module's.
function(lathe_protobuf module schema)
  cmake_path(REMOVE_EXTENSION schema LAST_ONLY OUTPUT_VARIABLE stem)
  set(folder ${PROJECT_BINARY_DIR}/protobuf)
  set(outputs ${folder}/${stem}.pb.cc ${folder}/${stem}.pb.h)
  add_custom_command(OUTPUT ${outputs} DEPENDS ${PROJECT_SOURCE_DIR}/${schema}
    COMMENT "Generating ${stem}.pb.cc" VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=${folder} ${schema})
  target_sources(${module}_objects PRIVATE ${outputs})
  # Generated code is not ours to warn about, and shares nothing with its neighbours.
  set_source_files_properties(${folder}/${stem}.pb.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
    SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "-w")
  foreach(target ${module}_objects ${module}_test)
    target_include_directories(${target} SYSTEM PRIVATE ${folder})
  endforeach()
endfunction()
