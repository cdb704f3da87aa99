// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
)

// A Description is all that is constant about an architecture. It is data:
// the engine asks for it once, checks it, and needs no call for what is in it.
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
	DefaultRules  []cfi.RegisterRule // for columns that a row does not mention, sorted by column
	// FramePointer is how a frame that keeps a frame pointer is walked; nil: there is
	// no such convention. Where a record may lie anywhere in its frame (on AArch64 x29
	// is at [x29] and the return address at [x29+8]), the caller's stack pointer does
	// not follow from it: its rule is Undefined then.
	FramePointer *cfi.Row
	// Entry is the row of a function that has executed nothing yet: CFA = rsp+8 and
	// rip at CFA-8 on x86-64, which pushes it; CFA = sp and pc in x30 on AArch64, which
	// has a link register. The rule of the return address is Offset, Register or
	// SameValue. By it goes on what no other row describes: a call through a bad
	// pointer, a function that keeps no frame, and functions of Go. nil: there is no
	// such rule.
	Entry          *cfi.Row
	CallDistance   uint32 // bytes to subtract from a return address to be inside the call; 1 nearly always
	MaxInstruction uint32 // the longest instruction in bytes
	StackAlign     uint32 // bytes; words of the stack that may hold a return address are this far apart
	// SignState is the DWARF number of the pseudo-register that says whether the
	// return address is signed (RA_SIGN_STATE, 34 on AArch64: AADWARF64, 4.1); 0: there
	// is none. Rows say the same by cfi.Row.WindowSave. ThreadBinding.ReturnAddressMask
	// has the bits of a signature.
	SignState uint32
	// CanonicalBits is how many bits of an address count where those above must equal
	// the highest of them, and a fault at an address of which that is not true comes
	// without the address: 48 on x86-64. 0: every fault has its address.
	CanonicalBits uint32
	// TagBits is how many of the upper bits of an address do not count where data is
	// accessed, and need not be in the address of a fault: 8 on AArch64 under Linux (top
	// byte ignore).
	TagBits uint32
	// EntryPushed is how many bytes are on the stack, the return address among them, where
	// functions are entered whose rows count the CFA without them although calls leave
	// the return address in a register: 16 on AArch64, whose PLT pushes two words before
	// it enters glibc's _dl_runtime_resolve. A row that has the return address among the
	// bytes from the CFA on, and no rule for the stack pointer, then has the caller's
	// stack pointer above them. 0: there are no such functions.
	EntryPushed uint32
	// FloatFormats are the formats of floating point numbers whose size leaves them open.
	FloatFormats []FloatFormat
	// ThreadLocal says where thread-local storage is; nil: it is not known.
	ThreadLocal *ThreadLocal
	// SignalFrame says where the kernel keeps why a signal handler was called; nil: it
	// is not known.
	SignalFrame *SignalFrame
	Symbols     []string // names of functions that OpenObject wants to be told of, where an object has them
	Relocations []Relocation
	Dialects    []Dialect
	Processors  []Processor // where processors differ in their lane counts
	// Companions are what follows the last dot, and that dot (".dbg"), in the
	// names of files that OpenObject wants to be told of, where they lie beside a
	// code object with otherwise the same name. Recognises must match them too.
	Companions []string
	// NoEngine says that the architecture asks nothing of the engine while it answers:
	// its methods are given none, and no connection is made for it.
	NoEngine bool
}

// A FloatFormat is the format of floating point numbers of a size. Of two that match a
// type the one with its name is taken.
type FloatFormat struct {
	Bits   uint32 // size of the type: 128 of x86-64's long double
	Name   string // of the type, without the "complex " before it; "": of any
	Format locexpr.FloatFormat
}

// FloatFormat is the format of floating point numbers of a type, or of the two of complex
// ones. It is locexpr.FloatBySize where the description has none.
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

// A ThreadLocal says where the blocks of thread-local storage of a thread are, as
// the ABI of ELF has it (Ulrich Drepper, "ELF Handling For Thread-Local Storage",
// section 3).
type ThreadLocal struct {
	Pointer uint32 // DWARF number of the register that holds the thread pointer
	Variant ThreadLocalVariant
	// TCBBelow and TCBAbove are how many bytes of the thread control block lie below
	// the thread pointer, and from it on: 0 and 16 on AArch64, 16 and 0 on RISC-V.
	// Both are 0 in variant II, where the thread pointer is where the block begins.
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

// A SignalFrame says where Linux keeps what it tells a signal handler (struct rt_sigframe
// of its architectures). Offsets are bytes from the stack pointer of the code that the
// handler returns to.
type SignalFrame struct {
	// Info is where the siginfo_t is. The kernel leaves it out for a handler that did
	// not ask for it (SA_SIGINFO).
	Info uint32
	// PC is where the PC of what was interrupted is; 0: it is not known.
	PC uint32
	// Address is where the word with the address of the thread's last fault is; 0: there
	// is none.
	Address uint32
	// Trap is where the word is that says which exception of the processor the last one
	// was, from bit TrapShift on; 0: there is none. With a TrapRecord it is where a list of
	// records begins, each with a magic number and its size before it, both of 32 bits: the
	// word is in the record with that number.
	Trap, TrapRecord, TrapShift uint32
	// Traps are the exceptions that become signals.
	Traps []Trap
}

// A Trap is an exception of a processor, with the number of the signal that Linux makes of
// it. HasAddress says that the address in the signal frame is that of this exception.
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

// A Recogniser says which code objects and dumps belong to an architecture.
// Every member that is set must match; ELF machine 0 matches any file.
type Recogniser struct {
	ELFMachine uint16
	OSABI      int32  // -1: any
	FlagsMask  uint32 // the bits of e_flags that must be those of Flags
	Flags      uint32
	Magic      []byte // first bytes of a file that is not ELF
	NoteOwner  string // core notes of this owner make the target this architecture's too
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
	// Mask has a bit for each lane, lane 0 lowest. The one of threads with a
	// number of lanes (RegisterRange.Lanes), as wide as they have lanes, is the
	// execution mask: which of them execute.
	Mask
	Control
)

// A RegisterRange is Count registers with consecutive DWARF numbers from First.
//
// Ranges may share names where they differ in Bits, or where each has Lanes of
// its own: a machine whose registers are as wide as its threads has a number for
// each width. Names says which of them a thread means.
type RegisterRange struct {
	First, Count uint32
	// Names has Count names, or one in which "%d" stands for the index in the
	// range, counted from FirstIndex. They are what is printed.
	Names []string
	Bits  uint32 // of each register
	Class RegisterClass
	// FirstIndex is what "%d" is for the first register: 512 where the range
	// begins with v512. It has no use without "%d".
	FirstIndex uint32
	// Aliases are second names, laid out as Names is, which are understood but
	// not printed; nil: none.
	Aliases []string
	// Lanes says that only threads with this many lanes have these registers; 0:
	// all threads have them.
	Lanes uint32
	// Narrow says where objects are that are smaller than a register.
	Narrow Narrow
}

// Narrow says where in a register objects are that are smaller than it.
type Narrow uint8

// The ways in which registers have smaller objects. Where the byte order is little-endian
// the low-order end is the first bytes, and NarrowHigh means the same.
const (
	NarrowByClass   Narrow = iota // NarrowHigh for the classes Float and Vector, else NarrowLow
	NarrowLow                     // in the low-order end
	NarrowHigh                    // in the high-order end
	NarrowConverted               // as NarrowLow, but floating point numbers are converted to the format of the register's size
)

// NarrowIn says where a register has objects that are smaller than it.
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

// A Processor says how many lanes a processor's threads may have. It is for
// those who must know that before there is a thread to bind: names of registers
// may depend on it.
type Processor struct {
	Name  string   // "gfx90a"; "" stands for a processor that nobody named
	Lanes []uint32 // the usual count first
	// Code objects are for this processor whose ELF flags are Flags in the bits of
	// FlagsMask. A mask of 0: the ELF header does not tell.
	FlagsMask, Flags uint32
}

// RegisterSource says what kind of record a register set lays out.
type RegisterSource uint8

// The register sources.
const (
	CoreNote        RegisterSource = iota // Owner and Type name an ELF core note
	PerfSample                            // Type is unused; Field.Offset is the bit of sample_regs_user, in PERF_REG order
	MinidumpContext                       // Type is the size of the CONTEXT record; Owner is unused
)

// A RegisterSet lays out the registers in a record that someone else writes.
type RegisterSet struct {
	Source RegisterSource
	Owner  string // see the sources, as of Type
	Type   uint32
	Fields []RegisterField
}

// A RegisterField is one register, or a piece of one, in a record. A field that
// reaches past the end of the record is absent, not zero.
type RegisterField struct {
	Offset   uint32 // bytes from the start of the record
	Size     uint32 // bytes
	Register uint32 // DWARF number
	// RegisterOffset counts bytes from the start of the register's bytes, which
	// are in the byte order of the architecture: from its low end where that is
	// little-endian. Pieces of a register stand in ascending order.
	RegisterOffset uint32
}

// SpaceScope says what has an instance of an address space of its own.
type SpaceScope uint8

// The scopes of address spaces.
const (
	ProcessScope SpaceScope = iota
	AgentScope              // a device
	GroupScope              // a work-group
	WaveScope               // a thread
	LaneScope               // a lane of a thread
)

// An AddressSpace is one address space of an architecture (A.2.13).
type AddressSpace struct {
	Number locexpr.AddressSpace
	Name   string
	Bits   uint32 // of an address
	Scope  SpaceScope
}

// A Dialect is a table of vendor operations of DWARF expressions. Opcodes of
// vendors collide, so the dialect in force belongs to a code object. One that
// has the name of a dialect that locexpr has built in says that the architecture
// knows that one, and has its encodings.
type Dialect struct {
	Name       string
	Operations []DialectOperation
}

// A DialectOperation gives an encoding to an operation that the evaluator
// knows by its name in the canonical dialect.
type DialectOperation struct {
	Opcode byte
	User   uint64 // the ULEB that follows DW_OP_LLVM_user; 0 for a one-byte opcode
	Name   string // "DW_OP_LLVM_form_aspace_address"
}
