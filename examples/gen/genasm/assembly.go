// SPDX-License-Identifier: Apache-2.0

// Package genasm executes code of Intel's graphics processors (Gen) as far as its stack
// depends on it, from the annotated assembly that the compiler writes.
package genasm

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Instruction is one line of the assembly.
type Instruction struct {
	Line     int // in the file
	Text     string
	Offset   uint64 // from the start of the kernel's code
	Size     uint64 // 16 bytes, or 8 where it is compacted
	Function string // the kernel or the function that it is in
	Op       string // "mov", "send.dc0"

	hasNoMask     bool   // it is executed for all channels, enabled or not
	predicate     string // the flag and how it is used: "", "f0.0", "~f0.0", "f0.0.any8h"
	width         int    // channels; 0 where it has none
	first         int    // the first channel
	modifier      string // how it sets flags: "", "eq"
	flag          string // the flag that it sets
	operands      []string
	isEndOfThread bool
	isStackCalled bool // its function is reached by stack calls
}

// Assembly is the code of a kernel and of the functions that it calls.
type Assembly struct {
	Path         string
	Kernel       string
	Platform     string // "SKL"
	Lanes        int    // by the name of the file
	Registers    int    // GRF registers of a thread
	RegisterSize int    // bytes
	Instructions []*Instruction

	labels  map[string]int       // index of the instruction after the label
	indexes map[uint64]int       // index of the instruction at an offset
	pointer map[string][2]string // register and sub-register of be_fp and be_sp, where there is a stack
}

// Span is a part of the register file, in bytes.
type Span struct{ First, Count int }

// Bytes returns the bytes of the span.
func (s Span) Bytes(grf []byte) []byte { return grf[s.First : s.First+s.Count] }

var (
	labelLine      = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_.]*):\s*$`)
	offsetLabel    = regexp.MustCompile(`^L([0-9]+)$`)
	functionPrefix = regexp.MustCompile(`^L_f[0-9]+_`)
	lanesInName    = regexp.MustCompile(`simd([0-9]+)_entry`)
	declareLine    = regexp.MustCompile(`^//\.declare (be_fp|be_sp) .* size=4 type=ud .*\(r([0-9]+)\.([0-9]+)\)`)
	optionGroup    = regexp.MustCompile(`\{[^}]*\}`)
	setsFlag       = regexp.MustCompile(`^\(([a-z]+)\)(f[01]\.[01])$`)
	channels       = regexp.MustCompile(`^\(\s*([0-9]+)\|M([0-9]+)\)`)
)

// registerSizes has the sizes of the known platforms.
var registerSizes = map[string]int{"SKL": 32, "ICLLP": 32, "TGLLP": 32, "DG2": 32, "PVC": 64, "PVCXT": 64}

// ReadAssembly reads an .asm file that the compiler dumped.
func ReadAssembly(path string) (*Assembly, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	a := &Assembly{Path: path, labels: map[string]int{}, indexes: map[uint64]int{}, pointer: map[string][2]string{}}
	if m := lanesInName.FindStringSubmatch(path); m != nil {
		a.Lanes, _ = strconv.Atoi(m[1])
	}
	offset, number := uint64(0), 0
	for text := range strings.Lines(string(data)) {
		number++
		text = strings.TrimRight(text, "\n")
		switch {
		case strings.HasPrefix(text, "//"):
			a.header(text)
			continue
		case strings.TrimSpace(text) == "":
			continue
		}
		if m := labelLine.FindStringSubmatch(text); m != nil {
			label := m[1]
			if o := offsetLabel.FindStringSubmatch(label); o != nil && o[1] != strconv.FormatUint(offset, 10) {
				return nil, fmt.Errorf("%s:%d: the label %s is at %d", path, number, label, offset)
			}
			a.labels[label] = len(a.Instructions)
			continue
		}
		in := &Instruction{Line: number, Offset: offset, Text: text}
		if err := in.read(); err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", path, number, text, err)
		}
		a.indexes[offset] = len(a.Instructions)
		a.Instructions = append(a.Instructions, in)
		offset += in.Size
	}
	if a.RegisterSize = registerSizes[a.Platform]; a.RegisterSize == 0 {
		return nil, fmt.Errorf("%s: the platform %q is not known here", path, a.Platform)
	}
	if a.Registers == 0 || a.Lanes == 0 || len(a.Instructions) == 0 {
		return nil, fmt.Errorf("%s: %d registers, %d lanes, %d instructions", path, a.Registers, a.Lanes, len(a.Instructions))
	}
	return a, a.nameFunctions()
}

// FramePointer is the place of the stack's frame pointer; false where the kernel has no
// stack.
func (a *Assembly) FramePointer() (Span, bool) { return a.declared("be_fp") }

// StackPointer is the place of the stack's stack pointer.
func (a *Assembly) StackPointer() (Span, bool) { return a.declared("be_sp") }

// PointerUnit is the number of bytes of a unit of the frame and stack pointers.
func (a *Assembly) PointerUnit() uint64 {
	switch a.Platform {
	case "SKL", "ICLLP", "TGLLP":
		return 16
	}
	return 1
}

func (a *Assembly) declared(name string) (Span, bool) {
	p, ok := a.pointer[name]
	register, _ := strconv.Atoi(p[0])
	sub, _ := strconv.Atoi(p[1])
	return Span{register*a.RegisterSize + sub*4, 4}, ok
}

// Kept returns the registers that a stack call preserves: the upper half of the registers
// that the ABI leaves free, and the frame and stack pointers.
func (a *Assembly) Kept() []Span {
	fp, _ := a.FramePointer()
	sp, _ := a.StackPointer()
	first := (a.Registers - 8) / 2 * a.RegisterSize
	return []Span{{first, fp.First/a.RegisterSize*a.RegisterSize - first}, fp, sp}
}

// stackRegister is the register in which a stack call stores its return address.
const stackRegister = "r125.0"

// StackCall reports whether the instruction calls a function that has a frame of
// its own. Other calls are of subroutines, which share the caller's registers.
func (i *Instruction) StackCall() bool {
	return i.Op == "call" && strings.TrimSuffix(i.operands[0], ":ud") == stackRegister
}

// nameFunctions finds the called functions: each begins at the target of a call.
func (a *Assembly) nameFunctions() error {
	starts := map[int]*Instruction{}
	names := map[int]string{}
	for _, in := range a.Instructions {
		if in.Op != "call" {
			continue
		}
		if len(in.operands) != 2 {
			return fmt.Errorf("%s:%d: a call with the operands %q", a.Path, in.Line, in.operands)
		}
		i, ok := a.labels[in.operands[1]]
		if !ok || i == len(a.Instructions) {
			return fmt.Errorf("%s:%d: no label %s", a.Path, in.Line, in.operands[1])
		}
		starts[i], names[i] = in, functionPrefix.ReplaceAllString(in.operands[1], "")
	}
	name, stack := a.Kernel, false
	for i, in := range a.Instructions {
		if call := starts[i]; call != nil {
			name, stack = names[i], call.StackCall()
		}
		in.Function, in.isStackCalled = name, stack
	}
	return nil
}

// header reads a line of the comments.
func (a *Assembly) header(text string) {
	if s, ok := strings.CutPrefix(text, "//.kernel "); ok {
		a.Kernel = strings.Trim(s, `"`)
	}
	if s, ok := strings.CutPrefix(text, "//.platform "); ok {
		a.Platform = s
	}
	if s, ok := strings.CutPrefix(text, "//.thread_config numGRF="); ok {
		count, _, _ := strings.Cut(s, ",")
		a.Registers, _ = strconv.Atoi(count)
	}
	if m := declareLine.FindStringSubmatch(text); m != nil {
		a.pointer[m[1]] = [2]string{m[2], m[3]}
	}
}

// read reads the line of the instruction.
func (i *Instruction) read() error {
	code, _, _ := strings.Cut(i.Text, "//")
	i.Size = 16
	for _, group := range optionGroup.FindAllString(code, -1) {
		if strings.Contains(group, "Compacted") {
			i.Size = 8
		}
		i.isEndOfThread = i.isEndOfThread || strings.Contains(group, "EOT")
	}
	code = strings.TrimSpace(optionGroup.ReplaceAllString(code, ""))
	if inside, rest, ok := strings.Cut(code, ")"); ok && strings.HasPrefix(code, "(") {
		for part := range strings.SplitSeq(inside[1:], "&") {
			if part == "W" {
				i.hasNoMask = true
			} else {
				i.predicate = part
			}
		}
		code = strings.TrimSpace(rest)
	}
	i.Op, code, _ = strings.Cut(code, " ")
	if i.Op == "" {
		return errors.New("no operation")
	}
	code = strings.TrimSpace(code)
	if m := channels.FindStringSubmatch(code); m != nil {
		i.width, _ = strconv.Atoi(m[1])
		i.first, _ = strconv.Atoi(m[2])
		code = code[len(m[0]):]
	}
	i.operands = strings.Fields(code)
	if len(i.operands) > 0 {
		if m := setsFlag.FindStringSubmatch(i.operands[0]); m != nil {
			i.modifier, i.flag = m[1], m[2]
			i.operands = i.operands[1:]
		}
	}
	return nil
}

// operand is an operand of an instruction.
type operand struct {
	file       string // "r", "acc", "a", "f", "null", "cr", "sr", "n", "imm", or "indirect"
	register   int
	sub        int // in elements of the type
	region     [3]int
	regions    int // of numbers that the region has
	kind       string
	isNegated  bool
	isAbsolute bool
	value      uint64 // of an immediate
}

var (
	registerOperand  = regexp.MustCompile(`^(-|~)?(\(abs\))?(null|acc|r|a|f|cr|sr|n|ce|ip|tm|dbg|tdr|mme)([0-9]+)?(?:\.([0-9]+))?(?:<([0-9;,]+)>)?(?::([a-z]+))?$`)
	indirectOperand  = regexp.MustCompile(`^(-|~)?r\[a[0-9]+\.[0-9]+(?:,-?[0-9]+)?\](?:<([0-9;,]+)>)?(?::([a-z]+))?$`)
	immediateOperand = regexp.MustCompile(`^(-)?(0x[0-9A-Fa-f]+|[0-9]+):([a-z]+)$`)
)

// integerTypes has the sizes of integer types, in bytes, negative for signed ones;
// otherTypes has the sizes of other numbers.
var (
	integerTypes = map[string]int{"ub": 1, "b": -1, "uw": 2, "w": -2, "ud": 4, "d": -4, "uq": 8, "q": -8, "": 4}
	otherTypes   = map[string]int{"hf": 2, "bf": 2, "f": 4, "df": 8, "v": 4, "uv": 4, "vf": 4}
)

// size is the size of an element, in bytes.
func (o *operand) size() int {
	if n, ok := otherTypes[o.kind]; ok {
		return n
	}
	return max(integerTypes[o.kind], -integerTypes[o.kind])
}

func (o *operand) isFloat() bool { _, ok := otherTypes[o.kind]; return ok }

// parseOperand reads an operand.
func parseOperand(s string) (*operand, error) {
	o := &operand{}
	region := func(text string) error {
		if text == "" {
			return nil
		}
		for i, n := range regexp.MustCompile(`[;,]`).Split(text, -1) {
			if i == 3 {
				return fmt.Errorf("%s: a region of more than three numbers", s)
			}
			o.region[i], _ = strconv.Atoi(n)
			o.regions++
		}
		return nil
	}
	if m := immediateOperand.FindStringSubmatch(s); m != nil {
		v, err := strconv.ParseUint(m[2], 0, 64)
		if err != nil {
			return nil, err
		}
		if m[1] != "" {
			v = -v
		}
		o.file, o.value, o.kind = "imm", v, m[3]
	} else if m := indirectOperand.FindStringSubmatch(s); m != nil {
		o.file, o.kind = "indirect", m[3]
		if err := region(m[2]); err != nil {
			return nil, err
		}
	} else if m := registerOperand.FindStringSubmatch(s); m != nil {
		o.isNegated, o.isAbsolute, o.file, o.kind = m[1] != "", m[2] != "", m[3], m[7]
		o.register, _ = strconv.Atoi(m[4])
		o.sub, _ = strconv.Atoi(m[5])
		if err := region(m[6]); err != nil {
			return nil, err
		}
	} else {
		return nil, fmt.Errorf("%q is no operand that is known here", s)
	}
	if _, ok := integerTypes[o.kind]; !ok && !o.isFloat() {
		return nil, fmt.Errorf("%s: the type %q is not known here", s, o.kind)
	}
	return o, nil
}
