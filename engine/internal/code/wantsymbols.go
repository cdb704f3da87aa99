// SPDX-License-Identifier: Apache-2.0

package code

import (
	"path"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
)

// wantSymbols adds a problem for a module of Windows that has no name for an address: it names
// the symbol file that would have it, since its compiler's debug information is in a program
// database, which is not read. It does so once: a recording may have many such addresses.
func (o *Object) wantSymbols() { o.breakpad.wantOnce.Do(o.nameWantedSymbols) }

func (o *Object) nameWantedSymbols() {
	if o.symbolFile().file != nil {
		return // it does not know the address either
	}
	for _, id := range o.symbolIDs() {
		if pdb := id.DebugFile; strings.EqualFold(path.Ext(pdb), ".pdb") {
			o.Problem("%s: its names are in %.200s, which is not read; the symbol file %.200s/%s/%.200s would do, which `dump_syms %.200s` writes",
				o.Name(), pdb, pdb, id.DebugID, object.SymbolFileName(pdb), pdb)
		}
	}
}
