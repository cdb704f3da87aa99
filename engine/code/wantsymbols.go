package code

import (
	"cmp"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/object/pe"
)

// wantSymbols says of a PE file, of which an address has no name, which file would have it:
// its compiler's debug information is in a program database, which is not read.
func (o *Object) wantSymbols() {
	if o.File == nil || !o.File.IsPE() {
		return
	}
	var id pe.Identity
	if object.Guard(func() (err error) { id, err = o.File.PE().Identity(); return err }) != nil || !id.HasCodeView || id.PDB == "" {
		return
	}
	pdb := id.PDB[strings.LastIndexAny(id.PDB, `\/`)+1:]
	name, isPDB := strings.CutSuffix(pdb, ".pdb")
	if !isPDB {
		name = cmp.Or(strings.TrimSuffix(pdb, ".PDB"), pdb)
	}
	o.Problem("%s: its names are in %.200s, which is not read; the symbol file %.200s/%s/%.200s.sym would do, which `dump_syms %.200s` writes",
		o.File.Name(), pdb, pdb, id.DebugID(), name, pdb)
}
