// What the commands of --remote share: the matrix that they want, vectors of files as bodies, answers as files and text.
//
// Threads: any thread; there is no shared state.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kernels/base/host_vector.h"
#include "runtime/matrix/matrix_options.h"
#include "runtime/matrix/vectors.h"
#include "tools/client/remote_matrix.h"

namespace shardmat::tools {

constexpr double kWaitSeconds = 1e9;  ///< longer than any job
constexpr const char* kBinary = "application/octet-stream";

/// Of the options that the command was given.
WantedMatrix wanted_of(const CommandLine& app, const std::string& matrix, const LoadOptions& load);

/// `count` columns from `first` on, of n rows, one after another, in the type of the service's matrix. Throws Error(input)
/// for numbers that it cannot hold.
HostVector<char> columns_of(const VectorSource& source, const RemoteMatrix& matrix, std::int64_t n, std::int64_t first,
                            std::int64_t count);
/// The opposite: row by row. Throws Error(internal) for an answer of another size.
HostVector<double> rows_of_reply(const HttpReply& reply, const RemoteMatrix& matrix, std::int64_t rows,
                                 std::int64_t columns);

/// Throws, before anything is asked for, if the file cannot be written or must not be replaced. Nothing for no file.
void check_output(const std::string& output, const char* what, std::int64_t columns, std::int64_t files, bool force);
void write_output(const std::string& output, const char* what, const RemoteMatrix& matrix, const HostVector<double>& rows,
                  std::int64_t columns, std::int64_t files);

/// Writes what a job has found, and lets the service forget the job. If it cannot be written, the message says how to get
/// it.
void finish_job(HttpClient& client, const std::string& id, const std::function<void()>& write);

/// The first lines of a report.
std::string text_of(const RemoteMatrix& matrix, const std::string& where);

}  // namespace shardmat::tools
