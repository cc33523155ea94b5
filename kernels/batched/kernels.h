// The kernels for batches, each in a file of its name; the list is in batched_spmm.cpp.
#pragma once

#include <memory>
#include <vector>

#include "kernels/batched/batched_spmm.h"

namespace shardmat {

std::vector<Policy> rows_policies(const DeviceBatch& batch, std::int64_t columns);
double rows_estimate(const DeviceBatch& batch, std::int64_t columns, const Policy& policy);
std::unique_ptr<BatchedPlan> make_rows(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns, const Policy& policy);

std::vector<Policy> staged_policies(const DeviceBatch& batch, std::int64_t columns);
double staged_estimate(const DeviceBatch& batch, std::int64_t columns, const Policy& policy);
std::unique_ptr<BatchedPlan> make_staged(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns,
                                         const Policy& policy);

std::vector<Policy> swa_policies(const DeviceBatch& batch, std::int64_t columns);
std::unique_ptr<BatchedPlan> make_swa(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns, const Policy& policy);

std::vector<Policy> coo_swa_policies(const DeviceBatch& batch, std::int64_t columns);
std::unique_ptr<BatchedPlan> make_coo_swa(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns,
                                          const Policy& policy);

std::vector<Policy> coo_tensorflow_policies(const DeviceBatch& batch, std::int64_t columns);
std::unique_ptr<BatchedPlan> make_coo_tensorflow(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns,
                                                 const Policy& policy);

std::vector<Policy> batched_host_policies(const DeviceBatch& batch, std::int64_t columns);
std::unique_ptr<BatchedPlan> make_batched_host(std::shared_ptr<const DeviceBatch> batch, std::int64_t columns,
                                               const Policy& policy);

}  // namespace shardmat
