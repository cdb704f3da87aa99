// SPDX-License-Identifier: Apache-2.0

package simt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Wave executes a program with the registers and memory of a wave of the processor.
type Wave struct {
	Lanes  int
	PC     uint64 // in the object
	Exec   uint64
	VCC    uint64
	SCC    bool
	SGPR   [106]uint32
	VGPR   [256][64]uint32
	Memory map[uint64]uint32 // words, by address
	Local  map[uint64]uint32 // the work-group's memory
	// IsMapped reports whether global memory has a word; nil: it has every word. Accesses
	// of other words are Faults, which do not stop the wave at once: the processor learns
	// of them later.
	IsMapped func(address uint64) bool
	Faults   []Fault
	// PrivateAt is the address of the wave's private memory.
	PrivateAt uint64
	// Calls has the calls in progress, the first one first.
	Calls []Call

	program *Program
	// places has the PC of each lane that began the program: the wave's PC for an active
	// lane, else the place where it left the others.
	places map[int]uint64
}

// Fault is an access of a lane to memory that is not mapped.
type Fault struct {
	Lane    int
	Address uint64
}

// Call is a call that is in progress.
type Call struct {
	Return uint64 // the return address, in the object
	Exec   uint64 // the lanes that called
}

// NewWave makes a wave at the beginning of a program. active are the lanes that have a
// work-item.
func NewWave(p *Program, lanes int, active uint64) *Wave {
	w := &Wave{Lanes: lanes, PC: p.Start, Exec: active, Memory: map[uint64]uint32{}, Local: map[uint64]uint32{}, program: p, places: map[int]uint64{}}
	for lane := range lanes {
		if active>>lane&1 != 0 {
			w.places[lane] = p.Start
		}
	}
	return w
}

// Place is the PC of a lane; ok is false where it never began.
func (w *Wave) Place(lane int) (pc uint64, ok bool) {
	if w.Exec>>lane&1 != 0 {
		return w.PC, true
	}
	pc, ok = w.places[lane]
	return pc, ok
}

// Step executes one instruction; done means that it was the last one.
func (w *Wave) Step() (done bool, err error) {
	in := w.program.code[w.PC]
	if in == nil {
		return false, fmt.Errorf("no instruction at %#x", w.PC)
	}
	if in.name == "s_endpgm" {
		return true, nil
	}
	before := w.Exec
	w.PC = in.next
	if err := w.execute(in); err != nil {
		return false, fmt.Errorf("%#x %s %s: %w", in.address, in.name, strings.Join(in.operands, " "), err)
	}
	for lane := range w.Lanes {
		if left := before &^ w.Exec; left>>lane&1 != 0 {
			// The lanes that skip an IF wait at its beginning, the lanes that have
			// executed it wait at its end.
			w.places[lane] = in.address
			if join, ok := w.program.joins[in.address]; ok {
				w.places[lane] = join
			}
		}
	}
	return false, nil
}

// RunTo executes until the next instruction is the n-th with a name, from 1.
func (w *Wave) RunTo(name string, n int) error {
	for {
		if in := w.program.code[w.PC]; in != nil && in.name == name {
			if n--; n == 0 {
				return nil
			}
		}
		done, err := w.Step()
		if err != nil {
			return err
		}
		if done {
			return fmt.Errorf("the kernel ends without that many %s", name)
		}
	}
}

// RunToFault executes until a lane has accessed memory that is not mapped, and on to the
// wave's next wait for its accesses.
func (w *Wave) RunToFault() error {
	for len(w.Faults) == 0 {
		done, err := w.Step()
		switch {
		case err != nil:
			return err
		case done:
			return errors.New("the kernel ends without a fault")
		}
	}
	return w.RunTo("s_waitcnt", 1)
}

// Private returns the wave's private memory up to the highest word that it has written.
func (w *Wave) Private(size uint64) []byte {
	var b []byte
	for at := uint64(0); at < size; at += 4 {
		if word, ok := w.Memory[w.PrivateAt+at]; ok {
			b = append(b, make([]byte, int(at)-len(b))...)
			b = binary.LittleEndian.AppendUint32(b, word)
		}
	}
	return b
}

// Vector returns the bytes of a vector register, lane 0 first.
func (w *Wave) Vector(n int) []byte {
	b := make([]byte, 0, 4*w.Lanes)
	for lane := range w.Lanes {
		b = binary.LittleEndian.AppendUint32(b, w.VGPR[n][lane])
	}
	return b
}
