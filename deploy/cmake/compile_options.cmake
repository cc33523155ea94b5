# Warnings and sanitizers for our own targets; shardmat_library() makes one layer.
include(precompiled)
add_library(shardmat_options INTERFACE)
target_compile_features(shardmat_options INTERFACE cxx_std_20)
# nvcc takes C++20 since 12.0, but CMake before 3.26 does not know, so the flag is given by hand.
# Only the kernels gain from -O3, CMake's own level, and other code compiles in two thirds of the time without. A target may
# set SHARDMAT_OPTIMIZATION to another level than 2.
set(level $<TARGET_PROPERTY:SHARDMAT_OPTIMIZATION>)
target_compile_options(shardmat_options INTERFACE
  $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>,$<NOT:$<STREQUAL:${level},3>>>:-O$<IF:$<STREQUAL:${level},>,2,${level}>>
  $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wconversion
                            -Wno-sign-conversion>
  $<$<AND:$<BOOL:${SHARDMAT_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
  $<$<AND:$<BOOL:${SHARDMAT_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:-Xcompiler=-Werror -Werror=all-warnings>)

if(SHARDMAT_SANITIZE)
  target_compile_options(shardmat_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${SHARDMAT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined>)
  target_link_options(shardmat_options INTERFACE -fsanitize=${SHARDMAT_SANITIZE})
endif()

# shardmat_library(kernels): target shardmat_kernels (static), alias shardmat::kernels, sources added by target_sources().
function(shardmat_library layer)
  add_library(shardmat_${layer} STATIC)
  add_library(shardmat::${layer} ALIAS shardmat_${layer})
  target_compile_features(shardmat_${layer} PUBLIC cxx_std_20)
  target_include_directories(shardmat_${layer} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(shardmat_${layer} PRIVATE $<BUILD_INTERFACE:shardmat_options>)
  set_target_properties(shardmat_${layer} PROPERTIES EXPORT_NAME ${layer})
  shardmat_precompile(shardmat_${layer})
endfunction()

# shardmat_unite(target [APART a.cpp…]): every eight C++ files of the list of a target are one translation unit, because the
# headers take longer than the files. The files stay whole, and errors name them; their names in unnamed namespaces must differ.
# Files with options or definitions of their own stay apart, and those after APART.
function(shardmat_unite target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  cmake_parse_arguments(PARSE_ARGV 1 unite "" "" APART)
  if(unite_APART)
    set_source_files_properties(${unite_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# shardmat_objects(host_base a.cpp b.cpp): target shardmat_host_base, for $<TARGET_OBJECTS:shardmat_host_base> in several programs.
function(shardmat_objects name)
  add_library(shardmat_${name} OBJECT ${ARGN})
  target_include_directories(shardmat_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(shardmat_${name} PRIVATE fmt::fmt nlohmann_json::nlohmann_json shardmat_options)
endfunction()
