// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// This file evaluates the call frame information of waves a second time: by the
// text that llvm-dwarfdump prints, with a parser, an interpreter of operations
// and a model of locations of its own. It knows the operations and rules that
// the tests of walks meet, and fails on others.

// listedRow is a row of the text: what holds from start to end.
type listedRow struct {
	start, end uint64
	cfa        string
	rules      map[uint64]string
}

var (
	listedFDE  = regexp.MustCompile(`^[0-9a-f]{8} [0-9a-f]{8} [0-9a-f]{8} FDE cie=[0-9a-f]{8} pc=([0-9a-f]+)\.\.\.([0-9a-f]+)$`)
	listedLine = regexp.MustCompile(`^  0x([0-9a-f]+): CFA=(.*)$`)
	nextRule   = regexp.MustCompile(`, ([A-Z_]+[0-9]*|reg[0-9]+)=`)
)

// listRows reads the rows of a file, with the FDEs' ranges.
func listRows(t *testing.T, path string) (fdes [][]listedRow) {
	t.Helper()
	cmd := exec.Command("llvm-dwarfdump-22", "--debug-frame", path)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	hex := func(s string) uint64 {
		v, err := strconv.ParseUint(s, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, ".eh_frame contents") {
			break
		}
		if m := listedFDE.FindStringSubmatch(line); m != nil {
			fdes = append(fdes, []listedRow{{end: hex(m[2])}})
			continue
		}
		m := listedLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		rows := &fdes[len(fdes)-1]
		r := listedRow{start: hex(m[1]), rules: map[uint64]string{}}
		cfa, rules, _ := strings.Cut(m[2], ": ")
		r.cfa = cfa
		for text := ", " + rules; rules != ""; {
			at := nextRule.FindStringSubmatchIndex(text)
			if at == nil || at[0] != 0 {
				t.Fatalf("%s: %q is no rule", path, text)
			}
			name, rest := text[at[2]:at[3]], text[at[1]:]
			end := len(rest)
			if next := nextRule.FindStringIndex(rest); next != nil {
				end = next[0]
			}
			r.rules[listedNumber(t, name)] = rest[:end]
			if text = rest[end:]; text == "" {
				break
			}
		}
		if last := &(*rows)[len(*rows)-1]; last.rules == nil {
			r.end = last.end
			(*rows)[0] = r
		} else {
			r.end, last.end = last.end, r.start
			*rows = append(*rows, r)
		}
	}
	return slices.DeleteFunc(fdes, func(rows []listedRow) bool { return rows[0].rules == nil })
}

// listedNumber is the number of a register by the name that is printed for it.
// Names are the names in waves of 64 lanes; others are numbers.
func listedNumber(t testing.TB, name string) uint64 {
	t.Helper()
	switch name {
	case "PC_REG":
		return 16
	case "EXEC":
		return 17
	case "EXEC_LO":
		return 1
	}
	for _, f := range []struct {
		prefix             string
		from, count, first uint64
	}{{"SGPR", 0, 64, 32}, {"SGPR", 64, 42, 1088}, {"VGPR", 0, 256, 2560}, {"AGPR", 0, 256, 3072}, {"reg", 0, 4096, 0}, {"0x", 0, 0, 0}} {
		digits, ok := strings.CutPrefix(name, f.prefix)
		if !ok {
			continue
		}
		base := 10
		if f.prefix == "0x" {
			base, f.count = 16, 4096
		}
		n, err := strconv.ParseUint(digits, base, 64)
		if err == nil && n-f.from < f.count {
			return f.first + n - f.from
		}
	}
	t.Fatalf("no register is called %q", name)
	return 0
}

// refState is a wave's state: its registers, and private memory that has bytes
// everywhere.
type refState struct {
	t        testing.TB
	lanes    uint64
	scratch  bool // the stack pointer counts the bytes of a lane
	register map[uint64][]byte
	seed     uint64
	written  map[uint64]byte // private_wave bytes that differ from the seed
}

func (s *refState) memory(address uint64) byte {
	if b, ok := s.written[address]; ok {
		return b
	}
	x := (address/8 + s.seed) * 0x9e3779b97f4a7c15
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	return byte(x ^ x>>32>>(address%8*4))
}

// registerBits is the size of a register that waves of so many lanes have.
func (s *refState) registerBits(n uint64) uint64 {
	switch {
	case n == 16:
		return 64
	case n == 17, n == 1, n == 768, n == 512:
		return s.lanes
	case n >= 1536:
		return s.lanes * 32
	}
	return 32
}

// numbers are the registers of a wave.
func (s *refState) numbers() []uint64 {
	ranges := [][2]uint64{{16, 1}, {17, 1}, {32, 64}, {128, 1}, {768, 1}, {1088, 42}, {2560, 256}, {3072, 256}}
	if s.lanes == 32 {
		ranges = [][2]uint64{{1, 1}, {16, 1}, {32, 64}, {128, 1}, {512, 1}, {1088, 42}, {1536, 512}, {2048, 256}, {3584, 512}}
	}
	var all []uint64
	for _, r := range ranges {
		for n := r[0]; n < r[0]+r[1]; n++ {
			all = append(all, n)
		}
	}
	return all
}

// refPlace is where bits are. kind is 'r', a register from a bit on; 'm', memory
// of private_wave, from a bit after byte 0 on; 'v', a value's bytes; 'u',
// nowhere; 'c', parts; 'e', not known, since undefined bits say where.
type refPlace struct {
	kind  byte
	reg   uint64
	bit   uint64
	value []byte
	parts []refPart
}

type refPart struct {
	bits uint64
	refPlace
}

// slice appends the n bits from bit at on, as parts that are no composites.
func (p refPlace) slice(dst []refPart, start, n uint64) []refPart {
	if p.kind != 'c' {
		p.bit += start
		return append(dst, refPart{n, p})
	}
	start += p.bit
	for _, part := range p.parts {
		if n == 0 {
			break
		}
		if start >= part.bits {
			start -= part.bits
			continue
		}
		k := min(n, part.bits-start)
		dst = part.slice(dst, start, k)
		start, n = 0, n-k
	}
	if n > 0 {
		dst = append(dst, refPart{n, refPlace{kind: '?'}})
	}
	return dst
}

// merge puts contiguous bits together.
func merge(parts []refPart) []refPart {
	merged := parts[:0]
	for _, p := range parts {
		if n := len(merged) - 1; n >= 0 {
			last := &merged[n]
			same := last.kind == p.kind && last.reg == p.reg && bytes.Equal(last.value, p.value)
			if same && (p.kind == 'u' || last.bit+last.bits == p.bit) {
				last.bits += p.bits
				continue
			}
		}
		merged = append(merged, p)
	}
	return merged
}

// sameParts reports whether bits are at the same places.
func sameParts(a, b []refPart) bool {
	return slices.EqualFunc(a, b, func(a, b refPart) bool {
		return a.bits == b.bits && a.kind == b.kind && a.reg == b.reg && (a.kind == 'u' || a.bit == b.bit) && bytes.Equal(a.value, b.value)
	})
}

// refText says where bits are.
func refText(parts []refPart) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "%d:%c", p.bits, p.kind)
		switch p.kind {
		case 'r':
			fmt.Fprintf(&b, "%d", p.reg)
		case 'v':
			fmt.Fprintf(&b, "%x", p.value)
		}
		if p.kind != 'u' {
			fmt.Fprintf(&b, "+%d", p.bit)
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// read reads bits; false where some are nowhere.
func (s *refState) read(parts []refPart) (dst []byte, ok bool) {
	n := uint64(0)
	for _, p := range parts {
		n += p.bits
	}
	dst = make([]byte, (n+7)/8)
	at := uint64(0)
	for _, p := range parts {
		for i := uint64(0); i < p.bits; {
			bit := p.bit + i
			var from byte
			switch p.kind {
			case 'r':
				from = s.register[p.reg][bit/8]
			case 'm':
				from = s.memory(bit / 8)
			case 'v':
				from = p.value[bit/8]
			default:
				return nil, false
			}
			if bit%8 == 0 && at%8 == 0 && p.bits-i >= 8 {
				dst[at/8] = from
				i, at = i+8, at+8
				continue
			}
			dst[at/8] |= from >> (bit % 8) & 1 << (at % 8)
			i, at = i+1, at+1
		}
	}
	return dst, true
}

// write writes bytes to where they are; false where that is nowhere, or a value.
func (s *refState) write(parts []refPart, src []byte) bool {
	at := uint64(0)
	for _, p := range parts {
		if p.bit%8 != 0 || p.bits%8 != 0 {
			return false
		}
		for i := range p.bits / 8 {
			b := src[at]
			at++
			switch p.kind {
			case 'r':
				s.register[p.reg][p.bit/8+i] = b
			case 'm':
				s.written[p.bit/8+i] = b
			default:
				return false
			}
		}
	}
	return true
}

// refFrame is a frame with the row that is in force in it.
type refFrame struct {
	*refState
	callee *refFrame
	row    *listedRow
	cfa    uint64
	memo   map[uint64]refPlace // of saved
}

func newRefFrame(s *refState, callee *refFrame, row *listedRow) *refFrame {
	f := &refFrame{refState: s, callee: callee, row: row, memo: map[uint64]refPlace{}}
	f.cfa = f.findCFA()
	return f
}

// place is where a register of the frame is.
func (f *refFrame) place(n uint64) refPlace {
	if f.callee == nil {
		return refPlace{kind: 'r', reg: n}
	}
	return f.callee.saved(n)
}

// value reads a register of at most 64 bits.
func (f *refFrame) value(n uint64) uint64 {
	b, ok := f.read(f.place(n).slice(nil, 0, f.registerBits(n)))
	if !ok {
		panic(unknown{})
	}
	return littleEndian(b)
}

func littleEndian(b []byte) (v uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

func littleEndianBytes(v uint64, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(v >> (8 * i))
	}
	return b
}

var (
	refCFA    = regexp.MustCompile(`^([A-Za-z]+[0-9]+)([+-][0-9]+) in addrspace6$`)
	refOffset = regexp.MustCompile(`^CFA([+-][0-9]+)?$`)
)

func (f *refFrame) number(s string) int64 {
	v, err := strconv.ParseInt(s, 0, 64)
	if s != "" && err != nil {
		f.t.Fatalf("%q is no number", s)
	}
	return v
}

func (f *refFrame) findCFA() uint64 {
	if m := refCFA.FindStringSubmatch(f.row.cfa); m != nil {
		return uint64(uint32(f.value(listedNumber(f.t, m[1])) + uint64(f.number(m[2]))))
	}
	p := f.evaluate(f.row.cfa, nil)
	if p.place.kind != 'm' || p.place.bit%8 != 0 {
		f.t.Fatalf("the CFA is %v by %s", p, f.row.cfa)
	}
	return p.place.bit / 8
}

// saved is where the caller's register is.
func (f *refFrame) saved(n uint64) refPlace {
	if p, ok := f.memo[n]; ok {
		return p
	}
	p := refPlace{kind: 'e'}
	f.unlessUnknown(func() { p = f.findSaved(n) })
	f.memo[n] = p
	return p
}

// unknown is thrown where undefined bits are needed.
type unknown struct{}

// unlessUnknown calls do, and answers false where that needs undefined bits.
func (s *refState) unlessUnknown(do func()) (ok bool) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case unknown:
			ok = false
		default:
			panic(r)
		}
	}()
	do()
	return true
}

func (f *refFrame) findSaved(n uint64) refPlace {
	rule, ok := f.row.rules[n]
	switch {
	case !ok && n == 64 && f.scratch: // the stack pointer of the caller is a lane's part of the CFA
		return refPlace{kind: 'v', value: littleEndianBytes(f.cfa/f.lanes, 4)}
	case !ok && n == 64: // the stack pointer of the caller is the CFA
		return refPlace{kind: 'v', value: littleEndianBytes(f.cfa, 4)}
	case !ok, rule == "same":
		return f.place(n)
	case rule == "undefined":
		return refPlace{kind: 'u'}
	}
	if m := refOffset.FindStringSubmatch(rule); m != nil {
		return refPlace{kind: 'v', value: littleEndianBytes(f.cfa+uint64(f.number(m[1])), int(f.registerBits(n)/8))}
	}
	inner, location := strings.CutPrefix(rule, "[")
	inner = strings.TrimSuffix(inner, "]")
	if m := refOffset.FindStringSubmatch(inner); location && m != nil {
		return refPlace{kind: 'm', bit: (f.cfa + uint64(f.number(m[1]))) * 8}
	}
	if strings.HasPrefix(inner, "DW_OP_") {
		e := f.evaluate(inner, &refEntry{place: refPlace{kind: 'm', bit: f.cfa * 8}})
		switch {
		case location && e.isValue:
			f.t.Fatalf("a value where a location is needed: %s", rule)
		case !location && !e.isValue:
			f.t.Fatalf("a location where a value is needed: %s", rule)
		case !location:
			return refPlace{kind: 'v', value: littleEndianBytes(e.value, 8)}
		}
		return e.place
	}
	return f.place(listedNumber(f.t, rule))
}

// known is a place that is known.
func known(p refPlace) refPlace {
	if p.kind == 'e' {
		panic(unknown{})
	}
	return p
}

// refEntry is an entry of the stack.
type refEntry struct {
	isValue bool
	value   uint64
	place   refPlace
}

// evaluate interprets operations as they are printed.
func (f *refFrame) evaluate(text string, initial *refEntry) refEntry {
	var stack []refEntry
	if initial != nil {
		stack = append(stack, *initial)
	}
	pop := func() refEntry {
		if len(stack) == 0 {
			f.t.Fatalf("the stack is empty: %s", text)
		}
		e := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		return e
	}
	push := func(e refEntry) { stack = append(stack, e) }
	var pieces *refPlace // of the composite that is being made
	add := func(bits uint64, distance uint64) {
		part := pop().place
		part.bit += distance
		if pieces == nil {
			pieces = &refPlace{kind: 'c'}
		}
		pieces.parts = append(pieces.parts, refPart{bits, part})
	}
	for _, op := range strings.Split(text, ", ") {
		words := strings.Fields(strings.TrimPrefix(op, "DW_OP_LLVM_user "))
		arg := func(i int) uint64 { return uint64(f.number(words[i])) }
		switch name := strings.TrimPrefix(words[0], "DW_OP_"); name {
		case "regx":
			push(refEntry{place: known(f.place(listedNumber(f.t, words[1])))})
		case "bregx":
			reg, by, _ := strings.Cut(words[1], "+")
			push(refEntry{isValue: true, value: f.value(listedNumber(f.t, reg)) + uint64(f.number(by))})
		case "swap":
			a, b := pop(), pop()
			push(a)
			push(b)
		case "drop":
			pop()
		case "deref_size":
			b, ok := f.read(pop().place.slice(nil, 0, arg(1)*8))
			if !ok {
				panic(unknown{})
			}
			push(refEntry{isValue: true, value: littleEndian(b)})
		case "shl":
			n, v := pop().value, pop().value
			push(refEntry{isValue: true, value: v << n})
		case "plus":
			n, v := pop().value, pop().value
			push(refEntry{isValue: true, value: v + n})
		case "constu":
			push(refEntry{isValue: true, value: arg(1)})
		case "piece":
			add(arg(1)*8, 0)
		case "bit_piece":
			add(arg(1), arg(2))
		case "LLVM_piece_end":
			push(refEntry{place: *pieces})
			pieces = nil
		case "LLVM_offset_uconst":
			e := pop()
			e.place.bit += arg(1) * 8
			push(e)
		case "LLVM_bit_offset":
			by, e := pop().value, pop()
			e.place.bit += by
			push(e)
		case "LLVM_undefined":
			push(refEntry{place: refPlace{kind: 'u'}})
		case "LLVM_form_aspace_address":
			space, a := pop().value, pop().value
			if space != 6 {
				f.t.Fatalf("space %d: %s", space, text)
			}
			push(refEntry{place: refPlace{kind: 'm', bit: uint64(uint32(a)) * 8}})
		case "LLVM_call_frame_entry_reg":
			push(refEntry{place: known(f.saved(listedNumber(f.t, words[1])))})
		case "LLVM_extend":
			one, all := pop().place, refPlace{kind: 'c'}
			for range arg(2) {
				all.parts = append(all.parts, refPart{arg(1), one})
			}
			push(refEntry{place: all})
		case "LLVM_select_bit_piece":
			mask, one, zero := pop().value, pop().place, pop().place
			all := refPlace{kind: 'c'}
			for i := range arg(2) {
				part := zero
				if mask>>i&1 != 0 {
					part = one
				}
				part.bit += i * arg(1)
				all.parts = append(all.parts, refPart{arg(1), part})
			}
			push(refEntry{place: all})
		default:
			n, lit := strings.CutPrefix(name, "lit")
			v, err := strconv.ParseUint(n, 10, 8)
			if !lit || err != nil {
				f.t.Fatalf("the operation %q is not known here: %s", op, text)
			}
			push(refEntry{isValue: true, value: v})
		}
	}
	if pieces != nil {
		return refEntry{place: *pieces}
	}
	return pop()
}
