// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"bytes"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/sdk"
)

// recognised is a runtime in a module.
type recognised struct {
	runtime Runtime
	module  *code.Module
}

// recognise returns the runtimes that modules have, in the order of the runtimes and then of the
// modules. Only data of the modules' files is looked at.
func recognise(runtimes []Runtime, modules []*code.Module) (list []recognised) {
	for _, r := range runtimes {
		about := r.Description()
		for _, m := range modules {
			if m.Object == nil {
				continue
			}
			is := false
			// A file that is cut has no runtime.
			_ = object.Guard(func() error {
				is = hasRuntime(about, m)
				return nil
			})
			if is {
				list = append(list, recognised{r, m})
			}
		}
	}
	return list
}

// hasRuntime reports whether one of a runtime's recognisers selects a module. Symbols are looked
// at last.
func hasRuntime(about *sdk.RuntimeDescription, m *code.Module) bool {
	var symbols []string
	for i := range about.Recognises {
		r := &about.Recognises[i]
		switch {
		case r.Section == "" && r.Symbol == "" && len(r.BuildID) == 0:
		case r.Section != "" && m.Object.Section(r.Section) == nil:
		case len(r.BuildID) > 0 && !bytes.Equal(r.BuildID, m.Object.BuildID()):
		case r.Symbol == "":
			return true
		default:
			symbols = append(symbols, r.Symbol)
		}
	}
	if len(symbols) == 0 {
		return false
	}
	for _, is := range m.Code.Defines(symbols) {
		if is {
			return true
		}
	}
	return false
}
