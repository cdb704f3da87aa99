// SPDX-License-Identifier: Apache-2.0

// Package simt makes states of waves whose lanes diverge: it adds the PC of each lane
// (DW_AT_LLVM_lane_pc), which no compiler writes yet, to a compiler's assembly, and
// executes the code.
package simt

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Annotate adds DW_AT_LLVM_lanes and DW_AT_LLVM_lane_pc to the kernel of an assembly file
// that clang wrote for amdgcn with -g and -O1 or -O2. The expressions follow the worked
// example for nested divergent regions in the LLVM project's "User Guide for AMDGPU
// Backend", DW_AT_LLVM_lane_pc: a DWARF procedure for every region, each calling the
// procedure of the region around it.
//
// The regions are found by the instructions that the compiler ends and begins
// them with: s_and_saveexec, s_xor of a saved mask, s_or_saveexec, s_xor of the
// execution mask, s_or of the execution mask.
func Annotate(assembly, kernel string, lanes int) (string, error) {
	a := &annotator{lanes: lanes, lines: strings.Split(assembly, "\n")}
	if err := a.code(kernel); err != nil {
		return "", err
	}
	if err := a.entries(kernel); err != nil {
		return "", err
	}
	return strings.Join(a.out, "\n"), nil
}

// annotator rewrites the assembly, from lines to out.
type annotator struct {
	lanes      int
	lines, out []string
	regions    []*region // all of them
	ranges     []span    // of code, one after the other
	addresses  int       // of others in .debug_addr
	inside     *region   // the region that code is in; nil: none
	label      string    // the label where the span that is open begins
	labels     int       // the number that were written
}

// region is code that some of the lanes that reach it execute.
type region struct {
	index   int
	parent  *region
	saved   string // the registers that hold the mask
	isAfter bool   // its second part executes: the lanes of the first one are at its end
	// isInSecond means that it is in the second part of its parent.
	isInSecond bool
}

// span is code from label first to label last; the procedure computes the PCs of lanes
// that do not execute in it.
type span struct{ first, last, procedure string }

// procedure names the procedure of a part of a region; nil is the code around all
// regions.
func procedure(r *region) string {
	switch {
	case r == nil:
		return "divergent"
	case r.isAfter:
		return fmt.Sprintf("divergent_%d_else", r.index)
	}
	return fmt.Sprintf("divergent_%d_then", r.index)
}

var (
	begin  = regexp.MustCompile(`^\ts_and_saveexec_b\d+ (\S+), `)
	second = regexp.MustCompile(`^\ts_xor_b\d+ exec(?:_lo)?, exec(?:_lo)?, (\S+)`)
	finish = regexp.MustCompile(`^\ts_or_b\d+ exec(?:_lo)?, exec(?:_lo)?, (\S+)`)
)

// code copies the code, with a label at each place where the lanes that execute
// change.
func (a *annotator) code(kernel string) error {
	in := false
	for _, line := range a.lines {
		switch {
		case strings.HasPrefix(line, kernel+":"):
			a.out = append(a.out, line)
			in = true
			a.mark()
			continue
		case !in:
			a.out = append(a.out, line)
			continue
		case strings.HasPrefix(line, ".Lfunc_end"):
			if a.inside != nil {
				return fmt.Errorf("region %d of %s does not end", a.inside.index, kernel)
			}
			a.mark()
			in = false
		}
		if err := a.instruction(line); err != nil {
			return err
		}
	}
	if len(a.ranges) == 0 {
		return fmt.Errorf("no kernel %s", kernel)
	}
	return nil
}

// instruction copies a line of the kernel, which may begin or end a part of a region.
func (a *annotator) instruction(line string) error {
	if m := begin.FindStringSubmatch(line); m != nil {
		r := &region{index: len(a.regions) + 1, parent: a.inside, saved: m[1]}
		r.isInSecond = a.inside != nil && a.inside.isAfter
		a.regions = append(a.regions, r)
		a.out = append(a.out, fmt.Sprintf(".Lregion%d_start:", r.index), line)
		a.mark()
		a.inside = r
		return nil
	}
	if m := second.FindStringSubmatch(line); m != nil && a.inside != nil && m[1] == a.inside.saved {
		a.out = append(a.out, line)
		a.mark()
		a.inside.isAfter = true
		return nil
	}
	if m := finish.FindStringSubmatch(line); m != nil {
		if a.inside == nil || m[1] != a.inside.saved {
			return fmt.Errorf("%q ends no region", line)
		}
		a.out = append(a.out, line, fmt.Sprintf(".Lregion%d_end:", a.inside.index))
		a.mark()
		a.inside = a.inside.parent
		return nil
	}
	a.out = append(a.out, line)
	return nil
}

// mark writes a label, at which the span ends that is open, and the next one begins.
func (a *annotator) mark() {
	label := fmt.Sprintf(".Llanes%d", a.labels)
	a.labels++
	a.out = append(a.out, label+":")
	if a.label != "" {
		a.ranges = append(a.ranges, span{a.label, label, procedure(a.inside)})
	}
	a.label = label
}

// Numbers of DWARF (DWARF 5, chapter 7), and from opLLVMUser on, of the heterogeneous
// extension (A.7.7.1).
const (
	tagVariable       = 0x34
	tagBaseType       = 0x24
	tagDwarfProcedure = 0x36

	atLocation = 2
	atName     = 3
	atByteSize = 11
	atEncoding = 62

	formString    = 8
	formData1     = 11
	formSecOffset = 23
	formExprloc   = 24

	ateUnsigned = 7

	lleEndOfList = 0
	lleStartEnd  = 7

	opRegx       = 0x90
	opPiece      = 0x93
	opCall4      = 0x99
	opCallRef    = 0x9a
	opStackValue = 0x9f
	opAddrx      = 0xa1
	opRegvalType = 0xa5
	opDerefType  = 0xa6
	opLLVMUser   = 0xe9

	userUndefined      = 8
	userPieceEnd       = 10
	userExtend         = 11
	userSelectBitPiece = 12

	abbrevBaseType  = 100
	abbrevProcedure = 101
	abbrevVariable  = 102

	regPC     = 16
	regExec64 = 17
	regExec32 = 1
	regSGPR0  = 32
)

var (
	entryLine = regexp.MustCompile(`; Abbrev \[(\d+)\] 0x([0-9a-f]+):`)
	reference = regexp.MustCompile(`^\t\.long\t(\d+)( +; DW_AT_(?:type|abstract_origin|call_origin|specification))`)
)

// entries adds the attributes, the procedures and the location list. Offsets of
// entries that are numbers become labels, since entries move.
func (a *annotator) entries(kernel string) error {
	lines := a.out
	a.out = nil
	if _, table, ok := strings.Cut(strings.Join(lines, "\n"), "\n.Laddr_table_base0:"); ok {
		table, _, _ = strings.Cut(table, ".Ldebug_addr_end0")
		a.addresses = strings.Count(table, ".quad")
	}
	w := entryWriter{annotator: a, kernel: kernel}
	section := ""
	for i, line := range lines {
		if strings.HasPrefix(line, "\t.section\t") {
			section = strings.SplitN(strings.Trim(strings.Fields(line)[1], `"`), ",", 2)[0]
		}
		var err error
		switch section {
		case ".debug_abbrev":
			err = w.abbreviation(line)
		case ".debug_info":
			isLast := i+1 < len(lines) && strings.HasPrefix(lines[i+1], ".Ldebug_info_end0")
			line, err = w.entry(line, isLast)
		}
		if err != nil {
			return err
		}
		if strings.HasPrefix(line, ".Ldebug_addr_end0") {
			for _, r := range a.regions {
				a.add(fmt.Sprintf(".quad .Lregion%d_start", r.index), fmt.Sprintf(".quad .Lregion%d_end", r.index))
			}
		}
		a.out = append(a.out, line)
	}
	if !w.isDone {
		return fmt.Errorf("no entry of %s", kernel)
	}
	a.locationList()
	return nil
}

// entryWriter adds to abbreviations and entries as their lines pass.
type entryWriter struct {
	*annotator
	kernel     string
	subprogram string // the abbreviation code of the kernel's entry
	isPending  bool   // the kernel's entry has begun, and lacks its attributes
	isDone     bool

	abbrev              string // the code of the current abbreviation
	isSubprogram, hasPC bool   // of the current abbreviation
}

// abbreviation adds the attributes to the abbreviation of the kernel's entry, and
// abbreviations to the end of the table.
func (w *entryWriter) abbreviation(line string) error {
	switch {
	case strings.Contains(line, "; Abbreviation Code"):
		w.abbrev, w.isSubprogram, w.hasPC = strings.TrimSuffix(strings.Fields(line)[1], ";"), false, false
	case strings.Contains(line, "; DW_TAG_subprogram"):
		w.isSubprogram = true
	case strings.Contains(line, "; DW_AT_low_pc"):
		w.hasPC = true
	case strings.Contains(line, "; EOM(1)") && w.isSubprogram && w.hasPC:
		if w.subprogram != "" {
			return fmt.Errorf("two kinds of functions: abbreviations %s and %s", w.subprogram, w.abbrev)
		}
		w.subprogram = w.abbrev
		// DW_AT_LLVM_lanes and DW_AT_LLVM_lane_pc in LEB128.
		w.add(`.ascii "\212|"`, fmt.Sprintf(".byte %d", formData1), `.ascii "\213|"`, fmt.Sprintf(".byte %d", formSecOffset))
	case strings.Contains(line, "; EOM(3)"):
		w.abbreviations()
	}
	return nil
}

// entry adds the attributes to the kernel's entry, and the procedures behind the
// last entry, which ends where isLast is set. It returns the line, with a label for
// an offset.
func (w *entryWriter) entry(line string, isLast bool) (string, error) {
	if m := entryLine.FindStringSubmatch(line); m != nil {
		if w.isPending {
			w.add(fmt.Sprintf(".byte %d", w.lanes), ".long .Llane_pc")
			w.isPending, w.isDone = false, true
		}
		if m[1] == w.subprogram {
			if w.isDone {
				return "", fmt.Errorf("more functions than %s", w.kernel)
			}
			w.isPending = true
		}
		w.out = append(w.out, ".Lentry_"+m[2]+":")
	}
	if m := reference.FindStringSubmatch(line); m != nil {
		offset, err := strconv.Atoi(m[1])
		if err != nil {
			return "", err
		}
		line = fmt.Sprintf("\t.long\t.Lentry_%x-.Lcu_begin0%s", offset, m[2])
	}
	if strings.Contains(line, "; End Of Children Mark") && isLast {
		if w.isPending {
			return "", fmt.Errorf("%s has no children", w.kernel)
		}
		w.procedures()
	}
	return line, nil
}

func (a *annotator) add(lines ...string) {
	for _, l := range lines {
		a.out = append(a.out, "\t"+l)
	}
}

func (a *annotator) abbreviations() {
	abbrev := func(code, tag int, attributes ...int) {
		a.add(fmt.Sprintf(".uleb128 %d", code), fmt.Sprintf(".uleb128 %d", tag), ".byte 0")
		for _, n := range append(attributes, 0, 0) {
			a.add(fmt.Sprintf(".uleb128 %d", n))
		}
	}
	abbrev(abbrevBaseType, tagBaseType, atName, formString, atEncoding, formData1, atByteSize, formData1)
	abbrev(abbrevProcedure, tagDwarfProcedure, atName, formString, atLocation, formExprloc)
	abbrev(abbrevVariable, tagVariable, atName, formString, atLocation, formExprloc)
}

// expression is lines of assembly.
type expression []string

func (e *expression) op(opcode int, operands ...any) {
	*e = append(*e, fmt.Sprintf(".byte %#x", opcode))
	for _, o := range operands {
		*e = append(*e, fmt.Sprintf(".uleb128 %v", o))
	}
}

// user is an operation of the extension, DW_OP_LLVM_user.
func (e *expression) user(operands ...any) { e.op(opLLVMUser, operands...) }

func (e *expression) callRef(procedure string) {
	*e = append(*e, fmt.Sprintf(".byte %#x", opCallRef), ".long .Lprocedure_"+procedure)
}

// call4 is DW_OP_call4.
func (e *expression) call4(variable string) {
	*e = append(*e, fmt.Sprintf(".byte %#x", opCall4), ".long .Lprocedure_"+variable+"-.Lcu_begin0")
}

func (a *annotator) mask() string { return ".Lmask_type-.Lcu_begin0" }

// block adds an expression with its length.
func (a *annotator) block(name string, e expression) {
	a.add(fmt.Sprintf(".uleb128 .L%s_end-.L%s_begin", name, name))
	a.out = append(a.out, ".L"+name+"_begin:")
	a.add(e...)
	a.out = append(a.out, ".L"+name+"_end:")
}

func (a *annotator) procedures() {
	entry := func(code int, name string, e expression) {
		a.out = append(a.out, ".Lprocedure_"+name+":")
		a.add(fmt.Sprintf(".uleb128 %d", code), fmt.Sprintf(".asciz \"__%s\"", name))
		a.block("expression_"+name, e)
	}
	bytes := a.lanes / 8
	a.out = append(a.out, ".Lmask_type:")
	a.add(fmt.Sprintf(".uleb128 %d", abbrevBaseType), fmt.Sprintf(".asciz \"__uint_%d\"", a.lanes), fmt.Sprintf(".byte %d", ateUnsigned), fmt.Sprintf(".byte %d", bytes))

	exec := regExec64
	if a.lanes == 32 {
		exec = regExec32
	}
	var e expression
	e.op(opRegx, regPC)
	e.user(userExtend, 64, a.lanes)
	e.op(opRegvalType, exec, a.mask())
	e.user(userSelectBitPiece, 64, a.lanes)
	entry(abbrevProcedure, "active_lane_pc", e)

	e = nil
	e.user(userUndefined)
	e.user(userExtend, 64, a.lanes)
	entry(abbrevProcedure, "divergent", e)

	for _, r := range a.regions {
		saved := fmt.Sprintf("save_exec_%d", r.index)
		_, first, count, _ := register(r.saved)
		e = nil
		if count == 2 {
			e.op(opRegx, regSGPR0+first)
			e.op(opPiece, 4)
			e.op(opRegx, regSGPR0+first+1)
			e.op(opPiece, 4)
			e.user(userPieceEnd)
		} else {
			e.op(opRegx, regSGPR0+first)
		}
		entry(abbrevVariable, saved, e)
		outer := *r
		for _, part := range []struct {
			isAfter bool
			place   int // of the address of the region's start or end
		}{{false, 0}, {true, 1}} {
			outer.isAfter = part.isAfter
			e = nil
			e.callRef(a.around(r))
			e.op(opAddrx, a.addresses+2*(r.index-1)+part.place)
			e.op(opStackValue)
			e.user(userExtend, 64, a.lanes)
			e.call4(saved)
			e = append(e, fmt.Sprintf(".byte %#x", opDerefType), fmt.Sprintf(".byte %d", bytes), ".uleb128 "+a.mask())
			e.user(userSelectBitPiece, 64, a.lanes)
			entry(abbrevProcedure, procedure(&outer), e)
		}
	}
}

// around is the procedure of the code around a region: of the part of the region that it
// is in.
func (a *annotator) around(r *region) string {
	if r.parent == nil {
		return procedure(nil)
	}
	parent := *r.parent
	parent.isAfter = r.isInSecond
	return procedure(&parent)
}

func (a *annotator) locationList() {
	a.out = append(a.out, "\t.section\t.debug_loclists")
	a.add(".long .Llane_list_end-.Llane_list_start")
	a.out = append(a.out, ".Llane_list_start:")
	a.add(".short 5", ".byte 8", ".byte 0", ".long 0")
	a.out = append(a.out, ".Llane_pc:")
	for i, r := range a.ranges {
		a.add(fmt.Sprintf(".byte %d", lleStartEnd), ".quad "+r.first, ".quad "+r.last)
		var e expression
		e.callRef(r.procedure)
		e.callRef("active_lane_pc")
		a.block(fmt.Sprintf("lane_range_%d", i), e)
	}
	a.add(fmt.Sprintf(".byte %d", lleEndOfList))
	a.out = append(a.out, ".Llane_list_end:")
}
