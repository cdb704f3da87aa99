// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"encoding/binary"

	"github.com/unwindd/unwindd/engine/target"
)

// Wait describes, in a recording, a thread that waited when it was sampled. Recordings of living
// processes have it as the raw data of samples, which perf passes over.
type Wait struct {
	State byte // of /proc/PID/stat: S, D, T and so on
	// Call is the number of the system call that the thread is in, if HasCall.
	Call    uint64
	HasCall bool
	// Futex are the arguments of a call that waits for a futex, if HasFutex, and Memory the bytes
	// around its word from MemoryStart on.
	Futex       target.FutexCall
	HasFutex    bool
	MemoryStart uint64
	Memory      []byte
}

const (
	waitMagic   = "uwW1"
	waitStart   = 8  // of the first word
	waitHeader  = 48 // bytes before the memory
	waitCall    = 1  // flags: there is a call
	waitFutex   = 2  // and a futex
	waitIsTimed = 4
)

// Append appends the raw data of a sample.
func (w *Wait) Append(b []byte) []byte {
	flags := byte(0)
	for flag, is := range map[byte]bool{waitCall: w.HasCall, waitFutex: w.HasFutex, waitIsTimed: w.Futex.IsTimed} {
		if is {
			flags |= flag
		}
	}
	order := binary.LittleEndian
	b = append(append(b, waitMagic...), w.State, flags)
	b = order.AppendUint16(b, uint16(len(w.Memory))) //nolint:gosec // some 128
	b = order.AppendUint64(b, w.Call)
	b = order.AppendUint64(b, w.Futex.Address)
	b = order.AppendUint32(b, w.Futex.Operation)
	b = order.AppendUint32(b, w.Futex.Value)
	b = order.AppendUint64(b, w.MemoryStart)
	b = order.AppendUint64(b, 0)
	return append(b, w.Memory...)
}

// ReadWait reads the raw data of a sample; ok is false where it is another program's. The memory is
// a part of the data.
func ReadWait(raw []byte) (w Wait, ok bool) {
	if len(raw) < waitHeader || string(raw[:len(waitMagic)]) != waitMagic {
		return w, false
	}
	order := binary.LittleEndian
	flags, size := raw[5], int(order.Uint16(raw[6:]))
	if size > len(raw)-waitHeader {
		return w, false
	}
	words := raw[waitStart:]
	return Wait{
		State: raw[4], Call: order.Uint64(words), HasCall: flags&waitCall != 0, HasFutex: flags&waitFutex != 0,
		Futex: target.FutexCall{
			Address: order.Uint64(words[8:]), Operation: order.Uint32(words[16:]), Value: order.Uint32(words[20:]), IsTimed: flags&waitIsTimed != 0,
		},
		MemoryStart: order.Uint64(words[24:]), Memory: raw[waitHeader : waitHeader+size],
	}, true
}
