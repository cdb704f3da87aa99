// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// testNames are those of a small part of AMDGPU: the vector registers of both
// wave sizes share their names, which stand for those of wave32.
type testNames struct{}

func (testNames) Register(name string) (uint64, bool) {
	var n uint64
	switch name = strings.ToLower(name); {
	case name == "exec":
		return 17, true
	case name == "odd name":
		return 18, true
	case name == "3":
		return 19, true
	}
	if _, err := fmt.Sscanf(name, "vgpr%d", &n); err == nil && n < 512 && fmt.Sprintf("vgpr%d", n) == name {
		return 1536 + n, true
	}
	return 0, false
}

func (testNames) RegisterName(n uint64) (string, bool) {
	switch {
	case n == 17:
		return "EXEC", true
	case n == 18:
		return "odd name", true
	case n == 19:
		return "3", true // is the number of another register
	case n == 20:
		return "", true
	case n >= 1536 && n < 2048:
		return fmt.Sprintf("VGPR%d", n-1536), true
	case n >= 2560 && n < 2816:
		return fmt.Sprintf("VGPR%d", n-2560), true
	}
	return "", false
}

var testSpaces = map[AddressSpace]string{0: "global", 3: "local", 5: "private_lane", 300: "far"}

func (testNames) Space(name string) (AddressSpace, bool) {
	for space, n := range testSpaces {
		if strings.EqualFold(n, name) {
			return space, true
		}
	}
	return 0, false
}

func (testNames) SpaceName(space AddressSpace) (string, bool) {
	name, ok := testSpaces[space]
	return name, ok
}

// textCases are texts with their bytes, and how the bytes are written, where
// that is another text. Sections are those of DWARF 5 that define the encoding.
var textCases = []struct {
	text, bytes, canonical string
	o                      TextOptions
}{
	{text: ""},
	{text: " \n\t", canonical: ""},
	{text: "DW_OP_plus", bytes: "22"},
	{text: "plus", bytes: "22", canonical: "DW_OP_plus"},
	{text: "dw_op_PLUS ; ", bytes: "22", canonical: "DW_OP_plus"},
	{text: "DW_OP_dup; DW_OP_plus", bytes: "1222"},
	{text: "dup;plus;", bytes: "1222", canonical: "DW_OP_dup; DW_OP_plus"},
	{text: "DW_OP_lit31; DW_OP_reg7; DW_OP_breg7 8", bytes: "4f57 7708"},

	// Names that have no numbers yet (230524.1).
	{text: "DW_OP_composite", bytes: "e944", o: TextOptions{Dialect: Canonical}},
	{text: "offset; DW_OP_OFFSET; bit_offset", bytes: "e904 e904 e906", o: TextOptions{Dialect: Canonical}, canonical: "DW_OP_LLVM_offset; DW_OP_LLVM_offset; DW_OP_LLVM_bit_offset"},
	{text: "undefined; Push_Lane", bytes: "e908 e903", o: TextOptions{Dialect: Canonical}, canonical: "DW_OP_LLVM_undefined; DW_OP_LLVM_push_lane"},
	{text: "undefined; dw_op_push_lane", bytes: "e7 e2", o: TextOptions{Dialect: LLVMLegacy}, canonical: "DW_OP_LLVM_undefined; DW_OP_LLVM_push_lane"},
	{text: "push_object_location; form_tls_location", bytes: "97 9b", canonical: "DW_OP_push_object_address; DW_OP_form_tls_address"},

	// Fixed sizes (DWARF 5, 7.7.1), at the ends of their ranges.
	{text: "DW_OP_const1u 255", bytes: "08ff"},
	{text: "const1u 0x0fF", bytes: "08ff", canonical: "DW_OP_const1u 255"},
	{text: "const1u 010", bytes: "080a", canonical: "DW_OP_const1u 10"},
	{text: "DW_OP_const1s -128", bytes: "0980"},
	{text: "const1s -0x80; const1s +0x7f", bytes: "0980 097f", canonical: "DW_OP_const1s -128; DW_OP_const1s 127"},
	{text: "DW_OP_const2u 258", bytes: "0a0201"},
	{text: "DW_OP_const2u 258", bytes: "0a0102", o: TextOptions{Order: BigEndian}},
	{text: "DW_OP_const4s -2", bytes: "0dfeffffff"},
	{text: "DW_OP_const4u 4294967295", bytes: "0cffffffff"},
	{text: "DW_OP_const8u 18446744073709551615", bytes: "0effffffffffffffff"},
	{text: "DW_OP_const8s -9223372036854775808", bytes: "0f0000000000000080"},
	{text: "DW_OP_pick 2", bytes: "1502"},

	// LEB128 (DWARF 5, 7.6), as short as can be.
	{text: "DW_OP_constu 127; DW_OP_constu 128", bytes: "107f 108001"},
	{text: "DW_OP_constu 18446744073709551615", bytes: "10ffffffffffffffffff01"},
	{text: "DW_OP_consts 63; DW_OP_consts 64; DW_OP_consts -64; DW_OP_consts -65", bytes: "113f 11c000 1140 11bf7f"},
	{text: "DW_OP_consts -9223372036854775808", bytes: "118080808080808080807f"},
	{text: "DW_OP_consts 9223372036854775807", bytes: "11ffffffffffffffffff00"},
	{text: "DW_OP_bit_piece 3 129", bytes: "9d038101"},
	{text: "bit_piece 3,129", bytes: "9d038101", canonical: "DW_OP_bit_piece 3 129"},
	{text: "bit_piece 3 , 129", bytes: "9d038101", canonical: "DW_OP_bit_piece 3 129"},

	// Addresses and offsets.
	{text: "DW_OP_addr 0x1234", bytes: "033412000000000000"},
	{text: "DW_OP_addr 0xfffffffe", bytes: "03fffffffe", o: TextOptions{AddressSize: 4, Order: BigEndian}},
	{text: "DW_OP_addr 0xffffff", bytes: "03ffffff", o: TextOptions{AddressSize: 3}},
	{text: "DW_OP_implicit_pointer 0x40 -3", bytes: "a0400000007d"},
	{text: "DW_OP_implicit_pointer 0x100000000 0", bytes: "a0000000000100000000", o: TextOptions{OffsetSize: 8}},

	// Branches count from the end of the operation (DWARF 5, 2.5.1.5).
	{text: "DW_OP_skip 1; DW_OP_nop; DW_OP_bra -4", bytes: "2f0100 96 28fcff"},
	{text: "DW_OP_skip 32767; DW_OP_nop", bytes: "2fff7f 96"},

	// Blocks.
	{text: "DW_OP_implicit_value 2a0000", bytes: "9e032a0000"},
	{text: "implicit_value 0x2A0000", bytes: "9e032a0000", canonical: "DW_OP_implicit_value 2a0000"},
	{text: "DW_OP_implicit_value {}", bytes: "9e00"},
	{text: "implicit_value { lit1; lit2 }", bytes: "9e023132", canonical: "DW_OP_implicit_value 3132"},
	{text: "DW_OP_entry_value { DW_OP_reg5 }; DW_OP_stack_value", bytes: "a301559f"},
	{text: "entry_value{reg5;};stack_value", bytes: "a301559f", canonical: "DW_OP_entry_value { DW_OP_reg5 }; DW_OP_stack_value"},
	{text: "entry_value 55", bytes: "a30155", canonical: "DW_OP_entry_value { DW_OP_reg5 }"},
	{text: "DW_OP_entry_value { DW_OP_entry_value { DW_OP_breg1 -1 } }", bytes: "a304a302717f"},
	{text: "DW_OP_entry_value ff", bytes: "a301ff"}, // no operation: bytes stay bytes
	{text: "DW_OP_entry_value { DW_OP_skip 9 }", bytes: "a3032f0900"},

	// Vendors' operations, and names.
	{text: "DW_OP_GNU_push_tls_address", bytes: "e0"},
	{text: "llvm_OFFSET_uconst 0x14", bytes: "e90514", canonical: "DW_OP_LLVM_offset_uconst 20", o: TextOptions{Dialect: Canonical}},
	{text: "DW_OP_regx 1536; DW_OP_LLVM_offset_uconst 20", bytes: "90800c e90514", o: TextOptions{Dialect: Canonical}},
	{text: "DW_OP_regx VGPR0; DW_OP_LLVM_offset_uconst 20", bytes: "90800c e90514", o: TextOptions{Dialect: Canonical, Names: testNames{}}},
	{text: "regx exec", bytes: "9011", canonical: "DW_OP_regx EXEC", o: TextOptions{Names: testNames{}}},
	{text: "regx 17", bytes: "9011", canonical: "DW_OP_regx EXEC", o: TextOptions{Names: testNames{}}},
	{text: "bregx vgpr7, -4", bytes: "92870c7c", canonical: "DW_OP_bregx VGPR7 -4", o: TextOptions{Names: testNames{}}},
	{text: "DW_OP_regx 2560", bytes: "908014", o: TextOptions{Names: testNames{}}}, // the name is that of 1536
	{text: "DW_OP_regx 18; DW_OP_regx 19; DW_OP_regx 20; DW_OP_regx 21", bytes: "9012 9013 9014 9015", o: TextOptions{Names: testNames{}}},
	{text: "DW_OP_lit0; DW_OP_const1u private_lane; DW_OP_LLVM_form_aspace_address", bytes: "30 0805 e902", o: TextOptions{Dialect: Canonical, Names: testNames{}}},
	{text: "constu LOCAL; nop", bytes: "1003 96", canonical: "DW_OP_constu 3; DW_OP_nop", o: TextOptions{Names: testNames{}}},
	{text: "DW_OP_consts -3; DW_OP_LLVM_form_aspace_address", bytes: "117d e902", o: TextOptions{Dialect: Canonical, Names: testNames{}}},
	{text: "DW_OP_constu 4; DW_OP_LLVM_aspace_bregx EXEC -8", bytes: "1004 e9091178", o: TextOptions{Dialect: Canonical, Names: testNames{}}},
}

func TestTextGivesBytesAndBack(t *testing.T) {
	for _, c := range textCases {
		want, err := hex.DecodeString(strings.ReplaceAll(c.bytes, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(c.text, c.o)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if diff := cmp.Diff(hex.EncodeToString(want), hex.EncodeToString(got)); diff != "" {
			t.Errorf("%q: %s", c.text, diff)
		}
		canonical := c.canonical
		if canonical == "" {
			canonical = strings.TrimSpace(c.text)
		}
		if diff := cmp.Diff(canonical, FormatText(got, c.o)); diff != "" {
			t.Errorf("%q: %s", c.text, diff)
		}
	}
}

func TestParseErrorsNamePlaceOperationAndExpectation(t *testing.T) {
	amd := TextOptions{Dialect: Canonical, Names: testNames{}}
	for _, c := range []struct {
		text   string
		offset int
		op     string
		reason string
		o      TextOptions
	}{
		{text: "dup; plud", offset: 5, reason: `an operation of dialect dwarf5 is expected, found "plud"`},
		{text: "LLVM_offset", offset: 0, reason: `dialect dwarf5`},
		{text: ";", offset: 0, reason: `an operation is expected, found ";"`},
		{text: "dup;;dup", offset: 4, reason: `an operation is expected, found ";"`},
		{text: "{}", offset: 0, reason: `an operation is expected, found "{"`},
		{text: "dup}", offset: 3, reason: `an operation is expected, found "}"`},
		{text: "dup 3", offset: 4, op: "DW_OP_dup", reason: `";" is expected after 0 operands, found "3"`},
		{text: "dup, plus", offset: 3, op: "DW_OP_dup", reason: `";" is expected`},
		{text: "constu", offset: 6, op: "DW_OP_constu", reason: "operand 1: a number from 0 to 18446744073709551615 is expected, found the end of the text"},
		{text: "bit_piece 1; dup", offset: 11, op: "DW_OP_bit_piece", reason: `operand 2: a number from 0 to 18446744073709551615 is expected, found ";"`},
		{text: "bit_piece ,1 2", offset: 10, op: "DW_OP_bit_piece", reason: `found ","`},
		{text: "bit_piece 1,,2", offset: 12, op: "DW_OP_bit_piece", reason: `found ","`},
		{text: "const1u 300", offset: 8, op: "DW_OP_const1u", reason: `operand 1: a number from 0 to 255 is expected, found "300"`},
		{text: "const1u 256", offset: 8, op: "DW_OP_const1u", reason: "0 to 255"},
		{text: "const1u -1", offset: 8, op: "DW_OP_const1u", reason: "0 to 255"},
		{text: "const1s 128", offset: 8, op: "DW_OP_const1s", reason: "-128 to 127"},
		{text: "const1s -129", offset: 8, op: "DW_OP_const1s", reason: "-128 to 127"},
		{text: "const2u 65536", offset: 8, op: "DW_OP_const2u", reason: "0 to 65535"},
		{text: "const4s 0x80000000", offset: 8, op: "DW_OP_const4s", reason: "-2147483648 to 2147483647"},
		{text: "const8u 18446744073709551616", offset: 8, op: "DW_OP_const8u", reason: "0 to 18446744073709551615"},
		{text: "const8s 9223372036854775808", offset: 8, op: "DW_OP_const8s", reason: "-9223372036854775808 to 9223372036854775807"},
		{text: "consts -9223372036854775809", offset: 7, op: "DW_OP_consts", reason: "-9223372036854775808"},
		{text: "skip 32768", offset: 5, op: "DW_OP_skip", reason: "-32768 to 32767"},
		{text: "constu 1_0", offset: 7, op: "DW_OP_constu", reason: `found "1_0"`},
		{text: "constu 0b1", offset: 7, op: "DW_OP_constu", reason: `found "0b1"`},
		{text: "constu 0x", offset: 7, op: "DW_OP_constu", reason: `found "0x"`},
		{text: "consts --1", offset: 7, op: "DW_OP_consts", reason: `found "--1"`},
		{text: "addr 0x100000000", offset: 5, op: "DW_OP_addr", reason: "0 to 4294967295", o: TextOptions{AddressSize: 4}},
		{text: "addr 1", offset: 5, op: "DW_OP_addr", reason: "address size 9, 1 to 8 expected", o: TextOptions{AddressSize: 9}},
		{text: "implicit_pointer 1 1", offset: 17, op: "DW_OP_implicit_pointer", reason: "offset size 5", o: TextOptions{OffsetSize: 5}},
		{text: "implicit_pointer 0x100000000 1", offset: 17, op: "DW_OP_implicit_pointer", reason: "0 to 4294967295"},
		{text: "regx rsp", offset: 5, op: "DW_OP_regx", reason: `a register's name or number is expected, found "rsp"`},
		{text: "regx vgpr512", offset: 5, op: "DW_OP_regx", reason: "register's name", o: amd},
		{text: "constu nowhere", offset: 7, op: "DW_OP_constu", reason: `found "nowhere"`, o: amd},
		{text: "const1u far", offset: 8, op: "DW_OP_const1u", reason: `a number from 0 to 255 is expected, "far" is 300`, o: amd},
		{text: "piece local", offset: 6, op: "DW_OP_piece", reason: `found "local"`, o: amd},
		{text: "implicit_value", offset: 14, op: "DW_OP_implicit_value", reason: `bytes in hex or "{" are expected, found the end`},
		{text: "implicit_value abc", offset: 15, op: "DW_OP_implicit_value", reason: `bytes in hex or "{" are expected, found "abc"`},
		{text: "implicit_value xy", offset: 15, op: "DW_OP_implicit_value", reason: `found "xy"`},
		{text: "entry_value { reg5", offset: 18, reason: `"}" is expected, found the end of the text`},
		{text: "entry_value { reg5 1 }", offset: 19, op: "DW_OP_reg5", reason: `";" is expected`},
		{text: "entry_value { bogus }", offset: 14, reason: `found "bogus"`},
		{text: "entry_value { reg5 } dup", offset: 21, op: "DW_OP_entry_value", reason: `";" is expected after 1 operands, found "dup"`},
		{text: strings.Repeat("entry_value {", 300), offset: 256*13 + 12, op: "DW_OP_entry_value", reason: "more than 256 blocks within each other"},
		{text: strings.Repeat("x", 100), reason: `found "` + strings.Repeat("x", 40) + `"...`},
	} {
		_, err := Parse(c.text, c.o)
		var e *TextError
		if !errors.As(err, &e) {
			t.Errorf("%q: %v, a *TextError expected", c.text, err)
			continue
		}
		if e.Offset != c.offset || e.Op != c.op || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%q: %v, offset %d %s ... %s expected", c.text, err, c.offset, c.op, c.reason)
		}
	}
}

// encodings returns every operation of a dialect with the encoding that a text
// of its name has.
func encodings(t testing.TB, d *Dialect) []Encoding {
	t.Helper()
	var all []Encoding
	add := func(op *Operation) {
		found, e, ok := d.Lookup(op.Name)
		if !ok || found.Name != op.Name {
			t.Fatalf("dialect %s: %s is not found by its name", d, op.Name)
		}
		if !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	for i := range d.tables().operations {
		if op := &d.tables().operations[i]; op.Name != "" && !op.isPrefix() {
			add(op)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(d.tables().user)) {
		add(d.tables().user[number])
	}
	if len(all) < 100 {
		t.Fatalf("dialect %s: only %d operations", d, len(all))
	}
	return all
}

// minimalExpression draws operations of a dialect with LEB128 operands as short
// as can be.
func minimalExpression(r *rapid.T, ops []Encoding, o TextOptions, depth int) []byte {
	var code []byte
	for range rapid.IntRange(0, 6).Draw(r, "operations") {
		e := rapid.SampledFrom(ops).Draw(r, "operation")
		code = append(code, encodeOperation(r, ops, e, o, depth)...)
	}
	return code
}

func encodeOperation(r *rapid.T, ops []Encoding, e Encoding, o TextOptions, depth int) []byte {
	code := []byte{e.Opcode}
	if e.User != 0 {
		code = uleb(code, e.User)
	}
	op, _, _ := o.Dialect.Lookup(e.Name)
	for _, kind := range op.Operands {
		code = drawOperand(r, code, kind, ops, o, depth)
	}
	return code
}

func drawOperand(r *rapid.T, code []byte, kind OperandKind, ops []Encoding, o TextOptions, depth int) []byte {
	fixed := func(size int) []byte {
		return append(code, rapid.SliceOfN(rapid.Byte(), size, size).Draw(r, "bytes")...)
	}
	switch kind {
	case NoOperand:
		return code
	case Unsigned1, Signed1:
		return fixed(1)
	case Unsigned2, Signed2, Branch, UnitEntry2:
		return fixed(2)
	case Unsigned4, Signed4, UnitEntry4:
		return fixed(4)
	case Unsigned8, Signed8:
		return fixed(8)
	case Address:
		return fixed(o.AddressSize)
	case EntryOffset:
		return fixed(o.OffsetSize)
	case ULEB, RegisterNum, TypeOffset:
		return uleb(code, rapid.Uint64().Draw(r, "unsigned"))
	case SLEB:
		return appendSLEB(code, rapid.Int64().Draw(r, "signed"))
	case Block:
		block := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(r, "block")
		return append(uleb(code, uint64(len(block))), block...)
	case Block1:
		block := rapid.SliceOfN(rapid.Byte(), 0, 255).Draw(r, "block")
		return append(append(code, byte(len(block))), block...)
	case EncodedPointer:
		encoding := rapid.SampledFrom([]byte{0x00, 0x01, 0x12, 0x23, 0x34, 0xc9, 0x0a, 0x9b, 0x0c}).Draw(r, "encoding")
		code[len(code)-1] = encoding
		kind, err := encodedKind(encoding)
		if err != nil {
			r.Fatal(err)
		}
		return drawOperand(r, code, kind, ops, o, depth)
	case Expression:
		var inner []byte
		if depth < 20 {
			inner = minimalExpression(r, ops, o, depth+1)
		}
		return append(uleb(code, uint64(len(inner))), inner...)
	}
	r.Fatalf("no encoding for operands of kind %d", kind)
	return nil
}

func uleb(code []byte, v uint64) []byte {
	for v >= 0x80 {
		code = append(code, byte(v)|0x80)
		v >>= 7
	}
	return append(code, byte(v))
}

func drawOptions(r *rapid.T, d *Dialect) TextOptions {
	o := TextOptions{
		Dialect:     d,
		AddressSize: rapid.IntRange(1, 8).Draw(r, "address size"),
		OffsetSize:  rapid.SampledFrom([]int{4, 8}).Draw(r, "offset size"),
		Order:       rapid.SampledFrom([]ByteOrder{LittleEndian, BigEndian}).Draw(r, "order"),
	}
	if rapid.Bool().Draw(r, "names") {
		o.Names = testNames{}
	}
	return o
}

// TestEveryOperationFormatsAndParses walks the operations of every dialect, with
// random operands.
func TestEveryOperationFormatsAndParses(t *testing.T) {
	for _, d := range Dialects {
		t.Run(d.Name, func(t *testing.T) {
			ops := encodings(t, d)
			for _, e := range ops {
				rapid.Check(t, func(r *rapid.T) {
					o := drawOptions(r, d)
					code := encodeOperation(r, ops, e, o, 18)
					text := FormatText(code, o)
					if !strings.HasPrefix(text, e.Name) {
						r.Fatalf("%x: %s, an operation %s expected", code, text, e.Name)
					}
					mustParseTo(r, text, o, code)
					mustParseTo(r, strings.ToLower(strings.ReplaceAll(text, "DW_OP_", "")), o, code)
				})
			}
		})
	}
}

func TestPrintingThenParsingGivesTheSameBytes(t *testing.T) {
	for _, d := range Dialects {
		t.Run(d.Name, func(t *testing.T) {
			ops := encodings(t, d)
			rapid.Check(t, func(r *rapid.T) {
				o := drawOptions(r, d)
				code := minimalExpression(r, ops, o, 0)
				mustParseTo(r, FormatText(code, o), o, code)
			})
		})
	}
}

func mustParseTo(r *rapid.T, text string, o TextOptions, code []byte) {
	got, err := Parse(text, o)
	if err != nil {
		r.Fatalf("%x: %s: %v", code, text, err)
	}
	if diff := cmp.Diff(hex.EncodeToString(code), hex.EncodeToString(got)); diff != "" {
		r.Fatalf("%s: %s", text, diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range textCases {
		f.Add(c.text, uint8(8), uint8(max(slices.Index(Dialects, c.o.Dialect), 0)), c.o.Order == BigEndian, c.o.Names != nil)
	}
	f.Add("DW_OP_entry_value { DW_OP_implicit_value { plus }; bra -1 }", uint8(4), uint8(0), true, false)
	for i, d := range Dialects {
		for _, e := range encodings(f, d) {
			if op, _, _ := d.Lookup(e.Name); op.Operands[0] != NoOperand && op.number == 0 {
				f.Add(e.Name+" 3, 0x11", uint8(8), uint8(i), false, false)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string, size, dialect uint8, big, names bool) {
		o := TextOptions{Dialect: Dialects[int(dialect)%len(Dialects)], AddressSize: int(size % 10), Order: fuzzOrder(big)}
		if size >= 128 {
			o.OffsetSize = 8
		}
		if names {
			o.Names = testNames{}
		}
		code, err := Parse(text, o)
		if err != nil {
			var e *TextError
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(text) || e.Err == nil {
				t.Fatalf("%v", err)
			}
			return
		}
		printed := FormatText(code, o)
		again, err := Parse(printed, o)
		if err != nil {
			t.Fatalf("%s: %v", printed, err)
		}
		if diff := cmp.Diff(printed, FormatText(again, o)); diff != "" {
			t.Fatalf("%s: %s", printed, diff)
		}
	})
}
