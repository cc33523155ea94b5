# Run by CPack before it packs the files under CPACK_TEMPORARY_DIRECTORY: for packages of Debian, puts them where its policy wants
# them. Everywhere else, the Python package, the completion and the pages lie as in other installations.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
cmake_policy(VERSION 3.22)
set(root ${CPACK_TEMPORARY_DIRECTORY})

function(pack_file file)  # without time and name, so that two builds of one commit are equal
  execute_process(COMMAND gzip -9 --no-name --force ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(move from to)
  if(EXISTS ${from})
    get_filename_component(folder ${to} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    file(RENAME ${from} ${to})
  endif()
endfunction()

# Programs look for libraries in Debian's folders by themselves. Those of 64-bit PT-Scotch lie in one of their own, beside
# others of the same names.
file(GLOB_RECURSE files ${root}/*/usr/bin/* ${root}/*/usr/libexec/* ${root}/*/usr/lib/*.so*)
foreach(file ${files})
  if(NOT IS_SYMLINK ${file})
    set(folders "")
    file(READ_ELF ${file} RUNPATH folders)
    set(kept ${folders})
    list(FILTER kept INCLUDE REGEX "/scotch-int64$")
    if(kept)
      list(JOIN folders ":" folders)
      file(RPATH_CHANGE FILE ${file} OLD_RPATH ${folders} NEW_RPATH ${kept})
    elseif(folders)
      file(RPATH_REMOVE FILE ${file})
    endif()
  endif()
endforeach()

set(usr ${root}/programs/usr)
move(${usr}/share/zsh/site-functions ${usr}/share/zsh/vendor-completions)
pack_file(${usr}/share/man/man1/shardmat.1)
file(READ ${usr}/share/shardmat/systemd/shardmat.service unit)
string(REPLACE /usr/local/bin/ /usr/bin/ unit "${unit}")
file(WRITE ${usr}/share/shardmat/systemd/shardmat.service "${unit}")
foreach(program shardmat-bench shardmat-serve)
  file(CREATE_LINK shardmat.1.gz ${usr}/share/man/man1/${program}.1.gz SYMBOLIC)
endforeach()
file(REMOVE ${usr}/share/doc/shardmat/LICENSE)  # the copyright file names Debian's copy
set(usr ${root}/python/usr)
if(NOT CPACK_SHARDMAT_PYTHON_DIR STREQUAL "")
  move(${usr}/${CPACK_SHARDMAT_PYTHON_DIR} ${usr}/lib/python3/dist-packages)
  get_filename_component(left ${usr}/${CPACK_SHARDMAT_PYTHON_DIR} DIRECTORY)
  file(REMOVE_RECURSE ${left})
endif()

execute_process(COMMAND date -R -d @$ENV{SOURCE_DATE_EPOCH} OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed
                ERROR_QUIET)
if(failed)
  execute_process(COMMAND date -R OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${component} upper)
  set(docs ${root}/${component}/usr/share/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  file(WRITE ${docs}/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Shardmat

Files: *
Copyright: 2026 Shardmat's authors
License: Apache-2.0
 On Debian systems the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0
")
  if(component STREQUAL programs)
    file(APPEND ${docs}/copyright "
Files: bin/shardmat-serve
Copyright: 2022 Leon Sorokin
License: Expat
 uPlot, which draws the pictures of the service's page, is distributed under
 the Expat license: /usr/share/doc/shardmat/tools/serve/page/uPlot.LICENSE
")
  endif()
  if(CPACK_SHARDMAT_HAVE_CUDA)
    file(APPEND ${docs}/copyright "
Files: lib/shardmat/libcudart_static.a
Copyright: NVIDIA Corporation
License: CUDA-EULA
 The runtime library of CUDA, in this file and in the programs, is distributed
 under the End User License Agreement of the CUDA Toolkit, attachment A:
 https://docs.nvidia.com/cuda/eula/
")
  endif()
  file(WRITE ${docs}/changelog "shardmat (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * What is new: /usr/share/doc/shardmat/deploy/CHANGELOG.md

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  pack_file(${docs}/changelog)
endforeach()
# What lintian asks about, and why it is so.
file(WRITE ${root}/programs/usr/share/lintian/overrides/shardmat
"# 64-bit PT-Scotch lies there, beside another with the same names.
shardmat: custom-library-search-path RUNPATH /usr/lib/*/scotch-int64 *
")
if(IS_DIRECTORY ${root}/petsc)
  file(WRITE ${root}/petsc/usr/share/lintian/overrides/libshardmat-petsc
"# PETSc loads it by this name; nothing links with it.
libshardmat-petsc: sharedobject-in-library-directory-missing-soname *
")
endif()
file(GLOB_RECURSE folders LIST_DIRECTORIES true ${root}/*)
foreach(path ${folders})
  if(IS_DIRECTORY ${path})
    file(CHMOD ${path} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endif()
endforeach()
