// SPDX-License-Identifier: Apache-2.0

// Package sdk is the library for writing plugins of architectures and of language runtimes.
//
// A plugin supplies data; the engine does the walking. An Architecture answers
// eight calls. Each takes and returns a batch, and in the steady state none is
// made per frame. Base answers all of them with "nothing special", so a plugin
// embeds Base and writes the calls in which its machine differs.
//
//	call            when                                   a Base answers
//	Describe        once                                   (must be written)
//	OpenTarget      once per target with notes it owns     no threads, no code objects
//	OpenObject      once per code object it recognises     the description's rules, nothing nested
//	FrameRules      batches of functions without rows      no rows
//	BindThreads     once per batch of threads              PC register, one lane, no maps
//	Translate       inside an opaque range of a map        ErrNotImplemented
//	ClassifyReturn  batches of PCs, cached                 unknown
//	Disassemble     when code is shown                     ErrNotImplemented
//
// An answer may be shorter than its request only where its comment says so. An
// error ends the operation that needed the answer, with that error as its reason;
// everything else goes on. Every answer of a plugin is validated before it is used.
//
// A Runtime teaches the engine a language runtime in the same manner, by five calls.
//
// The package is large because every message has a Go type, a type on the wire, and the
// checks that both sides make; archpb is generated.
package sdk

import (
	"context"
	"sort"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
)

// Architecture teaches the engine one architecture. Its methods may be
// called concurrently. An error of one ends the operation that needed its answer; with
// an error of Describe the architecture cannot be used at all.
type Architecture interface {
	// Describe returns the constant properties of the architecture. EngineFeature has the
	// number of the features that the engine knows.
	Describe(ctx context.Context) (*Description, error)
	// OpenTarget finds the threads and code objects in the notes of a core.
	OpenTarget(ctx context.Context, e Engine, req *OpenTargetRequest) (*OpenTargetAnswer, error)
	// OpenObject describes the peculiarities of a code object.
	OpenObject(ctx context.Context, e Engine, req *OpenObjectRequest) (*OpenObjectAnswer, error)
	// FrameRules reads the code of functions that have no rows. The error may wrap
	// ErrObjectNotOpen.
	FrameRules(ctx context.Context, e Engine, req *FrameRulesRequest) (*FrameRulesAnswer, error)
	// BindThreads finds the PCs, lanes and memory of threads by the registers of their top
	// frames.
	BindThreads(ctx context.Context, e Engine, req *BindThreadsRequest) (*BindThreadsAnswer, error)
	// Translate finds the location of an address in an opaque range of an address space.
	Translate(ctx context.Context, e Engine, req *TranslateRequest) (*TranslateAnswer, error)
	// ClassifyReturn reports whether there are calls before addresses.
	ClassifyReturn(ctx context.Context, req *ClassifyReturnRequest) (*ClassifyReturnAnswer, error)
	// Disassemble decodes instructions, and describes their effects.
	Disassemble(ctx context.Context, req *DisassembleRequest) (*DisassembleAnswer, error)
}

// Engine has the requests that a plugin may make of the engine while a call is under
// way. Thread and object handles are the request's. The handle of an object is not used
// for another one as long as the plugin runs.
type Engine interface {
	// ReadMemory fills buf from the target. It returns how many bytes from
	// address on are there; fewer than len(buf) only with an error.
	ReadMemory(ctx context.Context, m MemoryRange, buf []byte) (int, error)
	// ReadRegisters returns registers of a thread's top frame, as far as the target has
	// them (all when numbers is empty).
	ReadRegisters(ctx context.Context, thread uint64, numbers []uint32) (Registers, error)
	// ReadSection returns a section of a code object, decompressed and
	// relocated; of several with one name the first. A section that does not
	// exist is an error. The name "" stands for the whole file, unchanged, for code
	// objects that are no ELF files. It has at most MaxFile bytes.
	ReadSection(ctx context.Context, object uint64, name string) ([]byte, error)
}

// MemoryRange is a place to read from: an address of a space, in the instance of
// that space that belongs to the thread and lane (both ignored for
// process-wide spaces).
type MemoryRange struct {
	Space   locexpr.AddressSpace
	Address uint64
	Thread  uint64 // handle
	Lane    int32  // from 0 on; -1: none
}

// Registers is register state, packed: register Numbers[i] has the bytes
// Data[Offsets[i]:Offsets[i+1]], in the byte order of the architecture.
// Offsets has one element more than Numbers; Numbers is sorted.
type Registers struct {
	Numbers []uint32
	Offsets []uint32
	Data    []byte
}

// Note is a note of a core or of a code object.
type Note struct {
	Owner string // its name, without the terminator
	Type  uint32 // n_type
	Data  []byte // its descriptor
}

// OpenObjectRequest describes a code object that the plugin recognises. An object that
// is no ELF file, and is recognised by its first bytes, has Machine 0 and no sections.
type OpenObjectRequest struct {
	Object  uint64 // handle for ReadSection
	Path    string
	Machine uint16 // e_machine
	OSABI   uint8  // EI_OSABI
	Flags   uint32 // e_flags
	// Processor is the processor that the code is for; "" where the target does not have
	// it.
	Processor string
	// Sections are the sections of the ELF file in its order, including the null section,
	// 0.
	Sections []SectionInfo
	Symbols  []SymbolInfo // functions of the symbol tables, where the engine has them
	// Companions are the files beside the code object that the description's Companions
	// request, in that order.
	Companions []Companion
}

// Companion is a file that the plugin recognises beside a code object, with the same
// name up to the last dot.
type Companion struct {
	Suffix string // one of the description's Companions
	Object uint64 // handle for ReadSection
}

// SectionInfo describes a section without its bytes.
type SectionInfo struct {
	Name    string
	Type    uint32 // sh_type
	Flags   uint64 // sh_flags
	Address uint64 // virtual address in the file
	Size    uint64 // sh_size
}

// SymbolInfo is a function symbol.
type SymbolInfo struct {
	Name    string // as in the table: mangled
	Address uint64 // virtual address in the file; the code's where the symbol leads to a descriptor of the function
	Size    uint64 // bytes
	// Other is st_other: the visibility, and what the architecture keeps in the bits above it
	// (64-bit POWER: how far behind the global entry point the local one is).
	Other uint8
	// Section is the index in the request's Sections of the section that the function's code is
	// in; 0: in none of them.
	Section uint32
}

// OpenObjectAnswer describes the peculiarities of a code object. The zero answer stands
// for none.
type OpenObjectAnswer struct {
	Processor    string // "gfx90a"; "" where there is one kind
	Dialect      string // of .eh_frame, .debug_frame and .debug_info; "" is standard DWARF
	Overrides    []DialectOverride
	DefaultRules []cfi.RegisterRule // nil: the description's
	Nested       []NestedObject
	Tables       []RowTable
	Functions    []Function
	PositionMaps []PositionMap
	Variables    []Variable
	Problems     []string // what could not be read, each a sentence
	// ChecksCFI says that FrameRules finds contradictions of the object's CFI to its
	// code. It is called for each function with CFI that a stack leads to.
	ChecksCFI bool
	// ReadsCFI says that the plugin has read the object's call frame information, because its
	// compilers mean something else by it than the document: the rows of Tables that override
	// it are made of it, and are found by it. The engine reads none.
	ReadsCFI bool
}

// DialectOverride puts another dialect in force for the CIEs and the units
// (DW_AT_LLVM_augmentation) of an augmentation, or the units of a producer (both are
// prefixes; one is set).
type DialectOverride struct {
	Augmentation string
	Producer     string
	Dialect      string
}

// NestedObject is a code object inside a file that is not ELF. It is opened as a code
// object of its own, by FILE#NAME.
type NestedObject struct {
	Name         string
	Offset, Size uint64 // bytes of the containing file
}

// RowPriority is the priority of a table of rows against the object's CFI.
type RowPriority uint8

// The priorities.
const (
	BelowCFI     RowPriority = iota // used where CFI has no row
	OverridesCFI                    // used although CFI has a row; the reason is reported
)

// RowTable is a list of rows, sorted by Start, that do not overlap. The tables
// of an object have no more rows than it has bytes of code, and at most MaxBatch;
// 65,536 are always allowed, and 1,048,576 where its sections do not show their number.
//
// In a relocatable object the addresses of every section begin at 0. Section, here and
// in other types with addresses, is then the index of their section in the request's
// Sections. In any other object addresses are of the whole object, and Section is 0.
type RowTable struct {
	Priority RowPriority
	Reason   string // why there is the table, for reports
	Section  uint32
	Rows     []cfi.Row
}

// FunctionKind is the kind of a function: an ordinary one, or one at which stacks end or
// change.
type FunctionKind uint8

// The function kinds.
const (
	OrdinaryFunction  FunctionKind = iota
	OutermostFunction              // nothing called it: the walk ends here
	KernelFunction                 // outermost, and launched from elsewhere
	// TrampolineFunction is a function that a signal handler returns to: it is entered at
	// its first instruction and not by a call; or a function whose CFI is wrong. Its
	// rows are read from its code, not taken from its CFI.
	TrampolineFunction
	// StackStartFunction is a function in which a stack begins once it has made a call:
	// a thread's first function, from which its creator returns too, or a function that
	// calls on another stack. It is then outermost, unless by its code the CFA is found by
	// the stack pointer. The row of a top frame is read from its code, too; without one it
	// is outermost.
	StackStartFunction
	// InjectedFunction is a function that a signal handler made the interrupted code call:
	// its caller is about to execute the instruction at its PC, as interrupted code is.
	// Where calls leave their return address in a register, the function's DefaultRules
	// say where the handler put that register, and where the stack pointer was.
	InjectedFunction
	// StackSwitchFunction is a StackStartFunction whose code shows how to find the stack
	// that it was called on. Rows that are read from it lead there: by a CFA that is no
	// register and offset, if the code has changed stacks. Where these rows fail, for want
	// of memory or registers, a stack begins in it.
	StackSwitchFunction
)

// Function is a range of PCs with what the plugin knows about it.
type Function struct {
	Name       string
	Section    uint32 // see RowTable
	Start, End uint64
	// Lanes is the number of lanes of a thread that executes the function; 0 where it is
	// unknown, or the function is not SIMT. A thread that was bound without knowing its
	// lanes is bound once more with these.
	Lanes uint32
	Kind  FunctionKind
	// DefaultRules replaces the object's for this function; nil: the object's.
	DefaultRules []cfi.RegisterRule
}

// PositionMap maps PCs to another position (a vISA index, an IR position).
// Position i is valid for PCs in [PCs[i], PCs[i+1]).
type PositionMap struct {
	Kind      string   // what positions are: "visa"
	Section   uint32   // see RowTable
	PCs       []uint64 // sorted
	Positions []uint64 // as many as PCs
}

// Variable has a location by PC range, as expressions in the canonical dialect.
type Variable struct {
	Name string
	// Register is the number by which location descriptions of the object's debug information
	// name a register of an intermediate language, which this variable then is: it is read in
	// its place, and is not shown. 0: it is a variable of the program.
	Register  uint64
	Section   uint32   // see RowTable
	Start     []uint64 // of range i, which ends before End[i]
	End       []uint64
	Locations [][]byte // of range i: operations
}

// FrameRulesRequest asks for rows of functions that have none. Where the answer needs
// the request of OpenObject, and the plugin no longer has it, because its process is new
// or has opened many objects since, it answers ErrObjectNotOpen: the engine opens the
// object again and repeats the request.
type FrameRulesRequest struct {
	Object    uint64 // 0: code in no object
	Functions []CodeRange
}

// CodeRange is code, as much of it as could be read, and its known bounds.
type CodeRange struct {
	// PC is the address to find a row for, inside [Start, Start+len(Code)).
	PC uint64
	// Start is the address of Code. Where Bounded, that is the function's first
	// instruction; else it is as far back as code could be read, and may be inside an
	// instruction.
	Start   uint64
	Code    []byte
	Bounded bool
	Name    string // of the symbol or section, where there is one
	// Exact says that PC is the next instruction to execute, not an address
	// inside a call.
	Exact bool
	// Exits asks for the exits of the code at PC, in place of rows. In an answer without
	// Exits they are unknown.
	Exits bool
	// Parts are other pieces of the function's code, to which its jumps lead (PartOf). PC
	// may be in one of them. Only a bounded function has parts.
	Parts []CodePart
}

// CodePart is code from Start on.
type CodePart struct {
	Start uint64
	Code  []byte
}

// CodeExits are the exits, other than returns, of the code that is reached from the PC
// of a CodeRange without leaving it, as if its calls returned. They show which code a
// call of that PC may have led to.
type CodeExits struct {
	// Jumps are addresses outside the range that the code jumps to or runs on to.
	Jumps []uint64
	// Slots are addresses of words in memory to whose contents the code jumps, as
	// entries of linkage tables do.
	Slots []uint64
	// Open says that the code may go on to other addresses too, such as an address in a
	// register.
	Open bool
}

// FrameRulesAnswer has one entry for every function of the request, in order.
type FrameRulesAnswer struct {
	Functions []FrameRules
}

// FrameRules are the rows found by reading a function's code. They are valid
// over their own ranges only; where the request did not bound the function,
// the ranges cover as much as the code itself proves.
type FrameRules struct {
	Rows []cfi.Row
	// Gaps are code without a row, sorted by Start. They overlap neither each other
	// nor Rows.
	Gaps   []RowGap
	Reason string // why there is no row for the PC, when there is none
	// Trampoline says that the rows are a signal trampoline's.
	Trampoline bool
	// Complete says that the rows mention every register that the function
	// changes: for the others the description's default rules are valid, not the object's,
	// which make up for gaps of its call frame information. For a function that the request
	// bounds it also says that Rows and Gaps are the answer for every PC of it, exact or
	// not: no other PC is requested, and PCs in neither have no row. For another function
	// it says that for every PC that Rows cover.
	Complete bool
	// Uncalled says that the code is not entered and left by calls and returns, like the
	// output of Haskell's compiler: no word of the stack is a return address of it, and
	// none is searched for.
	Uncalled bool
	// Exits is set where it was requested and is known.
	Exits *CodeExits
	// Contradictions are ranges of code that CFI contradicts, each with the contradiction,
	// sorted by Start. Rows are used there in place of CFI, and the reason is reported.
	// Ranges that have no row are left to CFI.
	Contradictions []RowGap
}

// RowGap is a range of PCs without a row, or with rows in place of CFI.
type RowGap struct {
	Start, End uint64
	Reason     string // never empty
}

// rangeAt returns the range that contains a PC; nil if there is none.
func rangeAt(ranges []RowGap, pc uint64) *RowGap {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].End > pc })
	if i == len(ranges) || ranges[i].Start > pc {
		return nil
	}
	return &ranges[i]
}

// ContradictionAt returns the contradiction of CFI to the code at a PC; "" if there is none.
func (f *FrameRules) ContradictionAt(pc uint64) string {
	if r := rangeAt(f.Contradictions, pc); r != nil {
		return r.Reason
	}
	return ""
}

// GapReason returns the reason of the gap that contains a PC; "" if there is none.
func (f *FrameRules) GapReason(pc uint64) string {
	if r := rangeAt(f.Gaps, pc); r != nil {
		return r.Reason
	}
	return ""
}

// BindThreadsRequest is a batch of threads to bind.
type BindThreadsRequest struct {
	Threads []ThreadState
}

// ThreadState is a thread's top frame.
type ThreadState struct {
	Thread    uint64 // handle for ReadRegisters
	Registers Registers
	Processor string      // "" where the target does not have it
	Lanes     uint32      // 0 where the target does not have them
	Spaces    []SpaceBase // as far as the target has them
}

// SpaceBase is the address at which the thread's instance of an address space begins in
// the space that it is reached through. The architecture knows that space: a wave's private
// memory is in global memory, a group's local memory is seen through generic addresses.
type SpaceBase struct {
	Space locexpr.AddressSpace
	Base  uint64
}

// BindThreadsAnswer has one entry for every thread of the request, in order.
type BindThreadsAnswer struct {
	Threads []ThreadBinding
}

// ThreadBinding has the machine-specific state of a thread.
type ThreadBinding struct {
	PC                uint64 // address of the instruction that is executed next
	Lanes             uint32 // 1 for a CPU thread
	ActiveLanes       []byte // one bit a lane, lane 0 lowest; nil: all
	ActiveUnknown     bool   // the active lanes are unknown; ActiveLanes is nil
	Widths            []RegisterWidth
	ReturnAddressMask uint64 // bits of a return address that are not address (pointer authentication)
	Agent             string // with Group and Wave, the thread's name in reports; "": unknown
	Group             string
	Wave              string
	Maps              []SpaceMap // of address spaces that are no memory of the target
	Problem           string     // why the thread cannot be walked; "" when it can
}

// RegisterWidth overrides the size, in bits, of Count registers from number First on.
type RegisterWidth struct {
	First, Count, Bits uint32
}

// MapKind is the way in which a range of an address space maps to another one.
type MapKind uint8

// The kinds of map ranges.
const (
	IdentityMap    MapKind = iota // at Base in the space Into, in the same order
	InterleavedMap                // as IdentityMap, but the elements of all lanes alternate
	RegisterMap                   // in registers, one after the other
	OpaqueMap                     // Translate finds the location
)

// SpaceMap maps ranges of one address space into another.
type SpaceMap struct {
	Space  locexpr.AddressSpace
	Ranges []MapRange
}

// MapRange maps [Start, Start+Size) of its space.
type MapRange struct {
	Kind        MapKind
	Start, Size uint64               // bytes
	Into        locexpr.AddressSpace // IdentityMap, InterleavedMap
	Base        uint64               // IdentityMap, InterleavedMap: the address that Start has there
	Element     uint32               // InterleavedMap: bytes of one element
	Stride      uint64               // InterleavedMap: bytes between a lane's elements
	Register    uint32               // RegisterMap: the first register
}

// TranslateRequest asks for an address in an opaque range.
type TranslateRequest struct {
	Space   locexpr.AddressSpace
	Address uint64
	Expr    []byte // canonical dialect; nil: translate Address itself
	Thread  uint64 // handle
	Frame   uint32 // from 0, the top frame, on
	Lane    int32  // from 0 on; -1: none
}

// TranslateAnswer is an expression in the canonical dialect that yields the location.
type TranslateAnswer struct {
	Expr []byte
}

// ClassifyReturnRequest asks whether addresses are return addresses. The
// bytes before PCs[i] are Code[Offsets[i]:Offsets[i+1]].
type ClassifyReturnRequest struct {
	PCs     []uint64
	Offsets []uint32
	Code    []byte
}

// ReturnClass classifies one address by the instruction before it.
type ReturnClass uint8

// The return classes.
const (
	UnknownReturn ReturnClass = iota
	NotAfterCall
	AfterDirectCall
	AfterIndirectCall
)

// ClassifyReturnAnswer has one entry for every PC of the request, in order.
type ClassifyReturnAnswer struct {
	Classes []ReturnClass
	Targets []uint64 // of direct calls; 0 otherwise
}

// DisassembleRequest asks for the instructions of Code, which starts at Address.
type DisassembleRequest struct {
	Address   uint64
	Code      []byte
	Processor string // that the code is for; "": unknown
	Lanes     uint32 // of the thread that executes it; 0: not known
}

// DisassembleAnswer lists instructions in order.
type DisassembleAnswer struct {
	Instructions []Instruction
	// LLVM is the target with which LLVM's tools, or NVIDIA's for its triple, disassemble the same
	// code. Where the user chooses one of them, its text replaces the text of Instructions. An architecture that
	// writes all instructions itself leaves it empty.
	LLVM LLVMTarget
}

// LLVMTarget has the options of LLVM's tools for the code that they disassemble. Each
// member has at most MaxLLVMName characters, which are letters, digits and "-_.,:+".
type LLVMTarget struct {
	Triple   string // --triple, as "amdgcn-amd-amdhsa"; "": there is no target
	CPU      string // --mcpu, as "gfx90a"; "": any
	Features string // --mattr, as "+wavefrontsize64"; "": the usual ones
}

// Instruction is one decoded instruction.
type Instruction struct {
	Address uint64
	Size    uint32 // bytes
	Text    string // one line
	// Kind is the effect of the instruction that may stop a thread; 0 where the
	// architecture does not have it.
	Kind InstructionKind
	// Register is the DWARF number of the register by whose low RegisterBits a division
	// divides, or to which a call, jump or return goes; RegisterBits is 0 where there is none.
	Register, RegisterBits uint32
	// Accesses are the places of memory that the instruction reads or writes, at most
	// MaxAccesses. They explain which address a fault accessed, and through which register.
	// An architecture that does not know them leaves them out.
	Accesses []Access
}

// InstructionKind is the effect of an instruction, as far as it explains why a thread
// stopped at it.
type InstructionKind uint8

// The kinds.
const (
	OtherInstruction      InstructionKind = iota
	BreakpointInstruction                 // stops the thread for a debugger
	UndefinedInstruction                  // is invalid by definition, or a trap; compilers write it where nothing may come
	DivideInstruction                     // divides integers
	CallInstruction
	JumpInstruction
	ReturnInstruction
	PrivilegedInstruction // is for operating systems
	SystemCallInstruction
)

// MaxAccesses is how many places of memory one instruction may have.
const MaxAccesses = 4

// Access is a place of memory that an instruction reads or writes. Its address is
// the sum of Base, Index times Scale, Segment and Displacement, cut to AddressBits.
type Access struct {
	IsRead, IsWrite bool
	// Size is the number of bytes; 0: unknown.
	Size uint32
	// Base, Index and Segment are DWARF numbers of registers, NoRegister where there is
	// none. The address relative to the PC has no Base: Displacement is the address.
	Base, Index, Segment uint32
	Scale                uint32 // of Index; 0 without one
	// IndexBits is the number of low bits of Index that count, and IsIndexSigned is true
	// where the highest of them is a sign; 0: all count.
	IndexBits     uint32
	IsIndexSigned bool
	Displacement  int64  // bytes
	AddressBits   uint32 // the number of low bits of the sum that count
}
