// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

const accessKernel = `
extern "C" __global__ void k(int *g, const double2 *d, char *c, int n, int *out) {
  __shared__ int s[256];
  int local[32];
  int t = threadIdx.x;
  s[t] = g[t];
  __syncthreads();
  for (int i = 0; i < n; i++) local[(i*7+t)&31] = s[(t+i)&255] + c[t*3+5];
  double2 x = d[t+2];
  out[t] = local[n&31] + (int)x.x + s[255-t];
  atomicAdd(out + n, t);
  int v = atomicCAS(g + n, t, 5);
  out[-t-4] = atomicExch(out + t, v);
  *(volatile short*)(c+t*2+0x123) = (short)v;
  int *p = (n & 1) ? s : g;
  *p = v;
  out[3] = p[5] + atomicAdd(p - 7, 3);
}
`

var (
	disassembled = regexp.MustCompile(`^\s*/\*[0-9a-f]{4}\*/\s+(?:@!?U?P\d\s+)?([A-Z]+)[.A-Z0-9_]*\s+(.*?)\s*;\s+/\* 0x([0-9a-f]{16}) \*/`)
	secondHalf   = regexp.MustCompile(`^\s+/\* 0x([0-9a-f]{16}) \*/`)
	addressed    = regexp.MustCompile(`\[R(\d+)(\.64)?((?:\+-?0x[0-9a-f]+)?)\]`)
)

// TestAccesses decodes the instructions of kernels for processors of each family, and compares
// where each accesses memory with the text of nvdisasm.
func TestAccesses(t *testing.T) {
	oracle.All(t)
	oracle.Tools(t, "nvcc", "nvdisasm")
	dir := t.TempDir()
	source, cubin := filepath.Join(dir, "k.cu"), filepath.Join(dir, "k.cubin")
	if err := os.WriteFile(source, []byte(accessKernel), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, processor := range []uint32{75, 80, 86, 89, 90, 100, 120} {
		oracle.Run(t, "nvcc", fmt.Sprintf("-arch=sm_%d", processor), "-cubin", "-o", cubin, source)
		lines := strings.Split(oracle.Run(t, "nvdisasm", "-hex", "-c", cubin), "\n")
		decoded := 0
		for i := range len(lines) - 1 {
			m, n := disassembled.FindStringSubmatch(lines[i]), secondHalf.FindStringSubmatch(lines[i+1])
			if m == nil || n == nil {
				continue
			}
			low, _ := strconv.ParseUint(m[3], 16, 64)
			high, _ := strconv.ParseUint(n[1], 16, 64)
			a, ok := decodeAccess(low, high, processor)
			if !ok {
				continue
			}
			decoded++
			operand := addressed.FindStringSubmatch(m[2])
			if operand == nil {
				t.Errorf("sm_%d: %s %s is decoded as %+v", processor, m[1], m[2], a)
				continue
			}
			register, _ := strconv.ParseUint(operand[1], 10, 32)
			offset, _ := strconv.ParseInt(strings.Replace(strings.TrimPrefix(operand[3], "+"), "+-", "-", 1), 0, 64)
			isLocal := strings.HasSuffix(m[1], "L")
			if uint64(a.register) != register || a.offset != offset || a.isWide == isLocal {
				t.Errorf("sm_%d: %s %s is decoded as %+v", processor, m[1], m[2], a)
			}
		}
		if decoded < 10 {
			t.Errorf("sm_%d: %d instructions were decoded", processor, decoded)
		}
		t.Logf("sm_%d: %d accesses", processor, decoded)
	}
}
