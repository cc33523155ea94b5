// The functions behind the lines of the list in batch_source.cpp, and of the list of batch generators.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "partition/batched/batch_source.h"
#include "partition/generators/generator.h"

namespace shardmat {

bool accepts_batch_file(const std::string& argument);
std::unique_ptr<BatchSource> open_batch_file(const std::string& argument, const EdgeValues& edges);

/// TUDataset text (Morris et al., TUDataset: A collection of benchmark datasets for learning with graphs, 2020) as adjacency
/// matrices, from a folder, the prefix of its files or the file …_A.txt;
/// the files may end in ".gz".
///   PREFIX_graph_indicator.txt  line i: the graph of node i; graphs from 1 on, not descending (numbers left out: graphs
///                               without nodes, 2^20 in a row at most)
///   PREFIX_A.txt                "i, j" a line: an entry in the row of node i and the column of node j, nodes from 1 on
///   PREFIX_edge_attributes.txt  if there is one: line i has the attributes of the edge in line i of PREFIX_A.txt (blank
///                               lines aside), finite numbers, the same count in all lines
/// The attribute is the value of its entry. Of several attributes edges.attribute must choose one. Without the file, or if
/// edges.unweighted, all values are 1. An edge may have different values in its two directions; those of an edge given twice
/// add up. Labels of edges, which are numbers of classes, are not read. Errors name file and line.
bool accepts_tudataset(const std::string& argument);
std::unique_ptr<BatchSource> open_tudataset(const std::string& argument, const EdgeValues& edges);

/// A folder's .mtx and .mtx.gz files, sorted by name with numbers by value (a2 before a10); or a text file that lists matrix
/// files of any format that can be read, one a line, relative to it; '#' begins a comment. All are read at once and kept:
/// the matrices are small.
bool accepts_matrix_files(const std::string& argument);
std::unique_ptr<BatchSource> open_matrix_files(const std::string& argument, const EdgeValues& edges);

/// Throws Error(usage) if edge values were chosen, for a source whose values cannot be chosen.
void refuse_choice(const EdgeValues& edges, const std::string& argument);

/// Graphs in one NumPy archive: graph_ptr [count + 1] into the nodes, indptr [nodes + 1] into the entries, indices [entries]
/// counted within the graph. The values are in data [entries], the name that SciPy uses, or in one of values, weight,
/// weights, edge_weight, edge_weights; they are 1 if there is none of them or if edges.unweighted. Throws Error(input) if
/// there are two of them, or only edge_attr or edge_attributes, whose meaning is not known; and in a build without libzip.
/// Other members, such as labels, are not read.
bool accepts_graph_npz(const std::string& argument);
std::unique_ptr<BatchSource> open_graph_npz(const std::string& argument, const EdgeValues& edges);

struct BatchGenerator {
  std::string_view name;
  std::string_view help;
  std::span<const GeneratorParameter> parameters;
  std::unique_ptr<BatchSource> (*make)(const GeneratorArguments& arguments);
};
BatchGenerator random_batch_generator();
BatchGenerator molecules_generator();
std::span<const BatchGenerator> batch_generators();

/// NAME or NAME:…, as is_generator_specification has it.
bool accepts_batch_generator(const std::string& argument);
std::unique_ptr<BatchSource> make_batch_generator(const std::string& argument, const EdgeValues& edges);

}  // namespace shardmat
