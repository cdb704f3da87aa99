// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"fmt"

	"github.com/unwindd/unwindd/examples/cuda-core/sass"
)

// The launch: two blocks of two warps, of which the last lanes have no part to inspect.
const (
	kernel       = "inspect"
	blocks       = 2
	blockLanes   = 64
	count        = 119
	stagger      = 420 // steps by which a warp begins after the one behind it
	parametersAt = 0x210

	partsAt   = 0x7fff_b000_0000
	resultsAt = 0x7fff_b000_2000
	constants = 0x7fff_b010_0000 // constant bank 0
	partWords = 16
	damaged   = count - 1 // the part whose first count is wrong
)

// launched is the launch, executed until a lane faults.
type launched struct {
	memory   sass.Memory
	constant []byte
	warps    []*sass.Warp
	faulted  *sass.Lane
}

// memory is that of the parts, of which one is damaged, and of the results.
func memory() sass.Memory {
	m := sass.Memory{}
	for part := range uint64(count) {
		for side := range uint64(2) {
			begin := partsAt + part*partWords*4 + side*partWords*2
			for i := range uint64(partWords / 2) {
				m[begin+i*4] = uint32(part*3+side*5+i*7) % 20 //nolint:gosec // small
			}
			m[begin] = uint32(2 + (part+side)%5) //nolint:gosec // small
		}
		m[resultsAt+part*4] = 0
	}
	m[partsAt+damaged*partWords*4] = 16385
	return m
}

// constantBank is constant bank 0 as the kernel reads it.
func constantBank() []byte {
	b := make([]byte, 0x224)
	le := binary.LittleEndian
	le.PutUint32(b, blockLanes)
	le.PutUint32(b[0x28:], sass.LocalEnd)
	le.PutUint64(b[parametersAt:], partsAt)
	le.PutUint64(b[parametersAt+8:], resultsAt)
	le.PutUint32(b[parametersAt+16:], count)
	return b
}

// execute executes the kernel, warp beside warp, until a lane faults, or for so many steps.
func execute(p *sass.Program, steps int) (*launched, error) {
	l := newLaunch(p)
	for step := range steps {
		isOver, err := l.step(step)
		if err != nil {
			return nil, err
		}
		if isOver || l.faulted != nil {
			break
		}
	}
	return l, nil
}

// newLaunch returns the launch before its first step.
func newLaunch(p *sass.Program) *launched {
	l := &launched{memory: memory(), constant: constantBank()}
	for i := range blocks * blockLanes / 32 {
		w := &sass.Warp{Program: p, Memory: l.memory, Constant: l.constant}
		block, first := i*32/blockLanes, i*32%blockLanes
		w.Special = func(lane int, register string) uint32 {
			return map[string]uint32{"SR_TID.X": uint32(first + lane), "SR_CTAID.X": uint32(block)}[register] //nolint:gosec // small
		}
		for j := range w.Lanes {
			w.Lanes[j] = sass.NewLane(j)
		}
		l.warps = append(l.warps, w)
	}
	return l
}

// step executes an instruction of each lane, as far as its warp has begun. It returns true
// where all have ended, or wait.
func (l *launched) step(step int) (isOver bool, err error) {
	isOver = true
	for i, w := range l.warps {
		if (len(l.warps)-1-i)*stagger > step {
			isOver = false
			continue
		}
		more, err := w.Step()
		if err != nil {
			return false, err
		}
		isOver = isOver && !more
		for _, lane := range w.Lanes {
			if lane.State == sass.Faulted && l.faulted == nil {
				l.faulted = lane
			}
		}
	}
	return isOver, nil
}

// words returns memory from an address on as bytes.
func (l *launched) words(start uint64, n int) []byte {
	var b []byte
	for i := range uint64(n) { //nolint:gosec // small
		b = binary.LittleEndian.AppendUint32(b, l.memory[start+i*4])
	}
	return b
}

// name is that of the thread that a lane belongs to, without the group.
func name(warp int) string {
	return fmt.Sprintf("d0.sm%d.w%d", warp*32/blockLanes, warp*32%blockLanes/32)
}
