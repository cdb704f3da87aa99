// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// IntelKernels has the files that Intel's compiler writes for two kernels, alpha
// and beta.
type IntelKernels struct {
	Container string   // of their debug information
	Zebin     string   // of both
	ELF       []string // dumped of each kernel, in order, with streams beside them
}

// BuildIntel compiles two kernels for Tiger Lake.
func BuildIntel(t testing.TB) IntelKernels {
	t.Helper()
	oracle.Tools(t, "ocloc")
	source := oracle.Checkout(t, "plugins/visa/testdata/two.cl")
	ocloc := []string{"ocloc", "compile", "-file", source, "-device", "tgllp", "-options", "-g", "-out_dir"}
	dir := oracle.Build{Sources: []string{source}, Commands: [][]string{
		append([]string{"sh", "-c", `IGC_ShaderDumpEnable=1 IGC_DumpToCustomDir="$PWD/" exec "$0" "$@"`}, append(ocloc, "debug")...),
		append(ocloc, "zebin", "--format", "zebin"),
	}}.Make(t)
	found := func(pattern string) []string {
		list, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(list) == 0 {
			t.Fatalf("%s: %q, %v", pattern, list, err)
		}
		slices.Sort(list)
		return list
	}
	return IntelKernels{Container: found("debug/*.dbg")[0], Zebin: found("zebin/*.bin")[0], ELF: found("*_entry_*.elf")}
}
