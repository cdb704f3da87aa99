// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
)

// Description has the constant properties of an architecture. It is data: the engine
// requests it once, checks it, and needs no call for its contents.
type Description struct {
	Name    string // "x86_64"; the `arch` of the output
	Version string // the plugin's own version

	Recognises []Recogniser

	ByteOrder     ByteOrder
	AddressBits   uint32 // of the default address space, and so of the generic type
	Registers     []RegisterRange
	RegisterSets  []RegisterSet
	PC, SP, FP    uint32 // DWARF numbers; NoRegister where there is none
	ReturnAddress uint32 // the usual return-address column
	AddressSpaces []AddressSpace
	// AddressClasses are the spaces of variables and of what pointers lead to, by their
	// DW_AT_address_class. nil: variables are where their expressions say, and the class of a
	// pointer is the number of a space.
	AddressClasses []AddressClass
	DefaultRules   []cfi.RegisterRule // for columns that a row does not mention, sorted by column
	// FramePointer is the row of a frame with a frame pointer; nil: there is no such
	// convention. Where a record may be anywhere in its frame (on AArch64 x29 is at [x29]
	// and the return address at [x29+8]), the caller's stack pointer does not follow from
	// it: its rule is Undefined then.
	FramePointer *cfi.Row
	// Entry is the row of a function that has executed nothing yet: CFA = rsp+8 and
	// rip at CFA-8 on x86-64, which pushes it; CFA = sp and pc in x30 on AArch64, which
	// has a link register. The rule of the return address is Offset, Register or
	// SameValue. A walk uses it where no other row describes the frame: a call through a
	// bad pointer, a function without a frame, and functions of Go. nil: there is no such
	// rule.
	//
	// The CFA may be the result of an expression, or in another address space than the
	// default one, as where each lane has a stack of its own.
	Entry *cfi.Row
	// FramePointerIsABI says that every function that calls another one makes the frame that
	// FramePointer describes (the back chain of 64-bit POWER): callers that are found by it
	// are no guesses, and a chain whose next CFA is 0 ends there.
	FramePointerIsABI bool
	// ReturnSlot is the place where functions keep their return address; nil: they have no
	// common one, or a call pushes it, so that it is the word below the stack pointer of the
	// caller.
	ReturnSlot *ReturnSlot
	// CallSites are the rules of callers by the instruction that they return to.
	CallSites []CallSite
	// Feature is the number of the features of the protocol that the plugin knows (see the
	// constant Feature). Serve sets it. 0: the plugin is older than the number.
	Feature        uint32
	CallDistance   uint32 // bytes to subtract from a return address to be inside the call; 1 nearly always
	MaxInstruction uint32 // the longest instruction in bytes
	StackAlign     uint32 // bytes; words of the stack that may be a return address are this far apart
	// SignState is the DWARF number of the pseudo-register that is set where the
	// return address is signed (RA_SIGN_STATE, 34 on AArch64: AADWARF64, 4.1); 0: there
	// is none. Rows have it as cfi.Row.WindowSave. ThreadBinding.ReturnAddressMask has
	// the bits of a signature.
	SignState uint32
	// CanonicalBits is the number of bits of an address, the highest of which all bits
	// above must equal, where a fault at any other address is reported without it: 48 on
	// x86-64. 0: every fault has its address.
	CanonicalBits uint32
	// TagBits is the number of upper bits of an address that are ignored where data is
	// accessed, and need not be in the address of a fault: 8 on AArch64 under Linux (top
	// byte ignore).
	TagBits uint32
	// EntryPushed is the number of bytes, the return address among them, that are pushed
	// before the entry of functions whose rows count the CFA without them, although calls
	// leave the return address in a register: 16 on AArch64, whose PLT pushes two words
	// before it enters glibc's _dl_runtime_resolve. A row that has the return address among
	// the bytes from the CFA on, and no rule for the stack pointer, then has the caller's
	// stack pointer above them. 0: there are no such functions.
	EntryPushed uint32
	// FloatFormats are the formats of floating point numbers that do not follow from their
	// size.
	FloatFormats []FloatFormat
	// ThreadLocal is the place of thread-local storage; nil: unknown.
	ThreadLocal *ThreadLocal
	// SignalFrame is the layout of the kernel's frame of a signal handler; nil: unknown.
	SignalFrame *SignalFrame
	Symbols     []string // names of functions that OpenObject's request lists, where an object has them
	Relocations []Relocation
	Dialects    []Dialect
	Processors  []Processor // where processors differ in their lane counts
	// Companions are the endings, with the last dot (".dbg"), of the names of files that
	// OpenObject's request lists, where they are beside a code object with otherwise the
	// same name. Recognises must match them too.
	Companions []string
	// NoEngine says that the architecture makes no requests of the engine while it answers:
	// its methods get none, and no connection is made for it.
	NoEngine bool
}

// ReturnSlot is the place where functions keep their return address.
type ReturnSlot struct {
	// Offset is the place in bytes from the stack pointer of the caller, as it is when the
	// call returns: 16 on 64-bit POWER, 112 on s390x.
	Offset int64
}

// CallSite has the rules of callers that return to an instruction: `ld r2,24(r1)` behind a
// call, on 64-bit POWER, loads the TOC pointer that was saved before it.
type CallSite struct {
	// Code and Mask are bytes in the order of memory, and as many: a caller has the rules
	// where the bytes at its return address equal Code in the bits of Mask.
	Code, Mask []byte
	// Rules are the registers of the caller while the call is in progress, sorted by column.
	// They are evaluated with the CFA and the registers of the caller, its stack pointer among
	// them, and override those recovered from the function that it called; a row's own CallSite
	// overrides them (see cfi.Row).
	Rules []cfi.RegisterRule
}

// FloatFormat is the format of floating point numbers of a size. Where two match a type,
// the one with its name is used.
type FloatFormat struct {
	Bits   uint32 // size of the type: 128 of x86-64's long double
	Name   string // of the type, without the "complex " before it; "": of any
	Format locexpr.FloatFormat
}

// FloatFormat returns the format of floating point numbers of a type, or of both parts of
// complex ones. It is locexpr.FloatBySize where the description has none.
func (d *Description) FloatFormat(t *locexpr.BaseType) locexpr.FloatFormat {
	bits, name := t.Bits, t.Name
	if t.Encoding == locexpr.EncodingComplexFloat {
		bits, name = bits/2, strings.TrimPrefix(name, "complex ")
	}
	format := locexpr.FloatBySize
	for i := range d.FloatFormats {
		f := &d.FloatFormats[i]
		if f.Bits == bits && f.Name == name {
			return f.Format
		}
		if f.Bits == bits && f.Name == "" {
			format = f.Format
		}
	}
	return format
}

// ThreadLocal is the layout of a thread's blocks of thread-local storage in the ABI of
// ELF (Ulrich Drepper, "ELF Handling For Thread-Local Storage", section 3).
type ThreadLocal struct {
	Pointer uint32 // DWARF number of the register of the thread pointer
	Variant ThreadLocalVariant
	// TCBBelow and TCBAbove are the bytes of the thread control block below the thread
	// pointer, and from it on: 0 and 16 on AArch64, 16 and 0 on RISC-V. Both are 0 in
	// variant II, where the block begins at the thread pointer.
	TCBBelow, TCBAbove uint32
}

// ThreadLocalVariant is one of the two layouts of thread-local storage.
type ThreadLocalVariant uint8

// The variants. In the first, the executable's block begins where the thread
// control block ends, aligned; in the second it ends at the thread pointer.
const (
	ThreadLocalVariantI ThreadLocalVariant = iota
	ThreadLocalVariantII
)

// SignalFrame is the layout of a signal handler's frame of Linux (struct rt_sigframe of
// its architectures). Offsets are bytes from the stack pointer of the code that the
// handler returns to.
type SignalFrame struct {
	// Info is the offset of the siginfo_t. The kernel leaves it out for a handler that did
	// not request it (SA_SIGINFO).
	Info uint32
	// PC is the offset of the interrupted code's PC; 0: unknown.
	PC uint32
	// Address is the offset of the word with the address of the thread's last fault; 0:
	// there is none.
	Address uint32
	// Trap is the offset of the word with the number of the processor's last exception,
	// from bit TrapShift on; 0: there is none. With a TrapRecord it is the offset of a list
	// of records, each with a magic number and its size before it, both of 32 bits: the
	// word is in the record with that number.
	Trap, TrapRecord, TrapShift uint32
	// Traps are the exceptions that become signals.
	Traps []Trap
}

// Trap is an exception of a processor, with the number of the signal that Linux raises for
// it. HasAddress says that the address in the signal frame is this exception's.
type Trap struct {
	Number, Signal uint32
	HasAddress     bool
}

// NoRegister stands for a register that an architecture does not have.
const NoRegister = ^uint32(0)

// ByteOrder is the order of bytes in memory and registers.
type ByteOrder uint8

// The byte orders.
const (
	LittleEndian ByteOrder = iota
	BigEndian
)

// Recogniser selects the code objects and dumps of an architecture. Every member that
// is set must match; ELF machine 0 matches any file. Of several architectures that match, the
// one with the most members set is used.
type Recogniser struct {
	ELFMachine uint16
	OSABI      int32  // -1: any
	FlagsMask  uint32 // the bits of e_flags that must equal Flags
	Flags      uint32
	Magic      []byte // first bytes of a file that is not ELF
	NoteOwner  string // core notes of this owner make the target this architecture's too
	// ELFClass is the class in e_ident, 1 (32-bit) or 2 (64-bit), and ELFData the encoding of
	// data there, 1 (little-endian) or 2 (big-endian); 0: any. Both need ELFMachine. They tell
	// apart architectures that share a machine, as 64-bit POWER of both byte orders does.
	ELFClass, ELFData uint8
}

// RegisterClass groups registers by use.
type RegisterClass uint8

// The register classes.
const (
	General RegisterClass = iota
	ProgramCounter
	Flags
	Segment
	Float
	Vector
	// Mask has a bit for each lane, lane 0 lowest. The mask register of threads with a
	// number of lanes (RegisterRange.Lanes), with a bit for each of them, is the execution
	// mask.
	Mask
	Control
)

// RegisterRange is Count registers with consecutive DWARF numbers from First.
//
// Ranges may share names where they differ in Bits, or where each has Lanes of
// its own: a machine whose registers are as wide as its threads has a number for
// each width. The type Names resolves such a name for a thread.
type RegisterRange struct {
	First, Count uint32
	// Names has Count names, or one in which "%d" stands for the index in the
	// range, counted from FirstIndex. They are printed.
	Names []string
	Bits  uint32 // of each register
	Class RegisterClass
	// FirstIndex is the value of "%d" for the first register: 512 where the range
	// begins with v512. It has no use without "%d".
	FirstIndex uint32
	// Aliases are second names, in the format of Names, which are understood but
	// not printed; nil: none.
	Aliases []string
	// Lanes says that only threads with this many lanes have these registers; 0:
	// all threads have them.
	Lanes uint32
	// Narrow is the place of objects that are smaller than a register.
	Narrow Narrow
}

// Narrow is the place in a register of objects that are smaller than it.
type Narrow uint8

// The places of smaller objects in registers. Where the byte order is little-endian
// the low-order end is the first bytes, and NarrowHigh means the same.
const (
	NarrowByClass   Narrow = iota // NarrowHigh for the classes Float and Vector, else NarrowLow
	NarrowLow                     // in the low-order end
	NarrowHigh                    // in the high-order end
	NarrowConverted               // as NarrowLow, but floating point numbers are converted to the format of the register's size
)

// NarrowIn returns the place in a register of objects that are smaller than it.
func (d *Description) NarrowIn(number uint64) locexpr.Narrow {
	for i := range d.Registers {
		r := &d.Registers[i]
		if number-uint64(r.First) >= uint64(r.Count) {
			continue
		}
		switch {
		case r.Narrow == NarrowConverted:
			return locexpr.NarrowConverted
		case r.Narrow == NarrowHigh, r.Narrow == NarrowByClass && (r.Class == Float || r.Class == Vector):
			return locexpr.NarrowHigh
		}
		break
	}
	return locexpr.NarrowLow
}

// Processor has the numbers of lanes that a processor's threads may have. They are
// needed before there is a thread to bind: names of registers may depend on them.
type Processor struct {
	Name  string   // "gfx90a"; "" stands for an unknown processor
	Lanes []uint32 // the usual count first
	// Code objects whose ELF flags equal Flags in the bits of FlagsMask are for this
	// processor. A mask of 0: the ELF header does not show it.
	FlagsMask, Flags uint32
}

// RegisterSource is the kind of record whose layout a register set describes.
type RegisterSource uint8

// The register sources.
const (
	CoreNote        RegisterSource = iota // Owner and Type name an ELF core note
	PerfSample                            // Type is unused; Field.Offset is the bit of sample_regs_user, in PERF_REG order
	MinidumpContext                       // Type is the size of the CONTEXT record; Owner is unused
)

// RegisterSet is the layout of registers in a record of another program or the kernel.
type RegisterSet struct {
	Source RegisterSource
	Owner  string // see the sources, as of Type
	Type   uint32
	Fields []RegisterField
}

// RegisterField is one register, or a piece of one, in a record. A field that
// reaches past the end of the record is absent, not zero.
type RegisterField struct {
	Offset   uint32 // bytes from the start of the record
	Size     uint32 // bytes
	Register uint32 // DWARF number
	// RegisterOffset counts bytes from the start of the register's bytes, which
	// are in the byte order of the architecture: from its low end where that is
	// little-endian. Pieces of a register are in ascending order.
	RegisterOffset uint32
}

// SpaceScope is the unit that has its own instance of an address space.
type SpaceScope uint8

// The scopes of address spaces.
const (
	ProcessScope SpaceScope = iota
	AgentScope              // a device
	GroupScope              // a work-group
	WaveScope               // a thread
	LaneScope               // a lane of a thread
)

// AddressSpace is one address space of an architecture (A.2.13).
type AddressSpace struct {
	Number locexpr.AddressSpace
	Name   string
	Bits   uint32 // of an address
	Scope  SpaceScope
}

// AddressClass is the space of a DW_AT_address_class. A variable of it whose location is an
// address of the default space is in this space, and DW_OP_addr has an address of the space.
// Classes that are not listed change nothing.
type AddressClass struct {
	Class uint64 // not 0
	Space locexpr.AddressSpace
}

// Dialect is a table of vendor operations of DWARF expressions. Opcodes of
// vendors collide, so the dialect in force belongs to a code object. A dialect with
// the name of one that is built into locexpr declares that the architecture uses it,
// and has the same encodings: it need not list its operations, and what it lists is
// compared.
type Dialect struct {
	Name       string
	Operations []DialectOperation
}

// DialectOperation gives an encoding to an operation that the evaluator
// knows by its name in the canonical dialect.
type DialectOperation struct {
	Opcode byte
	User   uint64 // the ULEB that follows DW_OP_LLVM_user; 0 for a one-byte opcode
	Name   string // "DW_OP_LLVM_form_aspace_address"
}
