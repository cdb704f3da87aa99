// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/internal/dw"
)

// functionName has the fields of trace.Symbol that belong to a function.
type functionName struct {
	// readable is the function's name; linkage is its linkage name, where it differs.
	// readable is "" for a mangled name until it is needed.
	readable, linkage string
	demangled         atomic.Pointer[string]
	name              string // DW_AT_name
	file              string // DW_AT_decl_file
	line              int    // DW_AT_decl_line
	isFileImplicit    bool   // the file's number is in the abbreviation
	decoded           string // the name in stacks, for languages that gdb decodes; ""
}

const (
	maxOrigins = 16   // references followed from a function to its name
	maxSpaces  = 64   // namespaces and classes around a function
	maxName    = 4096 // bytes of a qualified name
	// maxNames bounds the names that are kept, and maxNameBytes their size, in
	// each of nameShards parts.
	nameShards   = 64
	maxNames     = 1 << 17 / nameShards
	maxNameBytes = 32 << 20 / nameShards
)

// nameCache has the names of functions, by their entries. They do not change.
type nameCache [nameShards]nameShard

type nameShard struct {
	mu    sync.RWMutex
	names map[entryKey]*functionName
	bytes int
}

type entryKey struct {
	unit *unit
	off  uint64
}

// entry is the entry of the key.
func (k entryKey) entry() (Entry, error) {
	b, err := k.unit.open()
	if err != nil {
		return Entry{}, err
	}
	return b.entryAt(k.off)
}

func (c *nameCache) shard(k entryKey) *nameShard {
	return &c[k.off*0x9e3779b97f4a7c15>>(64-6)] // 6: log2 of nameShards
}

// get returns a name; nil where it is unknown.
func (c *nameCache) get(k entryKey) *functionName {
	s := c.shard(k)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.names[k]
}

func (c *nameCache) put(k entryKey, name *functionName) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	size := len(name.readable) + len(name.linkage) + len(name.name) + len(name.decoded)
	if s.names == nil || len(s.names) >= maxNames || s.bytes+size > maxNameBytes {
		k.unit.file.addKept(-s.bytes - len(s.names)*nameBytes)
		s.names, s.bytes = make(map[entryKey]*functionName), 0
	}
	if s.names[k] != nil { // two that resolved it at the same time
		return
	}
	s.names[k] = name
	s.bytes += size
	k.unit.file.addKept(name.memorySize())
}

// names are the function's readable name, and its linkage name, "" where it is the same.
func (n *functionName) names() (readable, linkage string) {
	if n.decoded != "" {
		return n.decoded, cmp.Or(n.linkage, n.readable)
	}
	if n.readable != "" || n.linkage == "" {
		return n.readable, n.linkage
	}
	text := n.demangled.Load()
	if text == nil {
		readable := symbol.Demangle(n.linkage)
		text = &readable
		n.demangled.Store(text)
	}
	if *text == n.linkage {
		return *text, ""
	}
	return *text, n.linkage
}

// decl has the attributes of an entry that name a function.
type decl struct {
	name, linkage, origin value
	file, line            value
}

// call has the attributes of a DW_TAG_inlined_subroutine.
type call struct {
	name                              *functionName
	file, line, column, discriminator uint32
	low                               value // DW_AT_low_pc
}

// readCall reads an inlined call.
func (r *Reader) readCall(b *body, off uint64) (call, error) {
	var d decl
	var x call
	err := b.readEntry(off, func(attr dw.Attr, v value) {
		switch attr {
		case dw.AttrCallFile:
			x.file = v.small()
		case dw.AttrCallLine:
			x.line = v.small()
		case dw.AttrCallColumn:
			x.column = v.small()
		case dw.AttrGNUDiscriminator:
			x.discriminator = v.small()
		case dw.AttrLowPC:
			x.low = v
		default:
			d.take(attr, v)
		}
	})
	if err != nil {
		return x, err
	}
	x.name = r.nameOf(b, off, &d)
	return x, nil
}

func (d *decl) take(attr dw.Attr, v value) {
	switch attr {
	case dw.AttrName:
		d.name = v
	case dw.AttrLinkageName, dw.AttrMIPSLinkageName:
		d.linkage = v
	case dw.AttrAbstractOrigin, dw.AttrSpecification, dw.AttrSignature:
		d.origin = v
	case dw.AttrDeclFile:
		d.file = v
	case dw.AttrDeclLine:
		d.line = v
	}
}

// readEntry calls f with the attributes of the entry at an offset that identify a function
// or a call.
func (b *body) readEntry(off uint64, f func(dw.Attr, value)) error {
	abbrevs, err := b.abbrevs()
	if err != nil {
		return err
	}
	c := b.cursor(off)
	a := abbrevs.find(c.uleb())
	if c.failed || a == nil {
		return b.wrong(off, "an entry is expected")
	}
	for i := range a.specs {
		s := &a.specs[i]
		if s.kind == skipFixed && !isOfDeclaration(s.attr) {
			c.skip(uint64(s.size))
			continue
		}
		v := b.format.value(&c, s)
		if c.failed {
			return b.wrong(off, "the values of the entry do not end in the unit")
		}
		f(s.attr, v)
	}
	if c.failed {
		return b.wrong(off, "the values of the entry do not end in the unit")
	}
	return nil
}

// isOfDeclaration reports whether readEntry always passes an attribute on.
func isOfDeclaration(attr dw.Attr) bool {
	switch attr {
	case dw.AttrName, dw.AttrLinkageName, dw.AttrMIPSLinkageName, dw.AttrAbstractOrigin, dw.AttrSpecification, dw.AttrSignature, dw.AttrDeclFile, dw.AttrDeclLine,
		dw.AttrCallFile, dw.AttrCallLine, dw.AttrCallColumn, dw.AttrGNUDiscriminator, dw.AttrLowPC:
		return true
	}
	return false
}

// functionName names the function that an entry describes.
func (r *Reader) functionName(b *body, off uint64) (*functionName, error) {
	if name := r.names.get(entryKey{b.unit, off}); name != nil {
		return name, nil
	}
	var d decl
	if err := b.readEntry(off, d.take); err != nil {
		return nil, err
	}
	return r.nameOf(b, off, &d), nil
}

// nameOf names the function of an entry with the attributes d. Instances of a function
// share the name.
func (r *Reader) nameOf(b *body, off uint64, d *decl) *functionName {
	key := entryKey{b.unit, off}
	if d.origin.form != 0 && d.name.form|d.linkage.form|d.file.form|d.line.form == 0 {
		if targetUnit, target, err := b.reference(&d.origin); err == nil {
			key = entryKey{targetUnit, target}
			if name := r.names.get(key); name != nil {
				return name
			}
		}
	}
	name := r.resolveName(b, off, d)
	r.names.put(key, name)
	return name
}

// resolveName follows DW_AT_abstract_origin and DW_AT_specification (DWARF 5, 2.13.2,
// 3.3.8), across units too. The first linkage name on the path counts, else the first name,
// qualified by the scopes of the last entry, the declaration. A reference that cannot be
// followed becomes a problem.
func (r *Reader) resolveName(b *body, off uint64, d *decl) *functionName {
	entry, scopes := off, hasScopedNames(b.language)
	name := &functionName{}
	var file, line value
	for hops := 0; ; hops++ {
		if d.linkage.form != 0 && name.linkage == "" {
			text, err := b.text(&d.linkage)
			r.nameProblem(b, entry, err)
			name.linkage = copied(text)
		}
		if d.name.form != 0 && name.name == "" {
			text, err := b.text(&d.name)
			r.nameProblem(b, entry, err)
			name.name = copied(text)
		}
		if d.file.form != 0 && file.form == 0 {
			file = d.file
			name.file = b.fileName(uint64(file.small())).path
			name.isFileImplicit = file.form == dw.FormImplicitConst
		}
		if d.line.form != 0 && line.form == 0 {
			line = d.line
			name.line = int(line.small())
		}
		if d.origin.form == 0 || hops == maxOrigins {
			break
		}
		u, target, err := b.reference(&d.origin)
		var next *body
		if err == nil {
			next, err = u.open()
		}
		var origin decl
		if err == nil {
			a, e := next.abbrevAt(target)
			if e != nil || a.tag != dw.TagSubprogram && a.tag != dw.TagInlinedSubroutine {
				err = b.wrong(entry, "the entry refers to %#x, where no function is declared", target)
			} else {
				err = next.readEntry(target, origin.take)
			}
		}
		if err != nil {
			r.nameProblem(b, entry, err)
			break
		}
		b, off, d = next, target, &origin
	}
	switch {
	case name.linkage != "":
		name.linkage = symbol.StripVersion(name.linkage)
		if !symbol.IsMangled(name.linkage) {
			name.readable, name.linkage = name.linkage, ""
		}
	case name.name != "" && scopes:
		name.readable = b.qualify(name.name, off, true)
	default:
		name.readable = name.name
	}
	if text := b.decoded(name, off); text != name.readable {
		name.decoded = text
	}
	return name
}

// decoded is a function's name as gdb has it, for Ada and Fortran; "" for other languages.
// In Fortran the module, or the procedure around a nested one, goes before it: Fortran's
// linkage names are the compiler's own, such as __mod_MOD_proc and proc_.
func (b *body) decoded(name *functionName, off uint64) string {
	switch b.language {
	case dw.LangAda83, dw.LangAda95, dw.LangAda2005, dw.LangAda2012:
		if text := symbol.DecodeAda(name.readable); text != name.readable {
			return text
		}
		return symbol.DecodeAda(name.name)
	case dw.LangFortran77, dw.LangFortran90, dw.LangFortran95, dw.LangFortran03, dw.LangFortran08, dw.LangFortran18:
		if name.name == "" {
			return ""
		}
		list, tags, err := b.spacesAround(uint32(off - b.offset))
		for i := len(list) - 1; err == nil && i >= 0; i-- {
			if tags[i] != dw.TagModule && tags[i] != dw.TagSubprogram {
				continue
			}
			if around := b.nameOfSpace(b.offset+uint64(list[i]), tags[i]); around != "" {
				return around + "::" + name.name
			}
		}
		return name.name
	}
	return ""
}

func (r *Reader) nameProblem(b *body, off uint64, err error) {
	if err != nil {
		r.failedUnit(b.unit, b.wrong(off, "name of the entry: %v", err))
	}
}

func (b *body) abbrevAt(off uint64) (*abbrev, error) {
	abbrevs, err := b.abbrevs()
	if err != nil {
		return nil, err
	}
	c := b.cursor(off)
	a := abbrevs.find(c.uleb())
	if off < b.first || c.failed || a == nil {
		return nil, b.wrong(off, "an entry is expected")
	}
	return a, nil
}

// reference resolves a value of class reference: the unit, and the offset of the
// entry in its section.
func (b *body) reference(v *value) (*unit, uint64, error) {
	switch v.form {
	case dw.FormRef1, dw.FormRef2, dw.FormRef4, dw.FormRef8, dw.FormRefUdata:
		if target := b.offset + v.n; v.n < b.end-b.offset && target >= b.first {
			return b.unit, target, nil
		}
		return nil, 0, b.wrong(b.offset, "reference to %#x, which is not in the unit", v.n)
	case dw.FormRefAddr:
		if u := b.file.unitAt(v.n); u != nil && v.n >= u.first {
			return u, v.n, nil
		}
		return nil, 0, b.wrong(b.offset, "reference to %#x, which is in no unit", v.n)
	case dw.FormRefSig8:
		return b.file.typeBySignature(v.n)
	case dw.FormRefSup4, dw.FormRefSup8, dw.FormGNURefAlt:
		s, err := b.file.supplement()
		if err != nil {
			return nil, 0, err
		}
		if u := s.unitAt(v.n); u != nil && v.n >= u.first {
			return u, v.n, nil
		}
		return nil, 0, b.wrong(b.offset, "reference to %#x of %s, which is in no unit", v.n, s.name)
	}
	return nil, 0, b.wrong(b.offset, "form %#x of a reference", uint16(v.form))
}

// hasScopedNames reports whether functions of a language are qualified by their scopes
// (DWARF 5, table 7.17): C++ and its kin, and Rust.
func hasScopedNames(language uint64) bool {
	switch language {
	case dw.LangCPP, dw.LangCPP03, dw.LangCPP11, dw.LangCPP14, dw.LangCPP17, dw.LangCPP20, dw.LangCPP23, dw.LangObjCPP, dw.LangRust, dw.LangLLVMHIP:
		return true
	}
	return false
}

// anonymous are the names of spaces without one.
var anonymous = map[dw.Tag]string{
	dw.TagNamespace: "(anonymous namespace)", dw.TagClassType: "(anonymous class)", dw.TagStructureType: "(anonymous struct)",
	dw.TagUnionType: "(anonymous union)", dw.TagEnumerationType: "(anonymous enum)",
}

// qualify puts the names of the spaces around an entry before its name. Without
// withFunctions only the spaces inside the innermost function or block count.
func (b *body) qualify(name string, off uint64, withFunctions bool) string {
	q := qualifiedName{parts: []string{name}, size: len(name)}
	for hops := 0; b != nil && hops < maxOrigins; hops++ {
		b, off = q.addSpaces(b, off, withFunctions)
	}
	slices.Reverse(q.parts)
	return strings.Join(q.parts, "::")
}

// qualifiedName is a name that is put together, the innermost part first.
type qualifiedName struct {
	parts []string
	size  int
}

// add adds a part; false where the name is long enough.
func (q *qualifiedName) add(text string) bool {
	if q.size += len(text) + 2; q.size > maxName {
		return false
	}
	q.parts = append(q.parts, text)
	return true
}

// addSpaces adds the spaces around an entry. next and declaration are the declaration of a
// function among them, which has further spaces around it; nil: these are all.
func (q *qualifiedName) addSpaces(b *body, off uint64, withFunctions bool) (next *body, declaration uint64) {
	list, tags, err := b.spacesAround(uint32(off - b.offset))
	if err != nil {
		return nil, 0
	}
	function := off
	for i := len(list) - 1; i >= 0 && (withFunctions || !isPartOfFunction(tags[i])); i-- {
		space := b.offset + uint64(list[i])
		switch tags[i] {
		case dw.TagModule: // of clang: the origin of headers
			continue
		case dw.TagSubprogram:
			text, isWhole, declared, declaration := b.nameOfFunction(space)
			if text != "" && !q.add(text) || isWhole {
				return nil, 0
			}
			if declaration != space || declared != b {
				return declared, declaration
			}
			function = space
			continue
		}
		text := b.nameOfSpace(space, tags[i])
		if text != "" && text == anonymous[tags[i]] && b.isClosure(function) {
			text = "<lambda>"
		}
		if text != "" && !q.add(text) {
			return nil, 0
		}
	}
	return nil, 0
}

// nameOfFunction is the name of a function around other entries, and its declaration: gcc
// describes lambdas in definitions, whose declarations have the names. isWhole is set for a
// demangled linkage name.
func (b *body) nameOfFunction(off uint64) (name string, isWhole bool, declared *body, declaration uint64) {
	for range maxOrigins {
		var d decl
		if b.readEntry(off, d.take) != nil {
			break
		}
		if linkage, err := b.text(&d.linkage); d.linkage.form != 0 && err == nil {
			raw := symbol.StripVersion(copied(linkage))
			if text := symbol.Demangle(raw); text != raw {
				return text, true, b, off
			}
		}
		if text, err := b.text(&d.name); name == "" && d.name.form != 0 && err == nil {
			name = copied(text)
		}
		if d.origin.form == 0 {
			break
		}
		u, target, err := b.reference(&d.origin)
		if err != nil {
			break
		}
		next, err := u.open()
		if err != nil {
			break
		}
		b, off = next, target
	}
	return name, false, b, off
}

// isClosure reports whether a function is the operator of a lambda, as gcc describes it: its
// class has no name, and its first parameter is called __closure.
func (b *body) isClosure(function uint64) bool {
	e, err := b.entryAt(function)
	if err != nil {
		return false
	}
	for c, err := range e.Children() {
		if err != nil {
			break
		}
		if c.Tag() == dw.TagFormalParameter { // behind its types
			return c.Name() == "__closure"
		}
	}
	return false
}

// isPartOfFunction reports whether an entry is a function, or a call or a block in one.
func isPartOfFunction(tag dw.Tag) bool {
	return tag == dw.TagSubprogram || tag == dw.TagInlinedSubroutine || tag == dw.TagLexicalBlock
}

// nameOfSpace is the name of an entry that functions are declared in. A class that was
// declared elsewhere has its name there.
func (b *body) nameOfSpace(off uint64, tag dw.Tag) string {
	for range maxOrigins {
		var d decl
		if b.readEntry(off, d.take) != nil {
			break
		}
		if d.name.form != 0 {
			if text, err := b.text(&d.name); err == nil && len(text) > 0 {
				return copied(text)
			}
		}
		if d.origin.form == 0 || tag == dw.TagSubprogram || tag == dw.TagInlinedSubroutine {
			break
		}
		u, target, err := b.reference(&d.origin)
		if err != nil {
			break
		}
		next, err := u.open()
		if err != nil {
			break
		}
		b, off = next, target
	}
	return anonymous[tag]
}
