# Run by `cmake --install` with SHARDMAT_SOURCE_DIR, SHARDMAT_STAGED_DIR, SHARDMAT_INCLUDE_DESTINATION and SHARDMAT_HEADERS set:
# installs the public headers with their includes of each other as <shardmat/…>, since a program may have a folder comm or
# kernels of its own. The sources keep the short form.
foreach(header ${SHARDMAT_HEADERS})
  file(READ ${SHARDMAT_SOURCE_DIR}/${header} text)
  string(REGEX REPLACE "(#[ \t]*include[ \t]*)\"((kernels|partition|comm|runtime)/[^\"\n]+)\"" "\\1<shardmat/\\2>" text "${text}")
  if(text MATCHES "#[ \t]*include[ \t]*\"[^\n]*")
    message(FATAL_ERROR "${header}: an installed header cannot have ${CMAKE_MATCH_0}; include from the root of the sources")
  endif()
  set(staged ${SHARDMAT_STAGED_DIR}/${header})
  set(before "")
  if(EXISTS ${staged})
    file(READ ${staged} before)
  endif()
  if(NOT before STREQUAL text)  # else it keeps its time, so that programs need not be built again
    file(WRITE ${staged} "${text}")
  endif()
  get_filename_component(folder ${header} DIRECTORY)
  file(INSTALL ${staged} DESTINATION ${SHARDMAT_INCLUDE_DESTINATION}/shardmat/${folder})
endforeach()

# <shardmat/api.h> is where programs start.
file(WRITE ${SHARDMAT_STAGED_DIR}/api.h "// Start here.\n#pragma once\n\n#include <shardmat/runtime/api.h>  // IWYU pragma: export\n")
file(INSTALL ${SHARDMAT_STAGED_DIR}/api.h DESTINATION ${SHARDMAT_INCLUDE_DESTINATION}/shardmat)
