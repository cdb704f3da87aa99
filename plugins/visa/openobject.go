// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/plugins/visa/stream"
	"github.com/unwindd/unwindd/sdk"
)

// ELF's types and flags of sections, and sizes of a symbol and a relocation.
const (
	sectionProgBits = 1 // SHT_PROGBITS
	flagExec        = 4 // SHF_EXECINSTR
	symbolSize      = 24
	relocationSize  = 24
)

// Bounds of an answer. Rows and variables of one kernel are a few thousand.
const (
	maxFunctions    = 1 << 12
	maxFunctionSize = 1 << 30 // bytes
	maxRows         = 1 << 16
	maxRules        = 1 << 21
	maxProblems     = 256
	maxProblemText  = 1024 // bytes
)

// OpenObject describes the frames of a kernel and of the functions that it calls,
// and where vISA's variables are: from the debug stream that belongs to a Gen ELF
// file or a zebin, from the file's call frame information, and from a stream that
// is a file of its own.
func (architecture) OpenObject(ctx context.Context, e sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	o := &codeObject{ctx: ctx, engine: e, req: req, answer: &sdk.OpenObjectAnswer{Dialect: dialect}}
	if req.Machine == 0 {
		o.openFile()
	} else {
		o.openELF()
	}
	return o.answer, ctx.Err()
}

// codeObject is a code object that is being read.
type codeObject struct {
	ctx    context.Context
	engine sdk.Engine
	req    *sdk.OpenObjectRequest
	answer *sdk.OpenObjectAnswer

	codes       []codeSection
	table       *zeSymbols // nil until it was needed
	rows, rules int        // in the answer
	functions   int
}

// codeSection is a section of code, with the known facts about its functions.
type codeSection struct {
	index    uint32 // in the request; 0 where addresses count in the whole object
	name     string
	start    uint64 // address
	size     uint64
	code     []byte // nil: it cannot be read
	stream   *stream.Stream
	lanes    uint32 // 0: unknown
	isKernel bool   // it is known to begin with a kernel
	entries  []described
}

// problem reports what could not be read, or is wrong. The rest of the answer
// stands.
func (o *codeObject) problem(format string, args ...any) {
	if len(o.answer.Problems) < maxProblems {
		text := strings.ToValidUTF8(fmt.Sprintf(format, args...), "?")
		o.answer.Problems = append(o.answer.Problems, text[:min(len(text), maxProblemText)])
	}
}

// openFile reads a code object that is no ELF file.
func (o *codeObject) openFile() {
	b, err := o.engine.ReadSection(o.ctx, o.req.Object, "")
	if err != nil {
		o.problem("%v", err)
		return
	}
	if stream.Is(b) {
		if s := o.readStream(b); s != nil {
			o.describe(&codeSection{size: endOf(s), stream: s})
		}
		return
	}
	if o.answer.Nested, err = Nested(b); err != nil {
		o.problem("%v", err)
	}
}

// endOf returns the end of the code that a stream describes.
func endOf(s *stream.Stream) (end uint64) {
	for i := range s.Objects {
		end = max(end, uint64(s.Objects[i].RelocOffset)+sizeOf(&s.Objects[i]))
	}
	return end
}

// sizeOf returns how many bytes the code of an object has: the last entry of its
// index map is one behind the last vISA instruction, at the end.
func sizeOf(o *stream.Object) (size uint64) {
	for i := range o.IndexMap {
		size = max(size, uint64(o.IndexMap[i].Gen))
	}
	return size
}

// readStream decodes a debug stream.
func (o *codeObject) readStream(b []byte) *stream.Stream {
	s, err := stream.Decode(b)
	if err != nil {
		o.problem("%v", err)
		return nil
	}
	for _, p := range s.Problems {
		o.problem("vISA stream: %s", p)
	}
	return s
}

// openELF reads an ELF file.
func (o *codeObject) openELF() {
	o.findCode()
	o.findStreams()
	o.findFrames()
	o.findLanes()
	for i := range o.codes {
		o.describe(&o.codes[i])
	}
}

// isRelocatable reports whether the file's sections all begin at address 0.
func (o *codeObject) isRelocatable() bool { return o.req.Machine == machineIntelGT }

// findCode finds the sections of code.
func (o *codeObject) findCode() {
	for i := range o.req.Sections {
		s := &o.req.Sections[i]
		if s.Type != sectionProgBits || s.Flags&flagExec == 0 || s.Size == 0 {
			continue
		}
		if len(o.codes) == maxFunctions {
			o.problem("more than %d sections of code: the others are not looked at", maxFunctions)
			break
		}
		c := codeSection{name: s.Name, start: s.Address, size: s.Size, code: o.section(s.Name)}
		c.isKernel = !o.isRelocatable() // a zebin has functions in such sections, too
		if o.isRelocatable() {
			c.index = uint32(i) //nolint:gosec // ELF has no more sections
		}
		o.codes = append(o.codes, c)
		if !o.isRelocatable() {
			break // the compiler writes one
		}
	}
}

// section returns the bytes of a section; nil where there are none.
func (o *codeObject) section(name string) []byte {
	i := slices.IndexFunc(o.req.Sections, func(s sdk.SectionInfo) bool { return s.Name == name })
	if i < 0 || o.req.Sections[i].Size == 0 {
		return nil
	}
	b, err := o.engine.ReadSection(o.ctx, o.req.Object, name)
	if err != nil {
		o.problem("%v", err)
		return nil
	}
	return b
}

// findStreams reads the streams that belong to the file, each of one kernel.
func (o *codeObject) findStreams() {
	for _, c := range o.req.Companions {
		b, err := o.engine.ReadSection(o.ctx, c.Object, "")
		if err != nil {
			o.problem("%s: %v", c.Suffix, err)
			continue
		}
		if !stream.Is(b) {
			continue
		}
		s := o.readStream(b)
		if s == nil || len(s.Objects) == 0 {
			continue
		}
		if code := o.codeOf(s); code == nil {
			o.problem("vISA stream: of kernel %s, whose code is not in the file", s.Objects[0].Name)
		} else {
			code.stream = s
		}
	}
}

// codeOf returns the section with the code of a stream, whose first object is
// the kernel.
func (o *codeObject) codeOf(s *stream.Stream) *codeSection {
	for i := range o.codes {
		if c := &o.codes[i]; c.stream == nil && endOf(s) <= c.size && (!o.isRelocatable() || c.name == zeCodePrefix+s.Objects[0].Name) {
			return c
		}
	}
	return nil
}

// findFrames reads the call frame information.
func (o *codeObject) findFrames() {
	const name = ".debug_frame"
	data := o.section(name)
	if data == nil {
		return
	}
	t, err := newFrameTable(data, o.codeAt(name))
	if err != nil {
		o.problem("%v", err)
		return
	}
	list, problems := readFrames(t, func(section uint32, start, size uint64) []byte {
		if c := o.codeIn(section); c != nil {
			return c.bytes(start, size)
		}
		return nil
	})
	for _, p := range problems {
		o.problem("%s: %s", name, p)
	}
	for i := range list {
		c := o.codeIn(list[i].section)
		if c == nil || list[i].start < c.start || list[i].end() > c.start+c.size {
			o.problem("%s: %#x to %#x: in no section of code", name, list[i].start, list[i].end())
			continue
		}
		c.entries = append(c.entries, list[i])
	}
}

// bytes returns the code at an address; nil where not all of it is there.
func (c *codeSection) bytes(start, size uint64) []byte {
	offset, all := start-c.start, uint64(len(c.code))
	if start < c.start || offset > all || size > all-offset {
		return nil
	}
	return c.code[offset:][:size]
}

// codeIn returns the section of code with an index.
func (o *codeObject) codeIn(index uint32) *codeSection {
	for i := range o.codes {
		if o.codes[i].index == index {
			return &o.codes[i]
		}
	}
	return nil
}

// codeAt returns a function that finds the section of code that an address in a
// section of a relocatable file is in, by the section's relocations; nil where
// the file is not relocatable.
func (o *codeObject) codeAt(name string) func(offset uint64) (section uint32, ok bool) {
	if !o.isRelocatable() {
		return nil
	}
	sections, codes := map[uint64]uint32{}, o.codesByName()
	symbols := o.symbols().list
	for r := o.section(".rela" + name); len(r) >= relocationSize; r = r[relocationSize:] {
		if i := binary.LittleEndian.Uint32(r[12:]); uint64(i) < uint64(len(symbols)) {
			sections[binary.LittleEndian.Uint64(r)] = symbols[i].code(codes)
		}
	}
	return func(offset uint64) (uint32, bool) {
		section, ok := sections[offset]
		return section, ok
	}
}

// describe adds the functions of a section to the answer.
func (o *codeObject) describe(c *codeSection) {
	slices.SortStableFunc(c.entries, func(a, b described) int { return cmp.Compare(a.start, b.start) })
	functions, byStream := o.streamFunctions(c)
	if !byStream {
		functions = o.describedFunctions(c)
	}
	bySymbols := len(functions) == 0
	if bySymbols {
		named := o.symbolFunctions(c)
		// The kernel is not the whole section where there are several
		// functions.
		if bySymbols = len(named) > 1; bySymbols {
			o.answer.Functions = append(o.answer.Functions, named...)
		}
	}
	if len(functions) == 0 && !bySymbols && c.isKernel && c.code != nil && !callsInside(c.code, true) {
		name, known := kernelName(c)
		functions = []function{{name: name, isUnnamed: !known, isKernel: true, start: c.start, size: c.size}}
	}
	var above, below []cfi.Row
	var dialects [placedFrames + 1]bool
	for i := range functions {
		f := &functions[i]
		o.answer.Functions = append(o.answer.Functions, f.functions(c.index, c.lanes)...)
		rows := o.bounded(f)
		if e := c.entryAt(f.start); e != nil {
			dialects[e.dialect] = true
			if !byStream && e.dialect == placedFrames {
				rows = outsideFrame(f, rows)
			}
			above = append(above, rows...)
			o.compare(f, e)
		} else {
			below = append(below, rows...)
		}
	}
	if len(above) > 0 {
		o.answer.Tables = append(o.answer.Tables, sdk.RowTable{
			Priority: sdk.OverridesCFI, Reason: overrideReason(dialects, byStream), Section: c.index, Rows: above,
		})
	}
	if len(below) > 0 {
		o.answer.Tables = append(o.answer.Tables, sdk.RowTable{Priority: sdk.BelowCFI, Section: c.index, Rows: below})
	}
}

// bounded returns the rows of a function. Rows that would make the answer too
// large are left out.
func (o *codeObject) bounded(f *function) []cfi.Row {
	rows := f.rows()
	for i := range rows {
		o.rows++
		o.rules += len(rows[i].Rules) + len(rows[i].CallSite)
		if o.rows > maxRows || o.rules > maxRules {
			o.problem("function %s: more than %d rows or %d rules: the others are left out", f.name, maxRows, maxRules)
			return rows[:i]
		}
	}
	return rows
}

// entryAt returns the function at an address by call frame information.
func (c *codeSection) entryAt(start uint64) *described {
	i, found := slices.BinarySearchFunc(c.entries, start, func(d described, a uint64) int { return cmp.Compare(d.start, a) })
	if !found {
		return nil
	}
	return &c.entries[i]
}

// outsideFrame returns the rows before the frame is set up and while it is
// being taken down.
func outsideFrame(f *function, rows []cfi.Row) []cfi.Row {
	return slices.DeleteFunc(rows, func(r cfi.Row) bool {
		offset := r.Start - f.start
		return offset >= f.set && offset < f.down
	})
}

// overrideReasons has why rows take precedence over call frame information, by
// its dialect.
var overrideReasons = [...]string{
	taggedFrames: "it has the return address in r128, which there is not, and in the addresses the number of their space",
	basedFrames:  "it has the return address in r128, which there is not",
	placedFrames: "it has the whole descriptor for the return address",
}

// overrideReason returns why rows take precedence over call frame
// information.
func overrideReason(dialects [placedFrames + 1]bool, byStream bool) string {
	var reasons []string
	for d, reason := range overrideReasons {
		if dialects[d] && reason != "" {
			reasons = append(reasons, reason)
		}
	}
	if byStream {
		reasons = append(reasons, "it knows no registers that callers save")
	}
	from := "rows made of it"
	if byStream {
		from = "rows of the vISA stream"
	}
	return from + ": " + strings.Join(reasons, "; ")
}

// compare reports where call frame information is wrong about a function.
func (o *codeObject) compare(f *function, e *described) {
	if f.isKernel && !e.isOutermost {
		o.problem("kernel %s: call frame information gives it a caller, which it does not have", f.name)
	}
	if f.restored > f.down+restoreSize && e.abi != nil {
		o.problem("function %s: call frame information has the frame taken down at %#x, its code takes it down before %#x",
			f.name, f.start+f.down+restoreSize, f.start+f.restored)
	}
}

// describedFunctions returns the functions of a section that only call frame
// information describes.
func (o *codeObject) describedFunctions(c *codeSection) []function {
	s := stream.Stream{Objects: make([]stream.Object, len(c.entries))}
	for i := range c.entries {
		e := &c.entries[i]
		name, known := o.nameOf(c, e)
		e.name, e.isUnnamed = name, !known
		s.Objects[i] = stream.Object{Name: e.name, Frame: e.frame}
	}
	frames := make([]stream.Frame, len(c.entries))
	for i := range c.entries {
		frames[i] = c.entries[i].frame
	}
	if slices.ContainsFunc(c.entries, func(e described) bool { return e.abi != nil && e.unit == byteUnit && e.dialect != placedFrames }) {
		var corrections []string
		frames, corrections = s.Corrected()
		for _, p := range corrections {
			o.problem("call frame information: %s", p)
		}
	}
	var list []function
	for i := range c.entries {
		e := &c.entries[i]
		f := function{name: e.name, isUnnamed: e.isUnnamed, isKernel: e.isKernel, start: e.start, size: e.size, unit: e.unit, grf: e.grf}
		if e.abi != nil {
			o.take(&f, c, &frames[i])
		}
		if code := c.bytes(f.start, f.size); code != nil && callsInside(code, false) {
			f.hasUnfound = true
			o.problem("function %s: calls subroutines, of which call frame information says nothing: its frames are unknown", f.name)
		}
		if n := len(list); n > 0 && f.start < list[n-1].end() {
			o.problem("call frame information: functions overlap at %#x", f.start)
			list[n-1].hasUnfound = true
			continue
		}
		if o.functions++; o.functions > maxFunctions {
			break
		}
		list = append(list, f)
	}
	return list
}

// nameOf returns a name for a function of call frame information: its symbol's,
// where there are symbols, else one for problems only.
func (o *codeObject) nameOf(c *codeSection, e *described) (name string, known bool) {
	if e.isKernel {
		return kernelName(c)
	}
	if list := o.namedIn(c); len(list) <= maxFunctions {
		for _, y := range list {
			if c.start+y.start == e.start {
				return y.name, true
			}
		}
	}
	return fmt.Sprintf("function at %#x", e.start), false
}

// namedIn returns the functions in a section that the symbol table names.
func (o *codeObject) namedIn(c *codeSection) []zeSymbol {
	if !o.isRelocatable() {
		return nil
	}
	return o.symbols().functions[c.index]
}

// kernelName returns the name of the kernel in a section; where that is not
// known, a name for problems.
func kernelName(c *codeSection) (name string, known bool) {
	if name, known = strings.CutPrefix(c.name, zeCodePrefix); known {
		return name, true
	}
	return "kernel", false
}

// take takes the facts of a frame and of the code about a function.
func (o *codeObject) take(f *function, c *codeSection, frame *stream.Frame) {
	if err := f.fromFrame(frame); err != nil {
		o.problem("function %s: %v", f.name, err)
		return
	}
	if err := f.readCode(c.bytes(f.start, f.size), uint64(frame.Size)); err != nil {
		o.problem("function %s: %v", f.name, err)
	}
}

// inOrderOfCode returns the indexes of objects in the order of their code.
func inOrderOfCode(objects []stream.Object) []int {
	order := make([]int, len(objects))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(objects[a].RelocOffset, objects[b].RelocOffset)
	})
	return order
}

// streamFunctions returns the functions of a section that has a stream.
func (o *codeObject) streamFunctions(c *codeSection) (list []function, ok bool) {
	if c.stream == nil {
		return nil, false
	}
	frames, corrections := c.stream.Corrected()
	for _, p := range corrections {
		o.problem("vISA stream: %s", p)
	}
	order := inOrderOfCode(c.stream.Objects)
	var objects []*stream.Object // of the list
	for k, i := range order {
		object := &c.stream.Objects[i]
		f := function{name: object.Name, isKernel: object.RelocOffset == 0, start: c.start + uint64(object.RelocOffset), size: sizeOf(object)}
		limit := c.start + c.size
		if k+1 < len(order) {
			limit = min(limit, c.start+uint64(c.stream.Objects[order[k+1]].RelocOffset))
		}
		switch {
		case f.size == 0 || f.size > maxFunctionSize:
			o.problem("vISA stream: object %s: %#x bytes of code", f.name, f.size)
			continue
		case f.end() > limit:
			o.problem("vISA stream: object %s: ends at %#x, where something else is, expected at most %#x", f.name, f.end(), limit)
			continue
		}
		if o.functions++; o.functions > maxFunctions {
			o.problem("vISA stream: more than %d functions: the others are left out", maxFunctions)
			break
		}
		if e := c.entryAt(f.start); e != nil {
			f.unit = e.unit
		}
		o.take(&f, c, &frames[i])
		o.countingOf(&f, &object.Frame, &frames[i])
		for _, p := range f.findSubroutines(object, c.bytes(f.start, f.size)) {
			o.problem("vISA stream: object %s: %s", f.name, p)
		}
		list, objects = append(list, f), append(objects, object)
	}
	if start, ok := c.contradicted(list); ok {
		o.problem("vISA stream: it is of other code: what it says of %#x is not what call frame information does: it is not used", start)
		return nil, false
	}
	o.shareUnit(list)
	v := variables{object: o, section: c.index}
	for i := range list {
		f := &list[i]
		o.positions(c, f, objects[i])
		v.add(f, objects[i])
		if f.abi != nil && f.unit == 0 {
			o.problem("function %s: what its frame pointer counts, bytes or OWORDs, is not known: its frames are unknown", f.name)
		}
	}
	return list, true
}

// contradicted reports whether call frame information has other functions than a
// stream, and where: a file of the same name may be of another compilation.
func (c *codeSection) contradicted(list []function) (start uint64, ok bool) {
	for i := range c.entries {
		e := &c.entries[i]
		if e.abi == nil && !e.isKernel {
			continue // newer compilers describe subroutines, too
		}
		j := slices.IndexFunc(list, func(f function) bool { return f.start == e.start })
		if j < 0 {
			return e.start, true
		}
		f := &list[j]
		if f.size != e.size || f.isKernel != e.isKernel || f.abi != nil && e.abi != nil && *f.abi != *e.abi {
			return e.start, true
		}
	}
	return 0, false
}

// countingOf concludes that frame pointers count bytes where no other fact
// tells their unit: where registers have 64 bytes, or where offsets of saves
// had to be corrected, because only processors that count bytes have either.
func (o *codeObject) countingOf(f *function, raw, corrected *stream.Frame) {
	right := isCorrected(raw.CalleeSaves, corrected.CalleeSaves) || isCorrected(raw.CallerSaves, corrected.CallerSaves)
	if f.abi == nil || !right && f.grf != grf64/8 {
		return
	}
	if err := f.countsBy(byteUnit, "its saves"); err != nil {
		o.problem("function %s: %v", f.name, err)
	}
}

// isCorrected reports whether the offset of any save was corrected.
func isCorrected(raw, corrected []stream.Save) bool {
	for i := range raw {
		for j := range raw[i].Registers {
			is := &corrected[i].Registers[j].Location
			if is.Storage == stream.Memory && is.Offset != raw[i].Registers[j].Location.Offset {
				return true
			}
		}
	}
	return false
}

// shareUnit gives the functions whose unit of frame pointers is unknown the unit
// of the others, since all run on one processor. Where two differ, neither is
// believed. Where the file does not tell the unit, the target's processor does.
func (o *codeObject) shareUnit(list []function) {
	var unit, grf uint64
	for i := range list {
		f := &list[i]
		if f.unit != 0 && unit != 0 && f.unit != unit {
			for j := range list {
				list[j].unit = 0
			}
			return
		}
		if f.unit != 0 {
			unit = f.unit
		}
		if f.grf != 0 {
			grf = f.grf
		}
	}
	if p := processorNamed(o.req.Processor); p != nil {
		switch unit {
		case 0:
			unit = p.unit
		case p.unit:
		default:
			o.problem("frame pointers count %d bytes, where those of %s, the processor by the target, count %d", unit, p.name, p.unit)
		}
	}
	for i := range list {
		if list[i].unit == 0 && !list[i].isTorn {
			list[i].unit = unit
		}
		if list[i].grf == 0 {
			list[i].grf = grf
		}
	}
}
