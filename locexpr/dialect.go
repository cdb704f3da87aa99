// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/internal/dw"
)

// Operation is one operation of DWARF expressions: its name, the operands that follow its
// opcode, and its effect. A Dialect has its opcode.
type Operation struct {
	Name     string         // "DW_OP_plus"
	Operands [2]OperandKind // those not used are NoOperand, last

	eval            func(*evaluation) error
	number          uint64 // N of DW_OP_lit<N>, DW_OP_reg<N>, DW_OP_breg<N>
	isBarredFromCFI bool   // not allowed in call frame information (A.6.4.2)
	shape           shape
	quick           quick
}

// shape distinguishes the operations that are decoded quickest from the others.
type shape uint8

const (
	anyShape   shape = iota
	opcodeOnly       // no operands
	slebOnly         // a signed LEB128
	ulebOnly         // an unsigned LEB128
)

func (o *Operation) findShape() shape {
	switch o.Operands {
	case [2]OperandKind{}:
		return opcodeOnly
	case [2]OperandKind{SLEB}:
		return slebOnly
	case [2]OperandKind{ULEB}, [2]OperandKind{RegisterNum}, [2]OperandKind{TypeOffset}:
		return ulebOnly
	}
	return anyShape
}

// Dialect maps opcodes to operations. Opcodes of vendors
// collide, so the dialect in force belongs to a code object.
type Dialect struct {
	Name  string
	make  func(*tables)          // fills the tables, when they are first needed
	ready atomic.Pointer[tables] // nil: not needed yet
}

// tables are the operations of a dialect.
type tables struct {
	operations [256]Operation        // by opcode; without a name where there is none
	user       map[uint64]*Operation // by the number that follows userOperation's opcode

	namedOnce sync.Once
	named     map[string]namedOperation // for Lookup
}

// tables returns the tables of the dialect. Most programs need only one of the built-in
// dialects.
func (d *Dialect) tables() *tables {
	if t := d.ready.Load(); t != nil {
		return t
	}
	return d.fill()
}

func (d *Dialect) fill() *tables {
	t := &tables{user: map[uint64]*Operation{}}
	if d.make != nil {
		d.make(t)
	}
	if !d.ready.CompareAndSwap(nil, t) {
		return d.ready.Load() // another goroutine was first
	}
	return t
}

// Encoding assigns an opcode of a dialect to an operation, by its name.
type Encoding struct {
	Opcode byte
	User   uint64 // the unsigned LEB128 after DW_OP_LLVM_user; 0: Opcode alone is the operation
	Name   string
}

// String returns the name of the dialect.
func (d *Dialect) String() string { return d.Name }

// userOperation is the prefix of a vendor's numbered operations (A.2.5.4.0).
// The decoder reads it together with the number.
var userOperation = Operation{Name: "DW_OP_LLVM_user", Operands: [2]OperandKind{userNumber}}

// isPrefix reports whether o is userOperation.
func (o *Operation) isPrefix() bool { return o.Operands[0] == userNumber }

// byName has every operation that the evaluator knows.
var byName = sync.OnceValue(func() map[string]*Operation {
	m := map[string]*Operation{}
	add := func(op Operation) { m[op.Name] = &op }
	for _, table := range [][]row{standardRows, numberedRows(), gnuRows, vendorRows} {
		for i := range table {
			add(table[i].op)
		}
	}
	return m
})

// DWARF5 is the dialect of DWARF 2 to 5: the standard operations, and GNU's.
var DWARF5 = &Dialect{Name: "dwarf5", make: func(t *tables) {
	t.add(standardRows)
	t.add(numberedRows())
	t.add(gnuRows)
}}

// Canonical is the dialect of expressions on the wire between the engine and plugins. It has
// every operation: the ones of DWARF5, and operations of the other dialects as
// DW_OP_LLVM_user (A.7.7.1) with numbers that never change.
var Canonical = vendorDialect("canonical", func(v *dw.VendorOp) (byte, uint64) { return dw.OpLLVMUser, v.Canonical })

// LLVMUser is the dialect of compilers that write the heterogeneous extension
// by its published encoding, DW_OP_LLVM_user (A.7.7.1). The operations whose
// numbers are not published are not in it.
var LLVMUser = vendorDialect("llvm-user", func(v *dw.VendorOp) (byte, uint64) {
	number := v.Published()
	if number == 0 {
		return 0, 0
	}
	return dw.OpLLVMUser, number
})

// LLVMLegacy is the dialect of compilers that write the heterogeneous extension in opcodes of
// one byte, as they did before there was DW_OP_LLVM_user.
var LLVMLegacy = vendorDialect("llvm-legacy", func(v *dw.VendorOp) (byte, uint64) { return v.Legacy, 0 })

// Intel is the dialect of Intel's graphics compiler.
var Intel = vendorDialect("intel", func(v *dw.VendorOp) (byte, uint64) { return v.Intel, 0 })

// Dialects are the dialects that are built in.
var Dialects = []*Dialect{DWARF5, Canonical, LLVMUser, LLVMLegacy, Intel}

// DialectByName returns the built-in dialect with a name; ok is false when there is none. The
// case of the name does not matter.
func DialectByName(name string) (d *Dialect, ok bool) {
	for _, d := range Dialects {
		if strings.EqualFold(d.Name, name) {
			return d, true
		}
	}
	return nil, false
}

// vendorDialect is DWARF5 with the operations of vendors to which encoding assigns an opcode.
func vendorDialect(name string, encoding func(*dw.VendorOp) (opcode byte, user uint64)) *Dialect {
	return &Dialect{Name: name, make: func(t *tables) {
		t.copy(DWARF5.tables())
		t.add(vendorEncodings(encoding))
	}}
}

// add adds rows to the tables.
func (t *tables) add(rows []row) {
	for i := range rows {
		op := byName()[rows[i].op.Name]
		if op == nil {
			panic("locexpr: no operation " + rows[i].op.Name)
		}
		t.set(rows[i].opcode, rows[i].user, op)
	}
}

// copy makes t a copy of source.
func (t *tables) copy(source *tables) {
	t.operations = source.operations
	t.user = maps.Clone(source.user)
}

func (t *tables) set(opcode byte, user uint64, op *Operation) {
	if user == 0 {
		t.operations[opcode] = *op
		t.operations[opcode].shape = op.findShape()
		return
	}
	t.operations[opcode] = userOperation
	t.user[user] = op
}

// Extend returns a dialect that is d with vendor operations added. An encoding
// replaces what d has at its opcode. It is an error when an encoding names an
// operation that the evaluator does not know, takes an opcode that is not left
// to vendors (0xe0 to 0xff), gives one opcode two meanings, or uses a prefix
// other than that of DW_OP_LLVM_user, 0xe9.
func (d *Dialect) Extend(name string, encodings []Encoding) (*Dialect, error) {
	c := &tables{}
	c.copy(d.tables())
	if slices.ContainsFunc(encodings, func(e Encoding) bool { return e.Opcode == dw.OpLLVMUser && e.User == 0 }) {
		clear(c.user) // without the prefix nothing reaches them
	}
	type key struct {
		opcode byte
		user   uint64
	}
	seen := map[key]string{}
	for _, e := range encodings {
		op := byName()[e.Name]
		switch {
		case op == nil:
			return nil, fmt.Errorf("dialect %s: opcode 0x%02x: no operation is called %q", name, e.Opcode, e.Name)
		case e.Opcode < dw.OpLoUser:
			return nil, fmt.Errorf("dialect %s: %s: opcode 0x%02x, 0xe0 to 0xff expected", name, e.Name, e.Opcode)
		case e.User != 0 && e.Opcode != dw.OpLLVMUser:
			return nil, fmt.Errorf("dialect %s: %s: number 0x%x after opcode 0x%02x, 0xe9 expected", name, e.Name, e.User, e.Opcode)
		}
		k := key{e.Opcode, e.User}
		if other, ok := seen[k]; ok {
			return nil, fmt.Errorf("dialect %s: opcode 0x%02x 0x%x is both %s and %s", name, e.Opcode, e.User, other, e.Name)
		}
		seen[k] = e.Name
		c.set(e.Opcode, e.User, op)
	}
	if other, ok := seen[key{dw.OpLLVMUser, 0}]; ok && len(c.user) > 0 {
		return nil, fmt.Errorf("dialect %s: opcode 0x%02x is both %s and a prefix", name, dw.OpLLVMUser, other)
	}
	extended := &Dialect{Name: name}
	extended.ready.Store(c)
	return extended, nil
}

// Lookup returns the operation with a name and its encoding in d; ok is false when d has
// none. Of several encodings of the operation it is the lowest. The case of the name does not
// matter, nor does a missing "DW_OP_".
func (d *Dialect) Lookup(name string) (op *Operation, e Encoding, ok bool) {
	t := d.tables()
	t.namedOnce.Do(t.indexNames)
	n, ok := t.named[name]
	if !ok { // another spelling
		n, ok = t.named[strings.ToLower(name)]
	}
	return n.operation, n.encoding, ok
}

// namedOperation is an operation of a dialect.
type namedOperation struct {
	operation *Operation
	encoding  Encoding
}

// indexNames sets named: each operation in lower case, and in its own spelling, both with
// "DW_OP_" and without. Of several operations with a name the first one stays.
func (t *tables) indexNames() {
	const prefix = "dw_op_"
	t.named = make(map[string]namedOperation, 4*len(t.operations))
	add := func(op *Operation, e Encoding) {
		e.Name = op.Name
		full := strings.ToLower(op.Name)
		short := strings.TrimPrefix(full, prefix)
		for _, key := range []string{full, short} {
			if _, ok := t.named[key]; !ok {
				t.named[key] = namedOperation{op, e}
			}
		}
		t.named[op.Name] = t.named[full]
		t.named[op.Name[len(full)-len(short):]] = t.named[short]
	}
	for opcode := range t.operations {
		if op := &t.operations[opcode]; op.eval != nil {
			add(op, Encoding{Opcode: byte(opcode)})
		}
	}
	for _, number := range slices.Sorted(maps.Keys(t.user)) {
		add(t.user[number], Encoding{Opcode: dw.OpLLVMUser, User: number})
	}
}
