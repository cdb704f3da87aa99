/* SPDX-License-Identifier: Apache-2.0 */
#include "shapes.h"
static int counter = 100;
static __attribute__((noinline)) int variable(int n) { int other = n + counter++; return bytes(&other); }
int alsoUnused(int a) { return variable(a); }
int outside(int a) { int b = a * 2; return a > 7 ? variable(b) : b; }
int bytes(void *p) { unsigned char *c = p; int sum = 0; for (int i = 0; i < 4; i++) sum += c[i]; return sum; }
