#!/usr/bin/env python3
"""Draws values of a mesh's points on its surface, from a file that `shardmat solve --vtk` writes.

    plot_surface.py x.vtu --output x.png --deform 20

Vectors are drawn by their length; with --deform F the points move by F times the vector, or, with --deform auto, by so much
that the largest one is a tenth of the mesh. Points without cells are drawn as points. Needs matplotlib (python3-matplotlib).
"""

import argparse
import base64
import xml.etree.ElementTree

import plots

# Corners of the faces of VTK's cells; quadratic cells have the faces of linear ones, in straight lines between the corners.
TETRAHEDRON = ((0, 1, 2), (0, 1, 3), (1, 2, 3), (0, 2, 3))
HEXAHEDRON = ((0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7))
WEDGE = ((0, 1, 2), (3, 4, 5), (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5))
PYRAMID = ((0, 1, 2, 3), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4))
TRIANGLE, QUADRANGLE, LINE = ((0, 1, 2),), ((0, 1, 2, 3),), ((0, 1),)
FACES = {3: LINE, 5: TRIANGLE, 9: QUADRANGLE, 10: TETRAHEDRON, 12: HEXAHEDRON, 13: WEDGE, 14: PYRAMID,
         21: LINE, 22: TRIANGLE, 23: QUADRANGLE, 24: TETRAHEDRON, 25: HEXAHEDRON, 26: WEDGE, 27: PYRAMID}


def read(np, path):
    """Points, point data by name, and cells as (type, nodes)."""
    try:
        root = xml.etree.ElementTree.parse(path).getroot()
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        plots.fail(f"{path}: {error}")
    kinds = {"Float64": "<f8", "Int64": "<i8", "UInt8": "u1"}

    def array(element):
        if element.get("format") != "binary" or element.get("type") not in kinds or root.get("compressor"):
            plots.fail(f"{path}: arrays are not as shardmat solve --vtk writes them")
        values = np.frombuffer(base64.b64decode(element.text)[8:], kinds[element.get("type")])
        width = int(element.get("NumberOfComponents", 1))
        return values if width == 1 else values.reshape(-1, width)

    data = {e.get("Name"): array(e) for e in root.iter("DataArray")}
    names = [e.get("Name") for part in root.iter("PointData") for e in part]
    cells = zip(data["types"], np.split(data["connectivity"], data["offsets"][:-1]))
    return data["Points"], {name: data[name] for name in names}, list(cells)


def surface(cells):
    """Faces that one cell alone has."""
    found = {}
    for kind, nodes in cells:
        for face in FACES.get(kind, ()):
            corners = tuple(int(nodes[k]) for k in face)
            key = tuple(sorted(corners))
            found[key] = None if key in found else corners
    return [face for face in found.values() if face is not None]


def moved(np, points, vectors, deform):
    if deform is None or vectors.ndim != 2 or vectors.shape[1] != 3:
        return points
    largest = np.linalg.norm(vectors, axis=1).max()
    factor = float(deform) if deform != "auto" else 0.1 * np.linalg.norm(np.ptp(points, axis=0)) / largest if largest else 0
    return points + factor * vectors


def draw(np, plt, figure, points, faces, values, label):
    flat = np.ptp(points[:, 2]) == 0
    axes = figure.add_subplot() if flat else figure.add_subplot(projection="3d")
    norm = plt.Normalize(values.min(), values.max() if values.max() > values.min() else values.min() + 1)
    if not faces:
        axes.scatter(*(points.T[:2] if flat else points.T), c=values, norm=norm, s=6)
    else:
        from matplotlib.collections import PolyCollection
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection
        colors = plt.cm.viridis(norm(np.array([values[list(face)].mean() for face in faces])))
        shapes = [points[list(face), :2 if flat else 3] for face in faces]
        drawn = (PolyCollection if flat else Poly3DCollection)(shapes, facecolors=colors, edgecolors=(0, 0, 0, 0.25), linewidths=0.2)
        axes.add_collection(drawn)
    if flat:
        axes.set_aspect("equal")
        axes.autoscale_view()
    else:
        low, high = points.min(axis=0), points.max(axis=0)
        axes.auto_scale_xyz(*zip(low, high))
        sides = np.maximum(high - low, 0.02 * (high - low).max())
        axes.set_box_aspect(sides, zoom=0.85)
        for axis, side in zip((axes.xaxis, axes.yaxis, axes.zaxis), sides / sides.max()):
            axis.set_major_locator(plt.MaxNLocator(max(1, round(6 * side))))
        axes.set_zlabel("z")
    axes.set_xlabel("x")
    axes.set_ylabel("y")
    figure.colorbar(plt.cm.ScalarMappable(norm, "viridis"), ax=axes, shrink=0.7, label=label)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="file of shardmat solve --vtk")
    parser.add_argument("--output", required=True, help="picture to write (.png, .svg or .pdf)")
    parser.add_argument("--name", help="which values to draw; without it the first")
    parser.add_argument("--deform", help="move the points by so many times their vectors; or auto")
    arguments = parser.parse_args()
    if arguments.deform not in (None, "auto"):
        try:
            float(arguments.deform)
        except ValueError:
            plots.fail(f"--deform {arguments.deform} is neither a number nor auto")
    plt = plots.pyplot(arguments.output, 9)
    import numpy as np
    points, data, cells = read(np, arguments.file)
    name = arguments.name or next(iter(data), None)
    if name not in data:
        plots.fail(f"{arguments.file} has no values {name}, but {', '.join(data) or 'none'}")
    vectors = data[name]
    values = vectors if vectors.ndim == 1 else np.linalg.norm(vectors, axis=1)
    figure = plt.figure(figsize=(6.4, 4.4))
    draw(np, plt, figure, moved(np, points, vectors, arguments.deform), surface(cells), values, name if vectors.ndim == 1 else f"|{name}|")
    plots.save(figure, arguments.output)


if __name__ == "__main__":
    main()
