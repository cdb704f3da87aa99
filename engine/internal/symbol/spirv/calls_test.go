// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
)

// Calls are those of spirv-dis, with whether Function Control of the callee is
// DontInline.
func TestCallsAreThoseOfTheDisassembly(t *testing.T) {
	dir := t.TempDir()
	source := dir + "/k.cl"
	write(t, source, []byte(`int used(int x) { return x + 1; }
__attribute__((noinline)) int kept(int x) { return used(x) * used(x - 1); }
__kernel void k(__global int *p) { p[0] = kept(p[1]) + used(p[2]); }
`))
	oracle.Run(t, "clang-15", "-cc1", "-triple", "spir64", "-O0", "-disable-O0-optnone", "-finclude-default-header", "-debug-info-kind=limited", "-dwarf-version=4",
		"-emit-llvm-bc", "-o", dir+"/k.bc", source)
	oracle.Run(t, "llvm-spirv-15", dir+"/k.bc", "-o", dir+"/k.spv")
	m := parse(t, "k.spv", read(t, dir+"/k.spv"))
	var got []string
	for c := range m.Calls() {
		p, err := m.Find(fmt.Sprintf("%s+%d", c.Function, c.Instruction), false)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, c.Position); diff != "" {
			t.Error(diff)
		}
		got = append(got, fmt.Sprintf("%s calls %s, never inlined %v, line %d", c.Function, c.Callee, c.NeverInlined, c.Frames[0].Line))
	}
	var want []string
	in, kept := "", map[string]bool{}
	function := regexp.MustCompile(`%(\S+) = OpFunction %\S+ (\S+)`)
	call := regexp.MustCompile(`OpFunctionCall %\S+ %(\S+)`)
	lines := map[string]int{"used": 2, "kept": 3}
	text := strings.Split(oracle.Run(t, "spirv-dis", dir+"/k.spv"), "\n")
	for _, pass := range []int{1, 2} {
		for _, line := range text {
			if f := function.FindStringSubmatch(line); f != nil {
				in = f[1]
				kept[in] = strings.Contains(f[2], "DontInline")
			}
			if c := call.FindStringSubmatch(line); c != nil && pass == 2 && lines[c[1]] > 0 {
				at := lines[c[1]]
				if c[1] == "used" && in == "k" {
					at = 3
				}
				want = append(want, fmt.Sprintf("%s calls %s, never inlined %v, line %d", in, c[1], kept[c[1]], at))
			}
		}
	}
	if len(want) < 4 || !slices.ContainsFunc(want, func(s string) bool { return strings.Contains(s, "calls kept, never inlined true") }) {
		t.Fatalf("%q", want)
	}
	// The translator adds entry points that call the kernels.
	got = slices.DeleteFunc(got, func(s string) bool { return strings.Contains(s, " calls k,") })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
