// SPDX-License-Identifier: Apache-2.0

package gopclntab

import (
	"encoding/binary"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// TestDepthsEqualCallFrameInformation compares the depth of the stack at every byte
// of every function with the CFA of .debug_frame, which the linker writes besides.
func TestDepthsEqualCallFrameInformation(t *testing.T) {
	for _, test := range []struct {
		name, env string
		flags     []string
	}{
		{"static", "CGO_ENABLED=0", nil},
		{"position-independent", "CGO_ENABLED=0", []string{"-buildmode=pie"}},
		{"linked by gcc", "CGO_ENABLED=1", []string{"-ldflags=-linkmode=external"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.env == "CGO_ENABLED=1" {
				oracle.Tools(t, "gcc")
			}
			path := build(t, test.env, test.flags...)
			table := open(t, path)
			functions, bytes, uncertain := 0, 0, 0
			for _, fde := range debugFrames(t, path) {
				f, ok := table.Function(fde.Start)
				if !ok { // of C
					continue
				}
				functions++
				err := fde.Rows(func(row *cfi.Row) bool {
					for pc := row.Start; pc < min(row.End, f.End); {
						d, ok, err := table.Depth(pc)
						if err != nil || !ok || d.Function != f || pc < d.Start || pc >= d.End {
							t.Fatalf("%#x in %s: %+v, %v, %v", pc, f.Name, d, ok, err)
						}
						if row.CFA.Kind != cfi.CFARegister || row.CFA.Offset != d.Bytes+8 {
							t.Fatalf("%#x in %s: %d bytes, the CFA is %+v", pc, f.Name, d.Bytes, row.CFA)
						}
						end := min(d.End, row.End, f.End)
						bytes += int(end - pc)
						if d.Uncertain {
							uncertain += int(end - pc)
						}
						pc = end
					}
					return true
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%d functions, %d bytes, %d of functions that change the stack pointer", functions, bytes, uncertain)
			if functions < 1000 || functions*100 < table.nfunc*95 || uncertain == 0 {
				t.Errorf("%d functions of %d, %d bytes are uncertain", functions, table.nfunc, uncertain)
			}
		})
	}
}

func debugFrames(t *testing.T, path string) (list []*cfi.FDE) {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	s := o.Section(".debug_frame")
	if s == nil {
		t.Fatalf("%s has no .debug_frame", path)
	}
	data, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	table, err := cfi.NewTable(cfi.Section{Name: s.Name, Data: data, Address: s.Address, Order: binary.LittleEndian, AddressSize: 8})
	if err != nil {
		t.Fatal(err)
	}
	for fde, err := range table.FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fde)
	}
	return list
}

func TestFunctionsAreThoseOfTheTable(t *testing.T) {
	table := open(t, build(t, "CGO_ENABLED=0", "-ldflags=-s -w"))
	list := table.Functions()
	if len(list) < 1000 || len(list) > table.nfunc {
		t.Errorf("%d functions of %d", len(list), table.nfunc)
	}
	if start, ok := table.Start(); !ok || start != list[0].Start {
		t.Errorf("%#x, %v, the first function is %+v", start, ok, list[0])
	}
	for i, f := range list {
		if got, ok := table.Function(f.Start); !ok || got != f || i > 0 && f.Start < list[i-1].End {
			t.Fatalf("function %d is %+v, found %+v, %v", i, f, got, ok)
		}
	}
}
