// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// ELF's types of sections and symbols, and flags of sections.
const (
	sectionNote   = 7 // SHT_NOTE
	sectionNoBits = 8 // SHT_NOBITS
	flagAlloc     = 2 // SHF_ALLOC
	flagExec      = 4 // SHF_EXECINSTR
	symbolObject  = 1 // STT_OBJECT
	symbolFunc    = 2 // STT_FUNC
	symbolSize    = 24
)

// maxKernels bounds the kernels that an object may list.
const maxKernels = 1 << 20

// codeObject is a code object that is being read.
type codeObject struct {
	ctx    context.Context
	engine sdk.Engine
	req    *sdk.OpenObjectRequest
	answer *sdk.OpenObjectAnswer

	processor   *processor // nil: the flags name none that is known
	byName      map[string]*sdk.SectionInfo
	loaded      []*sdk.SectionInfo // the sections that have an address, sorted by it
	functions   []span             // sorted by start
	descriptors []descriptor       // sorted by name
	check       *frameCheck        // nil: there is no call frame information with rules
}

// span is a range of addresses.
type span struct{ start, end uint64 }

// descriptor is a kernel descriptor's symbol.
type descriptor struct {
	name    string
	address uint64
}

// problem reports what could not be read. The rest of the answer stands.
func (o *codeObject) problem(format string, args ...any) {
	const enough = 64
	if len(o.answer.Problems) < enough {
		text := strings.ToValidUTF8(fmt.Sprintf(format, args...), "?")
		o.answer.Problems = append(o.answer.Problems, text[:min(len(text), 1024)])
	}
}

// index makes sections easy to find. Sections at address 0 are not loaded, or
// belong to a relocatable object and have no address yet.
func (o *codeObject) index() {
	o.byName = make(map[string]*sdk.SectionInfo, len(o.req.Sections))
	for i := range o.req.Sections {
		s := &o.req.Sections[i]
		if _, ok := o.byName[s.Name]; !ok {
			o.byName[s.Name] = s
		}
		if s.Flags&flagAlloc != 0 && s.Address != 0 && s.Type != sectionNoBits && s.Address+s.Size > s.Address {
			o.loaded = append(o.loaded, s)
		}
	}
	slices.SortStableFunc(o.loaded, func(a, b *sdk.SectionInfo) int { return cmp.Compare(a.Address, b.Address) })
}

// sectionAt returns the section that contains an address; nil where none
// does.
func (o *codeObject) sectionAt(address uint64) *sdk.SectionInfo {
	i, found := slices.BinarySearchFunc(o.loaded, address, func(s *sdk.SectionInfo, a uint64) int { return cmp.Compare(s.Address, a) })
	if !found {
		i--
	}
	if i < 0 || address-o.loaded[i].Address >= o.loaded[i].Size {
		return nil
	}
	return o.loaded[i]
}

// section returns the bytes of a section; nil where there are none.
func (o *codeObject) section(name string) []byte {
	s := o.byName[name]
	if s == nil || s.Type == sectionNoBits || s.Size == 0 {
		return nil
	}
	b, err := o.engine.ReadSection(o.ctx, o.req.Object, name)
	if err != nil {
		o.problem("%v", err)
		return nil
	}
	return b
}

// describe fills the answer.
func (o *codeObject) describe() {
	o.index()
	if o.processor = processorOf(o.req.Flags); o.processor != nil {
		o.answer.Processor = o.processor.name
	}
	o.readSymbols()
	o.findKernels(o.metadataKernels())
	f := o.readFrames()
	o.answer.Dialect = f.dialect
	if len(f.full) > 0 && o.processor != nil && len(o.loaded) > 0 {
		o.check, o.answer.ChecksCFI = &frameCheck{tables: f.tables, dialect: f.operations()}, true
	}
	switch {
	case !o.isDescribedBy(f):
		o.answer.DefaultRules = clobberRules(o.processor)
	case o.processor != nil && o.processor.scratch == architectedScratch:
		o.answer.DefaultRules = defaultRules(o.processor)
	}
}

// readSymbols reads the functions and kernel descriptors of both symbol tables.
func (o *codeObject) readSymbols() {
	for _, table := range [...][2]string{{".symtab", ".strtab"}, {".dynsym", ".dynstr"}} {
		symbols, names := o.section(table[0]), o.section(table[1])
		for ; len(symbols) >= symbolSize; symbols = symbols[symbolSize:] {
			kind, section := symbols[4]&0xf, binary.LittleEndian.Uint16(symbols[6:])
			address, size := binary.LittleEndian.Uint64(symbols[8:]), binary.LittleEndian.Uint64(symbols[16:])
			switch {
			case section == 0: // SHN_UNDEF
			case kind == symbolFunc && address+size > address:
				o.functions = append(o.functions, span{address, address + size})
			case kind == symbolObject && size == descriptorSize:
				if name, ok := descriptorName(names, binary.LittleEndian.Uint32(symbols)); ok && len(o.descriptors) < maxKernels {
					o.descriptors = append(o.descriptors, descriptor{name, address})
				}
			}
		}
	}
	slices.SortStableFunc(o.functions, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	o.functions = slices.CompactFunc(o.functions, func(a, b span) bool { return a.start == b.start })
	slices.SortStableFunc(o.descriptors, func(a, b descriptor) int { return cmp.Compare(a.name, b.name) })
	o.descriptors = slices.CompactFunc(o.descriptors, func(a, b descriptor) bool { return a.name == b.name })
}

// descriptorName returns the name of a symbol if it is a kernel descriptor's.
// Strings of a table may share their bytes, so that only a bound on each keeps
// all together in proportion.
func descriptorName(names []byte, offset uint32) (string, bool) {
	const suffix, longest = ".kd", 1 << 13
	if uint64(offset) >= uint64(len(names)) {
		return "", false
	}
	names = names[offset:]
	name := names[:max(bytes.IndexByte(names[:min(len(names), longest)], 0), 0)]
	if len(name) <= len(suffix) || !bytes.HasSuffix(name, []byte(suffix)) || !utf8.Valid(name) {
		return "", false
	}
	return string(name), true
}

// metadataKernels returns the kernels of the object's metadata, by the symbol
// of their descriptor.
func (o *codeObject) metadataKernels() map[string]kernel {
	kernels := map[string]kernel{}
	left := 64 // sections of notes that are read
	for i := range o.req.Sections {
		s := &o.req.Sections[i]
		if s.Type != sectionNote || o.byName[s.Name] != s || left == 0 {
			continue
		}
		left--
		data, ok := metadataNote(o.section(s.Name))
		if !ok {
			continue
		}
		m, err := DecodeMetadata(data)
		if err != nil {
			o.problem("section %s: note of AMDGPU: %v", s.Name, err)
			continue
		}
		for _, k := range kernelsOf(m) {
			kernels[k.symbol] = k
		}
		break // of metadata there is one note
	}
	return kernels
}

// metadataNote finds the note with the metadata among a section's notes. Owner
// and data are padded to 4 bytes ("Note Records").
func metadataNote(notes []byte) (data []byte, ok bool) {
	const header = 12
	for len(notes) >= header {
		owner, size := uint64(binary.LittleEndian.Uint32(notes)), uint64(binary.LittleEndian.Uint32(notes[4:]))
		start := header + (owner+3)&^3
		if start > uint64(len(notes)) || size > uint64(len(notes))-start {
			return nil, false
		}
		name, _, _ := strings.Cut(string(notes[header:header+min(owner, 16)]), "\x00")
		if name == MetadataOwner && binary.LittleEndian.Uint32(notes[8:]) == MetadataNote {
			return notes[start : start+size], true
		}
		notes = notes[min(start+(size+3)&^3, uint64(len(notes))):]
	}
	return nil, false
}

// The fields of a kernel descriptor ("Kernel Descriptor").
const (
	descriptorSize       = 64
	descriptorEntry      = 16 // KERNEL_CODE_ENTRY_BYTE_OFFSET: 8 bytes, signed, from the descriptor on
	descriptorProperties = 56 // 2 bytes; properties of the code
	propertyWave32       = 1 << 10
)

// findKernels finds the code of each kernel descriptor. The descriptor counts,
// which the machine obeys; the metadata is for the launching host.
func (o *codeObject) findKernels(listed map[string]kernel) {
	if len(o.descriptors) == 0 {
		if len(listed) > 0 {
			o.problem("metadata lists %d kernels, but no symbol is a kernel descriptor's", len(listed))
		}
		return
	}
	contents := map[string][]byte{}
	for i := range o.descriptors {
		d := &o.descriptors[i]
		b := o.descriptor(d, contents)
		if b == nil {
			if len(o.loaded) > 0 {
				o.problem("kernel descriptor %s: its address, %#x, is in no section", d.name, d.address)
			}
			continue
		}
		entry := d.address + binary.LittleEndian.Uint64(b[descriptorEntry:])
		f := sdk.Function{Name: strings.TrimSuffix(d.name, ".kd"), Start: entry, Lanes: wave64, Kind: sdk.KernelFunction}
		if f.End = o.end(entry); f.End == 0 {
			o.problem("kernel descriptor %s: the entry, %#x, is in no section of code", d.name, entry)
			continue
		}
		if binary.LittleEndian.Uint16(b[descriptorProperties:])&propertyWave32 != 0 {
			f.Lanes = wave32
		}
		if k, ok := listed[d.name]; ok && k.lanes != 0 && k.lanes != f.Lanes {
			o.problem("kernel %s: waves of %d lanes by its descriptor, of %d by the metadata", f.Name, f.Lanes, k.lanes)
		}
		if o.processor != nil && !o.processor.canRun(f.Lanes) {
			o.problem("kernel %s: waves of %d lanes, but those of %s have %d", f.Name, f.Lanes, o.processor.name, o.processor.lanes[0])
		}
		o.answer.Functions = append(o.answer.Functions, f)
	}
	slices.SortStableFunc(o.answer.Functions, func(a, b sdk.Function) int { return cmp.Compare(a.Start, b.Start) })
	o.answer.Functions = slices.CompactFunc(o.answer.Functions, func(a, b sdk.Function) bool { return a.Start == b.Start })
}

// descriptor returns the bytes of a kernel descriptor; nil where there are none.
func (o *codeObject) descriptor(d *descriptor, contents map[string][]byte) []byte {
	s := o.sectionAt(d.address)
	if s == nil || o.byName[s.Name] != s {
		return nil
	}
	b, ok := contents[s.Name]
	if !ok {
		b = o.section(s.Name)
		contents[s.Name] = b
	}
	if offset := d.address - s.Address; offset <= uint64(len(b)) && uint64(len(b))-offset >= descriptorSize {
		return b[offset:][:descriptorSize]
	}
	return nil
}

// end returns the end of the function that begins at an address: by its
// symbol, else the next function or the end of the section; 0 where the
// address is in no section of code.
func (o *codeObject) end(start uint64) uint64 {
	s := o.sectionAt(start)
	if s == nil || s.Flags&flagExec == 0 {
		return 0
	}
	end := s.Address + s.Size
	i, found := slices.BinarySearchFunc(o.functions, start, func(f span, a uint64) int { return cmp.Compare(f.start, a) })
	switch {
	case found:
		end = min(end, o.functions[i].end)
	case i < len(o.functions):
		end = min(end, o.functions[i].start)
	}
	return end
}

// frames summarizes an object's call frame information.
type frames struct {
	full    []span   // code that has rows with a CFA, sorted
	empty   []uint64 // where code without such rows begins
	dialect string   // of the expressions
	tables  []frameTable
}

// operations returns the dialect of the expressions.
func (f *frames) operations() *locexpr.Dialect {
	if f.dialect == legacyDialect {
		return locexpr.LLVMLegacy
	}
	return locexpr.LLVMUser
}

// readFrames reads the object's call frame information.
func (o *codeObject) readFrames() frames {
	f := frames{dialect: userDialect}
	dialects := dialectVotes{user: true, legacy: true}
	for i := range o.req.Sections {
		s := &o.req.Sections[i]
		if s.Name != ".debug_frame" && s.Name != ".eh_frame" {
			continue
		}
		data := o.section(s.Name)
		if data == nil {
			continue
		}
		t, err := cfi.NewTable(cfi.Section{
			Name: s.Name, Data: data, Address: s.Address, EH: s.Name == ".eh_frame",
			Order: binary.LittleEndian, AddressSize: 8,
		})
		if err != nil {
			o.problem("%v", err)
			continue
		}
		f.tables = append(f.tables, frameTable{t, s.Name == ".eh_frame"})
		for e, err := range t.Entries() {
			switch {
			case err != nil:
				o.problem("%v", err)
			case e.FDE != nil:
				f.add(e.FDE)
				for instruction, err := range e.FDE.Instructions() {
					dialects.count(&instruction, err)
				}
			case e.CIE != nil:
				for instruction, err := range e.CIE.Instructions() {
					dialects.count(&instruction, err)
				}
			}
		}
	}
	// The byte 0xe9 is an operation in both; where both can be decoded, the
	// published encoding is meant.
	if !dialects.user && dialects.legacy {
		f.dialect = legacyDialect
	}
	slices.SortFunc(f.full, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	return f
}

// add records an FDE: its first row tells whether there is a CFA, which no FDE
// of a compiler defines later.
func (f *frames) add(fde *cfi.FDE) {
	if fde.Start >= fde.End {
		return
	}
	full := false
	err := fde.Rows(func(r *cfi.Row) bool {
		full = r.CFA.Kind != cfi.NoCFA
		return false
	})
	if err != nil || !full {
		f.empty = append(f.empty, fde.Start)
		return
	}
	f.full = append(f.full, span{fde.Start, fde.End})
}

// hasRowsAt reports whether there are rows of the code at an address.
func (f *frames) hasRowsAt(address uint64) bool {
	i, found := slices.BinarySearchFunc(f.full, address, func(r span, a uint64) int { return cmp.Compare(r.start, a) })
	return found || i > 0 && address < f.full[i-1].end
}

// isDescribedBy reports whether call frame information describes every function but
// kernels, which have no caller.
func (o *codeObject) isDescribedBy(f frames) bool {
	if len(f.full) == 0 {
		return false
	}
	kernel := func(start uint64) bool {
		_, found := slices.BinarySearchFunc(o.answer.Functions, start, func(k sdk.Function, a uint64) int { return cmp.Compare(k.Start, a) })
		return found
	}
	for _, start := range f.empty {
		if !kernel(start) {
			return false
		}
	}
	for i := range o.functions {
		if start := o.functions[i].start; !f.hasRowsAt(start) && !kernel(start) {
			return false
		}
	}
	return true
}

// dialectVotes has the dialects in which all expressions so far can be
// decoded.
type dialectVotes struct{ user, legacy bool }

func (v *dialectVotes) count(instruction *cfi.Instruction, err error) {
	if err != nil {
		return // the table reports this problem
	}
	for i := range instruction.Operands {
		if op := &instruction.Operands[i]; op.Kind == cfi.ExpressionOperand {
			v.user = v.user && canDecode(op.Expr, locexpr.LLVMUser)
			v.legacy = v.legacy && canDecode(op.Expr, locexpr.LLVMLegacy)
		}
	}
}

func canDecode(expr []byte, dialect *locexpr.Dialect) bool {
	for _, err := range locexpr.Decode(expr, dialect, 8, locexpr.LittleEndian) {
		if err != nil {
			return false
		}
	}
	return true
}
