// SPDX-License-Identifier: Apache-2.0
// A second compiland, with a function of the same name as in the first.
#include "shapes.h"

static __attribute__((noinline)) int leaf(int x) { return from_header(x) + 2; }

__attribute__((noinline)) int other(int x) { return leaf(x) * 2 + from_header(x + 1); }
