# Finds NCCL: NCCL_FOUND, NCCL_VERSION, NCCL_LIBRARY and the target NCCL::nccl. Looks into NCCL_ROOT, CMAKE_PREFIX_PATH, the
# CUDA toolkit, and the NVIDIA wheels of the Python in PATH. A header older than the library found beside it is fine; a
# header newer than the library is not, so each pair is taken from one place.
find_package(Python3 QUIET COMPONENTS Interpreter)
if(Python3_Interpreter_FOUND)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import nvidia.nccl as p; print(list(p.__path__)[0])"
                  OUTPUT_VARIABLE NCCL_WHEEL OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(nccl_hints ${NCCL_ROOT} $ENV{NCCL_ROOT} ${NCCL_WHEEL} ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_TARGET_DIR})
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${nccl_hints} PATH_SUFFIXES include)
get_filename_component(nccl_root "${NCCL_INCLUDE_DIR}" DIRECTORY)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${nccl_root} ${nccl_hints} PATH_SUFFIXES lib lib64)
if(NCCL_INCLUDE_DIR)
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h nccl_lines REGEX "#define NCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
  string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]+([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2.\\3" NCCL_VERSION "${nccl_lines}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)
if(NCCL_FOUND AND NOT TARGET NCCL::nccl)
  add_library(NCCL::nccl UNKNOWN IMPORTED)
  set_target_properties(NCCL::nccl PROPERTIES IMPORTED_LOCATION ${NCCL_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR})
endif()
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)
