// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// benchProgram has functions that call each other, themselves and what a table
// has, with loops, arrays and values that live across calls.
const benchProgram = `
#define GLOBAL __attribute__((address_space(1)))
#define NOINLINE __attribute__((noinline))
typedef unsigned u32;
typedef u32 function(u32, u32, const GLOBAL u32 *, int);
function leaf, direct, recursive, indirect, wide;
static function *const table[4] = {leaf, direct, recursive, wide};

NOINLINE u32 leaf(u32 a, u32 b, const GLOBAL u32 *p, int d) { return a * 3 + p[b & 63] - d; }

NOINLINE u32 direct(u32 a, u32 b, const GLOBAL u32 *p, int d) {
  u32 x = leaf(a, b, p, d), y = leaf(b, x, p, d - 1);
  if (x & 1) return y;
  for (u32 i = 0; i < (y & 7); i++) x = x * 5 + leaf(i, x, p, d);
  return x ^ y;
}

NOINLINE u32 recursive(u32 a, u32 b, const GLOBAL u32 *p, int d) {
  u32 keep[8];
  for (int i = 0; i < 8; i++) keep[i] = p[(a + i) & 63];
  if (d <= 0) return keep[b & 7];
  u32 x = recursive(b, keep[a & 7], p, d - 1);
  return x + keep[x & 7] + recursive(x, a, p, d - 2);
}

NOINLINE u32 indirect(u32 a, u32 b, const GLOBAL u32 *p, int d) {
  u32 x = a, y = b;
  if (d > 0) x = table[p[a & 63] & 3](a, b, p, d - 1);
  if (x & 4) y = table[x & 3](x, b, p, d - 2);
  while (y > 1000) y = (y >> 1) + p[y & 63];
  return x * y + a;
}

#define STEP(n) x[n & 15] = x[(n + 5) & 15] * b + p[(x[n & 15] + n) & 63]; if (x[n & 15] & 2) b ^= x[(n * 7) & 15]; else b += n;
#define STEPS(n) STEP(n) STEP(n + 1) STEP(n + 2) STEP(n + 3) STEP(n + 4) STEP(n + 5) STEP(n + 6) STEP(n + 7)
NOINLINE u32 wide(u32 a, u32 b, const GLOBAL u32 *p, int d) {
  u32 x[16];
  for (int i = 0; i < 16; i++) x[i] = a * i;
  STEPS(0) STEPS(8)
  b += indirect(a, b, p, d - 1);
  STEPS(16) STEPS(24)
  return b + direct(x[0], x[b & 15], p, d);
}

__attribute__((amdgpu_kernel)) void kernel(GLOBAL u32 *out, const GLOBAL u32 *p, int n) {
  u32 id = __builtin_amdgcn_workitem_id_x();
  out[id] = indirect(id, n, p, n & 7) + wide(id, n, p, 3);
}
`

// BenchmarkFrameRulesOfObjects reads all functions of a compiled object, which was
// not asked before.
func BenchmarkFrameRulesOfObjects(b *testing.B) {
	for _, c := range [...]struct{ processor, level string }{
		{"gfx90a", "-O0"}, {"gfx90a", "-O2"}, {"gfx1100", "-O0"}, {"gfx1100", "-O2"},
	} {
		b.Run(c.processor+c.level, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "k.co")
			cmd := exec.Command("clang-22", "-target", "amdgcn-amd-amdhsa", "-mcpu="+c.processor, "-nogpulib", c.level, "-o", path, "-x", "c", "-")
			cmd.Stdin = strings.NewReader(benchProgram)
			if text, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v: %v\n%s", cmd.Args, err, text)
			}
			o := readObject(b, path)
			e := sections{data: o.data}
			req := &sdk.FrameRulesRequest{Object: o.req.Object, Functions: functionsOf(b, path)}
			rows := 0
			b.ReportAllocs()
			for b.Loop() {
				a := New()
				if _, err := a.OpenObject(context.Background(), e, &o.req); err != nil {
					b.Fatal(err)
				}
				answer, err := a.FrameRules(context.Background(), e, req)
				if err != nil {
					b.Fatal(err)
				}
				rows = 0
				for i := range answer.Functions {
					if answer.Functions[i].Reason != "" {
						b.Fatal(req.Functions[i].Name, answer.Functions[i].Reason)
					}
					rows += len(answer.Functions[i].Rows)
				}
			}
			b.ReportMetric(float64(rows)/float64(len(req.Functions)), "rows/function")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(req.Functions)), "ns/function")
		})
	}
}
