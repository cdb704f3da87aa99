// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
)

// A Function is an entry of .pdata ("x64 exception handling", struct RUNTIME_FUNCTION, and "ARM64
// exception handling", .pdata records): a range of code that shares unwind information. A function
// that the compiler split has several.
type Function struct {
	Start, End uint64 // virtual addresses
	entry      runtimeFunction
}

// A runtimeFunction is an entry as a file for x86-64 has it: three RVAs. For arm64 the end is computed, and
// unwind is the second word of the entry.
type runtimeFunction struct{ begin, end, unwind uint32 }

const (
	runtimeFunctionSize = 12
	// isIndirect is the bit of a third RVA that leads to the entry whose unwind
	// information this one shares.
	isIndirect = 1
	// maxTable is the size of the largest .pdata that is read: 16 Mi functions.
	maxTable = runtimeFunctionSize << 24
)

// ErrUnwindMachine is the error of a file for a machine whose unwind information is not read: only
// that of x86-64 and arm64 is.
var ErrUnwindMachine = errors.New("unwind information of this machine is not read")

// A functionTable is .pdata: entries sorted by their start, apart from each other.
type functionTable []byte

func (t functionTable) len() int { return len(t) / runtimeFunctionSize }

func (t functionTable) at(i int) runtimeFunction {
	b := t[i*runtimeFunctionSize:]
	return runtimeFunction{u32(b, 0), u32(b, 4), u32(b, 8)}
}

// next returns the index of the first entry that starts behind an RVA.
func (t functionTable) next(rva uint32) int {
	return sort.Search(t.len(), func(i int) bool { return t.at(i).begin > rva })
}

// HasUnwindCodes reports whether the file is for a machine whose unwind information is read: x86-64 or
// arm64. A file may have none all the same.
func (f *File) HasUnwindCodes() bool {
	return f.header.machine == MachineX86_64 || f.header.machine == MachineARM64
}

// functions reads the table when it is first needed.
func (f *File) functions() (functionTable, error) {
	f.tableOnce.Do(func() {
		f.tableErr = errTableUnread // stays where the file is cut while it is read
		f.table, f.tableErr = f.readTable()
	})
	return f.table, f.tableErr
}

var errTableUnread = errors.New("the table of functions could not be read")

func (f *File) readTable() (functionTable, error) {
	if !f.HasUnwindCodes() {
		return nil, fmt.Errorf("%s: machine %#x: %w", f.name, f.header.machine, ErrUnwindMachine)
	}
	rva, size := f.header.directory(directoryExcept)
	if rva == 0 || size == 0 {
		return nil, nil
	}
	if size > maxTable {
		return nil, f.errorf(rva, "table of functions of %#x bytes, expected at most %#x", size, maxTable)
	}
	b := f.source.upTo(rva, uint64(size))
	if uint64(len(b)) < uint64(size) {
		f.isTableCut = true
		f.problem(f.errorf(rva, "table of functions of %#x bytes, %#x are there", size, len(b)))
	}
	t := functionTable(b[:len(b)/runtimeFunctionSize*runtimeFunctionSize])
	if f.header.machine == MachineARM64 {
		t = f.arm64Table(b)
	}
	if t.isOrderly() {
		return t, nil
	}
	return f.orderly(t, rva), nil
}

// isOrderly reports whether the table is as the document demands, so that it can be used in place.
func (t functionTable) isOrderly() bool {
	end := uint32(0)
	for i := range t.len() {
		e := t.at(i)
		if e.begin < end || e.begin >= e.end {
			return false
		}
		end = e.end
	}
	return true
}

// orderly makes a table that is sorted. Entries without code are left out: linkers leave
// zeros where they dropped a function, and a function that cannot be reached may be empty.
// One that lies in another is cut, which is a problem.
func (f *File) orderly(t functionTable, rva uint32) functionTable {
	var list []runtimeFunction
	for i := range t.len() {
		switch e := t.at(i); {
		case e.begin < e.end:
			list = append(list, e)
		case e.begin > e.end:
			f.problem(f.errorf(rva+uint32(i*runtimeFunctionSize), "function %d begins at RVA %#x and ends at %#x", i, e.begin, e.end))
		}
	}
	slices.SortStableFunc(list, func(a, b runtimeFunction) int { return cmp.Compare(a.begin, b.begin) })
	sorted := make(functionTable, 0, len(list)*runtimeFunctionSize)
	for i, e := range list {
		if i+1 < len(list) && list[i+1].begin < e.end {
			f.problem(f.errorf(e.begin, "function ends at RVA %#x, the next begins at %#x", e.end, list[i+1].begin))
			if e.end = list[i+1].begin; e.begin == e.end {
				continue
			}
		}
		sorted = e.append(sorted)
	}
	return sorted
}

func (e runtimeFunction) append(t functionTable) functionTable {
	for _, v := range []uint32{e.begin, e.end, e.unwind} {
		t = append(t, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
	}
	return t
}

// Functions calls yield with every entry of .pdata, in order of address, until it returns
// false. ErrUnwindMachine of a file for another machine than x86-64 and arm64.
func (f *File) Functions(yield func(Function) bool) error {
	t, err := f.functions()
	if err != nil {
		return err
	}
	for i := range t.len() {
		if !yield(f.function(t.at(i))) {
			break
		}
	}
	return nil
}

func (f *File) function(e runtimeFunction) Function {
	return Function{f.address(e.begin), f.address(e.end), e}
}

// FunctionAt returns the entry of .pdata that covers a virtual address. It is false where
// none does: that is no code, or a leaf, which changes neither rsp nor the registers that its caller
// expects to be preserved.
func (f *File) FunctionAt(address uint64) (Function, bool, error) {
	t, err := f.functions()
	if err != nil {
		return Function{}, false, err
	}
	rva, ok := f.rva(address)
	if !ok {
		return Function{}, false, nil
	}
	i := t.next(rva) - 1
	if i < 0 || rva >= t.at(i).end {
		return Function{}, false, nil
	}
	return f.function(t.at(i)), true, nil
}

// gap returns the range around an RVA that is in a section of code and in no function.
func (f *File) gap(t functionTable, rva uint32) (start, end uint32, ok bool) {
	s := f.sectionAt(rva)
	if s == nil || !s.IsCode() {
		return 0, 0, false
	}
	start, end = s.RVA, uint32(min(uint64(s.RVA)+uint64(s.span()), 1<<32-1))
	i := t.next(rva)
	if i < t.len() {
		end = min(end, t.at(i).begin)
	}
	if i > 0 {
		start = max(start, t.at(i-1).end)
	}
	return start, end, true
}
