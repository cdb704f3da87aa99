// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"fmt"
	"io/fs"
	"sync"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
)

var errAbsent = fs.ErrNotExist

const (
	blockBits = 16
	blockSize = 1 << blockBits
	// maxKept bounds the cached bytes of a target's memory.
	maxKept = 256 << 20
	// noThread is the thread of memory that all threads share.
	noThread = -1
)

// instance is one instance of an address space: a thread's own, or the shared one.
type instance struct {
	space  locexpr.AddressSpace
	thread int64 // an index, or noThread
	lane   int64 // 1 for lane 0 of a thread whose lanes have states of their own; else 0
}

// blockKey identifies a block of an instance.
type blockKey struct {
	instance
	number uint64
}

// run is a run of known bytes. err is the error of reading the byte behind them, where the
// run ends before its block.
type run struct {
	start uint64
	data  []byte
	err   error // nil: not known, or another block
}

// memory asks for memory by blocks, and caches them: the target does not change.
type memory struct {
	ask func(q *pb.Question) (*pb.Answer, string, error)

	mu     sync.Mutex
	blocks map[blockKey][]run
	kept   int // bytes in blocks
}

// read reads memory like target.Target.ReadMemory.
func (m *memory) read(inst instance, address uint64, buf []byte) (n int, err error) {
	for n < len(buf) {
		next := address + uint64(n)
		if next < address {
			return n, fmt.Errorf("%w: %#x", target.ErrNoMemory, next)
		}
		k, err := m.readBlock(inst, next, buf[n:])
		n += k
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// readBlock reads the part of buf that is in the block of address: at least one byte, or it
// fails.
func (m *memory) readBlock(inst instance, address uint64, buf []byte) (int, error) {
	key := blockKey{inst, address >> blockBits}
	buf = buf[:min(uint64(len(buf)), blockSize-address%blockSize)]
	if n, err := m.known(key, address, buf); n > 0 || err != nil {
		return n, err
	}
	r, err := m.fetch(inst, address, len(buf))
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	if m.blocks == nil || m.kept+len(r.data) > maxKept {
		m.blocks, m.kept = map[blockKey][]run{}, 0
	}
	m.blocks[key] = append(m.blocks[key], r)
	m.kept += len(r.data) + runBytes
	m.mu.Unlock()
	return m.known(key, address, buf)
}

// runBytes is the approximate size of a run without its bytes.
const runBytes = 100

// known reads from the cache. It returns 0 and nil where the cache does not have the
// address.
func (m *memory) known(key blockKey, address uint64, buf []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.blocks[key] {
		r := &m.blocks[key][i]
		switch offset := address - r.start; {
		case offset < uint64(len(r.data)):
			return copy(buf, r.data[offset:]), nil
		case offset == uint64(len(r.data)) && r.err != nil:
			return 0, r.err
		}
	}
	return 0, nil
}

// fetch asks for the memory at an address, and around it in its block.
func (m *memory) fetch(inst instance, address uint64, size int) (r run, err error) {
	q := &pb.MemoryQuestion{Space: uint64(inst.space), Address: address, Size: uint32(size), Most: blockSize} //nolint:gosec // at most a block
	if inst.thread != noThread {
		thread := uint64(inst.thread) //nolint:gosec // an index
		q.Thread = &thread
	}
	if inst.lane != 0 {
		lane := uint32(inst.lane - 1) //nolint:gosec // below MaxLanes
		q.Lane = &lane
	}
	answer, _, err := m.ask(&pb.Question{About: &pb.Question_Memory{Memory: q}})
	if err != nil {
		return r, err
	}
	a := answer.GetMemory()
	start, end := address&^(blockSize-1), address|(blockSize-1)
	r = run{start: a.GetAddress(), data: a.GetData()}
	if r.start < start || r.start > address || uint64(len(r.data)) > end-r.start+1 || uint64(len(r.data)) < address-r.start {
		return r, fmt.Errorf("the machine of the target: %d bytes from %#x on, asked for the memory at %#x", len(r.data), r.start, address)
	}
	if a.GetKind() != pb.MemoryAnswer_READ {
		r.err = memoryError{a.GetKind(), string(a.GetError())}
	}
	if uint64(len(r.data)) == address-r.start && r.err == nil {
		return r, fmt.Errorf("the machine of the target: neither memory at %#x nor why there is none", address)
	}
	return r, nil
}

// memoryError is an error of the target's machine.
type memoryError struct {
	kind pb.MemoryAnswer_Kind
	text string
}

func (e memoryError) Error() string { return e.text }

// Is matches the error with the target package's by its kind.
func (e memoryError) Is(err error) bool {
	return e.kind == pb.MemoryAnswer_ABSENT && err == target.ErrNoMemory || e.kind == pb.MemoryAnswer_END_OF_STACK && err == target.ErrEndOfStack
}
