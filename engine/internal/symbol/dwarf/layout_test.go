// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"debug/elf"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// In a relocatable file every section begins at 0. llvm-symbolizer gives the
// line of one section with the function of another; the linked file, in which
// addresses differ, has the truth.
func TestSectionsOfARelocatableFileAreToldApart(t *testing.T) {
	source, err := filepath.Abs("testdata/bare.c")
	if err != nil {
		t.Fatal(err)
	}
	for name, compiler := range map[string][]string{
		"gcc 5":   {"gcc", "-gdwarf-5"},
		"gcc 4":   {"gcc", "-gdwarf-4"},
		"clang 5": {"clang", "-gdwarf-5"},
		"clang 4": {"clang", "-gdwarf-4"},
		"32 bit":  {"clang", "--target=i386-linux-gnu", "-g"},
	} {
		t.Run(name, func(t *testing.T) {
			oracle.Tools(t, compiler[0], "ld.lld")
			dir := t.TempDir()
			args := append(compiler[1:], "-O2", "-c", "-ffunction-sections", "-o", "p.o", source)
			oracle.With{Dir: dir}.Run(t, compiler[0], args...)
			oracle.With{Dir: dir}.Run(t, "ld.lld", "-o", "p", "p.o")
			f, err := elf.Open(filepath.Join(dir, "p"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			symbols, err := f.Symbols()
			if err != nil {
				t.Fatal(err)
			}
			var work elf.Symbol
			for _, s := range symbols {
				if s.Name == "work" {
					work = s
				}
			}
			apart, linked := openMapped(t, filepath.Join(dir, "p.o")), openMapped(t, filepath.Join(dir, "p"))
			inlined := 0
			for i := range work.Size {
				got, err := apart.Frames(nil, i)
				if err != nil {
					t.Fatal(err)
				}
				want, err := linked.Frames(nil, work.Value+i)
				if err != nil {
					t.Fatal(err)
				}
				inlined += len(want) - 1
				for k := range want {
					if want[k].HasStart {
						want[k].Start -= work.Value
					}
				}
				if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
					t.Fatalf("%#x: (-linked +relocatable)\n%s", i, diff)
				}
			}
			if inlined == 0 {
				t.Error("no inlined call was compared")
			}
			if frames, err := apart.Frames([]trace.Symbol{}, 1<<20); len(frames) != 0 || err != nil {
				t.Errorf("behind all sections: frames %+v, error %v, want none", frames, err)
			}
		})
	}
}
