// SPDX-License-Identifier: Apache-2.0

package codeflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// FunctionKinds are kinds of functions, by symbol, at which a stack is not as call frame
// information describes it.
type FunctionKinds map[string]sdk.FunctionKind

// goABI is the suffix that Go's linker adds to the name of a function in assembly language.
const goABI = ".abi0"

// Kind returns the kind of the function with a name.
func (k FunctionKinds) Kind(name string) (kind sdk.FunctionKind, ok bool) {
	kind, ok = k[strings.TrimSuffix(name, goABI)]
	return kind, ok
}

// Symbols returns the names for the description, so that OpenObject gets these functions.
func (k FunctionKinds) Symbols() []string {
	var names []string
	for name := range k {
		if names = append(names, name); strings.Contains(name, ".") {
			names = append(names, name+goABI)
		}
	}
	slices.Sort(names)
	return names
}

// Functions returns the functions of a code object that are of these kinds, by address.
func (k FunctionKinds) Functions(req *sdk.OpenObjectRequest) []sdk.Function {
	var list []sdk.Function
	for i := range req.Symbols {
		s := &req.Symbols[i]
		kind, ok := k.Kind(s.Name)
		if !ok {
			continue
		}
		if end := req.SymbolEnd(s); end > s.Address {
			list = append(list, sdk.Function{Name: s.Name, Start: s.Address, End: end, Kind: kind})
		}
	}
	slices.SortFunc(list, func(a, b sdk.Function) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), strings.Compare(a.Name, b.Name))
	})
	// .symtab and .dynsym may both name a function.
	return slices.CompactFunc(list, func(a, b sdk.Function) bool { return a.Start == b.Start })
}

// IsGo reports whether sections belong to a code object that the Go linker made.
func IsGo(sections []sdk.SectionInfo) bool {
	return slices.ContainsFunc(sections, func(s sdk.SectionInfo) bool {
		return slices.Contains([]string{".gopclntab", ".data.rel.ro.gopclntab", ".note.go.buildid"}, s.Name)
	})
}

// SavedRegister is a register of the interrupted code, at an offset from the stack pointer of a
// signal trampoline.
type SavedRegister struct {
	Register uint32
	Offset   int64
}

// SignalRow returns the row of a signal trampoline. sp is the stack pointer, whose saved value is the
// CFA, and pc the register whose saved value is the return address. Saved registers are in the order
// of their numbers.
func SignalRow(sp, pc uint32, saved []SavedRegister) cfi.Row {
	row := cfi.Row{ReturnAddress: uint64(pc), SignalFrame: true}
	for _, r := range saved {
		place := fmt.Sprintf("bregx %d %d", sp, r.Offset)
		if sp < 32 { // it has an opcode of its own
			place = fmt.Sprintf("breg%d %d", sp, r.Offset)
		}
		row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(r.Register), Rule: cfi.Rule{Kind: cfi.Expression, Expr: expression(place)}})
		if r.Register == sp {
			row.CFA = cfi.CFARule{Kind: cfi.CFAExpression, Expr: expression(place + "; deref")}
		}
	}
	return row
}

// expression assembles an expression.
func expression(text string) []byte {
	expr, err := locexpr.Parse(text, locexpr.TextOptions{Dialect: locexpr.Canonical})
	if err != nil {
		panic(err) // no text is user-provided
	}
	return expr
}
