// SPDX-License-Identifier: Apache-2.0

package code

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/breakpad"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/leb128"
	"github.com/unwindd/unwindd/sdk"
)

// This file reads the names, the rows and the bounds of functions from the Breakpad symbol file
// of an object. It is looked for when the first of them is needed, and only where the object has
// no debug information: both are made from the same data, and the symbol file has less of it. A
// PDB file without its image has no rows, which a symbol file may have.

// breakpadUse is the symbol file of an object. Its members have their own locks.
type breakpadUse struct {
	once     sync.Once
	use      atomic.Pointer[symbolUse] // nil until the file was looked for
	wantOnce sync.Once                 // see Object.wantSymbols
}

// A symbolUse is the result of looking for the symbol file of an object.
type symbolUse struct {
	file     *symbolFile // nil: there is none
	base     uint64      // the address of the object that its addresses count from
	tried    []object.Attempt
	isUnseen bool // see object.Finder
}

// symbolFile looks for the symbol file of the object, once. It may be called with mu and
// without, after resolver.
func (o *Object) symbolFile() *symbolUse {
	o.breakpad.once.Do(func() {
		use := &symbolUse{}
		if base, ok := o.symbolBase(); ok && o.mayHaveSymbolFile() && o.memory.jit == nil {
			use.base = base
			o.findSymbolFile(use)
		}
		o.breakpad.use.Store(use)
	})
	return o.breakpad.use.Load()
}

// mayHaveSymbolFile reports whether a symbol file may have what the object lacks.
func (o *Object) mayHaveSymbolFile() bool { return !o.hasDebugInfo() || o.File.IsPDB() }

// symbolBase returns where the addresses of a symbol file count from: the first segment of an
// ELF file, the image base of a PE file. Without a file it is 0 where the target names the
// symbol file, as a minidump does, and else where its first segment is. It is false for an
// object without symbol files, and where the target does not tell where the module begins.
func (o *Object) symbolBase() (uint64, bool) {
	base := uint64(math.MaxUint64)
	switch {
	case o.isLaid():
		return 0, false
	case o.File == nil && o.symbolID.DebugID != "":
		return 0, true
	case o.File == nil:
		for i := range o.memory.segments {
			base = min(base, o.memory.segments[i].Address)
		}
	default:
		return o.File.ImageBase()
	}
	return base, base != math.MaxUint64
}

// symbolIDs returns the names by which stores may know the symbol file. Where the target does
// not tell, they are made of the build ID; Breakpad's dump_syms takes the name of the file, and
// its writer of dumps the name by which others depend on it (DT_SONAME).
func (o *Object) symbolIDs() []trace.SymbolID {
	if o.symbolID.DebugID != "" {
		return []trace.SymbolID{o.symbolID}
	}
	if o.File != nil && o.File.IsPE() {
		return o.peSymbolIDs()
	}
	buildID, names := o.buildID, []string{path.Base(strings.TrimSuffix(o.path, deletedSuffix))}
	if o.File != nil {
		buildID = o.File.BuildID()
		if name := o.File.SharedName(); name != "" && name != names[0] {
			names = append(names, name)
		}
	}
	var list []trace.SymbolID
	for _, name := range names {
		if id := target.ELFSymbols(name, buildID); id.DebugID != "" {
			list = append(list, id)
		}
	}
	return list
}

// peSymbolIDs returns the symbolIDs of a PE file, by its reference to its debug information, which
// for MinGW's linker is in no other file.
func (o *Object) peSymbolIDs() []trace.SymbolID {
	var id pe.Identity
	err := object.Guard(func() (err error) { id, err = o.File.PE().Identity(); return err })
	if err != nil || !id.HasCodeView {
		return nil
	}
	name := cmp.Or(id.PDB, o.path)
	return []trace.SymbolID{{DebugFile: object.LastPart(name), DebugID: id.DebugID(), CodeID: id.CodeID()}}
}

// deletedSuffix is appended by the kernel to the path of a file that has no name any more.
const deletedSuffix = " (deleted)"

// findSymbolFile opens the symbol file.
func (o *Object) findSymbolFile(use *symbolUse) {
	for _, id := range o.symbolIDs() {
		use.isUnseen = o.finder.IsUnseen
		tried := o.finder.SymbolFiles(id.DebugFile, id.DebugID, func(file string) bool {
			return use.try(o.library, file, id.DebugID)
		})
		use.tried = append(use.tried, tried...)
		if use.file != nil {
			return
		}
	}
}

// try takes the file at a path if it has the identifier of a build, and reports whether to look at
// others.
func (u *symbolUse) try(l *Library, file, debugID string) (isMore bool) {
	m, err := breakpad.Identify(file)
	if err == nil && !m.IsID(debugID) {
		u.tried = append(u.tried, object.Attempt{
			Path: u.displayPath(file), Reason: fmt.Sprintf("its MODULE record has the identifier %.80q, expected %s", m.ID, debugID), Kind: object.Mismatched,
		})
		return true
	}
	if err == nil {
		u.file, err = l.symbols.use(file)
	}
	switch {
	case err == nil:
		return false
	case !errors.Is(err, fs.ErrNotExist):
		u.tried = append(u.tried, object.Attempt{Path: u.displayPath(file), Reason: strings.TrimPrefix(err.Error(), file+": "), Kind: object.Unreadable})
	}
	return true
}

// displayPath returns the path of a symbol file in reports; for users who do not see this machine
// it is its name.
func (u *symbolUse) displayPath(file string) string {
	if u.isUnseen {
		return filepath.Base(file)
	}
	return file
}

// maxSymbolProblems is how many problems of a symbol file are listed.
const maxSymbolProblems = 8

// allProblems returns the problems of the file so far.
func (u *symbolUse) allProblems() []string {
	if u.file == nil {
		return nil
	}
	var list []string
	first, more := u.file.Problems()
	for i, err := range first {
		if i == maxSymbolProblems {
			more += len(first) - i
			break
		}
		list = append(list, strings.ReplaceAll(err.Error(), u.file.Path(), u.displayPath(u.file.Path())))
	}
	if more > 0 {
		list = append(list, fmt.Sprintf("%s: %d more problems", u.displayPath(u.file.Path()), more))
	}
	return list
}

// fileAddress returns the address of the file for one of the object; false where there is none.
func (u *symbolUse) fileAddress(address uint64) (uint64, bool) {
	return address - u.base, u.file != nil && address >= u.base
}

// symbolFunction returns the FUNC record at an address of the object.
func (o *Object) symbolFunction(address uint64) (s symbol.Symbol, ok bool) {
	u := o.symbolFile()
	address, ok = u.fileAddress(address)
	if !ok {
		return s, false
	}
	o.library.symbols.lookedUp()
	fn, ok := u.file.Function(address)
	if !ok || fn.End <= fn.Start {
		return s, false
	}
	return symbol.Symbol{Name: fn.Name, Start: fn.Start + u.base, End: fn.End + u.base}, true
}

// IsJIT reports whether it is JIT code.
func (o *Object) IsJIT() bool { return o.memory.jit != nil }

// IsKnown reports whether the object's code has a file, or a symbol file, and not just bytes in
// memory. JIT code has neither.
func (o *Object) IsKnown() bool {
	if o.File != nil {
		return true
	}
	return o.symbolFile().file != nil
}

// breakpadNames are the names of the symbol file: its functions, or its public symbols.
type breakpadNames struct {
	object   *Object
	isPublic bool
}

// newBreakpadNames returns the names of FUNC records.
func newBreakpadNames(o *Object) symbol.Source {
	o.resolver() // finds the debug file
	if o.hasDebugInfo() {
		return nil
	}
	if u := o.symbolFile(); u.file == nil || u.file.Counts().Functions == 0 {
		return nil
	}
	return breakpadNames{o, false}
}

// newPublicNames returns the names of PUBLIC records, which do not tell where a function ends:
// the symbols of a file do.
func newPublicNames(o *Object) symbol.Source {
	if o.hasDebugInfo() {
		return nil
	}
	if u := o.symbolFile(); u.file == nil || u.file.Counts().Publics == 0 {
		return nil
	}
	return breakpadNames{o, true}
}

func (s breakpadNames) Frames(dst []trace.Symbol, address uint64) ([]trace.Symbol, error) {
	u := s.object.symbolFile()
	address, ok := u.fileAddress(address)
	if !ok {
		return dst, nil
	}
	if _, isFunction := u.file.Function(address); isFunction == s.isPublic {
		return dst, nil
	}
	before := len(dst)
	frames, err := u.file.Frames(dst, address)
	for i := before; i < len(frames); i++ {
		if frames[i].HasStart {
			frames[i].Start += u.base
		}
	}
	s.object.library.symbols.lookedUp()
	return frames, err
}

// breakpadRows are the STACK CFI records of the symbol file.
type breakpadRows struct{ object *Object }

func newBreakpadRows(o *Object) RowSource {
	if _, ok := o.symbolBase(); !ok || !o.mayHaveSymbolFile() || len(o.symbolIDs()) == 0 {
		return nil
	}
	return breakpadRows{o}
}

func (s breakpadRows) Row(_ context.Context, l *Lookup) (*Row, error) {
	o := s.object
	u := o.symbolFile()
	address, ok := u.fileAddress(l.Address)
	if !ok {
		return nil, nil
	}
	l.bound(symbolBounds(o.symbolFunction(l.Address)))
	row := new(cfi.Row)
	found, err := u.file.Row(row, address, o.machine.breakpadRegister)
	o.library.symbols.lookedUp()
	switch {
	case err != nil:
		l.problem("%v", err)
		return nil, noRow(err.Error())
	case !found:
		return nil, nil
	}
	row.Start, row.End = row.Start+u.base, row.End+u.base
	row.SignalFrame = isTrampoline(row, uint64(o.machine.Description.SP))
	return &Row{Rules: row, By: trace.ByBreakpad, Outermost: u.outermost(address, l.IsExact)}, nil
}

// isTrampoline reports whether a signal handler returns to the function of a row, which records
// do not tell: its CFA was saved on the stack by the signal, above the stack pointer, and its
// return address lies nowhere near the CFA.
func isTrampoline(row *cfi.Row, sp uint64) bool {
	i := slices.IndexFunc(row.Rules, func(r cfi.RegisterRule) bool { return r.Column == row.ReturnAddress })
	return i >= 0 && row.Rules[i].Rule.Kind == cfi.Expression && row.CFA.Kind == cfi.CFAExpression && isLoadedFrom(row.CFA.Expr, sp)
}

// isLoadedFrom reports whether an expression loads a word from an offset of a register, as
// breakpad.File.Row writes that (DWARF 5, 2.5.1).
func isLoadedFrom(e []byte, register uint64) bool {
	const breg0, deref, plus, lit0, lit31, consts = 0x70, 0x06, 0x22, 0x30, 0x4f, 0x11
	if register > 31 || len(e) < 3 || e[0] != breg0+byte(register) || e[1] != 0 {
		return false
	}
	next := 3
	if e[2] == consts {
		var err error
		if _, next, err = leb128.Signed(e, 3); err != nil {
			return false
		}
	} else if e[2] < lit0 || e[2] > lit31 {
		return false
	}
	return string(e[next:]) == string([]byte{plus, deref})
}

// outermostFunctions are the functions of Linux in whose call frame information the return
// address is undefined, which dump_syms leaves out. True: only calls in it are made on a stack
// that begins there.
var outermostFunctions = map[string]bool{"_start": false, "clone": true, "__clone": true, "clone3": true, "__clone3": true}

// outermost returns why the function at an address of the file has no caller; "" where it has
// one.
func (u *symbolUse) outermost(address uint64, isExact bool) string {
	if u.file.Module().OS != "Linux" {
		return ""
	}
	name := u.nameAt(address)
	if isCaller, is := outermostFunctions[name]; !is || isCaller && isExact {
		return ""
	}
	return name + " has no caller"
}

// nameAt returns the name of the function at an address of the file; "" where it has none. The
// lines and inlined calls of a FUNC record are not read for it.
func (u *symbolUse) nameAt(address uint64) string {
	if fn, ok := u.file.Function(address); ok {
		return fn.Name
	}
	frames, err := u.file.Frames(nil, address)
	if err != nil || len(frames) == 0 {
		return ""
	}
	return frames[len(frames)-1].Function
}

// breakpadRegister returns the number of a register by its name in STACK CFI records
// ("STACK CFI records" of Breakpad's docs/symbol_files.md): "$rsp" or "x29", and ".ra" for
// the column of the return address.
func (m *Machine) breakpadRegister(name string) (uint64, bool) {
	if name == ".ra" {
		return uint64(m.Description.ReturnAddress), true
	}
	m.registersOnce.Do(func() { m.registers = registerNumbers(m.Description) })
	number, ok := m.registers[strings.TrimPrefix(name, "$")]
	return number, ok
}

// registerNumbers returns the numbers of an architecture's registers by name.
func registerNumbers(d *sdk.Description) map[string]uint64 {
	numbers := map[string]uint64{}
	for i := range d.Registers {
		r := &d.Registers[i]
		for n := range r.Count {
			info, ok := d.Register(r.First + n)
			if !ok {
				continue
			}
			for _, name := range []string{info.Name, info.Alias} {
				if _, has := numbers[name]; name != "" && !has {
					numbers[name] = uint64(info.Number)
				}
			}
		}
	}
	return numbers
}

// registerNames are the registers by name, made when the first symbol file needs them.
type registerNames struct {
	registersOnce sync.Once
	registers     map[string]uint64
}
