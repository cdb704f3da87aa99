// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/unwindd/unwindd/locexpr"
)

// The methods below check an answer, and return an error for the first invalid field.
// Each takes the description, which must be valid, and the request that was answered. An
// answer that they accept can be used without further checks: every register, address
// space and dialect is known, every range is sorted, in order and within its bounds,
// every expression can be decoded in the canonical dialect, every list is as long as
// the one beside it, and every text is UTF-8 of bounded length.

// Validate checks an answer to OpenObject.
func (a *OpenObjectAnswer) Validate(d *Description, req *OpenObjectRequest) error {
	c := newChecker(d)
	if err := a.checkSections(req); err != nil {
		return fmt.Errorf("OpenObjectAnswer.%w", err)
	}
	for _, check := range []func() error{
		func() error { return c.objectDialects(a) },
		func() error { return each("Nested", a.Nested, (*NestedObject).validate) },
		func() error { return each("Tables", a.Tables, c.objectTable) },
		func() error { return each("Functions", a.Functions, c.objectFunction) },
		func() error { return each("PositionMaps", a.PositionMaps, (*PositionMap).validate) },
		func() error { return each("Variables", a.Variables, c.objectVariable) },
		func() error { return checkProblems(a.Problems) },
	} {
		if err := check(); err != nil {
			return fmt.Errorf("OpenObjectAnswer.%w", err)
		}
	}
	return nil
}

// checkSections checks that the object has the sections that parts of the answer refer to.
func (a *OpenObjectAnswer) checkSections(req *OpenObjectRequest) error {
	known := 1
	if req != nil {
		known = max(known, len(req.Sections))
	}
	check := func(section uint32) error {
		if uint64(section) >= uint64(known) {
			return fmt.Errorf("Section: %d, expected less than %d, the sections of the object, or 0", section, known)
		}
		return nil
	}
	return first(
		each("Tables", a.Tables, func(t *RowTable) error { return check(t.Section) }),
		each("Functions", a.Functions, func(f *Function) error { return check(f.Section) }),
		each("PositionMaps", a.PositionMaps, func(m *PositionMap) error { return check(m.Section) }),
		each("Variables", a.Variables, func(v *Variable) error { return check(v.Section) }))
}

func (c *checker) objectDialects(a *OpenObjectAnswer) error {
	if a.Processor != "" {
		if err := checkIdentifier("Processor", a.Processor); err != nil {
			return err
		}
	}
	if err := c.dialect("Dialect", a.Dialect); err != nil {
		return err
	}
	if len(a.Overrides) > MaxDescriptionList {
		return fmt.Errorf("Overrides: %d, expected at most %d", len(a.Overrides), MaxDescriptionList)
	}
	err := each("Overrides", a.Overrides, func(o *DialectOverride) error {
		switch {
		case (o.Augmentation == "") == (o.Producer == ""):
			return fmt.Errorf("Augmentation: %.64q beside Producer %.64q, expected one of them", o.Augmentation, o.Producer)
		case len(o.Augmentation) > MaxName || len(o.Producer) > MaxText:
			return fmt.Errorf("Augmentation: %d bytes beside Producer of %d, expected at most %d and %d",
				len(o.Augmentation), len(o.Producer), MaxName, MaxText)
		}
		return c.dialect("Dialect", o.Dialect)
	})
	return first(err, c.rules("DefaultRules", a.DefaultRules))
}

// dialect checks the name of a dialect: of the description, built in, or none.
func (c *checker) dialect(field, name string) error {
	if name == "" {
		return nil
	}
	for i := range c.d.Dialects {
		if c.d.Dialects[i].Name == name {
			return nil
		}
	}
	for _, d := range locexpr.Dialects {
		if d.Name == name {
			return nil
		}
	}
	return fmt.Errorf("%s: %.64q is the name of no dialect", field, name)
}

func (n *NestedObject) validate() error {
	err := checkText("Name", n.Name, MaxText)
	switch {
	case err != nil:
		return err
	case n.Size == 0:
		return fmt.Errorf("Size: 0, expected the bytes of a code object")
	case n.Size > math.MaxUint64-n.Offset:
		return fmt.Errorf("Size: %#x bytes at %#x pass the end of every file", n.Size, n.Offset)
	}
	return nil
}

func (c *checker) objectTable(t *RowTable) error {
	err := checkText("Reason", t.Reason, MaxText)
	switch {
	case err != nil:
		return err
	case t.Priority > OverridesCFI:
		return fmt.Errorf("Priority: %d is not a priority", t.Priority)
	case t.Priority == OverridesCFI && t.Reason == "":
		return fmt.Errorf("Reason: empty, expected why the rows override CFI")
	}
	return c.rows("Rows", t.Rows, 0, math.MaxUint64)
}

func (c *checker) objectFunction(f *Function) error {
	err := checkText("Name", f.Name, MaxText)
	switch {
	case err != nil:
		return err
	case f.Start >= f.End:
		return fmt.Errorf("End: %#x, expected above Start, %#x", f.End, f.Start)
	case f.Lanes > MaxLanes:
		return fmt.Errorf("Lanes: %d, expected at most %d", f.Lanes, MaxLanes)
	case f.Kind > StackSwitchFunction:
		return fmt.Errorf("Kind: %d is not a kind", f.Kind)
	}
	return c.rules("DefaultRules", f.DefaultRules)
}

func (m *PositionMap) validate() error {
	if err := checkIdentifier("Kind", m.Kind); err != nil {
		return err
	}
	if len(m.Positions) != len(m.PCs) {
		return fmt.Errorf("Positions: %d for %d PCs, expected as many", len(m.Positions), len(m.PCs))
	}
	for j := 1; j < len(m.PCs); j++ {
		if m.PCs[j] <= m.PCs[j-1] {
			return fmt.Errorf("PCs[%d]: %#x after %#x, expected ascending PCs", j, m.PCs[j], m.PCs[j-1])
		}
	}
	return nil
}

func (c *checker) objectVariable(v *Variable) error {
	if err := checkText("Name", v.Name, MaxText); err != nil {
		return err
	}
	if len(v.End) != len(v.Start) || len(v.Locations) != len(v.Start) {
		return fmt.Errorf("Start: %d, with %d of End and %d Locations, expected as many", len(v.Start), len(v.End), len(v.Locations))
	}
	for j := range v.Start {
		if v.Start[j] >= v.End[j] {
			return fmt.Errorf("End[%d]: %#x, expected above Start, %#x", j, v.End[j], v.Start[j])
		}
		if err := c.expression("", v.Locations[j]); err != nil {
			return fmt.Errorf("Locations[%d]%w", j, err)
		}
	}
	return nil
}

// Validate checks an answer to FrameRules. Rows and gaps must be inside the code of the
// request, since nothing else was read: in the part with the PC, where the function has
// parts.
func (a *FrameRulesAnswer) Validate(d *Description, req *FrameRulesRequest) error {
	if len(a.Functions) != len(req.Functions) {
		return fmt.Errorf("FrameRulesAnswer.Functions: %d for %d functions, expected as many", len(a.Functions), len(req.Functions))
	}
	c := newChecker(d)
	for i := range a.Functions {
		f, function := &a.Functions[i], &req.Functions[i]
		start, code := function.Start, function.Code
		if len(function.Parts) > 0 {
			start, code = function.Piece(function.PC)
		}
		err := first(checkText("Reason", f.Reason, MaxText), c.rows("Rows", f.Rows, start, uint64(len(code))))
		if err == nil { // gaps are compared with rows in order
			err = first(checkGaps(f, function), checkRanges("Contradictions", f.Contradictions, function),
				checkExits(f.Exits, function, lastAddress(d.AddressBits)))
		}
		if err != nil {
			return fmt.Errorf("FrameRulesAnswer.Functions[%d].%w", i, err)
		}
	}
	return nil
}

// checkExits checks the exits of code. e may be nil.
func checkExits(e *CodeExits, function *CodeRange, last uint64) error {
	if e == nil {
		return nil
	}
	if !function.Exits {
		return fmt.Errorf("Exits: set, and were not asked for")
	}
	// Two for every byte of code are more than any code has.
	if n := len(e.Jumps) + len(e.Slots); n > 2*len(function.Code) {
		return fmt.Errorf("Exits: %d, expected at most %d, two for every byte of the code", n, 2*len(function.Code))
	}
	for i, a := range e.Jumps {
		switch {
		case a > last:
			return fmt.Errorf("Exits.Jumps[%d]: %#x, expected at most %#x", i, a, last)
		case a-function.Start < uint64(len(function.Code)):
			return fmt.Errorf("Exits.Jumps[%d]: %#x, expected an address outside the code", i, a)
		}
	}
	for i, a := range e.Slots {
		if a > last {
			return fmt.Errorf("Exits.Slots[%d]: %#x, expected at most %#x", i, a, last)
		}
	}
	return nil
}

// checkGaps checks the gaps of a function whose rows are in order.
func checkGaps(f *FrameRules, function *CodeRange) error {
	if err := checkRanges("Gaps", f.Gaps, function); err != nil {
		return err
	}
	rows := f.Rows
	for i := range f.Gaps {
		g := &f.Gaps[i]
		for len(rows) > 0 && rows[0].End <= g.Start {
			rows = rows[1:]
		}
		if len(rows) > 0 && rows[0].Start < g.End {
			return fmt.Errorf("Gaps[%d].Start: %#x, there is a row for [%#x, %#x)", i, g.Start, rows[0].Start, rows[0].End)
		}
	}
	return nil
}

// checkRanges checks that ranges are within the function's code, in order, and have
// reasons.
func checkRanges(name string, ranges []RowGap, function *CodeRange) error {
	size := uint64(len(function.Code))
	for i := range ranges {
		g := &ranges[i]
		err := checkText("Reason", g.Reason, MaxText)
		switch {
		case g.Start >= g.End:
			err = fmt.Errorf("End: %#x, expected above Start, %#x", g.End, g.Start)
		case g.Start < function.Start || g.Start-function.Start >= size:
			err = fmt.Errorf("Start: %#x, expected in [%#x, %#x)", g.Start, function.Start, function.Start+size)
		case g.End-function.Start > size:
			err = fmt.Errorf("End: %#x, expected at most %#x", g.End, function.Start+size)
		case i > 0 && g.Start < ranges[i-1].End:
			err = fmt.Errorf("Start: %#x, expected at least %#x, where the range before ends", g.Start, ranges[i-1].End)
		case g.Reason == "":
			err = fmt.Errorf("Reason: empty, expected a sentence")
		}
		if err != nil {
			return fmt.Errorf("%s[%d].%w", name, i, err)
		}
	}
	return nil
}

// Validate checks an answer to BindThreads.
func (a *BindThreadsAnswer) Validate(d *Description, req *BindThreadsRequest) error {
	if len(a.Threads) != len(req.Threads) {
		return fmt.Errorf("BindThreadsAnswer.Threads: %d for %d threads, expected as many", len(a.Threads), len(req.Threads))
	}
	return each("BindThreadsAnswer.Threads", a.Threads, newChecker(d).binding)
}

func (c *checker) binding(b *ThreadBinding) error {
	for _, text := range []struct{ field, text string }{
		{"Agent", b.Agent}, {"Group", b.Group}, {"Wave", b.Wave}, {"Problem", b.Problem},
	} {
		if err := checkText(text.field, text.text, MaxText); err != nil {
			return err
		}
	}
	switch {
	case b.PC > lastAddress(c.d.AddressBits):
		return fmt.Errorf("PC: %#x, expected an address of %d bits", b.PC, c.d.AddressBits)
	case b.Lanes > MaxLanes:
		return fmt.Errorf("Lanes: %d, expected at most %d", b.Lanes, MaxLanes)
	case b.Lanes == 0 && b.Problem == "":
		return fmt.Errorf("Lanes: 0, expected at least 1")
	}
	if b.ActiveUnknown && b.ActiveLanes != nil {
		return fmt.Errorf("ActiveLanes: %d bytes, expected none where ActiveUnknown is set", len(b.ActiveLanes))
	}
	if b.ActiveLanes != nil {
		if want := (int(b.Lanes) + 7) / 8; len(b.ActiveLanes) != want {
			return fmt.Errorf("ActiveLanes: %d bytes, expected %d for %d lanes", len(b.ActiveLanes), want, b.Lanes)
		}
		if rest := b.Lanes % 8; rest != 0 && b.ActiveLanes[len(b.ActiveLanes)-1]>>rest != 0 {
			return fmt.Errorf("ActiveLanes: a bit is set past the %d lanes", b.Lanes)
		}
	}
	if len(b.Widths) > MaxDescriptionList {
		return fmt.Errorf("Widths: %d, expected at most %d", len(b.Widths), MaxDescriptionList)
	}
	if err := each("Widths", b.Widths, c.width); err != nil {
		return err
	}
	if len(b.Maps) > MaxDescriptionList {
		return fmt.Errorf("Maps: %d, expected at most %d", len(b.Maps), MaxDescriptionList)
	}
	for i := range b.Maps {
		err := c.spaceMap(&b.Maps[i], b.Lanes)
		for j := 0; j < i && err == nil; j++ {
			if b.Maps[j].Space == b.Maps[i].Space {
				err = fmt.Errorf("Space: %d is also that of Maps[%d]", b.Maps[i].Space, j)
			}
		}
		if err != nil {
			return fmt.Errorf("Maps[%d].%w", i, err)
		}
	}
	return nil
}

func (c *checker) width(w *RegisterWidth) error {
	span, ok := c.span(uint64(w.First))
	switch {
	case !ok:
		return fmt.Errorf("First: %d is the number of no register", w.First)
	case w.Count == 0 || uint64(w.First)+uint64(w.Count) > span.runEnd:
		return fmt.Errorf("Count: %d, expected 1 to %d, the registers there are", w.Count, span.runEnd-uint64(w.First))
	case w.Bits == 0 || w.Bits > MaxRegisterBits:
		return fmt.Errorf("Bits: %d, expected 1 to %d", w.Bits, MaxRegisterBits)
	}
	return nil
}

func (c *checker) spaceMap(m *SpaceMap, lanes uint32) error {
	width, err := c.space("Space", m.Space)
	if err != nil {
		return err
	}
	for i := range m.Ranges {
		r := &m.Ranges[i]
		var err error
		switch {
		case r.Size == 0 || r.Start > lastAddress(width) || r.Size-1 > lastAddress(width)-r.Start:
			err = fmt.Errorf("Size: %#x bytes at %#x, expected 1 or more in %d bits of address", r.Size, r.Start, width)
		case i > 0 && r.Start-m.Ranges[i-1].Start < m.Ranges[i-1].Size || i > 0 && r.Start < m.Ranges[i-1].Start:
			err = fmt.Errorf("Start: %#x, expected at or above the end of the range before, %#x", r.Start, m.Ranges[i-1].Start+m.Ranges[i-1].Size)
		default:
			err = c.mapRange(m.Space, r, lanes)
		}
		if err != nil {
			return fmt.Errorf("Ranges[%d].%w", i, err)
		}
	}
	return nil
}

func (c *checker) mapRange(space locexpr.AddressSpace, r *MapRange, lanes uint32) error {
	if r.Kind > OpaqueMap {
		return fmt.Errorf("Kind: %d is not a kind", r.Kind)
	}
	if r.Kind == RegisterMap {
		return c.register("Register", uint64(r.Register))
	}
	width, err := c.space("Into", r.Into)
	if err != nil || r.Kind == OpaqueMap {
		return err
	}
	if r.Into == space {
		return fmt.Errorf("Into: %d, expected another space than the one that is mapped", r.Into)
	}
	// The last byte reached is Base + reach.
	reach := r.Size - 1
	if r.Kind == InterleavedMap {
		if r.Element == 0 || uint64(r.Element) > r.Stride {
			return fmt.Errorf("Element: %d bytes, expected 1 to the Stride, %d", r.Element, r.Stride)
		}
		over, elements := bits.Mul64((r.Size-1)/uint64(r.Element), r.Stride)
		lane := uint64(max(lanes, 1))*uint64(r.Element) - 1
		if over != 0 || elements > math.MaxUint64-lane {
			return fmt.Errorf("Stride: %#x, the elements of %#x bytes pass the end of every space", r.Stride, r.Size)
		}
		reach = elements + lane
	}
	if r.Base > lastAddress(width) || reach > lastAddress(width)-r.Base {
		return fmt.Errorf("Base: %#x, the range reaches past the %d bits of address of space %d", r.Base, width, r.Into)
	}
	return nil
}

// Validate checks an answer to Translate.
func (a *TranslateAnswer) Validate(d *Description, _ *TranslateRequest) error {
	err := newChecker(d).expression("Expr", a.Expr)
	if err == nil && len(a.Expr) == 0 {
		err = fmt.Errorf("Expr: empty, expected operations")
	}
	if err != nil {
		return fmt.Errorf("TranslateAnswer.%w", err)
	}
	return nil
}

// Validate checks an answer to ClassifyReturn.
func (a *ClassifyReturnAnswer) Validate(d *Description, req *ClassifyReturnRequest) error {
	if len(a.Classes) != len(req.PCs) || len(a.Targets) != len(req.PCs) {
		return fmt.Errorf("ClassifyReturnAnswer.Classes: %d, with %d Targets for %d PCs, expected as many",
			len(a.Classes), len(a.Targets), len(req.PCs))
	}
	for i, class := range a.Classes {
		switch target := a.Targets[i]; {
		case class > AfterIndirectCall:
			return fmt.Errorf("ClassifyReturnAnswer.Classes[%d]: %d is not a class", i, class)
		case class != AfterDirectCall && target != 0:
			return fmt.Errorf("ClassifyReturnAnswer.Targets[%d]: %#x, expected 0 where there is no direct call", i, target)
		case target > lastAddress(d.AddressBits):
			return fmt.Errorf("ClassifyReturnAnswer.Targets[%d]: %#x, expected an address of %d bits", i, target, d.AddressBits)
		}
	}
	return nil
}

// Validate checks an answer to Disassemble: instructions inside the code of the
// request, in order.
func (a *DisassembleAnswer) Validate(_ *Description, req *DisassembleRequest) error {
	var next uint64 // the first offset that the next instruction may have
	for i := range a.Instructions {
		instruction := &a.Instructions[i]
		size, offset := uint64(len(req.Code)), instruction.Address-req.Address
		err := checkText("Text", instruction.Text, MaxText)
		switch {
		case err != nil:
		case offset < next || offset >= size:
			err = fmt.Errorf("Address: %#x, expected in [%#x, %#x)", instruction.Address, req.Address+next, req.Address+size)
		case instruction.Size == 0 || uint64(instruction.Size) > size-offset:
			err = fmt.Errorf("Size: %d, expected 1 to %d", instruction.Size, size-offset)
		default:
			err = instruction.validateAccesses()
		}
		if err != nil {
			return fmt.Errorf("DisassembleAnswer.Instructions[%d].%w", i, err)
		}
		next = offset + uint64(instruction.Size)
	}
	return a.LLVM.validate()
}

// maxAccessSize is how many bytes an access may have.
const maxAccessSize = 1 << 16

func (instruction *Instruction) validateAccesses() error {
	if instruction.Kind > SystemCallInstruction {
		return fmt.Errorf("Kind: %d is not a kind", instruction.Kind)
	}
	if instruction.RegisterBits > 64 {
		return fmt.Errorf("RegisterBits: %d, expected at most 64", instruction.RegisterBits)
	}
	if len(instruction.Accesses) > MaxAccesses {
		return fmt.Errorf("Accesses: %d, expected at most %d", len(instruction.Accesses), MaxAccesses)
	}
	for i := range instruction.Accesses {
		a := &instruction.Accesses[i]
		switch {
		case a.AddressBits == 0 || a.AddressBits > 64:
			return fmt.Errorf("Accesses[%d].AddressBits: %d, expected 1 to 64", i, a.AddressBits)
		case a.Size > maxAccessSize:
			return fmt.Errorf("Accesses[%d].Size: %d, expected at most %d", i, a.Size, maxAccessSize)
		case a.Index == NoRegister && a.Scale != 0:
			return fmt.Errorf("Accesses[%d].Scale: %d, expected 0 without an index", i, a.Scale)
		case a.IndexBits > 64 || a.Index == NoRegister && a.IndexBits != 0:
			return fmt.Errorf("Accesses[%d].IndexBits: %d, expected at most 64, and 0 without an index", i, a.IndexBits)
		case a.IsIndexSigned && a.IndexBits == 0:
			return fmt.Errorf("Accesses[%d].IsIndexSigned: true, expected false where all bits of the index count", i)
		}
	}
	return nil
}

// validate checks names that become arguments of a command.
func (l *LLVMTarget) validate() error {
	for _, f := range []struct{ member, value string }{{"Triple", l.Triple}, {"CPU", l.CPU}, {"Features", l.Features}} {
		outside := strings.IndexFunc(f.value, func(r rune) bool {
			return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.,:+", r))
		})
		switch {
		case len(f.value) > MaxLLVMName:
			return fmt.Errorf("DisassembleAnswer.LLVM.%s: %d bytes, expected at most %d", f.member, len(f.value), MaxLLVMName)
		case outside >= 0:
			return fmt.Errorf("DisassembleAnswer.LLVM.%s: %q, expected letters, digits and -_.,:+", f.member, f.value)
		case f.value != "" && l.Triple == "":
			return fmt.Errorf("DisassembleAnswer.LLVM.%s: %q, expected none without a Triple", f.member, f.value)
		}
	}
	return nil
}

// maxProblems is how many problems an answer may list.
const maxProblems = 1 << 12

func checkProblems(problems []string) error {
	if len(problems) > maxProblems {
		return fmt.Errorf("Problems: %d, expected at most %d", len(problems), maxProblems)
	}
	return checkTexts("Problems", problems)
}
