// SPDX-License-Identifier: Apache-2.0

package code

import (
	"path"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
)

// wantSymbols adds a problem for a module of Windows that has no name for an address: it names
// the PDB file, in which its compiler's debug information is, and where that would be found. It
// does so once: a recording may have many such addresses.
func (o *Object) wantSymbols() { o.breakpad.wantOnce.Do(o.nameWantedSymbols) }

func (o *Object) nameWantedSymbols() {
	if o.hasDebugInfo() || o.symbolFile().file != nil {
		return // it does not know the address either
	}
	for _, id := range o.symbolIDs() {
		if pdb := id.DebugFile; strings.EqualFold(path.Ext(pdb), ".pdb") {
			o.Problem("%s: its names are in the file %.200s with the identifier %s, which was not found: put it beside the code or the dump, or into a store as %.200s/%s/%.200s; the symbol file %.200s would do, too",
				o.Name(), pdb, id.DebugID, pdb, id.DebugID, pdb, object.SymbolFileName(pdb))
		}
	}
}
