// What every test of GoogleTest includes: see deploy/cmake/precompiled.cmake.
#include <gtest/gtest.h>
