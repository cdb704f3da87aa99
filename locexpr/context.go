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

// EntryLocation answers ErrNoContext.
func (NoContext) EntryLocation(uint64) (Location, error) {
	return Location{}, noContext("compilation unit")
}
