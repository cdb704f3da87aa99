// SPDX-License-Identifier: Apache-2.0

// Package gcn executes AMDGPU code, for tests: it reads llvm-objdump's text of a code object, runs
// its kernels, and follows the calls that are in progress and the registers at the moment of each.
// It decodes no machine code: the decoder of plugins/amdgpu is not used.
package gcn

import (
	"fmt"
	"math"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// File is the kind of registers, or other source, that an operand names.
type File uint8

// The files of operands.
const (
	Scalar        File = iota // a scalar register, by State's numbers
	Vector                    // a vector register
	Acc                       // an accumulation register
	Constant                  // a number
	conditionCode             // the scalar condition code
	offFile                   // no operand: "off"
	nullFile                  // writes are ignored, and reads give 0
	OtherFile                 // text that only the instruction itself understands
)

// Operand is an operand as it is printed.
type Operand struct {
	file     File
	reg      int     // the first register
	count    int     // how many 32-bit registers
	value    uint64  // of a constant
	float    float64 // of a constant with a decimal point
	isFloat  bool
	neg, abs bool // applied to the value that is read
	// shift and size choose bits of a vector register: v0.h, BYTE_3. A size of
	// 0 is the whole.
	shift, size int
	text        string
}

// Instruction is an instruction as it is printed.
type Instruction struct {
	address, next uint64
	name          string // without _e32 and _e64
	operands      []Operand
	modifiers     map[string]int64  // offset:4 is offset, 4; a word without a number is 1
	choices       map[string]string // dst_sel:DWORD
	lists         map[string][]int  // op_sel:[0,1]
	target        uint64            // of a branch
	text          string
	dual          *Instruction // the other half of a dual instruction
	run           func(*State) error
}

// Code is the code of an object.
type Code struct {
	instructions map[uint64]*Instruction
	Functions    map[uint64]string // by entry
	entries      []uint64          // sorted
	ends         map[uint64]uint64 // of a function, by entry
}

// Function returns the entry of the function that contains an address.
func (c *Code) Function(address uint64) uint64 {
	i, found := slices.BinarySearch(c.entries, address)
	if found {
		return address
	}
	if i == 0 {
		return 0
	}
	return c.entries[i-1]
}

var (
	codeLine       = regexp.MustCompile(`^\t(.*?)\s*// ([0-9A-F]+): ([0-9A-F]{8}(?: [0-9A-F]{8})*)`)
	codeSymbol     = regexp.MustCompile(`^([0-9a-f]+) <(.*)>:$`)
	registerRange  = regexp.MustCompile(`^([sva]|ttmp)\[(\d+):(\d+)\]$`)
	registerSingle = regexp.MustCompile(`^([sva]|ttmp)(\d+)$`)
	literal        = regexp.MustCompile(`^lit\((.*)\)$`)
)

// disassemble reads the code of an object as llvm-objdump prints it.
func disassemble(path string) (*Code, error) {
	cmd := exec.Command("llvm-objdump-22", "-d", path)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w", cmd.Args, err)
	}
	c := &Code{instructions: map[uint64]*Instruction{}, Functions: map[uint64]string{}, ends: map[uint64]uint64{}}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n")
		if m := codeSymbol.FindStringSubmatch(line); m != nil {
			entry, err := strconv.ParseUint(m[1], 16, 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			if c.Functions[entry] == "" {
				c.Functions[entry] = m[2]
				c.entries = append(c.entries, entry)
			}
			continue
		}
		m := codeLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		address, err := strconv.ParseUint(m[2], 16, 64)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		ins, err := parse(m[1])
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		ins.address, ins.next = address, address+4*uint64(len(strings.Fields(m[3])))
		if strings.HasPrefix(ins.name, "s_branch") || strings.HasPrefix(ins.name, "s_cbranch") {
			words := int16(ins.operands[0].value) //nolint:gosec // 16 bits in the instruction
			ins.target = ins.next + 4*uint64(int64(words))
		}
		c.instructions[address] = ins
		if n := len(c.entries); n > 0 {
			c.ends[c.entries[n-1]] = ins.next
		}
	}
	slices.Sort(c.entries)
	return c, nil
}

// renamed has the names before gfx12.
var renamed = map[string]string{
	"s_add_co_u32": "s_add_u32", "s_add_co_ci_u32": "s_addc_u32", "s_sub_co_u32": "s_sub_u32", "s_sub_co_ci_u32": "s_subb_u32",
	"s_add_co_i32": "s_add_i32", "s_sub_co_i32": "s_sub_i32", "s_addk_co_i32": "s_addk_i32",
	"v_mad_co_u64_u32": "v_mad_u64_u32", "v_mad_co_i64_i32": "v_mad_i64_i32",
}

// parse reads the text of an instruction.
func parse(text string) (*Instruction, error) {
	if first, second, ok := strings.Cut(text, " :: "); ok {
		ins, err := parse(first)
		if err != nil {
			return nil, err
		}
		ins.text = text
		ins.dual, err = parse(second)
		return ins, err
	}
	name, rest, _ := strings.Cut(text, " ")
	ins := &Instruction{text: text, modifiers: map[string]int64{}, lists: map[string][]int{}, choices: map[string]string{}}
	ins.name = strings.TrimSuffix(strings.TrimSuffix(name, "_e32"), "_e64")
	ins.name = strings.Replace(ins.name, "v_dual_", "v_", 1)
	if old := renamed[ins.name]; old != "" {
		ins.name = old
	}
	if withoutEffect[ins.name] {
		return ins, nil
	}
	parts := splitOutside(strings.TrimSpace(rest), ',')
	for i, p := range parts {
		words := splitOutside(strings.TrimSpace(p), ' ')
		for j, w := range words {
			if w == "" {
				continue
			}
			if j == 0 && !strings.Contains(w, ":[") && (!strings.Contains(w, ":") || strings.Contains(w, "[")) {
				o, err := parseOperand(w)
				if err != nil {
					return nil, err
				}
				ins.operands = append(ins.operands, o)
				continue
			}
			if i < len(parts)-1 {
				return nil, fmt.Errorf("%q before the last operand", w)
			}
			if err := ins.modifier(w); err != nil {
				return nil, err
			}
		}
	}
	return ins, ins.choose()
}

// partNames has the parts of a register that an instruction may choose: the
// number of bits, and the lowest one.
var partNames = map[string]struct{ shift, size int }{
	"DWORD": {0, 0}, "WORD_0": {0, 16}, "WORD_1": {16, 16}, "BYTE_0": {0, 8}, "BYTE_1": {8, 8}, "BYTE_2": {16, 8}, "BYTE_3": {24, 8},
}

// choose gives operands the parts that an SDWA instruction chooses.
func (ins *Instruction) choose() error {
	name, sdwa := strings.CutSuffix(ins.name, "_sdwa")
	if !sdwa {
		if len(ins.choices) > 0 {
			return fmt.Errorf("%v is not known here", ins.choices)
		}
		return nil
	}
	ins.name = name
	first := 1 // source
	if strings.Contains(name, "_co_") {
		first = 2
	}
	for key, value := range ins.choices {
		part, ok := partNames[value]
		index := map[string]int{"src0_sel": first, "src1_sel": first + 1, "dst_sel": 0}[key]
		switch {
		case key == "dst_unused" && value == "UNUSED_PAD" && ins.choices["dst_sel"] == "DWORD":
			continue
		case key == "dst_unused" && value == "UNUSED_PRESERVE":
			continue
		case !ok || index >= len(ins.operands) || key != "src0_sel" && index == 0 && ins.operands[0].file != Vector:
			return fmt.Errorf("%s:%s is not known here", key, value)
		}
		ins.operands[index].shift, ins.operands[index].size = part.shift, part.size
	}
	return nil
}

// modifier reads a word after the operands.
func (ins *Instruction) modifier(word string) error {
	key, value, hasValue := strings.Cut(word, ":")
	switch {
	case !hasValue:
		ins.modifiers[key] = 1
	case strings.HasPrefix(value, "["):
		for _, s := range strings.Split(strings.Trim(value, "[]"), ",") {
			n, err := strconv.Atoi(s)
			if err != nil {
				return fmt.Errorf("%q: %w", word, err)
			}
			ins.lists[key] = append(ins.lists[key], n)
		}
	case key == "scope" || key == "th": // of caches
		ins.modifiers[key] = 1
	case strings.ToUpper(value) == value && value[0] >= 'A':
		ins.choices[key] = value
	default:
		n, err := strconv.ParseInt(value, 0, 64)
		if err != nil {
			return fmt.Errorf("%q: %w", word, err)
		}
		ins.modifiers[key] = n
	}
	return nil
}

// splitOutside splits where no bracket is open.
func splitOutside(s string, separator byte) (parts []string) {
	depth, start := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '[' || c == '(':
			depth++
		case c == ']' || c == ')':
			depth--
		case c == separator && depth == 0:
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	return append(parts, s[start:])
}

// Scalar registers beyond the numbered ones, by the hardware's numbers.
const (
	flatScratch = 102 // on gfx9
	VCC         = 106
	ttmp        = 108
	m0          = 124
	Exec        = 126
)

// namedOperands are operands with a name.
var namedOperands = map[string]Operand{
	"vcc": {reg: VCC, count: 2}, "vcc_lo": {reg: VCC, count: 1}, "vcc_hi": {reg: VCC + 1, count: 1},
	"exec": {reg: Exec, count: 2}, "exec_lo": {reg: Exec, count: 1}, "exec_hi": {reg: Exec + 1, count: 1},
	"flat_scratch": {reg: flatScratch, count: 2}, "flat_scratch_lo": {reg: flatScratch, count: 1},
	"flat_scratch_hi": {reg: flatScratch + 1, count: 1},
	"m0":              {reg: m0, count: 1},
	"scc":             {file: conditionCode, count: 1},
	"src_scc":         {file: conditionCode, count: 1},
	"null":            {file: nullFile, count: 2},
	"off":             {file: offFile},

	"src_shared_base":  {file: Constant, value: SharedAperture},
	"src_private_base": {file: Constant, value: PrivateAperture},
}

// parseOperand reads an operand.
func parseOperand(text string) (Operand, error) {
	s := text
	var neg, abs bool
	if n := strings.TrimPrefix(s, "-"); n != s && (n[0] == 'v' || n[0] == 's' || n[0] == 'a' || n[0] == '|') {
		neg, s = true, n
	}
	if strings.HasPrefix(s, "|") && strings.HasSuffix(s, "|") && len(s) > 2 {
		abs, s = true, s[1:len(s)-1]
	}
	half, hasHalf := 0, false
	if n := strings.TrimSuffix(strings.TrimSuffix(s, ".l"), ".h"); n != s && n[0] == 'v' {
		hasHalf = true
		if strings.HasSuffix(s, ".h") {
			half = 16
		}
		s = n
	}
	o, ok := namedOperands[s]
	if !ok {
		var err error
		if o, err = parseNumbered(s); err != nil {
			return o, err
		}
	}
	if hasHalf {
		o.shift, o.size = half, 16
	}
	o.text, o.neg, o.abs = text, neg, abs
	return o, nil
}

func parseNumbered(s string) (o Operand, err error) {
	file := func(letter string, reg, count int) Operand {
		switch letter {
		case "v":
			return Operand{file: Vector, reg: reg, count: count}
		case "a":
			return Operand{file: Acc, reg: reg, count: count}
		case "ttmp":
			return Operand{file: Scalar, reg: ttmp + reg, count: count}
		}
		return Operand{file: Scalar, reg: reg, count: count}
	}
	if m := registerSingle.FindStringSubmatch(s); m != nil {
		n, err := strconv.ParseUint(m[2], 10, 8)
		return file(m[1], int(n), 1), err //nolint:gosec // 8 bits
	}
	if m := registerRange.FindStringSubmatch(s); m != nil {
		first, err := strconv.ParseUint(m[2], 10, 8)
		if err != nil {
			return o, err
		}
		last, err := strconv.ParseUint(m[3], 10, 8)
		if err != nil || last < first {
			return o, fmt.Errorf("%q is no range of registers", s)
		}
		return file(m[1], int(first), int(last-first+1)), nil //nolint:gosec // 8 bits
	}
	if m := literal.FindStringSubmatch(s); m != nil {
		s = m[1]
	}
	if v, err := strconv.ParseInt(s, 0, 64); err == nil {
		return Operand{file: Constant, value: uint64(v)}, nil //nolint:gosec // two's complement
	}
	if v, err := strconv.ParseUint(s, 0, 64); err == nil {
		return Operand{file: Constant, value: v}, nil
	}
	if strings.Contains(s, ".") {
		if v, err := strconv.ParseFloat(s, 64); err == nil {
			return Operand{file: Constant, float: v, isFloat: true}, nil
		}
	}
	if strings.Contains(s, "(") {
		return Operand{file: OtherFile, text: s}, nil
	}
	return o, fmt.Errorf("operand %q is not known here", s)
}

// constant returns the value of a constant for a read of so many bits.
func (o *Operand) constant(bits int) uint64 {
	switch {
	case !o.isFloat:
		return o.value
	case bits == 64:
		return math.Float64bits(o.float)
	}
	return uint64(math.Float32bits(float32(o.float)))
}

// withoutEffect are instructions that change no state that is kept: they wait, or
// advise the hardware. A work-group has a single wave, so a barrier is no wait.
var withoutEffect = map[string]bool{
	"s_nop": true, "s_waitcnt": true, "s_waitcnt_vscnt": true, "s_clause": true, "s_delay_alu": true, "s_barrier": true,
	"s_waitcnt_depctr": true, "s_inst_prefetch": true, "s_set_inst_prefetch_distance": true, "s_sleep": true,
	"buffer_gl0_inv": true, "buffer_gl1_inv": true, "buffer_wbl2": true, "buffer_inv": true, "buffer_wbinvl1": true,
	"buffer_wbinvl1_vol": true, "buffer_invl2": true, "s_sendmsg": true, "s_icache_inv": true,
	"s_wakeup": true, "s_setprio": true,
	"s_wait_alu": true, "s_wait_loadcnt": true, "s_wait_storecnt": true, "s_wait_dscnt": true, "s_wait_kmcnt": true,
	"s_wait_loadcnt_dscnt": true, "s_wait_storecnt_dscnt": true, "s_wait_samplecnt": true, "s_wait_bvhcnt": true, "s_wait_expcnt": true,
	"s_barrier_signal": true, "s_barrier_wait": true, "global_inv": true, "global_wb": true, "global_wbinv": true,
}
