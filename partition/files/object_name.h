// "FILE:OBJECT": a file, and which of its matrices or vectors is meant.
#pragma once

#include <string>

namespace shardmat {

/// The parts of "A.petsc:1", "A.mat:K" and "x.h5:/b".
struct ObjectName {
  std::string file;
  std::string object;  ///< a number, a name or a path that begins with '/'; empty if none is named
};

/// Takes the longest existing file before a colon; behind the colon there must be a number, a name or a path. An argument
/// that is the name of a file as a whole names no object. If no such file exists, an object is still told apart where the
/// part before the colon looks like a file's name, so that messages name the file. Anything else, such as a generator's
/// specification "poisson:n=3", comes back whole. Does not throw.
ObjectName split_object_name(const std::string& argument);

/// True if `name` is a file, or stands for files of several ranks (rank_files.h) of which the first exists. False for
/// directories. Does not throw.
bool names_input_file(const std::string& name);

}  // namespace shardmat
