package pdbtypes

import (
	"fmt"
	"os"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol/pdb"
	"github.com/unwindd/unwindd/internal/dw"
)

func TestScratch(t *testing.T) {
	path := os.Getenv("PDB")
	if path == "" {
		t.Skip()
	}
	f, err := pdb.Open(path, 0x140000000)
	if err != nil {
		t.Fatal(err)
	}
	r := New(f, func(err error) { fmt.Println("PROBLEM", err) })
	n := 0
	for _, s := range f.Functions() {
		for pc := s.Start; pc < s.End; pc += max(1, (s.End-s.Start)/4) {
			scopes, err := r.Scopes(pc)
			if err != nil {
				t.Error(err)
				continue
			}
			fmt.Printf("%s %#x: %d scopes\n", s.Name, pc, len(scopes))
			for _, sc := range scopes {
				fmt.Printf("  %v %q\n", sc.Tag(), sc.Name())
				for v, err := range sc.Variables() {
					if err != nil {
						t.Error(err)
						break
					}
					typ, err := v.ValueType()
					l, lerr := v.Placed()
					var exprs [][]byte
					if l != nil {
						exprs, _ = l.At(pc)
					}
					if err != nil {
						t.Error(err)
						continue
					}
					fmt.Printf("    %v %s: %s size %d sized %v loc %x %v\n", v.Tag() == dw.TagFormalParameter, v.Name(), typ.String(), typ.Size, typ.IsSized, exprs, lerr)
					if c := typ.Complete(); c != nil {
						p, err := c.Parts()
						if err != nil {
							t.Error(err)
							continue
						}
						for _, m := range p.Members {
							ts := "?"
							if m.Type != nil {
								ts = m.Type.String()
							}
							fmt.Printf("        %d %s %s at %d bits %d\n", m.Role, m.Name, ts, m.Bits, m.FieldBits)
						}
					}
				}
			}
			n++
		}
	}
	fmt.Println(n, f.Problems(), r.Problems(), r.MemorySize())
}
