// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// Variable is a variable at an address that does not change.
type Variable struct {
	Entry
	Start uint64 // ELF virtual address
	Size  uint64 // bytes; 1 where it is unknown

	File string // of its declaration (DW_AT_decl_file); "": unknown
	Line int    // DW_AT_decl_line; 0: unknown
	// ImplicitFile is set where the number of File is in the abbreviation
	// (DW_FORM_implicit_const), Completes where the type is in the declaration that the
	// entry completes. llvm-symbolizer looks up neither.
	ImplicitFile, Completes bool
}

// maxCovering bounds the variables around an address that are compared.
const maxCovering = 64

// placedVariable is an entry of a variable and the start of the variable.
type placedVariable struct {
	start uint64
	order int32  // of the unit in the file
	off   uint64 // of the entry in the section of its unit
	b     *body
}

// Variable returns the variable at an ELF virtual address. The name of its symbol is looked
// up in .debug_names first; without a match all entries are searched, once. Of several
// variables it is the one that begins nearest, in the first unit.
func (r *Reader) Variable(address uint64, name string) (v Variable, ok bool, err error) {
	if r.main.layout != nil {
		return v, false, nil // sections of data have no addresses yet
	}
	err = r.protect(func() error {
		if v, ok, err = r.namedVariable(address, name); ok || err != nil {
			return err
		}
		f := r.fileAt(address)
		if f == nil {
			return nil
		}
		list, err := f.variables.get(f.findVariables)
		if err != nil {
			return err
		}
		v, ok, err = holding(list, address)
		return err
	})
	return v, ok, err
}

// namedVariable looks a variable up by its name. A fault of the index is a problem.
func (r *Reader) namedVariable(address uint64, name string) (v Variable, ok bool, err error) {
	if name == "" {
		return v, false, nil
	}
	named, err := r.Named(name)
	if err != nil {
		r.problem(err.Error())
	}
	var list []placedVariable
	for _, e := range named {
		if e.Tag() != dw.TagVariable {
			continue
		}
		if start, ok := e.fixedAddress(); ok && r.main.hasData(start) {
			list = append(list, placedVariable{start, 0, e.off, e.b})
		}
	}
	slices.SortStableFunc(list, func(a, b placedVariable) int { return cmp.Compare(a.start, b.start) })
	return holding(list, address)
}

// holding finds the variable at an address in a list sorted by their starts.
func holding(list []placedVariable, address uint64) (Variable, bool, error) {
	end := sort.Search(len(list), func(i int) bool { return list[i].start > address })
	for steps := 0; end > 0 && steps < maxCovering; {
		first := end - 1
		for first > 0 && list[first-1].start == list[end-1].start && end-first < maxCovering {
			first--
		}
		for i := range list[first:end] {
			steps++
			p := &list[first+i]
			e, err := p.b.entryAt(p.off)
			if err != nil {
				return Variable{}, false, err
			}
			v := Variable{Entry: e, Start: p.start, Size: 1}
			if err := v.describe(); err != nil {
				return Variable{}, false, err
			}
			if address-v.Start < v.Size {
				return v, true, nil
			}
		}
		end = first
	}
	return Variable{}, false, nil
}

// describe reads the variable's size and declaration.
func (v *Variable) describe() error {
	typ, owner, ok, err := v.find(dw.AttrType)
	if err != nil {
		return err
	}
	if ok {
		v.Completes = owner.off != v.off || owner.b != v.b
		if t, err := owner.b.follow(&typ); err == nil {
			if size, ok := t.size(0); ok {
				v.Size = size
			}
		}
	}
	file, owner, ok, err := v.find(dw.AttrDeclFile)
	if err != nil {
		return err
	}
	if ok {
		v.File, v.ImplicitFile = owner.b.fileName(uint64(file.small())).path, file.form == dw.FormImplicitConst
	}
	line, _, ok, err := v.find(dw.AttrDeclLine)
	if ok {
		v.Line = int(line.small())
	}
	return err
}

// findVariables reads every entry of every unit. A unit that cannot be read is a problem.
func (f *file) findVariables() ([]placedVariable, error) {
	var list []placedVariable
	for i, u := range f.everyUnit() {
		if u.isType() {
			continue
		}
		b, err := u.open()
		if err == nil {
			b, err = f.reader.splitOf(b)
		}
		before := len(list)
		if err == nil {
			list, err = b.appendVariables(list, int32(i))
		}
		if err == nil && !b.file.countRanges(len(list)-before) {
			err = b.wrong(b.offset, "its variables are more than its size makes believable")
		}
		if err != nil {
			list = list[:before]
			f.reader.failedUnit(u, err)
		}
	}
	// In a unit the last of equal ones is taken: it completes the others.
	slices.SortFunc(list, func(a, b placedVariable) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.order, b.order), cmp.Compare(b.off, a.off))
	})
	list = slices.Clip(list)
	f.addKept(sizeOf[placedVariable](len(list)))
	return list, nil
}

// appendVariables appends the variables of a unit. Types are skipped where DW_AT_sibling
// gives the next entry: they have declarations only.
func (b *body) appendVariables(list []placedVariable, order int32) ([]placedVariable, error) {
	main := b.file.reader.main
	entries := b.descend(b.first)
	for entries.next() {
		e := entries.entry
		switch tag := e.Tag(); {
		case tag == dw.TagVariable:
			if start, ok := e.fixedAddress(); ok && main.hasData(start) {
				list = append(list, placedVariable{start, order, e.off, b})
			}
		case tag != dw.TagSubprogram && canSkip(e.abbrev):
			entries.skipBySibling()
		}
	}
	return list, entries.err
}

// hasData reports whether the object has an address: addresses of data that the linker
// removed are 0 or far outside.
func (f *file) hasData(address uint64) bool {
	if f.object == nil {
		return address != 0
	}
	known := false
	for _, s := range f.object.Sections() {
		if s.Flags&elf.SHF_ALLOC == 0 || s.Flags&elf.SHF_TLS != 0 {
			continue
		}
		if known = true; address >= s.Address && address-s.Address < s.Size {
			return true
		}
	}
	return !known && address != 0
}

// fixedAddress is the address of a variable whose DW_AT_location is DW_OP_addr or
// DW_OP_addrx, optionally followed by DW_OP_plus_uconst, as it is for every variable of
// static storage.
func (e Entry) fixedAddress() (uint64, bool) {
	v, ok, err := e.own(dw.AttrLocation)
	if err != nil || !ok || !v.isBlock() || len(v.b) == 0 {
		return 0, false
	}
	c := newCursor(v.b, e.b.format.isBigEndian, 1, uint64(len(v.b)))
	var address, offset uint64
	switch v.b[0] {
	case dw.OpAddr:
		address = c.uint(int(e.b.format.addrSize))
	case dw.OpAddrx, dw.OpGNUAddrIndex:
		if address, err = e.b.addrx(c.uleb()); err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	if c.hasMore() {
		if c.uint(1) != dw.OpPlusUconst {
			return 0, false
		}
		offset = c.uleb()
	}
	if c.failed || c.hasMore() {
		return 0, false
	}
	address, err = e.b.main().moved(address)
	return address + offset, err == nil
}

// maxTypes bounds the types that are followed for a size.
const maxTypes = 64

// Size is the size of the entry's DW_AT_type, in bytes; false where it is unknown.
func (e Entry) Size() (uint64, bool) {
	t, err := e.Type()
	if err != nil || t.IsZero() {
		return 0, false
	}
	return t.size(0)
}

// size is the size of a type, in bytes (DWARF 5, 5.1 to 5.17); false where it is unknown.
func (e Entry) size(depth int) (uint64, bool) {
	if depth > maxTypes {
		return 0, false
	}
	if n, ok, err := e.Number(dw.AttrByteSize); ok && err == nil && n >= 0 {
		return uint64(n), true
	}
	pointer := uint64(e.b.format.addrSize)
	base, err := e.Type()
	switch e.Tag() {
	case dw.TagPointerType, dw.TagReferenceType, dw.TagRvalueReferenceType:
		return pointer, true
	case dw.TagPtrToMemberType:
		if err == nil && !base.IsZero() && base.Tag() == dw.TagSubroutineType {
			return 2 * pointer, true
		}
		return pointer, true
	}
	if err != nil || base.IsZero() {
		return 0, false
	}
	size, ok := base.size(depth + 1)
	if !ok || e.Tag() != dw.TagArrayType {
		return size, ok
	}
	for dim, err := range e.Children() {
		if err != nil {
			return 0, false
		}
		if dim.Tag() != dw.TagSubrangeType {
			continue
		}
		if n, ok, err := dim.Number(dw.AttrCount); ok && err == nil && n >= 0 {
			size *= uint64(n)
		} else if upper, ok, err := dim.Number(dw.AttrUpperBound); ok && err == nil {
			lower, _, _ := dim.Number(dw.AttrLowerBound)
			size *= uint64(upper - lower + 1)
		}
	}
	return size, true
}

// Locals appends the variables and parameters of the function at an ELF virtual address, or
// of the call inlined there, including all its blocks and inlined calls, as llvm-symbolizer
// lists them: every such entry beneath the function, as if it were valid at every address
// of it.
func (r *Reader) Locals(dst []symbol.Local, address uint64) ([]symbol.Local, error) {
	n := len(dst)
	err := r.protect(func() error {
		target := address
		if l := r.main.layout; l != nil {
			section, ok := l.place(address)
			if !ok {
				return nil
			}
			target += section.start
		}
		b, f, err := r.describing(target)
		if err != nil || f == nil {
			return err
		}
		x, innermost, err := b.callsAt(f, target)
		if err != nil {
			return err
		}
		off := b.offset + uint64(f.offset)
		if innermost >= 0 {
			off = b.offset + uint64(x.list[innermost].offset)
		}
		dst, err = b.locals(dst, off)
		return err
	})
	if err != nil {
		return dst[:n], err
	}
	return dst, nil
}

// locals walks the entries beneath a function or an inlined call.
func (b *body) locals(dst []symbol.Local, function uint64) ([]symbol.Local, error) {
	var around []localScope // of the entries around the current one
	entries := b.descend(function)
	for entries.next() {
		e, tag := entries.entry, entries.entry.Tag()
		around = around[:entries.depth]
		if len(around) == 0 || tag == dw.TagInlinedSubroutine {
			around = append(around, e.localScope())
			continue
		}
		scope := around[len(around)-1]
		if tag == dw.TagVariable || tag == dw.TagFormalParameter {
			dst = append(dst, e.local(&scope))
		}
		around = append(around, scope)
	}
	return dst, entries.err
}

// localScope is the scope of entries beneath a function.
type localScope struct {
	function string
	frame    int // the register of the frame base; -1: another place
}

func (e Entry) localScope() localScope {
	s := localScope{e.Name(), -1}
	if v, ok, err := e.own(dw.AttrFrameBase); err == nil && ok && v.isBlock() && len(v.b) > 0 && v.b[0] >= dw.OpReg0 && v.b[0] <= dw.OpReg31 {
		s.frame = int(v.b[0]) - dw.OpReg0
	}
	return s
}

// local reads an entry of a variable or parameter. Unreadable attributes are left out.
func (e Entry) local(s *localScope) symbol.Local {
	l := symbol.Local{Function: s.function}
	l.FrameOffset, l.HasFrameOffset = e.frameOffset(s.frame)
	if n, ok, err := e.Number(dw.AttrLLVMTagOffset); ok && err == nil {
		l.TagOffset, l.HasTagOffset = uint64(n), true
	}
	l.Name = e.Name()
	if t, err := e.Type(); err == nil && !t.IsZero() {
		l.Size, l.HasSize = t.size(0)
	}
	if v, owner, ok, err := e.find(dw.AttrDeclFile); ok && err == nil {
		l.File = owner.b.fileName(uint64(v.small())).path
	}
	if v, _, ok, err := e.find(dw.AttrDeclLine); ok && err == nil {
		l.Line = int(v.small())
	}
	return l
}

// frameOffset is the offset of a variable from the frame base, by its expression or the
// first expression of its location list that has one.
func (e Entry) frameOffset(frame int) (int64, bool) {
	l, ok, err := e.Location(dw.AttrLocation)
	if !ok || err != nil {
		return 0, false
	}
	if l.Lists == nil {
		return offsetOf(l.Expr, frame)
	}
	for x, err := range l.Lists.Entries(l.Offset, l.Base, l.Unit.Addrx) {
		if err != nil {
			break
		}
		switch x.Kind {
		case locexpr.ListEnd, locexpr.ListBaseAddress, locexpr.ListBaseAddressx, locexpr.ListViewPair:
			continue
		}
		if n, ok := offsetOf(x.Expr, frame); ok {
			return n, true
		}
	}
	return 0, false
}

// offsetOf reads DW_OP_fbreg, or DW_OP_bregN of the register of the frame base; DW_OP_deref
// may follow.
func offsetOf(expr []byte, frame int) (int64, bool) {
	if len(expr) == 0 || expr[0] != dw.OpFbreg && (frame < 0 || int(expr[0]) != dw.OpBreg0+frame) {
		return 0, false
	}
	c := newCursor(expr, false, 1, uint64(len(expr)))
	n := c.sleb()
	if c.hasMore() && c.uint(1) != dw.OpDeref {
		return 0, false
	}
	return n, !c.failed && !c.hasMore()
}
