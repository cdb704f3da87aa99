// SPDX-License-Identifier: Apache-2.0

package pe

import "fmt"

// UnwindInfo describes how a range of code set up its frame ("x64 exception handling", struct
// UNWIND_INFO). Registers have the numbers of instructions: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi,
// r8 and so on; DWARFRegister gives their numbers in rows.
type UnwindInfo struct {
	Address       uint64 // virtual, of the information itself
	Version       uint8  // 1 or 2
	Flags         uint8
	PrologSize    uint8 // bytes
	FrameRegister uint8 // 0 where there is none
	FrameOffset   uint8 // bytes: FrameRegister is that much above rsp when it is set
	Codes         []UnwindCode
	Epilogs       []Epilog // version 2: from the end of the function to its start
	Handler       uint64   // the language's handler of exceptions; 0 where there is none
	// Chained is the range of the function that was executed before this one; nil where
	// there is none.
	Chained *Function
}

// The flags of UnwindInfo.
const (
	HasExceptionHandler   = 1 // UNW_FLAG_EHANDLER
	HasTerminationHandler = 2 // UNW_FLAG_UHANDLER
	IsChained             = 4 // UNW_FLAG_CHAININFO
)

// An Operation is the effect of an instruction of a prologue.
type Operation uint8

// The operations, by their numbers in the document. The large and the small variant of one differ in
// the file only.
const (
	PushNonvol      Operation = 0
	AllocLarge      Operation = 1
	AllocSmall      Operation = 2
	SetFPReg        Operation = 3
	SaveNonvol      Operation = 4
	SaveNonvolFar   Operation = 5
	epilogOperation Operation = 6
	SaveXMM128      Operation = 8
	SaveXMM128Far   Operation = 9
	PushMachFrame   Operation = 10
)

// operations are the names of the operations.
var operations = map[Operation]string{
	PushNonvol: "PUSH_NONVOL", AllocLarge: "ALLOC_LARGE", AllocSmall: "ALLOC_SMALL", SetFPReg: "SET_FPREG",
	SaveNonvol: "SAVE_NONVOL", SaveNonvolFar: "SAVE_NONVOL_FAR", epilogOperation: "EPILOG",
	SaveXMM128: "SAVE_XMM128", SaveXMM128Far: "SAVE_XMM128_FAR", PushMachFrame: "PUSH_MACHFRAME",
}

// String returns the operation's name in the document, without UWOP_.
func (o Operation) String() string {
	if name, ok := operations[o]; ok {
		return name
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// An UnwindCode is an operation of a prologue ("x64 exception handling", struct
// UNWIND_CODE). Codes are in the order in which they are undone.
type UnwindCode struct {
	Offset    uint8 // of the end of the instruction, from the start of the range
	Operation Operation
	Register  uint8 // that was pushed or saved: a number of rax to r15, or of xmm0 to xmm15
	// Value is, in bytes, the allocated size, or the offset from the base of the frame at
	// which the register was saved; for a machine frame 1 where it has an error code.
	Value uint32
}

// An Epilog is a range of an epilogue that version 2 names.
type Epilog struct {
	Start, End uint64 // virtual addresses
}

// UnwindInfo reads the unwind information of a function.
func (f *File) UnwindInfo(fn Function) (*UnwindInfo, error) {
	u := new(UnwindInfo)
	if err := f.readUnwind(fn.entry, u); err != nil {
		return nil, err
	}
	return u, nil
}

// readUnwind reads the unwind information of an entry into u, whose slices are reused.
func (f *File) readUnwind(e runtimeFunction, u *UnwindInfo) error {
	*u = UnwindInfo{Codes: u.Codes[:0], Epilogs: u.Epilogs[:0]}
	if e.unwind&isIndirect != 0 {
		return f.readIndirect(e, u)
	}
	u.Address = f.address(e.unwind)
	header, err := f.at(e.unwind, 4, "UNWIND_INFO")
	if err != nil {
		return err
	}
	u.Version, u.Flags, u.PrologSize = header[0]&7, header[0]>>3, header[1]
	u.FrameRegister, u.FrameOffset = header[3]&15, header[3]>>4*16
	if u.Version != 1 && u.Version != 2 {
		return f.errorf(e.unwind, "UNWIND_INFO of version %d, expected 1 or 2", u.Version)
	}
	count := int(header[2])
	slots, err := f.at(e.unwind+4, 2*uint64(count), "unwind codes")
	if err != nil {
		return err
	}
	if err := f.readCodes(e, u, slots); err != nil {
		return err
	}
	return f.readTail(e.unwind+4+2*uint32(count+count&1), u)
}

// readIndirect follows an entry to another one, whose unwind information it shares.
func (f *File) readIndirect(e runtimeFunction, u *UnwindInfo) error {
	other, err := f.entryAt(e.unwind &^ isIndirect)
	if err != nil {
		return err
	}
	u.Address, u.Version, u.Flags = f.address(e.unwind&^isIndirect), 1, IsChained
	u.Chained = other
	return nil
}

// readTail reads the data behind the codes: the handler, or the entry that is chained.
func (f *File) readTail(rva uint32, u *UnwindInfo) (err error) {
	switch {
	case u.Flags&IsChained != 0:
		u.Chained, err = f.entryAt(rva)
		return err
	case u.Flags&(HasExceptionHandler|HasTerminationHandler) != 0:
		b, err := f.at(rva, 4, "exception handler")
		if err != nil {
			return err
		}
		u.Handler = f.address(u32(b, 0))
	}
	return nil
}

func (f *File) entryAt(rva uint32) (*Function, error) {
	b, err := f.at(rva, runtimeFunctionSize, "chained RUNTIME_FUNCTION")
	if err != nil {
		return nil, err
	}
	fn := f.function(functionTable(b).at(0))
	return &fn, nil
}

// readCodes reads the codes, each of which takes one to three slots of two bytes.
func (f *File) readCodes(e runtimeFunction, u *UnwindInfo, slots []byte) error {
	var epilogs epilogReader
	for i := 0; i < len(slots); {
		offset := e.unwind + 4 + uint32(i)
		operation, info := Operation(slots[i+1]&15), slots[i+1]>>4
		if operation == epilogOperation && u.Version == 2 {
			if err := epilogs.add(e, slots[i], info); err != nil {
				return f.errorf(offset, "%w", err)
			}
			i += 2
			continue
		}
		size := slotsOf(operation, info)
		if size == 0 {
			return f.errorf(offset, "unwind code %d with %d is unknown in version %d", uint8(operation), info, u.Version)
		}
		if i+2*size > len(slots) {
			return f.errorf(offset, "%v has %d slots, %d are left", operation, size, (len(slots)-i)/2)
		}
		c := newCode(slots[i:i+2*size], operation, info)
		if err := checkCode(c, u); err != nil {
			return f.errorf(offset, "%v: %w", operation, err)
		}
		u.Codes = append(u.Codes, c)
		i += 2 * size
	}
	for _, r := range epilogs.list {
		u.Epilogs = append(u.Epilogs, Epilog{f.address(r.begin), f.address(r.end)})
	}
	return nil
}

// slotsOf returns how many slots an operation takes; 0 where there is no such operation.
func slotsOf(o Operation, info byte) int {
	switch o {
	case PushNonvol, AllocSmall, SetFPReg:
		return 1
	case PushMachFrame:
		if info <= 1 {
			return 1
		}
	case AllocLarge:
		if info <= 1 {
			return 2 + int(info)
		}
	case SaveNonvol, SaveXMM128:
		return 2
	case SaveNonvolFar, SaveXMM128Far:
		return 3
	}
	return 0
}

// newCode makes a code from its slots.
func newCode(b []byte, o Operation, info byte) UnwindCode {
	c := UnwindCode{Offset: b[0], Operation: o}
	value := uint32(0)
	switch len(b) {
	case 4:
		value = uint32(u16(b, 2))
	case 6:
		value = u32(b, 2)
	}
	switch o {
	case PushNonvol:
		c.Register = info
	case AllocLarge:
		if c.Value = value; info == 0 {
			c.Value *= 8
		}
	case AllocSmall:
		c.Value = uint32(info)*8 + 8
	case SaveNonvol:
		c.Register, c.Value = info, value*8
	case SaveXMM128:
		c.Register, c.Value = info, value*16
	case SaveNonvolFar, SaveXMM128Far:
		c.Register, c.Value = info, value
	case PushMachFrame:
		c.Value = uint32(info)
	}
	return c
}

// rsp is the number of the stack pointer in instructions.
const rsp = 4

func checkCode(c UnwindCode, u *UnwindInfo) error {
	switch {
	case c.Register == rsp && (c.Operation == PushNonvol || c.Operation == SaveNonvol || c.Operation == SaveNonvolFar):
		return fmt.Errorf("register rsp, which is not saved but computed")
	case c.Operation == SetFPReg && (u.FrameRegister == 0 || u.FrameRegister == rsp):
		return fmt.Errorf("frame register is %d, expected one but rax and rsp", u.FrameRegister)
	}
	return nil
}

// An epilogReader reads the codes EPILOG of version 2, which come before all others. The
// first has the size of all epilogues, and a flag for an epilogue at the end of the function; each
// other one has an offset from the end, 0 where it is there for alignment.
type epilogReader struct {
	size uint32
	seen bool
	list []runtimeFunction
}

func (r *epilogReader) add(e runtimeFunction, low, info byte) error {
	offset := uint32(low) | uint32(info)<<8
	if !r.seen {
		r.seen, r.size = true, uint32(low)
		if offset = r.size; info&1 == 0 {
			return nil
		}
	}
	switch {
	case offset == 0:
		return nil
	case offset > e.end-e.begin || r.size > offset:
		return fmt.Errorf("epilogue of %d bytes at %d before the end of a function of %d bytes", r.size, offset, e.end-e.begin)
	}
	r.list = append(r.list, runtimeFunction{begin: e.end - offset, end: e.end - offset + r.size})
	return nil
}
