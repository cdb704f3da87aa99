package engine

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// This file reads the annotated assembly of Gen that Intel's graphics compiler
// writes beside a kernel's code: what each instruction does, and where it is.

// A genInstruction is one line of the assembly.
type genInstruction struct {
	line        int
	text        string
	offset      uint64 // from the start of the kernel's code
	size        uint64 // 16 bytes, 8 where it is compacted
	op          string
	noMask      bool   // it is executed whichever channels are enabled
	predicate   string // the flag and how it is used: "", "f0.0", "~f0.0", "f0.0.any8h"
	width       int    // channels, 0 where it has none
	first       int    // the first of them
	modifier    string // how it sets flags: "", "eq"
	flag        string // that it sets
	operands    []string
	endOfThread bool
	comment     string
	function    string // the kernel, or what is called, that it is in
	stackCall   bool   // that is reached by stack calls
}

// A genAssembly is the code of a kernel and of what it calls.
type genAssembly struct {
	path         string
	kernel       string
	platform     string // "SKL"
	registers    int    // GRF registers of a thread
	size         int    // bytes of one
	width        int    // SIMD width, by the name of the file
	instructions []*genInstruction
	labels       map[string]int      // index of the instruction after the label
	at           map[uint64]int      // index of the instruction at an offset
	declared     map[string]genBytes // be_fp and be_sp, where there is a stack
}

// genBytes are bytes of the register file.
type genBytes struct{ first, count int }

var (
	genLabel    = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_.]*):\s*$`)
	genOffset   = regexp.MustCompile(`^L([0-9]+)$`)
	genFunction = regexp.MustCompile(`^L_f[0-9]+_`)
	genWidth    = regexp.MustCompile(`simd([0-9]+)_entry`)
	genDeclare  = regexp.MustCompile(`^//\.declare (be_fp|be_sp) .* size=([0-9]+) type=ud .*\(r([0-9]+)\.([0-9]+)\)`)
	genOptions  = regexp.MustCompile(`\{[^}]*\}`)
	genSets     = regexp.MustCompile(`^\(([a-z]+)\)(f[01]\.[01])$`)
	genChannels = regexp.MustCompile(`\(([0-9]+)\|M([0-9]+)\)`)
)

// readGenAssembly reads an .asm file.
func readGenAssembly(t testing.TB, path string) *genAssembly {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a := &genAssembly{path: path, labels: map[string]int{}, at: map[uint64]int{}, declared: map[string]genBytes{}}
	if m := genWidth.FindStringSubmatch(path); m != nil {
		a.width, _ = strconv.Atoi(m[1])
	}
	offset, number := uint64(0), 0
	for text := range strings.Lines(string(data)) {
		number++
		text = strings.TrimRight(text, "\n")
		fail := func(format string, args ...any) {
			t.Fatalf("%s:%d: %s: %s", path, number, text, fmt.Sprintf(format, args...))
		}
		switch {
		case strings.HasPrefix(text, "//"):
			a.header(text)
			continue
		case strings.TrimSpace(text) == "":
			continue
		}
		if m := genLabel.FindStringSubmatch(text); m != nil {
			label := m[1]
			if o := genOffset.FindStringSubmatch(label); o != nil && o[1] != fmt.Sprint(offset) {
				fail("the label is at %d", offset)
			}
			a.labels[label] = len(a.instructions)
			continue
		}
		in := a.instruction(text, fail)
		in.line, in.offset = number, offset
		a.at[offset] = len(a.instructions)
		a.instructions = append(a.instructions, in)
		offset += in.size
	}
	switch a.platform {
	case "SKL", "ICLLP", "TGLLP", "DG2":
		a.size = 32
	case "PVC", "PVCXT":
		a.size = 64
	default:
		t.Fatalf("%s: the platform %q is not known here", path, a.platform)
	}
	if a.registers == 0 || a.width == 0 || len(a.instructions) == 0 {
		t.Fatalf("%s: %d registers, %d lanes, %d instructions", path, a.registers, a.width, len(a.instructions))
	}
	if err := a.nameFunctions(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for name, b := range a.declared {
		a.declared[name] = genBytes{b.first>>16*a.size + b.first&0xffff, b.count}
	}
	return a
}

// stackRegister is the register that a stack call leaves its return address in.
const stackRegister = "r125.0"

// stackCalls says whether a call is one of a function that has a frame of its own.
func (in *genInstruction) stackCalls() bool {
	return in.op == "call" && strings.TrimSuffix(in.operands[0], ":ud") == stackRegister
}

// nameFunctions finds what is called: it begins where a call leads to.
func (a *genAssembly) nameFunctions() error {
	starts := map[int]*genInstruction{}
	names := map[int]string{}
	for _, in := range a.instructions {
		if in.op != "call" {
			continue
		}
		if len(in.operands) != 2 {
			return fmt.Errorf("line %d: a call with the operands %q", in.line, in.operands)
		}
		i, ok := a.labels[in.operands[1]]
		if !ok || i == len(a.instructions) {
			return fmt.Errorf("line %d: no label %s", in.line, in.operands[1])
		}
		starts[i], names[i] = in, genFunction.ReplaceAllString(in.operands[1], "")
	}
	name, stack := a.kernel, false
	for i, in := range a.instructions {
		if call := starts[i]; call != nil {
			name, stack = names[i], call.stackCalls()
		}
		in.function, in.stackCall = name, stack
	}
	return nil
}

// header reads a line of the comments.
func (a *genAssembly) header(text string) {
	if s, ok := strings.CutPrefix(text, "//.kernel "); ok {
		a.kernel = strings.Trim(s, `"`)
	}
	if s, ok := strings.CutPrefix(text, "//.platform "); ok {
		a.platform = s
	}
	if s, ok := strings.CutPrefix(text, "//.thread_config numGRF="); ok {
		a.registers, _ = strconv.Atoi(s[:strings.IndexByte(s, ',')])
	}
	if m := genDeclare.FindStringSubmatch(text); m != nil {
		size, _ := strconv.Atoi(m[2])
		register, _ := strconv.Atoi(m[3])
		sub, _ := strconv.Atoi(m[4])
		a.declared[m[1]] = genBytes{register<<16 | sub*4, size}
	}
}

// instruction reads the line of an instruction.
func (a *genAssembly) instruction(text string, fail func(string, ...any)) *genInstruction {
	code, comment, _ := strings.Cut(text, "//")
	in := &genInstruction{text: text, comment: comment, size: 16}
	for _, group := range genOptions.FindAllString(code, -1) {
		if strings.Contains(group, "Compacted") {
			in.size = 8
		}
		in.endOfThread = in.endOfThread || strings.Contains(group, "EOT")
	}
	code = strings.TrimSpace(genOptions.ReplaceAllString(code, ""))
	if strings.HasPrefix(code, "(") {
		end := strings.IndexByte(code, ')')
		for _, part := range strings.Split(code[1:end], "&") {
			if part == "W" {
				in.noMask = true
			} else {
				in.predicate = part
			}
		}
		code = strings.TrimSpace(code[end+1:])
	}
	words := strings.Fields(code)
	if len(words) == 0 {
		fail("no operation")
	}
	in.op = words[0]
	words = words[1:]
	if m := genChannels.FindStringSubmatch(strings.Join(words, " ")); m != nil && len(words) > 0 && strings.HasPrefix(words[0], "(") {
		in.width, _ = strconv.Atoi(m[1])
		in.first, _ = strconv.Atoi(m[2])
		for !strings.HasSuffix(words[0], ")") {
			words = words[1:]
		}
		words = words[1:]
	}
	if len(words) > 0 {
		if m := genSets.FindStringSubmatch(words[0]); m != nil {
			in.modifier, in.flag = m[1], m[2]
			words = words[1:]
		}
	}
	in.operands = words
	return in
}

// A genOperand is an operand of an instruction.
type genOperand struct {
	file     string // "r", "acc", "a", "f", "null", "cr", "sr", "n", "imm", or "indirect"
	register int
	sub      int // in elements of the type
	region   [3]int
	regions  int // how many numbers the region has
	kind     string
	negated  bool
	absolute bool
	value    uint64 // of an immediate
}

var (
	genRegister  = regexp.MustCompile(`^(-|~)?(\(abs\))?(null|acc|r|a|f|cr|sr|n|ce|ip|tm|dbg|tdr|mme)([0-9]+)?(?:\.([0-9]+))?(?:<([0-9;,]+)>)?(?::([a-z]+))?$`)
	genIndirect  = regexp.MustCompile(`^(-|~)?r\[a[0-9]+\.[0-9]+(?:,-?[0-9]+)?\](?:<([0-9;,]+)>)?(?::([a-z]+))?$`)
	genImmediate = regexp.MustCompile(`^(-)?(0x[0-9A-Fa-f]+|[0-9]+):([a-z]+)$`)
)

// genTypes are the sizes of types, in bytes; negative for signed integers, and
// those of numbers that are no integers are in genFloats.
var (
	genTypes  = map[string]int{"ub": 1, "b": -1, "uw": 2, "w": -2, "ud": 4, "d": -4, "uq": 8, "q": -8, "": 4}
	genFloats = map[string]int{"hf": 2, "bf": 2, "f": 4, "df": 8, "v": 4, "uv": 4, "vf": 4}
)

// size is that of an element, in bytes.
func (o *genOperand) size() int {
	if n, ok := genFloats[o.kind]; ok {
		return n
	}
	return max(genTypes[o.kind], -genTypes[o.kind])
}

func (o *genOperand) float() bool { _, ok := genFloats[o.kind]; return ok }

// parseGenOperand reads an operand.
func parseGenOperand(s string) (*genOperand, error) {
	o := &genOperand{}
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
	if m := genImmediate.FindStringSubmatch(s); m != nil {
		v, err := strconv.ParseUint(m[2], 0, 64)
		if err != nil {
			return nil, err
		}
		if m[1] != "" {
			v = -v
		}
		o.file, o.value, o.kind = "imm", v, m[3]
	} else if m := genIndirect.FindStringSubmatch(s); m != nil {
		o.file, o.kind = "indirect", m[3]
		if err := region(m[2]); err != nil {
			return nil, err
		}
	} else if m := genRegister.FindStringSubmatch(s); m != nil {
		o.negated, o.absolute, o.file, o.kind = m[1] != "", m[2] != "", m[3], m[7]
		o.register, _ = strconv.Atoi(m[4])
		o.sub, _ = strconv.Atoi(m[5])
		if err := region(m[6]); err != nil {
			return nil, err
		}
	} else {
		return nil, fmt.Errorf("%q is no operand that is known here", s)
	}
	if _, ok := genTypes[o.kind]; !ok && !o.float() {
		return nil, fmt.Errorf("%s: the type %q is not known here", s, o.kind)
	}
	return o, nil
}
