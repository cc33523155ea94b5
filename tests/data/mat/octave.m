% Writes octave6.mat, octave7.mat and octave.h5 beside this script, with Octave 7.3: octave-cli octave.m
K = sparse ([1.5 0 -2 0; 0 0 0 0; 0.1 3 0 1e300]);
empty = sparse (4, 2);
L = sparse ([true false; true true]);  % versions 6 and 7: a form that no program can read, not even Octave
C = sparse ([1 2i]);
b = [1; 2; 3];
B = [1 2; 3 4; 5 6];
s = single ([1.5; 2.5; 3.5]);
n = int8 ([4 5]);
l = [true; false; true];
scalar = 7;
range = 1:3;
text = "words";
model.M = sparse ([2 0; 0 3]);
save ("-v6", "octave6.mat", "K", "empty", "L", "b", "B", "s", "n", "l", "scalar", "range", "text");
save ("-v7", "octave7.mat", "K", "empty", "L", "C", "b", "B", "s", "n", "l", "scalar", "range", "text", "model");
save ("-hdf5", "octave.h5", "K", "empty", "L", "C", "b", "B");
