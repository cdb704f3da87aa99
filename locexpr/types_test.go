// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// tv is an entry of a type of the test unit.
func tv(offset, word uint64) Entry { return ValueEntry(TypedValue(baseTypes[offset], word)) }

func f32(f float32) Entry { return tv(0x21, uint64(math.Float32bits(f))) }
func f64(f float64) Entry { return tv(0x22, math.Float64bits(f)) }

// typeCases are the rows about values with base types.
var typeCases = []aCase{
	// Constants.
	expr("A.2.5.4.3.1", "const_type 0x11 fffffffe").is("0xfeffffff (int)"),
	expr("A.2.5.4.3.1", "const_type 0x11 fffffffe").big().is("0xfffffffe (int)"),
	expr("A.2.5.4.3.1: a byte order of its own", "const_type 0x1e 00000102").is("0x102 (be32)"),
	expr("A.2.5.4.3.1", "const_type 0x21 0000c03f").is("0x3fc00000 = 1.5 (float)"),
	expr("A.2.5.4.3.1: the least significant bits", "const_type 0x1c ff").is("0x1f (u5)"),
	expr("A.2.5.4.3.1: the least significant bits", "const_type 0x1c ff").big().is("0x1f (u5)"),
	expr("A.2.5.4.3.1", "const_type 0x1a 000102030405060708090a0b0c0d0e0f").is("0xf0e0d0c0b0a09080706050403020100 (i128)"),
	expr("A.2.5.4.3.1", "const_type 0x1a 000102030405060708090a0b0c0d0e0f").big().is("0x102030405060708090a0b0c0d0e0f (i128)"),
	expr("A.2.5.4.3.1; A.5.1 vectors", "const_type 0x28 01020304").is("01020304 (u8x4)"),
	expr("A.2.5.4.3.1; A.5.1 vectors", "const_type 0x28 01020304").big().is("01020304 (u8x4)"),
	expr("A.2.5.4.3.1: the generic type", "const_type 0x10 0500000000000000").is("0x5"),
	expr("A.2.5.4.3.1: no base type", "const_type 0x77 00").illFormed(0, "no base type at 0x77"),
	expr("A.2.5.4.3.1: size", "const_type 0x11 0000").illFormed(0, "2 bytes for type int of 32 bits").because(ErrType),
	expr("A.2.5.4.3.1: size", "const_type 0x1c 0000").illFormed(0, "2 bytes for type u5 of 5 bits").because(ErrType),
	expr("A.2.5.1", "const_type 0x2e 00").evaluation(0, "at most 65536").because(ErrLimit),
	expr("A.2.5.2", "0xa42f00").evaluation(0, "has no size").because(ErrType),
	expr("undecodable", "lit1; 0xa41104000000").illFormed(1, "block of 4 bytes, 3 are left"),
	expr("undecodable", "lit1; 0xa411").illFormed(1, "1 bytes expected, 0 are left"),

	// Registers and memory.
	expr("A.2.5.4.3.4", "regval_type 3 0x13").with(registers(0, 0, 0, 0x80)).is("0x80 (signed char)"),
	expr("A.2.5.4.3.4", "regval_type 3 0x21").with(registers(0, 0, 0, 0x3fc00000)).is("0x3fc00000 = 1.5 (float)"),
	expr("A.2.5.4.3.4", "regval_type 3 0x10").with(registers(0, 0, 0, 0x1234)).is("0x1234"),
	expr("A.2.5.4.3.4: a whole vector register", "regval_type 40 0x2a").is("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f (u32x8)"),
	expr("A.2.5.4.3.4: by call frame information", "regval_type 3 0x12").with(func(m *testMachine) {
		m.places = map[uint64]Location{3: MemoryLocation(0, 0x50)}
		m.setMemory(0, 0x50, 1, 2, 3, 4)
	}).is("0x4030201 (unsigned)"),
	expr("A.2.5.4.3.4: a type larger than the register", "regval_type 33 0x16").evaluation(0, "64 bits from bit 0 of register 33 of 32 bits").because(ErrOutOfBounds),
	expr("A.2.5.4.3.4", "lit16; deref_type 4 0x11").with(bytesAt(0, 16, 0xff, 0xff, 0xff, 0xff)).is("0xffffffff (int)"),
	expr("A.2.5.4.3.4", "lit16; deref_type 4 0x1e").with(bytesAt(0, 16, 1, 2, 3, 4)).is("0x1020304 (be32)"),
	expr("A.2.5.4.3.2; the ABI's part of the register", "regval_type 3 0x11").with(registers(0, 0, 0, 0x00112233fffffffe)).big().is("0xfffffffe (int)"),
	expr("A.2.5.4.3.4", "lit16; deref_type 8 0x26").with(bytesAt(0, 16, 0x3f, 0x80, 0, 0, 0x40, 0, 0, 0)).big().is("0x400000003f800000 (complex)"),
	expr("A.2.5.4.3.4", "lit16; deref_type 1 0x1d").with(bytesAt(0, 16, 0xf1)).is("0x11 (i5)"),
	expr("A.2.5.4.3.4", "lit16; deref_type 1 0x1d").with(bytesAt(0, 16, 0xf1)).big().is("0x1e (i5)"),
	expr("A.2.5.4.3.4", "lit16; deref_type 4 0x28").with(bytesAt(0, 16, 1, 2, 3, 4)).big().is("01020304 (u8x4)"),
	expr("A.2.5.4.3.4: an 80-bit number", "lit16; deref_type 10 0x23").with(bytesAt(0, 16, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0xff, 0x3f)).is("0x3fffc000000000000000 = 1.5 (x87)"),
	expr("A.2.5.4.3.4: of a composite with several places", "deref_type 2 0x12").on(LocationEntry(RegisterLocation(3, noScope))).illFormed(0, "2 bytes for type unsigned").because(ErrType),
	expr("A.2.5.4.3.4: no base type", "lit16; deref_type 4 0x77").illFormed(1, "no base type"),
	expr("A.2.5.4.3.4: undefined bits", "LLVM_undefined; deref_type 4 0x11").evaluation(2, "").because(ErrUndefined),
	expr("A.2.5.4.3.4: bits past the storage", "implicit_value 010203; deref_type 4 0x11").evaluation(5, "").because(ErrOutOfBounds),
	expr("A.2.5.4.3.4: no location", "deref_type 4 0x11").on(tv(0x16, 16)).illFormed(0, "does not convert"),
	expr("A.2.5.4.3.4", "lit3; lit16; xderef_type 4 0x21").with(bytesAt(3, 16, 0, 0, 0xc0, 0x3f)).is("0x3fc00000 = 1.5 (float)"),
	expr("A.2.5.4.3.4", "lit3; lit16; xderef_type 3 0x21").illFormed(2, "3 bytes for type float").because(ErrType),
	expr("A.2.5.4.3.4: the address space is an integer", "lit16; xderef_type 4 0x21").on(f32(3)).illFormed(1, "an integral type is needed").because(ErrType),
	expr("A.2.5.4.3.4: entry value of a type", "entry_value { regval_type 5 0x21 }").with(func(m *testMachine) {
		m.entry = func([]byte) (Value, error) { return FloatValue(baseTypes[0x21], 2) }
	}).is("0x40000000 = 2 (float)"),

	// Where typed values meet the other operations.
	expr("A.2.5.4.4.5", "stack_value").on(tv(0x11, 0x01020304)).is("implicit 04030201"),
	expr("A.2.5.4.4.5", "stack_value").on(tv(0x11, 0x01020304)).big().is("implicit 01020304"),
	expr("A.2.5.4.4.5: by the endianity of the type", "stack_value").on(tv(0x1e, 0x01020304)).is("implicit 01020304"),
	expr("A.2.5.4.4.5: of any size", "stack_value; bit_piece 5 0").on(tv(0x1d, 0x1e)).is("composite {5: implicit 1e}"),
	expr("A.2.5.4.4.5: of any size", "stack_value; bit_piece 6 0").on(tv(0x1d, 0x1e)).illFormed(1, "").because(ErrOutOfBounds),
	expr("A.2.5.4.4.5", "stack_value").on(tv(0x1a, 5)).is("implicit 05000000000000000000000000000000"),
	expr("A.2.5.4.4.5", "stack_value").on(tv(0x1a, 5)).big().is("implicit 00000000000000000000000000000005"),
	expr("A.2.5.4.4.5: read back", "stack_value; deref_type 16 0x1a").on(tv(0x1a, minus1)).big().is("0xffffffffffffffffffffffffffffffff (i128)"),
	expr("A.2.5.4.4.3: only the generic type converts", "").on(tv(0x17, 16)).as(LocationKind).illFormed(0, "the value 0x10 (unsigned long) does not convert"),
	expr("A.2.5.4.4.3: only the generic type converts", "piece 4").on(tv(0x17, 16)).illFormed(0, "does not convert"),
	expr("A.2.5.4.4.3: any integral type", "lit3; LLVM_form_aspace_address").on(tv(0x13, 0xf0)).is("memory 3:0xf0"),
	expr("A.2.5.4.4.3: any integral type", "LLVM_form_aspace_address").on(g(16), tv(0x14, 3)).is("memory 3:0x10"),
	expr("A.2.5.4.4.3: no such address space", "LLVM_form_aspace_address").on(g(16), tv(0x13, 0xff)).illFormed(0, "no address space"),
	expr("A.2.5.4.4.3: no integral type", "lit3; LLVM_form_aspace_address").on(tv(0x18, 16)).illFormed(1, "an integral type is needed, found address").because(ErrType),
	expr("A.2.5.4.4.1: signed", "LLVM_offset").on(LocationEntry(MemoryLocation(0, 16)), tv(0x13, 0xff)).is("memory 0xf"),
	expr("A.2.5.4.4.1: unsigned", "LLVM_offset").on(LocationEntry(MemoryLocation(0, 16)), tv(0x14, 0xff)).is("memory 0x10f"),
	expr("A.2.5.4.4.1: wide", "LLVM_offset").on(LocationEntry(MemoryLocation(0, 16)), tv(0x1a, minus1)).is("memory 0xf"),
	expr("A.2.5.4.4.1: beyond all storage", "LLVM_bit_offset").on(LocationEntry(MemoryLocation(0, 16)), tv(0x17, minus1)).evaluation(0, "63 bits").because(ErrOutOfBounds),
	expr("A.2.5.4.4.1: no integral type", "LLVM_bit_offset").on(LocationEntry(MemoryLocation(0, 16)), f32(1)).illFormed(0, "an integral type is needed, found float").because(ErrType),
	expr("DWARF 5, 2.5.1.5", "bra 1; lit2; lit3").on(tv(0x1a, 1)).is("0x3"),
	expr("DWARF 5, 2.5.1.5", "bra 1; lit2; nop").on(tv(0x1a, 0)).is("0x2"),
	expr("DWARF 5, 2.5.1.5", "bra 0").on(f32(0)).illFormed(0, "an integral type is needed").because(ErrType),
	expr("A.2.5.4.1", "dup; lit1; rot; rot; drop").on(f32(1.5)).is("0x1"),

	// Arithmetic: one type, which the result has.
	expr("DWARF 5, 2.5.1.4", "plus").on(tv(0x11, 5), tv(0x12, 6)).illFormed(0, "operands of types int and unsigned").because(ErrType),
	expr("DWARF 5, 2.5.1.4", "plus").on(g(5), tv(0x17, 6)).illFormed(0, "operands of types generic and unsigned long").because(ErrType),
	expr("DWARF 5, 2.5.1.4", "shl").on(tv(0x11, 5), g(1)).illFormed(0, "").because(ErrType),
	expr("DWARF 5, 2.5.1.5", "eq").on(tv(0x11, 5), tv(0x13, 5)).illFormed(0, "").because(ErrType),
	expr("DWARF 5, 2.5.1.4: wraps around", "plus").on(tv(0x14, 0xff), tv(0x14, 2)).is("0x1 (unsigned char)"),
	expr("DWARF 5, 2.5.1.4: wraps around", "minus").on(tv(0x1c, 1), tv(0x1c, 2)).is("0x1f (u5)"),
	expr("DWARF 5, 2.5.1.4: wraps around", "mul").on(tv(0x1d, 0xf), tv(0x1d, 0xf)).is("0x1 (i5)"),
	expr("DWARF 5, 2.5.1.4", "plus_uconst 300").on(tv(0x14, 1)).is("0x2d (unsigned char)"),
	expr("DWARF 5, 2.5.1.4", "plus_uconst 1").on(tv(0x1a, minus1)).is("0x0 (i128)"),
	expr("DWARF 5, 2.5.1.4", "plus_uconst 0xffffffffffffffff").on(tv(0x1a, 1)).is("0x10000000000000000 (i128)"),
	expr("DWARF 5, 2.5.1.4: integral types only", "plus_uconst 1").on(f32(1)).illFormed(0, "an integral type is needed").because(ErrType),
	expr("DWARF 5, 2.5.1.4: signed", "div").on(tv(0x13, 0xf9), tv(0x13, 2)).is("0xfd (signed char)"),
	expr("DWARF 5, 2.5.1.4: unsigned", "div").on(tv(0x14, 0xf9), tv(0x14, 2)).is("0x7c (unsigned char)"),
	expr("DWARF 5, 2.5.1.4: overflow", "div").on(tv(0x13, 0x80), tv(0x13, 0xff)).is("0x80 (signed char)"),
	expr("DWARF 5, 2.5.1.4: signed", "mod").on(tv(0x13, 0xf9), tv(0x13, 2)).is("0xff (signed char)"),
	expr("DWARF 5, 2.5.1.4: unsigned", "mod").on(tv(0x14, 0xf9), tv(0x14, 2)).is("0x1 (unsigned char)"),
	expr("division by zero", "div").on(tv(0x13, 1), tv(0x13, 0)).evaluation(0, "").because(ErrDivisionByZero),
	expr("division by zero", "mod").on(tv(0x1a, 1), tv(0x1a, 0)).evaluation(0, "").because(ErrDivisionByZero),
	expr("division by zero", "div").on(f32(1), f32(0)).evaluation(0, "").because(ErrDivisionByZero),
	expr("DWARF 5, 2.5.1.4", "and").on(tv(0x14, 0xf0), tv(0x14, 0x3c)).is("0x30 (unsigned char)"),
	expr("DWARF 5, 2.5.1.4", "or").on(tv(0x15, 0), tv(0x15, 1)).is("0x1 (bool)"),
	expr("DWARF 5, 2.5.1.4", "xor").on(tv(0x1a, minus1), tv(0x1a, 1)).is("0xfffffffffffffffffffffffffffffffe (i128)"),
	expr("DWARF 5, 2.5.1.4", "not").on(tv(0x1d, 1)).is("0x1e (i5)"),
	expr("DWARF 5, 2.5.1.4", "not").on(tv(0x1b, 0)).is("0xffffffffffffffffffffffffffffffff (u128)"),
	expr("DWARF 5, 2.5.1.4", "neg").on(tv(0x13, 1)).is("0xff (signed char)"),
	expr("DWARF 5, 2.5.1.4", "abs").on(tv(0x13, 0xff)).is("0x1 (signed char)"),
	expr("DWARF 5, 2.5.1.4", "abs").on(tv(0x14, 0xff)).is("0xff (unsigned char)"),
	expr("DWARF 5, 2.5.1.4", "abs").on(tv(0x1a, minus1)).is("0x1 (i128)"),
	expr("DWARF 5, 2.5.1.4", "shl").on(tv(0x14, 0x81), tv(0x14, 1)).is("0x2 (unsigned char)"),
	expr("DWARF 5, 2.5.1.4", "shl").on(tv(0x1b, 1), tv(0x1b, 100)).is("0x10000000000000000000000000 (u128)"),
	expr("DWARF 5, 2.5.1.4", "shl").on(tv(0x1b, 1), tv(0x1b, minus1)).is("0x0 (u128)"),
	expr("DWARF 5, 2.5.1.4: logical", "shr").on(tv(0x13, 0x80), tv(0x13, 4)).is("0x8 (signed char)"),
	expr("DWARF 5, 2.5.1.4: logical", "shr").on(tv(0x1a, minus1), tv(0x1a, 120)).is("0xff (i128)"),
	expr("DWARF 5, 2.5.1.4: arithmetic", "shra").on(tv(0x14, 0x80), tv(0x14, 4)).is("0xf8 (unsigned char)"),
	expr("DWARF 5, 2.5.1.4: arithmetic", "shra").on(tv(0x13, 0x80), tv(0x13, 100)).is("0xff (signed char)"),
	expr("DWARF 5, 2.5.1.4: arithmetic", "shra").on(tv(0x1a, minus1), tv(0x1a, 127)).is("0xffffffffffffffffffffffffffffffff (i128)"),
	expr("DWARF 5, 2.5.1.4", "shl").on(tv(0x13, 1), tv(0x13, 0xff)).evaluation(0, "shift by -1 bits").because(ErrArithmetic),
	expr("DWARF 5, 2.5.1.4: integral types only", "and").on(f32(1), f32(1)).illFormed(0, "an integral type is needed").because(ErrType),
	expr("DWARF 5, 2.5.1.4: integral types only", "mod").on(f64(1), f64(1)).illFormed(0, "an integral type is needed").because(ErrType),
	expr("A.2.5.2: an address is not integral", "not").on(tv(0x18, 1)).illFormed(0, "an integral type is needed").because(ErrType),
	expr("DWARF 5, 2.5.1.4: but adds", "plus").on(tv(0x18, 0x1000), tv(0x18, 8)).is("0x1008 (address)"),
	expr("DWARF 5, 2.5.1.4: and so does a character", "minus").on(tv(0x19, 'c'), tv(0x19, 'a')).is("0x2 (char32_t)"),
	expr("DWARF 5, 2.5.1.4", "plus").on(tv(0x26, 1), tv(0x26, 1)).evaluation(0, "no arithmetic with type complex").because(ErrArithmetic),
	expr("DWARF 5, 2.5.1.4", "mul").on(tv(0x1a, minus1), tv(0x1a, 7)).is("0xfffffffffffffffffffffffffffffff9 (i128)"),
	expr("DWARF 5, 2.5.1.4", "div").on(tv(0x1a, ^uint64(6)), tv(0x1a, 2)).is("0xfffffffffffffffffffffffffffffffd (i128)"),
	expr("stack underflow", "plus").on(tv(0x11, 5)).illFormed(0, "").because(ErrStackUnderflow),

	// Floating point.
	expr("IEEE 754", "plus").on(f32(0.1), f32(0.2)).is("0x3e99999a = 0.30000001192092896 (float)"),
	expr("IEEE 754", "plus").on(f64(0.1), f64(0.2)).is("0x3fd3333333333334 = 0.30000000000000004 (double)"),
	expr("IEEE 754", "mul").on(f32(1e30), f32(1e30)).is("0x7f800000 = +Inf (float)"),
	expr("IEEE 754", "div").on(f32(1), f32(3)).is("0x3eaaaaab = 0.3333333432674408 (float)"),
	expr("IEEE 754", "minus").on(f64(math.Inf(1)), f64(math.Inf(1))).is("0x7ff8000000000000 = NaN (double)"),
	expr("IEEE 754", "neg").on(f64(0)).is("0x8000000000000000 = -0 (double)"),
	expr("IEEE 754", "abs").on(f32(-2)).is("0x40000000 = 2 (float)"),
	expr("IEEE 754", "plus").on(tv(0x20, 0x3c00), tv(0x20, 0x1000)).is("0x3c00 = 1 (half)"),
	expr("IEEE 754: to even", "plus").on(tv(0x20, 0x3c01), tv(0x20, 0x1000)).is("0x3c02 = 1.001953125 (half)"),
	expr("IEEE 754", "mul").on(tv(0x20, 0x7bff), tv(0x20, 0x4000)).is("0x7c00 = +Inf (half)"),
	expr("IEEE 754: subnormal", "div").on(tv(0x20, 0x0400), tv(0x20, 0x4400)).is("0x100 = 1.52587890625e-05 (half)"),
	expr("x87", "plus; dup; mul").on(x87(1), x87(0.5)).is("0x40009000000000000000 = 2.25 (x87)"),
	expr("x87", "div").on(x87(1), x87(3)).is("0x3ffdaaaaaaaaaaaaaaab = 0.3333333333333333 (x87)"),
	expr("x87", "neg").on(x87(1)).is("0xbfff8000000000000000 = -1 (x87)"),
	expr("x87", "minus").on(x87(math.Inf(1)), x87(math.Inf(1))).is("0x7fffc000000000000000 = NaN (x87)"),
	expr("IEEE 754, 128 bits", "div").on(quadruple(1), quadruple(3)).is("0x3ffd5555555555555555555555555555 = 0.3333333333333333 (_Float128)"),
	expr("a format that is the machine's to know", "plus").on(tv(0x24, 1), tv(0x24, 1)).evaluation(0, "format of floating point type long double of 128 bits is not known").because(ErrArithmetic),

	// Comparison.
	expr("DWARF 5, 2.5.1.5", "lt").on(tv(0x13, 0xff), tv(0x13, 0)).is("0x1"),
	expr("DWARF 5, 2.5.1.5", "lt").on(tv(0x14, 0xff), tv(0x14, 0)).is("0x0"),
	expr("DWARF 5, 2.5.1.5", "gt").on(tv(0x1a, minus1), tv(0x1a, 0)).is("0x0"),
	expr("DWARF 5, 2.5.1.5", "gt").on(tv(0x1b, minus1), tv(0x1b, 0)).is("0x1"),
	expr("DWARF 5, 2.5.1.5", "le").on(f64(-1), f64(0)).is("0x1"),
	expr("DWARF 5, 2.5.1.5", "eq").on(f64(0), f64(math.Copysign(0, -1))).is("0x1"),
	expr("DWARF 5, 2.5.1.5: not a number", "eq").on(f64(math.NaN()), f64(math.NaN())).is("0x0"),
	expr("DWARF 5, 2.5.1.5: not a number", "ne").on(f64(math.NaN()), f64(math.NaN())).is("0x1"),
	expr("DWARF 5, 2.5.1.5: not a number", "ge").on(f64(math.NaN()), f64(1)).is("0x0"),
	expr("DWARF 5, 2.5.1.5", "lt").on(x87(1), x87(2)).is("0x1"),
	expr("DWARF 5, 2.5.1.5", "eq").on(tv(0x28, 1), tv(0x28, 1)).illFormed(0, "no comparison of type u8x4").because(ErrType),
	expr("DWARF 5, 2.5.1.5", "eq").on(tv(0x26, 1), tv(0x26, 1)).evaluation(0, "no comparison of type complex").because(ErrArithmetic),

	// Vectors.
	expr("A.5.1", "plus").on(tv(0x28, 0xff02_0304), tv(0x28, 0x0201_0101)).is("05040301 (u8x4)"),
	expr("A.5.1", "neg").on(tv(0x2c, 0x00ff_0102)).is("feff0100 (i8x4)"),
	expr("A.5.1", "and").on(tv(0x28, 0xff02_0304), tv(0x28, 0x0f0f_0101)).is("0001020f (u8x4)"),
	expr("A.5.1", "mul").on(tv(0x2b, 0x1f|2<<5|3<<10), tv(0x2b, 2|2<<5|2<<10)).is("9e18 (u5x3)"),
	expr("A.5.1", "div").on(tv(0x28, 0x0102_0304), tv(0x28, 0x0100_0101)).evaluation(0, "element 2: division by zero").because(ErrDivisionByZero),
	expr("A.5.1", "regval_type 40 0x2a; dup; plus").is("00030507080b0d0f10131517181b1d1f20232527282b2d2f30333537383b3d3f (u32x8)"),
	expr("A.5.1: integral types only", "plus_uconst 1").on(tv(0x28, 1)).illFormed(0, "an integral type is needed").because(ErrType),
	expr("A.5.1", "stack_value").on(tv(0x28, 0x04030201)).is("implicit 01020304"),
	expr("A.5.1", "stack_value").on(tv(0x28, 0x04030201)).big().is("implicit 01020304"),

	// Conversion.
	expr("DWARF 5, 2.5.1.6", "lit5; convert 0x21").is("0x40a00000 = 5 (float)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x14").on(tv(0x11, 0x1234)).is("0x34 (unsigned char)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x11").on(tv(0x13, 0xff)).is("0xffffffff (int)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x11").on(tv(0x14, 0xff)).is("0xff (int)"),
	expr("DWARF 5, 2.5.1.6: 0 is the generic type", "convert 0").on(tv(0x13, 0xff)).is("0xffffffffffffffff"),
	expr("DWARF 5, 2.5.1.6: 0 is the generic type", "convert 0").on(tv(0x1a, 0xffffffff_ffffffff)).withBits(32).is("0xffffffff"),
	expr("DWARF 5, 2.5.1.6", "const1s -1; convert 0x1a").is("0xffffffffffffffff (i128)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x1a").on(tv(0x16, minus1)).is("0xffffffffffffffffffffffffffffffff (i128)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x15").on(tv(0x11, 0x100)).is("0x1 (bool)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x15").on(f32(0.5)).is("0x1 (bool)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x13").on(f32(-2.75)).is("0xfe (signed char)"),
	expr("DWARF 5, 2.5.1.6", "convert 0").on(f64(1e18)).is("0xde0b6b3a7640000"),
	expr("DWARF 5, 2.5.1.6", "convert 0x1b").on(f64(math.Ldexp(1, 100))).is("0x10000000000000000000000000 (u128)"),
	expr("DWARF 5, 2.5.1.6: no such integer", "convert 0x14").on(f32(256)).evaluation(0, "no unsigned char is 256").because(ErrArithmetic),
	expr("DWARF 5, 2.5.1.6: no such integer", "convert 0x14").on(f32(-1)).evaluation(0, "").because(ErrArithmetic),
	expr("DWARF 5, 2.5.1.6: no such integer", "convert 0x1b").on(f64(math.NaN())).evaluation(0, "").because(ErrArithmetic),
	expr("DWARF 5, 2.5.1.6: no such integer", "convert 0x1b").on(f64(math.Inf(1))).evaluation(0, "").because(ErrArithmetic),
	expr("DWARF 5, 2.5.1.6", "convert 0x21").on(f64(0.1)).is("0x3dcccccd = 0.10000000149011612 (float)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x20").on(f32(65520)).is("0x7c00 = +Inf (half)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x20").on(f32(65519)).is("0x7bff = 65504 (half)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x22").on(x87(0.1)).is("0x3fb999999999999a = 0.1 (double)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x23").on(tv(0x16, minus1-4)).is("0xc001a000000000000000 = -5 (x87)"),
	expr("DWARF 5, 2.5.1.6: rounded once", "convert 0x21").on(tv(0x17, 1<<24+1|1<<60)).is("0x5d800000 = 1.152921504606847e+18 (float)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x21").on(tv(0x16, minus1)).is("0xbf800000 = -1 (float)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x22").on(tv(0x17, minus1)).is("0x43f0000000000000 = 1.8446744073709552e+19 (double)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x22").on(tv(0x13, 0x80)).is("0xc060000000000000 = -128 (double)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x20").on(tv(0x13, 0x80)).is("0xd800 = -128 (half)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x20").on(tv(0x12, 2049)).is("0x6800 = 2048 (half)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x20").on(tv(0x17, minus1)).is("0x7c00 = +Inf (half)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x22").on(tv(0x1a, minus1)).is("0xbff0000000000000 = -1 (double)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x11").on(x87(-7.5)).is("0xfffffff9 (int)"),
	expr("DWARF 5, 2.5.1.6", "convert 0").on(quadruple(7.5)).withBits(32).is("0x7"),
	expr("DWARF 5, 2.5.1.6", "convert 0x28").on(tv(0x2c, 0x01ff_0203)).is("0302ff01 (u8x4)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x29").on(tv(0x2c, 0x01ff_0203)).is("0000404000000040000080bf0000803f (floatx4)"),
	expr("DWARF 5, 2.5.1.6", "convert 0x11").on(tv(0x28, 1)).illFormed(0, "no conversion of type u8x4 to int").because(ErrType),
	expr("DWARF 5, 2.5.1.6", "lit1; convert 0x28").illFormed(1, "no conversion of type generic to u8x4").because(ErrType),
	expr("DWARF 5, 2.5.1.6", "convert 0x11").on(tv(0x26, 1)).evaluation(0, "no conversion of type complex to int").because(ErrArithmetic),
	expr("DWARF 5, 2.5.1.6: no base type", "lit1; convert 0x77").illFormed(1, "no base type"),
	expr("stack underflow", "convert 0x11").illFormed(0, "").because(ErrStackUnderflow),
	expr("DWARF 5, 2.5.1.6", "reg3; convert 0x11").illFormed(1, "a value is needed"),
	expr("DWARF 5, 2.5.1.6", "addr 0x1234; convert 0x14").is("0x34 (unsigned char)"),
	expr("DWARF 5, 2.5.1.6", "reinterpret 0x21").on(tv(0x11, 0x3fc00000)).is("0x3fc00000 = 1.5 (float)"),
	expr("DWARF 5, 2.5.1.6", "reinterpret 0x28").on(f32(1.5)).is("0000c03f (u8x4)"),
	expr("DWARF 5, 2.5.1.6: 0 is the generic type", "reinterpret 0").on(f64(1.5)).is("0x3ff8000000000000"),
	expr("DWARF 5, 2.5.1.6", "reinterpret 0x25").on(tv(0x1b, 1)).is("0x1 = 0 (_Float128)"),
	expr("DWARF 5, 2.5.1.6: not the same size", "reinterpret 0x22").on(tv(0x11, 1)).illFormed(0, "32 bits of type int as the 64 bits of type double").because(ErrType),
	expr("DWARF 5, 2.5.1.6: not the same size", "lit1; reinterpret 0x11").illFormed(1, "64 bits of type generic as the 32 bits of type int").because(ErrType),
}

func x87(f float64) Entry       { return floatEntry(0x23, f) }
func quadruple(f float64) Entry { return floatEntry(0x25, f) }

func floatEntry(offset uint64, f float64) Entry {
	v, err := FloatValue(baseTypes[offset], f)
	if err != nil {
		panic(err)
	}
	return ValueEntry(v)
}

func TestTypedArithmeticDoesNotAllocate(t *testing.T) {
	ctx := newTestMachine(LittleEndian, 64)
	for _, text := range []string{
		"lit5; convert 0x11; lit6; convert 0x11; plus; neg; convert 0x21; dup; mul; convert 0x22; dup; div; convert 0x20; dup; plus; convert 0x16; convert 0",
		"const_type 0x21 0000c03f; reinterpret 0x12; stack_value; deref_type 4 0x21; convert 0",
		"regval_type 3 0x11; regval_type 33 0x11; lt",
	} {
		code := assemble(t, DWARF5, 8, LittleEndian, text)
		var e Evaluator
		if allocs := testing.AllocsPerRun(100, func() {
			if _, err := e.Value(t.Context(), code, ctx); err != nil {
				t.Fatal(err)
			}
		}); allocs != 0 {
			t.Errorf("%s: %v allocations", text, allocs)
		}
	}
}

// TestFloatsAreRoundedOnce compares with numbers that are rounded once
// from their exact value.
func TestFloatsAreRoundedOnce(t *testing.T) {
	formats := map[*floatFormat]*BaseType{
		half: baseTypes[0x20], brain: {Name: "__bf16", Encoding: EncodingFloat, Bits: 16},
		single: baseTypes[0x21], double: baseTypes[0x22], extended: baseTypes[0x23], quad: baseTypes[0x25],
	}
	ev := &evaluation{e: &Evaluator{steps: 1 << 20}, bits: 64, mask: ^uint64(0)}
	for format, typ := range formats {
		t.Run(typ.String(), func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				draw := func(name string) Value {
					x := new(big.Int).SetUint64(rapid.Uint64().Draw(r, name))
					x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(rapid.Uint64().Draw(r, name+" low")))
					x.Rsh(x, 128-uint(format.width))
					if format.hasIntegerBit { // no unnormal numbers
						integer := uint(0)
						if new(big.Int).Rsh(x, 64).Uint64()&0x7fff != 0 {
							integer = 1
						}
						x.SetBit(x, 63, integer)
					}
					return BigValue(typ, x)
				}
				a, b := draw("a"), draw("b")
				x, y := format.number(&a), format.number(&b)
				if x.isNaN() || y.isNaN() || x.wide().IsInf() || y.wide().IsInf() {
					r.Skip()
				}
				op := rapid.SampledFrom([]arithmeticOp{addOp, subOp, mulOp, divOp}).Draw(r, "op")
				if op == divOp && y.sign() == 0 {
					r.Skip()
				}
				got, err := ev.compute(op, a, b)
				if err != nil {
					r.Fatal(err)
				}
				p, _ := x.wide().Rat(nil)
				q, _ := y.wide().Rat(nil)
				exact := new(big.Rat)
				switch op {
				case addOp:
					exact.Add(p, q)
				case subOp:
					exact.Sub(p, q)
				case mulOp:
					exact.Mul(p, q)
				case divOp:
					exact.Quo(p, q)
				}
				checkNearest(r, format, typ, exact, got)
			})
		})
	}
}

// checkNearest checks that no neighbour of got is nearer to exact.
func checkNearest(r *rapid.T, format *floatFormat, typ *BaseType, exact *big.Rat, got Value) {
	magnitude := got.unsigned()
	magnitude.SetBit(magnitude, int(format.width)-1, 0)
	rational := func(m *big.Int) (*big.Rat, bool) {
		v := BigValue(typ, m)
		n := format.number(&v)
		if n.isNaN() || n.wide().IsInf() {
			return nil, false
		}
		q, _ := n.wide().Rat(nil)
		return q, true
	}
	exact = new(big.Rat).Abs(exact)
	have, finite := rational(magnitude)
	below, ok := rational(neighbour(format, magnitude, -1))
	if !finite {
		// Infinity is nearest from half a unit past the largest number on.
		before, _ := rational(neighbour(format, neighbour(format, magnitude, -1), -1))
		limit := new(big.Rat).Sub(below, before)
		limit.Quo(limit, big.NewRat(2, 1))
		limit.Add(limit, below)
		if exact.Cmp(limit) < 0 {
			r.Fatalf("infinite, exact is %v", exact.FloatString(10))
		}
		return
	}
	distance := func(q *big.Rat) *big.Rat { d := new(big.Rat).Sub(q, exact); return d.Abs(d) }
	odd := magnitude.Bit(0) != 0
	for _, other := range []*big.Int{neighbour(format, magnitude, -1), neighbour(format, magnitude, 1)} {
		q, fine := rational(other)
		if !fine {
			continue
		}
		if c := distance(q).Cmp(distance(have)); c < 0 || c == 0 && odd {
			r.Fatalf("got %v, %v is nearer to %v", got, BigValue(typ, other), exact.FloatString(10))
		}
	}
	_ = ok
}

// neighbour returns the next magnitude up or down; that of 0 is 0.
func neighbour(format *floatFormat, m *big.Int, delta int64) *big.Int {
	if format.hasIntegerBit { // take the integer bit out and put it in again
		fraction := new(big.Int).And(m, lowBits(63))
		m = new(big.Int).Rsh(m, 64)
		m.Lsh(m, 63).Or(m, fraction)
	}
	m = new(big.Int).Add(m, big.NewInt(delta))
	if m.Sign() < 0 {
		return new(big.Int)
	}
	if format.hasIntegerBit {
		fraction := new(big.Int).And(m, lowBits(63))
		exponent := new(big.Int).Rsh(m, 63)
		m = new(big.Int).Lsh(exponent, 64)
		if exponent.Sign() != 0 {
			m.SetBit(m, 63, 1)
		}
		m.Or(m, fraction)
	}
	return m
}

// TestIntegersAgreeWithBigNumbers computes with integers of every size.
func TestIntegersAgreeWithBigNumbers(t *testing.T) {
	ev := &evaluation{e: &Evaluator{steps: 1 << 40}, bits: 64, mask: ^uint64(0)}
	rapid.Check(t, func(r *rapid.T) {
		typ := &BaseType{Encoding: rapid.SampledFrom([]uint8{EncodingSigned, EncodingUnsigned}).Draw(r, "encoding"), Bits: rapid.Uint32Range(1, 200).Draw(r, "bits")}
		draw := func(name string) Value {
			b := rapid.SliceOfN(rapid.Byte(), 25, 25).Draw(r, name)
			return BigValue(typ, new(big.Int).SetBytes(b))
		}
		a, b := draw("a"), draw("b")
		if rapid.Bool().Draw(r, "small") {
			b = BigValue(typ, big.NewInt(int64(rapid.IntRange(0, 210).Draw(r, "count"))))
		}
		x, y := a.Big(), b.Big()
		op := rapid.SampledFrom([]arithmeticOp{addOp, subOp, mulOp, divOp, modOp, andOp, orOp, xorOp, shlOp, shrOp, shraOp, absOp, negOp, notOp}).Draw(r, "op")
		want := new(big.Int)
		switch op {
		case addOp:
			want.Add(x, y)
		case subOp:
			want.Sub(x, y)
		case mulOp:
			want.Mul(x, y)
		case divOp, modOp:
			if y.Sign() == 0 {
				r.Skip()
			}
			if want.Rem(x, y); op == divOp {
				want.Quo(x, y)
			}
		case andOp:
			want.And(x, y)
		case orOp:
			want.Or(x, y)
		case xorOp:
			want.Xor(x, y)
		case shlOp, shrOp, shraOp:
			if y.Sign() < 0 || y.BitLen() > 10 {
				r.Skip()
			}
			n := uint(y.Uint64())
			switch op {
			case shlOp:
				want.Lsh(x, n)
			case shrOp:
				want.Rsh(a.unsigned(), n)
			default:
				s := a
				signed := *typ
				signed.Encoding = EncodingSigned
				s.typ = &signed
				want.Rsh(s.Big(), n)
			}
		case absOp:
			want.Abs(x)
		case negOp:
			want.Neg(x)
		case notOp:
			want.Not(x)
		}
		got, err := ev.compute(op, a, b)
		if err != nil {
			r.Fatal(err)
		}
		if cut := BigValue(typ, want); got.unsigned().Cmp(cut.unsigned()) != 0 || !got.typ.Same(typ) {
			r.Fatalf("%v op %d %v: got %v, want %v", a, op, b, got, want)
		}
		order, _, err := ev.compareValues(&a, &b)
		if err != nil || order != x.Cmp(y) {
			r.Fatalf("%v compares to %v as %d, error %v", a, b, order, err)
		}
	})
}

// TestValuesSurviveTheirStorage writes values of all kinds to bytes and back.
func TestValuesSurviveTheirStorage(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		typ := &BaseType{Encoding: EncodingUnsigned, Bits: rapid.Uint32Range(1, 150).Draw(r, "bits"), Elements: rapid.Uint32Range(0, 4).Draw(r, "elements")}
		if typ.Bits%8 == 0 {
			typ.Endianity = rapid.SampledFrom([]Endianity{EndDefault, EndBig, EndLittle}).Draw(r, "endianity")
		}
		order := rapid.SampledFrom([]ByteOrder{LittleEndian, BigEndian}).Draw(r, "order")
		n := byteCount(typ.Size())
		v := BigValue(typ, new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), int(n), int(n)).Draw(r, "value")))
		stream := v.Bytes(order)
		back, err := ValueOf(typ, stream, order)
		if err != nil || back.Hex() != v.Hex() {
			r.Fatalf("%v as %x: got %v, error %v", v, stream, back, err)
		}
		// An element is a substring of the whole.
		if count := v.Elements(); count > 0 {
			i := rapid.IntRange(0, count-1).Draw(r, "element")
			part := make([]byte, byteCount(uint64(typ.Bits)))
			copyBits(part, 0, stream, uint64(i)*uint64(typ.Bits), uint64(typ.Bits), order)
			e := v.Element(i)
			if got := e.Bytes(order); string(got) != string(part) {
				r.Fatalf("element %d of %x: got %x, want %x", i, stream, got, part)
			}
		}
	})
}

func TestTypedValuesOfGo(t *testing.T) {
	if v := TypedValue(baseTypes[0x13], 0xff); v.Big().Int64() != -1 || v.Uint64() != 0xff || v.Bits() != 8 {
		t.Errorf("got %v", v)
	}
	if v, err := FloatValue(baseTypes[0x11], 1); err == nil {
		t.Errorf("got %v", v)
	}
	if v, err := FloatValue(nil, 1); err == nil {
		t.Errorf("got %v", v)
	}
	for _, c := range []struct {
		t *BaseType
		n int
	}{{baseTypes[0x11], 3}, {nil, 0}, {nil, 9}, {baseTypes[0x2e], 8}, {&BaseType{Bits: 12, Endianity: EndBig}, 2}, {&BaseType{Bits: 16, Endianity: 7}, 2}} {
		if v, err := ValueOf(c.t, make([]byte, c.n), LittleEndian); err == nil {
			t.Errorf("%v of %d bytes: got %v", c.t, c.n, v)
		}
	}
	if v, err := ValueOf(nil, []byte{1, 2}, BigEndian); err != nil || v.Uint64() != 0x102 || v.Bits() != 16 {
		t.Errorf("got %v, error %v", v, err)
	}
	if got := (&BaseType{Encoding: EncodingFloat, Bits: 32, Elements: 4}).String(); got != "float 32 x 4" {
		t.Errorf("got %s", got)
	}
	if got := (&BaseType{Encoding: 0x99, Bits: 32}).String(); got != "encoding 0x99 32" {
		t.Errorf("got %s", got)
	}
}
