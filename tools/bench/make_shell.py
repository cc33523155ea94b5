#!/usr/bin/env python3
"""make_shell.py N JOB: writes JOB.inp for CalculiX, a cylindrical panel of N x N quadratic shell elements, clamped at one end.

`ccx -i JOB` then writes its stiffness and mass matrices, JOB.sti and JOB.mas.
"""
import math
import sys

n, job = int(sys.argv[1]), sys.argv[2]
angle, length, thickness = 0.8, 1.0, 0.01  # of a radius of 1
number, points = {}, []


def node(i, j):
    """The number of the node at half steps i around and j along the panel."""
    if (i, j) not in number:
        number[i, j] = len(points) + 1
        at = angle * (i / (2 * n) - 0.5)
        points.append((math.sin(at), length * j / (2 * n), math.cos(at)))
    return number[i, j]


corners = [(0, 0), (2, 0), (2, 2), (0, 2), (1, 0), (2, 1), (1, 2), (0, 1)]
elements = [[node(2 * i + a, 2 * j + b) for a, b in corners] for j in range(n) for i in range(n)]
with open(job + '.inp', 'w') as out:
    out.write('*NODE, NSET=ALL\n' + ''.join(f'{k + 1}, {x:.12g}, {y:.12g}, {z:.12g}\n' for k, (x, y, z) in enumerate(points)))
    out.write('*ELEMENT, TYPE=S8R, ELSET=PANEL\n')
    out.write(''.join(f'{k + 1}, {", ".join(map(str, e))}\n' for k, e in enumerate(elements)))
    out.write('*NSET, NSET=HELD\n' + ''.join(f'{number[key]},\n' for key in number if key[1] == 0))
    out.write('*MATERIAL, NAME=STEEL\n*ELASTIC\n210e9, 0.3\n*DENSITY\n7800\n'
              f'*SHELL SECTION, ELSET=PANEL, MATERIAL=STEEL\n{thickness}\n*BOUNDARY\nHELD, 1, 6\n'
              '*STEP\n*FREQUENCY, SOLVER=MATRIXSTORAGE\n10\n*END STEP\n')
