// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"os"
	"path/filepath"
	"sort"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// TestReleasedKernels reads the cubins of a folder, NVIDIA_CUBINS, such as cuobjdump -xelf all
// takes out of libraries: all of their call frame information, without a problem but the
// ones that are compilers'.
func TestReleasedKernels(t *testing.T) {
	dir := os.Getenv("NVIDIA_CUBINS")
	if dir == "" {
		t.Skip("NVIDIA_CUBINS is a folder of cubins")
	}
	count := map[string]int{}
	problems := map[string]int{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".cubin" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		c, err := readCubin(data)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		a := c.open(t)
		count["cubins"]++
		count["cubins of "+a.Processor]++
		for _, p := range a.Problems {
			if problems[p]++; len(problems) < 20 && problems[p] == 1 {
				t.Logf("%s: %s", path, p)
			}
		}
		covered := map[sdk.FunctionKind]string{sdk.KernelFunction: "kernels", sdk.OrdinaryFunction: "device functions"}
		for _, f := range a.Functions {
			count[covered[f.Kind]]++
			if !hasRow(a, &f) {
				count[covered[f.Kind]+" without rows"]++
			}
		}
		for _, table := range a.Tables {
			count["rows"] += len(table.Rows)
			for i := range table.Rows {
				back, _ := table.Rows[i].Rule(uint64(pc))
				if back.Kind == cfi.ValExpression {
					count["rows with a caller"]++
				}
				for _, r := range table.Rows[i].Rules {
					if r.Rule.Kind == cfi.Offset {
						count["saved registers"]++
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(count))
	for name := range count {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		t.Logf("%s: %d", name, count[name])
	}
	t.Logf("problems: %d", len(problems))
}

// hasRow reports whether a row begins where a function does.
func hasRow(a *sdk.OpenObjectAnswer, f *sdk.Function) bool {
	for _, table := range a.Tables {
		if table.Section != f.Section {
			continue
		}
		i := sort.Search(len(table.Rows), func(i int) bool { return table.Rows[i].End > f.Start })
		return i < len(table.Rows) && table.Rows[i].Start <= f.Start
	}
	return false
}
