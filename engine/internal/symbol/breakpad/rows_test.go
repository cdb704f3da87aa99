// SPDX-License-Identifier: Apache-2.0

package breakpad

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
)

// numbers gives registers of x86-64, of 32-bit x86 and AArch64 some numbers. .ra
// has that of x30, as on AArch64.
func numbers(name string) (uint64, bool) {
	if name == returnName {
		return 30, true
	}
	if i := slices.Index(namesOf, name); i >= 0 {
		return uint64(40 + i), true
	}
	if digits := strings.TrimLeft(name, "$xrv"); digits != name {
		if n, err := strconv.ParseUint(digits, 10, 8); err == nil && n < 32 {
			return n, true
		}
	}
	return 0, name == "$rax"
}

var namesOf = []string{
	"$rbx", "$rbp", "$rsp", "$rip", "$rcx", "$rdx", "$rsi", "$rdi", "$eip", "$esp", "$ebp", "$ebx", "$esi", "$edi", "$eax", "$ecx", "$edx",
	"sp", "lr", "pc", "fp", "$sp", "$gp", "$s0", "$ra",
}

// machine has registers and memory in which every word is different.
type machine struct {
	locexpr.NoContext
	bits uint32
}

func (m machine) mask() uint64             { return ^uint64(0) >> (64 - m.bits) }
func (m machine) register(n uint64) uint64 { return (n + 1) * 0x9e3779b97f4a7c15 & m.mask() }
func (m machine) memory(address uint64) uint64 {
	return (address ^ 0x55aa) * 0xd6e8feb86659fd93 & m.mask()
}
func (m machine) Scope() locexpr.Scope                          { return locexpr.Scope{Lane: -1} }
func (m machine) RegisterBits(uint64) (uint32, bool)            { return m.bits, true }
func (m machine) SpaceBits(locexpr.AddressSpace) (uint32, bool) { return m.bits, true }
func (m machine) RegisterValue(_ context.Context, n uint64) (uint64, error) {
	return m.register(n), nil
}
func (m machine) Register(_ context.Context, n uint64) (locexpr.Location, error) {
	return locexpr.RegisterLocation(n, m.Scope()), nil
}
func (m machine) ReadRegister(_ context.Context, n uint64, _ locexpr.Scope, dst []byte, _, _ uint64) error {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], m.register(n))
	copy(dst, b[:])
	return nil
}

func (m machine) ReadMemory(_ context.Context, _ locexpr.AddressSpace, _ locexpr.Scope, address uint64, dst []byte) error {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], m.memory(address))
	copy(dst, b[:])
	return nil
}

var errUndefined = errors.New("undefined")

// evaluate evaluates an expression as the document says, from its text.
func (m machine) evaluate(text string, cfa uint64, hasCFA bool) (uint64, error) {
	var stack []uint64
	for _, token := range strings.Fields(text) {
		if i := strings.Index("+-*/%@", token); i >= 0 && len(token) == 1 {
			if len(stack) < 2 {
				return 0, errUndefined
			}
			a, b := stack[len(stack)-2], stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if b == 0 && (token == "/" || token == "%") {
				return 0, errUndefined
			}
			v := a
			switch token {
			case "+":
				v = a + b
			case "-":
				v = a - b
			case "*":
				v = a * b
			case "/":
				v = a / b
			case "%":
				v = a % b
			case "@":
				v = a & (^uint64(0) ^ (b - 1))
			}
			stack[len(stack)-1] = v & m.mask()
			continue
		}
		switch number, known := numbers(token); {
		case token == "^" && len(stack) > 0:
			stack[len(stack)-1] = m.memory(stack[len(stack)-1])
		case token == cfaName && hasCFA:
			stack = append(stack, cfa)
		case known:
			stack = append(stack, m.register(number))
		default:
			v, err := strconv.ParseInt(token, 10, 64)
			if err != nil {
				u, err := strconv.ParseUint(token, 10, 64)
				if err != nil {
					return 0, errUndefined
				}
				v = int64(u)
			}
			stack = append(stack, uint64(v)&m.mask())
		}
	}
	if len(stack) != 1 {
		return 0, errUndefined
	}
	return stack[0], nil
}

// rule evaluates a rule of a row: the value that the caller's register has.
func (m machine) rule(r cfi.Rule, column uint64, cfa locexpr.Location) (uint64, error) {
	if r.Kind == cfi.Undefined {
		return 0, errUndefined
	}
	ev := &locexpr.Evaluator{AddressBits: m.bits, CFI: true}
	l, err := r.Location(context.Background(), ev, m, column, cfa)
	if err != nil {
		return 0, err
	}
	var b [8]byte
	if err := l.Read(context.Background(), m, b[:m.bits/8], uint64(m.bits)); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

// check holds a row against the texts of the rules that it is made from.
func (m machine) check(t *testing.T, where string, row *cfi.Row, texts map[string]string) {
	t.Helper()
	want, err := m.evaluate(texts[cfaName], 0, false)
	if err != nil {
		t.Fatalf("%s: .cfa %q: a row, but %v", where, texts[cfaName], err)
	}
	location, err := row.CFA.Location(t.Context(), &locexpr.Evaluator{AddressBits: m.bits, CFI: true}, m)
	if isOutside(err) {
		return
	}
	if err != nil {
		t.Fatalf("%s: .cfa %q: %v", where, texts[cfaName], err)
	}
	if _, got, _ := location.MemoryAddress(); got != want {
		t.Fatalf("%s: .cfa %q is %#x, want %#x", where, texts[cfaName], got, want)
	}
	columns := map[uint64]bool{}
	for name, text := range texts {
		column, known := numbers(name)
		if name == cfaName || !known {
			continue
		}
		columns[column] = true
		if _, has := texts[returnName]; has && name != returnName && column == 30 {
			continue
		}
		rule, ok := row.Rule(column)
		if !ok {
			t.Fatalf("%s: no rule for %s", where, name)
		}
		got, failed := m.rule(rule, column, location)
		if isOutside(failed) {
			continue
		}
		value, err := m.evaluate(text, want, true)
		if err != nil != (failed != nil) || err == nil && got != value {
			t.Fatalf("%s: %s: %q is %#x %v, want %#x %v\n%+v", where, name, text, got, failed, value, err, rule)
		}
	}
	if len(columns) != len(row.Rules) {
		t.Fatalf("%s: %d rules, want %d", where, len(row.Rules), len(columns))
	}
}

// isOutside says whether a rule failed because a place lies beyond either end of
// memory, where the text's arithmetic goes round.
func isOutside(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "outside the location storage") || strings.Contains(err.Error(), "arithmetic overflow"))
}

// textsAt are the rules at an address, found by reading the whole file: the INIT
// record that begins last, the shortest and first of those, and what changes it.
func textsAt(file string, address uint64) map[string]string {
	var best, current map[string]string
	var bestStart, bestEnd, start, end uint64
	for line := range strings.Lines(file) {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "STACK" || words[1] != "CFI" {
			continue
		}
		words = words[2:]
		if words[0] == "INIT" {
			start, _ = strconv.ParseUint(words[1], 16, 64)
			size, _ := strconv.ParseUint(words[2], 16, 64)
			end = start + size
			current = nil
			if start <= address && address < end && (best == nil || start > bestStart || start == bestStart && end < bestEnd) {
				current = map[string]string{}
				best, bestStart, bestEnd = current, start, end
			}
			words = words[3:]
		} else {
			at, _ := strconv.ParseUint(words[0], 16, 64)
			if current == nil || at > address {
				continue
			}
			words = words[1:]
		}
		name := ""
		for _, w := range words {
			if current == nil {
				break
			}
			if strings.HasSuffix(w, ":") {
				name = strings.TrimSuffix(w, ":")
				current[name] = ""
			} else {
				current[name] += " " + w
			}
		}
	}
	return best
}

// TestRowsAreWhatTheirTextSays evaluates the rules of every row twice: from the
// text, and as rows and DWARF expressions.
func TestRowsAreWhatTheirTextSays(t *testing.T) {
	paths, _ := filepath.Glob("testdata/*.sym")
	for _, path := range paths {
		f := open(t, path)
		bits := uint32(64)
		if f.Module().Arch == "x86" || f.Module().Arch == "arm" || f.Module().Arch == "mips" {
			bits = 32
		}
		rows, without, step := 0, 0, 1+f.Counts().CFIRows/400
		var at cfi.Row
		f.Rows(numbers, func(row *cfi.Row, err error) bool {
			if rows++; err != nil {
				without++
				return true
			}
			for _, address := range []uint64{row.Start, row.End - 1} {
				if found, err := f.Row(&at, address, numbers); !found || err != nil || fmt.Sprint(at) != fmt.Sprint(*row) {
					t.Fatalf("%s: %#x: %v %v: %+v, Rows has %+v", path, address, found, err, at, *row)
				}
			}
			if rows%step == 0 {
				machine{bits: bits}.check(t, fmt.Sprintf("%s: %#x", path, row.Start), row, textsAt(string(f.data), row.Start))
			}
			return true
		})
		t.Logf("%s: %d rows, %d without", filepath.Base(path), rows, without)
	}
}

// TestExpressions has expressions that no compiler writes, on machines of 32 and
// 64 bits.
func TestExpressions(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	constants := []string{"0", "1", "2", "3", "7", "8", "16", "31", "32", "768", "4096", "-1", "-8", "2147483648", "9223372036854775807", "-9223372036854775808", "18446744073709551615"}
	operators := []string{"+", "-", "*", "/", "%", "@"}
	var random func(depth int, hasCFA bool) string
	random = func(depth int, hasCFA bool) string {
		switch n := r.IntN(8); {
		case depth == 0 && n < 3 || n == 0:
			return constants[r.IntN(len(constants))]
		case depth == 0 && n < 6 && hasCFA:
			return cfaName
		case depth == 0:
			return []string{"$rbx", "$rsp", "x29", "x30", returnName}[r.IntN(5)]
		case n == 1:
			return random(depth-1, hasCFA) + " ^"
		}
		return random(depth-1, hasCFA) + " " + random(depth-1, hasCFA) + " " + operators[r.IntN(len(operators))]
	}
	kinds := map[cfi.RuleKind]int{}
	for i := range 6000 {
		texts := map[string]string{cfaName: random(r.IntN(3), false), returnName: random(r.IntN(5), true), "$rbx": random(r.IntN(3), true)}
		m := machine{bits: []uint32{64, 32}[i%2]}
		if _, err := m.evaluate(texts[cfaName], 0, false); err != nil || texts[returnName] == noCaller {
			continue // a division by 0; no expression
		}
		f := read(t, "STACK CFI INIT 10 10 .cfa: "+texts[cfaName]+" .ra: "+texts[returnName]+" $rbx: "+texts["$rbx"]+"\n")
		var row cfi.Row
		if found, err := f.Row(&row, 0x10, numbers); !found || err != nil {
			t.Fatal(texts, found, err)
		}
		for _, rule := range row.Rules {
			kinds[rule.Rule.Kind]++
		}
		m.check(t, fmt.Sprint(texts), &row, texts)
	}
	for _, kind := range []cfi.RuleKind{cfi.SameValue, cfi.Offset, cfi.ValOffset, cfi.Register, cfi.Expression, cfi.ValExpression} {
		if kinds[kind] == 0 {
			t.Errorf("no rule of kind %d in %v", kind, kinds)
		}
	}
}

func TestRowForms(t *testing.T) {
	f := open(t, "testdata/module1.sym")
	var row cfi.Row
	if found, err := f.Row(&row, 0x3d5b, numbers); !found || err != nil {
		t.Fatal(found, err)
	}
	number := func(name string) uint64 { n, _ := numbers(name); return n }
	want := []cfi.RegisterRule{
		{Column: 30, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -4}},
		{Column: number("$ebp"), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}},
		{Column: number("$ebx"), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -20}},
		{Column: number("$esi"), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -16}},
	}
	if !slices.EqualFunc(row.Rules, want, func(a, b cfi.RegisterRule) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Errorf("%+v", row.Rules)
	}
	if row.Start != 0x3d5a || row.End != 0x3d84 || row.ReturnAddress != 30 || row.CFA.Kind != cfi.CFARegister || row.CFA.Register != number("$ebp") || row.CFA.Offset != 8 {
		t.Errorf("%+v", row)
	}
	for _, address := range []uint64{0x3d3f, 0x3def, 0x3e9f} {
		if found, err := f.Row(&row, address, numbers); found || err != nil || len(row.Rules) > 0 {
			t.Errorf("%#x: %v %v %+v", address, found, err, row)
		}
	}
}

func TestRowsOfOddFiles(t *testing.T) {
	const init = "STACK CFI INIT 100 40 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n"
	tests := []struct {
		name, text string
		address    uint64
		err        error
		want       string // start, end, the CFA's offset; "" where no record covers it
	}{
		{"before", init, 0xff, nil, ""},
		{"behind", init, 0x140, nil, ""},
		{"one", init, 0x13f, nil, "100 140 8"},
		{"out of order", init + "STACK CFI 120 .cfa: $rsp 24 +\nSTACK CFI 110 .cfa: $rsp 16 +\n", 0x118, nil, "110 120 16"},
		{"other records between", init + "FUNC 100 40 0 f\n100 40 1 1\nPUBLIC 900 0 x\nSTACK WIN 4 1 1 0 0 0 0 0 0 0 0\nSTACK CFI 110 .cfa: $rsp 16 +\n", 0x118, nil, "110 140 16"},
		{"two at one address", init + "STACK CFI 110 .cfa: $rsp 16 +\nSTACK CFI 110 .cfa: $rsp 32 +\n", 0x118, nil, "110 140 32"},
		{"no .cfa", "STACK CFI INIT 100 40 .ra: $rax\n", 0x100, ErrNoCFA, "100 140"},
		{"no .ra", "STACK CFI INIT 100 40 .cfa: $rsp $rbx: $rbx\n", 0x100, ErrNoReturn, "100 140"},
		{"a .cfa by itself", "STACK CFI INIT 100 40 .cfa: .cfa .ra: $rax\n", 0x100, errAny, anyError},
		{"no name", "STACK CFI INIT 100 40 $rsp 8 +\n", 0x100, ErrDamaged, ""},
		{"an assignment", "STACK CFI INIT 100 40 .cfa: $T0 $rsp = .ra: $rax\n", 0x100, errAny, anyError},
		{"before a record that cannot be read", init + "STACK CFI 110 .cfa: $rsp 16 +\nSTACK CFI xx .cfa: $rsp 24 +\nSTACK CFI 130 .cfa: $rsp 32 +\n", 0x10f, nil, "100 110 8"},
		{"behind it", init + "STACK CFI 110 .cfa: $rsp 16 +\nSTACK CFI xx .cfa: $rsp 24 +\nSTACK CFI 130 .cfa: $rsp 32 +\n", 0x110, ErrDamaged, ""},
		{"an address outside", init + "STACK CFI 150 .cfa: $rsp 16 +\n", 0x130, ErrDamaged, ""},
		{"in the middle of another", init + "STACK CFI INIT 110 10 .cfa: $rsp 99 + .ra: $rax\n", 0x118, nil, "110 120 99"},
		{"around the other", init + "STACK CFI INIT 110 10 .cfa: $rsp 99 + .ra: $rax\n", 0x120, nil, "120 140 8"},
		{"no INIT", "MODULE a b c d\nSTACK CFI 110 .cfa: $rsp 16 +\n", 0x110, nil, ""},
		{"CRLF", strings.ReplaceAll(init, "\n", "\r\n") + "STACK CFI 110 .cfa: $rsp 16 +\r\n", 0x111, nil, "110 140 16"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var row cfi.Row
			found, err := read(t, tt.text).Row(&row, tt.address, numbers)
			if tt.err != nil {
				if !errors.Is(err, tt.err) && (err == nil || tt.want != anyError) || row.CFA.Kind != cfi.NoCFA {
					t.Fatalf("%v, want %v: %+v", err, tt.err, row)
				}
				return
			}
			got := ""
			if found {
				got = fmt.Sprintf("%x %x %d", row.Start, row.End, row.CFA.Offset)
			}
			if err != nil || got != tt.want {
				t.Errorf("%s %v, want %s", got, err, tt.want)
			}
		})
	}
}

var errAny = errors.New("any error")

// anyError stands for an error that has no name.
const anyError = "any error"

// TestOutermostFrames holds that a frame without a caller is one in both directions.
func TestOutermostFrames(t *testing.T) {
	for _, text := range []string{noCaller, " 0 ", undefined} {
		f := read(t, "STACK CFI INIT 100 40 .cfa: $rsp 8 + .ra: "+text+"\n")
		var row cfi.Row
		found, err := f.Row(&row, 0x100, numbers)
		if rule, ok := row.Rule(row.ReturnAddress); !found || err != nil || !ok || rule.Kind != cfi.Undefined {
			t.Errorf("%q: %v %v %+v", text, found, err, row)
		}
		var out bytes.Buffer
		if _, err := Write(&out, sourceOf(f)); err != nil || !strings.Contains(out.String(), ".ra: 0\n") {
			t.Errorf("%q: %v: %s", text, err, out.String())
		}
	}
}

// TestRulesThatCannotBeRead are undefined, and the others hold.
func TestRulesThatCannotBeRead(t *testing.T) {
	f := read(t, "STACK CFI INIT 100 40 .cfa: $rsp 8 + .ra: .cfa -8 + ^ $rbx: $nosuch 8 + ^ $rbp: .undef $zzz: .cfa\n")
	var row cfi.Row
	if found, err := f.Row(&row, 0x100, numbers); !found || err != nil {
		t.Fatal(found, err)
	}
	rbx, _ := row.Rule(40)
	rbp, _ := row.Rule(41)
	if len(row.Rules) != 3 || rbx.Kind != cfi.Undefined || rbp.Kind != cfi.Undefined {
		t.Errorf("%+v", row.Rules)
	}
	if first, _ := f.Problems(); len(first) != 1 || !strings.Contains(first[0].Error(), `"$rbx"`) {
		t.Error(first)
	}
	if _, err := f.Row(&row, 0x100, func(string) (uint64, bool) { return 0, false }); !errors.Is(err, ErrNoColumn) {
		t.Error(err)
	}
}

// TestTheReturnAddressCountsBeforeItsRegister: .ra and x30 are one column here.
func TestTheReturnAddressCountsBeforeItsRegister(t *testing.T) {
	for _, rules := range []string{".ra: .cfa -8 + ^ x30: x19", "x30: x19 .ra: .cfa -8 + ^"} {
		var row cfi.Row
		found, err := read(t, "STACK CFI INIT 100 40 .cfa: sp 0 + "+rules+"\n").Row(&row, 0x100, numbers)
		if r, _ := row.Rule(30); !found || err != nil || len(row.Rules) != 1 || r.Kind != cfi.Offset || r.Offset != -8 {
			t.Errorf("%s: %v %v %+v", rules, found, err, row.Rules)
		}
	}
}

// TestANumberThatEndsLikeALoad has a byte in its code that is that of DW_OP_deref.
func TestANumberThatEndsLikeALoad(t *testing.T) {
	var row cfi.Row
	found, err := read(t, "STACK CFI INIT 100 40 .cfa: $rsp .ra: 768\n").Row(&row, 0x100, numbers)
	if r, _ := row.Rule(30); !found || err != nil || r.Kind != cfi.ValExpression {
		t.Errorf("%v %v %+v", found, err, row.Rules)
	}
}
