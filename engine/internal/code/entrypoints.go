// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"debug/elf"

	"github.com/unwindd/unwindd/cfi"
)

// This file finds the code at which stacks begin, which nothing called.

// maxEntryCode bounds the code between a program's entry point and its first call.
const maxEntryCode = 64

// entryPoints are the entry points of programs, and functions that the plugin declares to have
// no caller. They have a row here where no other source had one.
type entryPoints struct{ object *Object }

func newEntryPoints(o *Object) RowSource { return entryPoints{o} }

func (s entryPoints) Row(ctx context.Context, l *Lookup) (*Row, error) {
	if l.outermost == "" && s.object.isAtEntryPoint(ctx, l.PC, l.IsExact) {
		return &Row{Outermost: "the program begins there"}, nil
	}
	if l.outermost != "" {
		return &Row{}, nil
	}
	return nil, nil
}

// isAtEntryPoint reports whether a PC is between the entry point of a program, or of a
// dynamic linker, and the end of its first call: the kernel begins there, and no
// code calls it. pc is an address of the object.
func (o *Object) isAtEntryPoint(ctx context.Context, pc uint64, exact bool) bool {
	if o.File == nil || !o.File.IsELF() || o.isLaid() {
		return false
	}
	entry := o.File.EntryCode()
	if typ := o.File.Type(); entry == 0 || typ != elf.ET_EXEC && typ != elf.ET_DYN || pc-entry > maxEntryCode {
		return false
	}
	if pc == entry {
		return exact
	}
	code := make([]byte, pc-entry)
	if !o.CodeBefore(pc, code) {
		return false // the file is cut
	}
	var c Classifier
	for n := range code {
		c.Add(entry+uint64(n)+1, code[max(0, n+1-int(o.machine.Description.MaxInstruction)):n+1])
	}
	sites, err := c.Ask(ctx, o.machine)
	if err != nil {
		return false // it is not known where calls are
	}
	for n, site := range sites {
		isCaller := !exact && n == len(sites)-1
		if site.IsAfterCall != isCaller {
			return false
		}
	}
	return true
}

// enteredRow returns the row of a function that begins at pc, where no call ends: the function
// is entered by a return, such as the one below the first function of a context.
func (o *Object) enteredRow(ctx context.Context, t *cfi.Table, pc uint64) (*cfi.Row, *cfi.FDE) {
	fde, err := t.FDE(pc)
	if err != nil || fde.Start != pc || o.isAfterCall(ctx, pc, pc-min(pc, uint64(o.machine.Description.MaxInstruction))) {
		return nil, nil
	}
	var row cfi.Row
	if err := fde.RowAt(pc, &row); err != nil || !isCFA(&row) {
		return nil, nil
	}
	return &row, fde
}
