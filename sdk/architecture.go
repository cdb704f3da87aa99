// SPDX-License-Identifier: Apache-2.0

// Package sdk is what an architecture plugin is written with.
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
// error ends what needed the answer, with that error as its reason; everything
// else goes on. Whatever a plugin answers is validated before it is used.
//
// The package is large because every message has a Go form, a form on the wire, and the
// checks that both sides make; archpb is generated.
package sdk

import (
	"context"
	"sort"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
)

// An Architecture teaches the engine one architecture. Its methods may be
// called concurrently. An error of one ends what needed its answer; with an error of
// Describe the architecture cannot be used at all.
type Architecture interface {
	// Describe says what is constant about the architecture.
	Describe(ctx context.Context) (*Description, error)
	// OpenTarget finds the threads and code objects that notes of a core tell of.
	OpenTarget(ctx context.Context, e Engine, req *OpenTargetRequest) (*OpenTargetAnswer, error)
	// OpenObject says what is special about a code object.
	OpenObject(ctx context.Context, e Engine, req *OpenObjectRequest) (*OpenObjectAnswer, error)
	// FrameRules reads the code of functions that have no rows. The error may wrap
	// ErrObjectNotOpen.
	FrameRules(ctx context.Context, e Engine, req *FrameRulesRequest) (*FrameRulesAnswer, error)
	// BindThreads says where threads are, by the registers of their top frames.
	BindThreads(ctx context.Context, e Engine, req *BindThreadsRequest) (*BindThreadsAnswer, error)
	// Translate says where an address in an opaque range of an address space is.
	Translate(ctx context.Context, e Engine, req *TranslateRequest) (*TranslateAnswer, error)
	// ClassifyReturn says whether there are calls before addresses.
	ClassifyReturn(ctx context.Context, req *ClassifyReturnRequest) (*ClassifyReturnAnswer, error)
	// Disassemble decodes instructions, and says what they do.
	Disassemble(ctx context.Context, req *DisassembleRequest) (*DisassembleAnswer, error)
}

// An Engine is what a plugin may ask of the engine while a call is under way.
// Thread and object handles are those of the request. An object's stands for no
// other one as long as the plugin runs.
type Engine interface {
	// ReadMemory fills buf from the target. It returns how many bytes from
	// address on are there; fewer than len(buf) only with an error.
	ReadMemory(ctx context.Context, m MemoryRange, buf []byte) (int, error)
	// ReadRegisters returns registers of a thread's top frame, those of
	// numbers that the target has (all when numbers is empty).
	ReadRegisters(ctx context.Context, thread uint64, numbers []uint32) (Registers, error)
	// ReadSection returns a section of a code object, decompressed and
	// relocated; of several with one name the first. A section that does not
	// exist is an error. The name "" stands for the whole file, as it is: that is
	// how a code object is read that is no ELF file. It has at most MaxFile bytes.
	ReadSection(ctx context.Context, object uint64, name string) ([]byte, error)
}

// A MemoryRange says where to read: an address of a space, in the instance of
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

// A Note is a note of a core or of a code object.
type Note struct {
	Owner string // its name, without the terminator
	Type  uint32 // n_type
	Data  []byte // its descriptor
}

// OpenObjectRequest names a code object that the plugin recognises. One that is
// no ELF file, but has first bytes that the plugin recognises, has Machine 0 and
// no sections.
type OpenObjectRequest struct {
	Object  uint64 // handle for ReadSection
	Path    string
	Machine uint16 // e_machine
	OSABI   uint8  // EI_OSABI
	Flags   uint32 // e_flags
	// Processor is the one that the code is for, as the target says; "" where it
	// does not.
	Processor string
	// Sections are those of the ELF file in its order, the null section, 0,
	// included.
	Sections []SectionInfo
	Symbols  []SymbolInfo // functions of the symbol tables, where the engine has them
	// Companions are the files that belong to the code object, of those that the
	// description's Companions asks for, in that order.
	Companions []Companion
}

// A Companion is a file beside a code object, with the same name but for what
// follows the last dot, that the plugin recognises.
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
	Name    string // as it stands in the table: mangled
	Address uint64 // virtual address in the file
	Size    uint64 // bytes
}

// OpenObjectAnswer is what is special about a code object. The zero answer
// says: nothing.
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
	// ChecksCFI says that FrameRules tells where CFI of the object contradicts its
	// code. It is asked for each function that has CFI and that a stack leads to.
	ChecksCFI bool
}

// A DialectOverride puts another dialect in force for the CIEs and the units
// (DW_AT_LLVM_augmentation) of an augmentation, or the units of a producer (both are
// prefixes; one is set).
type DialectOverride struct {
	Augmentation string
	Producer     string
	Dialect      string
}

// A NestedObject is a code object inside another file, one with other first bytes
// than ELF has. It is opened as a code object of its own, by FILE#NAME.
type NestedObject struct {
	Name         string
	Offset, Size uint64 // bytes of the containing file
}

// RowPriority says how a table of rows stands beside the object's CFI.
type RowPriority uint8

// The priorities.
const (
	BelowCFI     RowPriority = iota // used where CFI has no row
	OverridesCFI                    // used although CFI has a row; the reason is reported
)

// A RowTable is a list of rows, sorted by Start, that do not overlap. The tables
// of an object have no more rows than it has bytes of code, and at most MaxBatch;
// 65,536 are always allowed, and 1,048,576 where its sections do not tell.
//
// Of a relocatable object the addresses of every section begin at 0. Section, in
// this and in what else has addresses of the object, is then the section that
// they are of: its index in the request's Sections. It is 0 where addresses are
// those of the whole object, as they are in any other object.
type RowTable struct {
	Priority RowPriority
	Reason   string // why there is the table, for what is reported
	Section  uint32
	Rows     []cfi.Row
}

// FunctionKind says how a stack ends at a function.
type FunctionKind uint8

// The function kinds.
const (
	OrdinaryFunction  FunctionKind = iota
	OutermostFunction              // nothing called it: the walk ends here
	KernelFunction                 // outermost, and launched from elsewhere
	// TrampolineFunction is where a signal handler returns to: it is entered at its
	// first instruction and not by a call; or a function whose CFI is wrong. Its
	// rows are read from its code, not taken from its CFI.
	TrampolineFunction
	// StackStartFunction is one in which a stack begins where it has called
	// something: a thread's first function, from which its creator returns too,
	// or one that calls on another stack. It is outermost where it has made a call,
	// unless the CFA is then found by the stack pointer, as its code says. The row of
	// a top frame is read from its code, too; without one it is outermost.
	StackStartFunction
	// InjectedFunction is one that a signal handler made the code that it interrupted
	// call: its caller is about to execute the instruction at its PC, as what a signal
	// interrupts is. Where calls leave their return address in a register, the function's
	// DefaultRules say where the handler put that register, and where the stack pointer was.
	InjectedFunction
	// StackSwitchFunction is a StackStartFunction whose code shows the way to the stack
	// that it was called on. Rows that are read from it lead there: by a CFA that is no
	// register and offset, if the code has changed stacks. Where the way cannot be gone, for
	// want of memory or registers, a stack begins in it.
	StackSwitchFunction
)

// A Function is a range of PCs with what the plugin knows about it.
type Function struct {
	Name       string
	Section    uint32 // see RowTable
	Start, End uint64
	// Lanes is how many a thread has that executes the function; 0 where that is not
	// known, or it is not SIMT. A thread that was bound without knowing its lanes
	// is bound once more with these.
	Lanes uint32
	Kind  FunctionKind
	// DefaultRules replaces the object's for this function; nil: the object's.
	DefaultRules []cfi.RegisterRule
}

// A PositionMap maps PCs to another position (a vISA index, an IR position).
// Position i holds for PCs in [PCs[i], PCs[i+1]).
type PositionMap struct {
	Kind      string   // what positions are: "visa"
	Section   uint32   // see RowTable
	PCs       []uint64 // sorted
	Positions []uint64 // as many as PCs
}

// A Variable has a location by PC range, as expressions in the canonical dialect.
type Variable struct {
	Name      string
	Section   uint32   // see RowTable
	Start     []uint64 // of range i, which ends before End[i]
	End       []uint64
	Locations [][]byte // of range i: operations
}

// FrameRulesRequest asks for rows of functions that have none. Where answering
// takes what OpenObject was told of the object, and the plugin does not know that,
// because its process is a new one or has been told of many objects since, it
// answers ErrObjectNotOpen: the engine opens the object again and asks once more.
type FrameRulesRequest struct {
	Object    uint64 // 0: code in no object
	Functions []CodeRange
}

// A CodeRange is code, with what is known about its bounds.
type CodeRange struct {
	// PC is the address to find a row for, inside [Start, Start+len(Code)).
	PC uint64
	// Start is where Code begins. Where Bounded, that is the function's first
	// instruction; else it is as far back as code could be read, and may lie
	// inside an instruction.
	Start   uint64
	Code    []byte
	Bounded bool
	Name    string // of the symbol or section, where there is one
	// Exact says that PC is the next instruction to execute, not an address
	// inside a call.
	Exact bool
	// Exits asks where the code at PC goes on to, in place of rows. An answer
	// without Exits says that the plugin does not know.
	Exits bool
	// Parts are code of the function that lies elsewhere, which its jumps lead to (PartOf). PC
	// may be in one of them. Only of a bounded function.
	Parts []CodePart
}

// A CodePart is code from Start on.
type CodePart struct {
	Start uint64
	Code  []byte
}

// CodeExits are the ways in which the code that is reached from the PC of a
// CodeRange, without leaving it and as if its calls returned, is left other than
// by returning. They tell what a call of that PC may have led to.
type CodeExits struct {
	// Jumps are addresses outside the range that the code jumps to or runs on to.
	Jumps []uint64
	// Slots are addresses of words in memory to whose contents the code jumps, as
	// entries of linkage tables do.
	Slots []uint64
	// Open says that the code may go on to other addresses too, such as that in a
	// register.
	Open bool
}

// FrameRulesAnswer has one entry for every function of the request, in order.
type FrameRulesAnswer struct {
	Functions []FrameRules
}

// FrameRules are the rows found by reading a function's code. They are valid
// over their own ranges only; where the request did not bound the function,
// the ranges cover what the code itself proves.
type FrameRules struct {
	Rows []cfi.Row
	// Gaps are code without a row, sorted by Start. They overlap neither each other
	// nor Rows.
	Gaps   []RowGap
	Reason string // why there is no row for the PC, when there is none
	// Trampoline says that the rows are those of a signal trampoline.
	Trampoline bool
	// Complete says that the rows mention every register that the function
	// changes: the description's default rules hold for the others, not those that
	// the object has because its call frame information leaves things unsaid. Of a
	// function that the request bounds it says too that Rows and Gaps are the answer
	// for every PC of it, exact or not: nobody asks for another one. What is in
	// neither has no row. Of another one it says that for every PC that Rows cover.
	Complete bool
	// Uncalled says that the code is entered and left in other ways than by calls
	// and returns, as that of Haskell's compiler is: no word of the stack is a
	// return address of it, and none is looked for.
	Uncalled bool
	// Exits are there where the request asked for them and they are known.
	Exits *CodeExits
	// Contradictions are code of which CFI says something else than the code does,
	// each with what that is, sorted by Start. Rows are used there in place of CFI, and
	// the reason is reported. Ranges that have no row are left to CFI.
	Contradictions []RowGap
}

// A RowGap is a range of PCs without a row, or with rows in place of CFI.
type RowGap struct {
	Start, End uint64
	Reason     string // why that is so; never empty
}

// rangeAt is the range that has a PC; nil if none has it.
func rangeAt(ranges []RowGap, pc uint64) *RowGap {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].End > pc })
	if i == len(ranges) || ranges[i].Start > pc {
		return nil
	}
	return &ranges[i]
}

// ContradictionAt is what CFI says otherwise than the code at a PC; "" if that is nothing.
func (f *FrameRules) ContradictionAt(pc uint64) string {
	if r := rangeAt(f.Contradictions, pc); r != nil {
		return r.Reason
	}
	return ""
}

// GapReason is why a PC is in one of the gaps; "" if it is in none.
func (f *FrameRules) GapReason(pc uint64) string {
	if r := rangeAt(f.Gaps, pc); r != nil {
		return r.Reason
	}
	return ""
}

// BindThreadsRequest asks about threads, in a batch.
type BindThreadsRequest struct {
	Threads []ThreadState
}

// ThreadState is a thread's top frame.
type ThreadState struct {
	Thread    uint64 // handle for ReadRegisters
	Registers Registers
	Processor string      // as the target says; "": it does not
	Lanes     uint32      // as the target says; 0: it does not
	Spaces    []SpaceBase // as far as the target says
}

// A SpaceBase says where the thread's instance of an address space begins in
// the space that reaches it. Which space that is, the architecture knows: that
// of a wave's private memory lies in global memory, that of a group's local
// memory is seen through generic addresses.
type SpaceBase struct {
	Space locexpr.AddressSpace
	Base  uint64
}

// BindThreadsAnswer has one entry for every thread of the request, in order.
type BindThreadsAnswer struct {
	Threads []ThreadBinding
}

// A ThreadBinding is what a machine decides per thread.
type ThreadBinding struct {
	PC                uint64 // address of the instruction that is executed next
	Lanes             uint32 // 1 for a CPU thread
	ActiveLanes       []byte // one bit a lane, lane 0 lowest; nil: all
	ActiveUnknown     bool   // the state does not say which lanes are active; ActiveLanes is nil
	Widths            []RegisterWidth
	ReturnAddressMask uint64 // bits of a return address that are not address (pointer authentication)
	Agent             string // what the thread is called by in reports, as Group and Wave are; "": unknown
	Group             string
	Wave              string
	Maps              []SpaceMap // of address spaces that are no memory of the target
	Problem           string     // why the thread cannot be walked; "" when it can
}

// A RegisterWidth overrides the size, in bits, of Count registers from number First on.
type RegisterWidth struct {
	First, Count, Bits uint32
}

// MapKind says how a range of an address space reaches another one.
type MapKind uint8

// The kinds of map ranges.
const (
	IdentityMap    MapKind = iota // at Base in the space Into, in the same order
	InterleavedMap                // as IdentityMap, but the elements of all lanes alternate
	RegisterMap                   // in registers, one after the other
	OpaqueMap                     // where Translate says
)

// A SpaceMap maps ranges of one address space into another.
type SpaceMap struct {
	Space  locexpr.AddressSpace
	Ranges []MapRange
}

// A MapRange maps [Start, Start+Size) of its space.
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

// ReturnClass is the answer for one address.
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
	Processor string // that the code is for; "": it is not known
	Lanes     uint32 // of the thread that executes it; 0: not known
}

// DisassembleAnswer lists instructions in order.
type DisassembleAnswer struct {
	Instructions []Instruction
	// LLVM says how LLVM's tools disassemble the same code. Where the user names one of
	// them, its text takes the place of that of Instructions. An architecture that writes
	// all instructions itself leaves it empty.
	LLVM LLVMTarget
}

// An LLVMTarget is what LLVM's tools are told of code that they disassemble. Each
// member has at most MaxLLVMName characters, which are letters, digits and those of
// "-_.,:+".
type LLVMTarget struct {
	Triple   string // --triple, as "amdgcn-amd-amdhsa"; "": there is no target
	CPU      string // --mcpu, as "gfx90a"; "": any
	Features string // --mattr, as "+wavefrontsize64"; "": the usual ones
}

// An Instruction is one decoded instruction.
type Instruction struct {
	Address uint64
	Size    uint32 // bytes
	Text    string // one line
	// Kind is what the instruction does that may stop a thread. An architecture that
	// does not say it leaves it 0.
	Kind InstructionKind
	// Register is the DWARF number of the register by whose low RegisterBits a division
	// divides, or to which a call, jump or return goes; RegisterBits is 0 where there is none.
	Register, RegisterBits uint32
	// Accesses are the places of memory that the instruction reads or writes, at most
	// MaxAccesses. Whoever explains a fault finds by them what was accessed, and
	// through which register. An architecture that does not know them leaves them out.
	Accesses []Access
}

// InstructionKind says what an instruction does, as far as that explains why a thread
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

// An Access is a place of memory that an instruction reads or writes. Its address is
// the sum of Base, Index times Scale, Segment and Displacement, cut to AddressBits.
type Access struct {
	IsRead, IsWrite bool
	// Size is how many bytes, 0 where that is not known.
	Size uint32
	// Base, Index and Segment are DWARF numbers of registers, NoRegister where there is
	// none. The address relative to the PC has no Base: Displacement is the address.
	Base, Index, Segment uint32
	Scale                uint32 // of Index; 0 without one
	// IndexBits is how many of the low bits of Index count, and IsIndexSigned says
	// whether the highest of them is a sign; 0: all count.
	IndexBits     uint32
	IsIndexSigned bool
	Displacement  int64  // bytes
	AddressBits   uint32 // how many of the low bits of the sum count
}
