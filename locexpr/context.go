// SPDX-License-Identifier: Apache-2.0

package locexpr

import "fmt"

// Machine is the state that locations name.
//
// Bits are numbered as the package comment says. A method whose dst or src
// holds a size that is no multiple of 8 is given, and gives, zero bits there.
type Machine interface {
	// ReadMemory fills dst from the bytes at address in the instance of space
	// that belongs to scope.
	ReadMemory(space AddressSpace, scope Scope, address uint64, dst []byte) error
	// WriteMemory writes src to where ReadMemory would read.
	WriteMemory(space AddressSpace, scope Scope, address uint64, src []byte) error
	// ReadRegister reads bits of a register's storage from bitOffset on into
	// the first (bits+7)/8 bytes of dst.
	ReadRegister(reg uint64, scope Scope, dst []byte, bitOffset uint64, bits uint64) error
	// WriteRegister writes bits of src to where ReadRegister would read.
	WriteRegister(reg uint64, scope Scope, src []byte, bitOffset uint64, bits uint64) error
	// RegisterBits returns the size of a register; false: no such register.
	RegisterBits(reg uint64) (uint32, bool)
	// SpaceBits returns the address size of a space; false: no such space.
	SpaceBits(space AddressSpace) (uint32, bool)
	// ByteOrder returns the byte order of memory and registers.
	ByteOrder() ByteOrder
}

// Context is what an evaluation may ask for (A.2.5.1). A context that lacks an
// element answers with an error that wraps ErrNoContext. Embed NoContext to
// answer so to everything.
type Context interface {
	Machine
	// Scope returns the current thread, call frame and lane.
	Scope() Scope
	// Register returns where the register reg of the current frame is: the
	// register itself in the top frame, what call frame information says in
	// another (A.2.5.4.4.4).
	Register(reg uint64) (Location, error)
	// RegisterValue returns the contents of a register of the current frame
	// that has at most 64 bits, zero-extended.
	RegisterValue(reg uint64) (uint64, error)
	// CFA returns the location of the current frame's CFA (A.2.5.4.4.3).
	CFA() (Location, error)
	// FrameBase returns the result of the DW_AT_frame_base attribute. It may be
	// a register location: DW_OP_fbreg then reads that register (A.3.3.5).
	FrameBase() (Location, error)
	// Object returns the location of the current object.
	Object() (Location, error)
	// TLS returns the location of a thread-local storage address.
	TLS(offset uint64) (Location, error)
	// Addrx returns an entry of the unit's part of .debug_addr, as it stands
	// in the section: DW_OP_addrx adds Evaluator.LoadBias, DW_OP_constx does
	// not.
	Addrx(index uint64) (uint64, error)
	// EntryValue returns the value of an expression in the calling frame, at
	// the call (DW_OP_entry_value). Evaluator.EntryValue does that, given the
	// calling frame's context.
	EntryValue(expr []byte) (Value, error)
	// ProgramLocation returns the current program location.
	ProgramLocation() (uint64, error)
	// Lane returns the current lane, and how many lanes the subprogram has by
	// its DW_AT_LLVM_lanes; 0 where that is not known (A.2.5.4.3.1).
	Lane() (lane, lanes uint64, err error)
	// Iteration returns the current iteration, and how many execute
	// concurrently by DW_AT_LLVM_iterations; 0 where that is not known
	// (A.2.5.4.3.1).
	Iteration() (iteration, iterations uint64, err error)
	// CallFrameEntryRegister returns where the value is that register reg had
	// on entry to the current subprogram (A.2.5.4.4.1). It is a failure that
	// IllFormedError marks when the answer depends on itself.
	CallFrameEntryRegister(reg uint64) (Location, error)
	// BaseType returns the base type at an offset of the compilation unit; nil
	// is the generic type. It is a failure that IllFormedError marks when what
	// stands there is no DW_TAG_base_type. An operation that takes offset 0 for
	// the generic type does not ask.
	BaseType(offset uint64) (*BaseType, error)
	// CallEntry returns what DW_OP_call* does with a debugging information
	// entry (A.2.5.4.2).
	CallEntry(ref EntryRef) (Callee, error)
}

// An EntryRef names a debugging information entry.
type EntryRef struct {
	Offset uint64
	InUnit bool // Offset counts from the compilation unit's start, not from .debug_info's
}

// CalleeKind says what DW_OP_call* does.
type CalleeKind uint8

// The kinds of callees (A.2.5.4.2).
const (
	NoEffect         CalleeKind = iota // the entry has neither attribute: nothing happens
	CalleeExpression                   // a DW_AT_location of class exprloc: it runs on the same stack
	CalleeLocation                     // a DW_AT_location of class loclist, evaluated, or a DW_AT_const_value as an implicit location: it is pushed
)

// A Callee is what DW_OP_call* finds in a debugging information entry.
type Callee struct {
	Kind     CalleeKind
	Location Location // of a CalleeLocation

	// Of a CalleeExpression: its bytes, and the compilation unit that holds
	// them.
	Expr       []byte
	Context    Context  // the caller's, but for the compilation unit; nil: the same
	Dialect    *Dialect // nil: the same
	OffsetSize int      // as Evaluator.OffsetSize; 0: the same
}

// An EntryContext is a Context that can follow an implicit pointer. It is asked
// only when one is dereferenced.
type EntryContext interface {
	Context
	// EntryLocation returns the location of what the debugging information
	// entry at an offset of .debug_info describes: the result of its
	// DW_AT_location in this context, or its DW_AT_const_value as an implicit
	// location (A.2.5.4.4.5).
	EntryLocation(entry uint64) (Location, error)
}

// A ParameterContext is a Context that knows the parameters which a call
// passed, for DW_OP_GNU_parameter_ref.
type ParameterContext interface {
	Context
	// ParameterValue returns the value that the call of the current frame gave
	// to the formal parameter at an offset of the compilation unit.
	ParameterValue(offset uint64) (Value, error)
}

// A VariableContext is a Context that knows the values of variables, for
// DW_OP_GNU_variable_value.
type VariableContext interface {
	Context
	// VariableValue returns the value of the variable that the debugging
	// information entry at an offset of .debug_info describes.
	VariableValue(entry uint64) (Value, error)
}

// A BaseContext is a Context that knows what encoded addresses count from, for
// DW_OP_GNU_encoded_addr.
type BaseContext interface {
	Context
	// EncodedBase returns the base of an application of a pointer encoding,
	// DW_EH_PE_pcrel to DW_EH_PE_funcrel. offset is that of the
	// encoded address in the expression.
	EncodedBase(application uint8, offset int) (uint64, error)
}

// A SpaceContext is a Context that knows all address spaces of its
// architecture, which bound the size of composites (A.2.5.4.4.6).
type SpaceContext interface {
	Context
	// LargestSpaceBits returns the address size of the largest one.
	LargestSpaceBits() uint32
}

// NoContext is a Context in which no element is specified.
type NoContext struct{}

func noContext(element string) error { return fmt.Errorf("%s: %w", element, ErrNoContext) }

// ReadMemory answers ErrNoContext.
func (NoContext) ReadMemory(AddressSpace, Scope, uint64, []byte) error { return noContext("memory") }

// WriteMemory answers ErrNoContext.
func (NoContext) WriteMemory(AddressSpace, Scope, uint64, []byte) error { return noContext("memory") }

// ReadRegister answers ErrNoContext.
func (NoContext) ReadRegister(uint64, Scope, []byte, uint64, uint64) error {
	return noContext("registers of a thread")
}

// WriteRegister answers ErrNoContext.
func (NoContext) WriteRegister(uint64, Scope, []byte, uint64, uint64) error {
	return noContext("registers of a thread")
}

// RegisterBits answers that there is no such register.
func (NoContext) RegisterBits(uint64) (uint32, bool) { return 0, false }

// SpaceBits answers that there is no such space.
func (NoContext) SpaceBits(AddressSpace) (uint32, bool) { return 0, false }

// ByteOrder answers LittleEndian.
func (NoContext) ByteOrder() ByteOrder { return LittleEndian }

// Scope answers that no thread and no lane is current.
func (NoContext) Scope() Scope { return noScope }

// Register answers ErrNoContext.
func (NoContext) Register(uint64) (Location, error) { return Location{}, noContext("call frame") }

// RegisterValue answers ErrNoContext.
func (NoContext) RegisterValue(uint64) (uint64, error) { return 0, noContext("call frame") }

// CFA answers ErrNoContext.
func (NoContext) CFA() (Location, error) { return Location{}, noContext("CFA of a call frame") }

// FrameBase answers ErrNoContext.
func (NoContext) FrameBase() (Location, error) { return Location{}, noContext("frame base") }

// Object answers ErrNoContext.
func (NoContext) Object() (Location, error) { return Location{}, noContext("object") }

// TLS answers ErrNoContext.
func (NoContext) TLS(uint64) (Location, error) {
	return Location{}, noContext("thread-local storage of a thread")
}

// Addrx answers ErrNoContext.
func (NoContext) Addrx(uint64) (uint64, error) { return 0, noContext("compilation unit") }

// EntryValue answers ErrNoContext.
func (NoContext) EntryValue([]byte) (Value, error) { return Value{}, noContext("calling frame") }

// ProgramLocation answers ErrNoContext.
func (NoContext) ProgramLocation() (uint64, error) { return 0, noContext("program location") }

// Lane answers ErrNoContext.
func (NoContext) Lane() (lane, lanes uint64, err error) { return 0, 0, noContext("lane") }

// Iteration answers ErrNoContext.
func (NoContext) Iteration() (iteration, iterations uint64, err error) {
	return 0, 0, noContext("iteration")
}

// CallFrameEntryRegister answers ErrNoContext.
func (NoContext) CallFrameEntryRegister(uint64) (Location, error) {
	return Location{}, noContext("call frame")
}

// BaseType answers ErrNoContext.
func (NoContext) BaseType(uint64) (*BaseType, error) { return nil, noContext("compilation unit") }

// CallEntry answers ErrNoContext.
func (NoContext) CallEntry(EntryRef) (Callee, error) {
	return Callee{}, noContext("compilation unit")
}

// ParameterValue answers ErrNoContext.
func (NoContext) ParameterValue(uint64) (Value, error) { return Value{}, noContext("calling frame") }

// VariableValue answers ErrNoContext.
func (NoContext) VariableValue(uint64) (Value, error) {
	return Value{}, noContext("compilation unit")
}

// EncodedBase answers ErrNoContext.
func (NoContext) EncodedBase(uint8, int) (uint64, error) {
	return 0, noContext("base of encoded addresses")
}

// EntryLocation answers ErrNoContext.
func (NoContext) EntryLocation(uint64) (Location, error) {
	return Location{}, noContext("compilation unit")
}
