// Figures that an operator watches beside what requests did: states of matrices and jobs, connections, the certificate, and
// which program this is.
//
// Threads: the thread of the event loop.
#pragma once

#include <string>

#include "tools/serve/http/http_server.h"
#include "tools/serve/observe/prometheus.h"
#include "tools/serve/ranks/jobs.h"

namespace shardmat::serve {

void write_matrices(PrometheusText& text, const Matrices& matrices);
void write_jobs(PrometheusText& text, const Jobs& jobs);
void write_connections(PrometheusText& text, const HttpServer::Connections& connections);
/// `expires`: in seconds since 1970.
void write_certificate(PrometheusText& text, double expires);
/// `backend`: as it was asked for.
void write_build(PrometheusText& text, const std::string& backend);

}  // namespace shardmat::serve
