// Vectors on a mesh as an unstructured grid of VTK (.vtu), which ParaView opens.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/base/host_vector.h"
#include "partition/nodes/mesh_view.h"
#include "tools/cli/options.h"

namespace shardmat::tools {

/// A name that ends in .vtu.
ValueCheck vtk_name();

/// Writes `vectors`, the rows of a matrix in their original order with `columns` columns, as values of the points: `name`,
/// or name_0, name_1 … of several. Points of 2 unknowns get a third component of 0; those of 6 have displacements, and
/// rotations as name_rotation. The file appears when it is complete. Throws Error(resources).
void write_vtk(const std::string& path, const MeshView& mesh, const HostVector<double>& vectors, std::int64_t columns,
               const std::string& name);

}  // namespace shardmat::tools
