// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/unwindd/unwindd/examples/mixed/parts"
	"github.com/unwindd/unwindd/examples/mixed/simt"
	"github.com/unwindd/unwindd/examples/rocm-core/corefile"
)

// Addresses of the GPU's code and memory.
const (
	processor = "gfx90a"
	lanes     = 64

	codeStart = 0x7f4200000000
	codeEach  = 0x100000

	pageSize   = 0x1000
	buffers    = 0x7f4300000000 // a page for each buffer
	arguments  = buffers
	wearStart  = buffers + 1*pageSize
	partStart  = buffers + 2*pageSize
	sideStart  = buffers + 3*pageSize
	totalStart = buffers + 4*pageSize
	buffersEnd = buffers + 5*pageSize

	private     = 0x7f4400000000
	privateSize = 0x400 // of a wave

	trapHandler = 0x7f4500001000
)

// The part whose count is damaged: the number of measurements of its second side exceeds
// the memory.
const (
	damagedItem  = 45
	damagedCount = 0x4000
)

// partWords is the size of the memory of a part, sideWords of one side.
const (
	partWords = 16
	sideWords = 8
)

// dispatch is a launch of a kernel, with the places of its waves.
type dispatch struct {
	kernel    string
	functions []string // that it calls
	objdump   string
	group     int // work-items
	output    uint64
	firstSlot int
	stops     []stop
}

// stop is the place of a wave.
type stop struct {
	group, inGroup int
	// run executes the kernel from its beginning to the place of the wave.
	run func(*simt.Wave) error
	// exceptions are the reasons that the wave stopped there; none: it was only
	// interrupted.
	exceptions []corefile.Exception
	trap       uint8
}

func at(name string, n int) func(*simt.Wave) error {
	return func(w *simt.Wave) error { return w.RunTo(name, n) }
}

var dispatches = []dispatch{{
	kernel:  "grade",
	objdump: "llvm-objdump",
	group:   lanes,
	output:  partStart,
	stops:   []stop{{run: at("global_store_dword", 5)}, {group: 1, run: at("global_store_dword", 1)}},
}, {
	kernel:    "inspect",
	functions: []string{"compare_sides", "measure"},
	objdump:   "llvm-objdump-22",
	group:     lanes,
	output:    sideStart,
	firstSlot: 2,
	stops: []stop{
		{run: (*simt.Wave).RunToFault, exceptions: []corefile.Exception{corefile.XNACKError}},
		{group: 1, run: at("flat_load_dword", 4)}, // in the loop, for the first side
	},
}, {
	kernel:  "total",
	objdump: "llvm-objdump-22",
	group:   2 * lanes,
	output:  totalStart,
	stops:   []stop{{run: at("s_trap", 1), trap: 2}, {inGroup: 1, run: at("ds_read_b32", 5)}},
}}

// launched is a dispatch that was executed.
type launched struct {
	*dispatch
	number  int // from 0
	image   []byte
	program *simt.Program
	waves   []*simt.Wave
	local   map[uint64]uint32 // of the work-group, where it has such memory
}

// start is the address of offset 0 of the code object.
func (l *launched) start() uint64 { return codeStart + uint64(l.number)*codeEach }

// arguments is the address of the kernel's arguments.
func (l *launched) arguments() uint64 { return arguments + 64*uint64(l.number) }

// global is the GPU's memory that all waves share, before the first.
func global() map[uint64]uint32 {
	memory := map[uint64]uint32{}
	address := func(address, value uint64) { memory[address], memory[address+4] = uint32(value), uint32(value>>32) }
	for i := range dispatches {
		address(arguments+64*uint64(i), wearStart)
		address(arguments+64*uint64(i)+8, dispatches[i].output)
	}
	for item := range 2 * lanes {
		memory[wearStart+4*uint64(item)] = parts.Wear(item)
	}
	for item := range lanes {
		for side := range 2 {
			at := sideStart + 4*uint64(partWords*item+sideWords*side)
			measured := parts.Measured(item, side)
			memory[at] = uint32(len(measured))
			for i, v := range measured {
				memory[at+4*uint64(1+i)] = v
			}
		}
	}
	memory[sideStart+4*(partWords*damagedItem+sideWords)] = damagedCount
	return memory
}

// execute executes the waves of a dispatch, whose code object is in a file, up to their
// stops.
func (d *dispatch) execute(number int, code string, memory map[uint64]uint32) (*launched, error) {
	image, err := os.ReadFile(code)
	if err != nil {
		return nil, err
	}
	l := &launched{dispatch: d, number: number, image: image, local: map[uint64]uint32{}}
	if l.program, err = simt.Disassemble(d.objdump, code, d.kernel, d.functions...); err != nil {
		return nil, err
	}
	l.program.Loaded = l.start()
	launch := simt.Dispatch{
		Program: l.program, Lanes: lanes, Items: 2 * lanes, Group: d.group, FirstSlot: d.firstSlot,
		Arguments: l.arguments(), Private: private, PrivateSize: privateSize,
	}
	if err := launch.Kernel(code, d.kernel); err != nil {
		return nil, err
	}
	for _, stop := range d.stops {
		w, _ := launch.Wave(stop.group, stop.inGroup)
		w.Memory, w.Local = memory, l.local
		w.IsMapped = func(address uint64) bool { return address >= buffers && address < buffersEnd }
		if err := stop.run(w); err != nil {
			return nil, fmt.Errorf("%s: %w", d.kernel, err)
		}
		l.waves = append(l.waves, w)
	}
	return l, nil
}

// descriptor is the address of the kernel's descriptor.
func (l *launched) descriptor() (uint64, error) {
	f, err := elf.NewFile(bytes.NewReader(l.image))
	if err != nil {
		return 0, err
	}
	symbols, err := f.DynamicSymbols()
	for _, s := range symbols {
		if s.Name == l.kernel+".kd" {
			return l.start() + s.Value, nil
		}
	}
	return 0, fmt.Errorf("%s has no descriptor: %w", l.kernel, err)
}

// words returns the bytes of memory from an address on.
func words(memory map[uint64]uint32, start, size uint64) []byte {
	b := make([]byte, size)
	for i := uint64(0); i < size; i += 4 {
		binary.LittleEndian.PutUint32(b[i:], memory[start+i])
	}
	return b
}
