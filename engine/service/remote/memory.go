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
	// maxKept bounds the bytes of memory that are kept of a target. They are asked for again
	// beyond that.
	maxKept = 256 << 20
	// noThread is the thread of memory that all share.
	noThread = -1
)

// instance is one of an address space.
type instance struct {
	space  locexpr.AddressSpace
	thread int64 // an index; noThread
}

// blockKey is a block of an instance.
type blockKey struct {
	instance
	number uint64
}

// run is bytes that follow one another. Behind them err says what is there, where the
// run ends before its block.
type run struct {
	start uint64
	data  []byte
	err   error // nil: not known, or another block
}

// memory asks for memory by blocks, and keeps it. The target does not change.
type memory struct {
	ask func(q *pb.Question) (*pb.Answer, string, error)

	mu     sync.Mutex
	blocks map[blockKey][]run
	kept   int
}

// read reads what is there from an address on, as target.Target.ReadMemory does.
func (m *memory) read(of instance, address uint64, buf []byte) (n int, err error) {
	for n < len(buf) {
		at := address + uint64(n)
		if at < address {
			return n, fmt.Errorf("%w: %#x", target.ErrNoMemory, at)
		}
		k, err := m.readBlock(of, at, buf[n:])
		n += k
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// readBlock reads the part of one block. It reads something, or there is an error.
func (m *memory) readBlock(of instance, at uint64, buf []byte) (int, error) {
	key := blockKey{of, at >> blockBits}
	buf = buf[:min(uint64(len(buf)), blockSize-at%blockSize)]
	if n, err := m.known(key, at, buf); n > 0 || err != nil {
		return n, err
	}
	r, err := m.fetch(of, at, len(buf))
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
	return m.known(key, at, buf)
}

// runBytes is about what is kept of a run beside its bytes.
const runBytes = 100

// known reads what is known. Without bytes and error nothing is.
func (m *memory) known(key blockKey, at uint64, buf []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.blocks[key] {
		r := &m.blocks[key][i]
		switch offset := at - r.start; {
		case offset < uint64(len(r.data)):
			return copy(buf, r.data[offset:]), nil
		case offset == uint64(len(r.data)) && r.err != nil:
			return 0, r.err
		}
	}
	return 0, nil
}

// fetch asks for the memory at an address, and around it within its block.
func (m *memory) fetch(of instance, at uint64, size int) (r run, err error) {
	q := &pb.MemoryQuestion{Space: uint64(of.space), Address: at, Size: uint32(size), Most: blockSize} //nolint:gosec // at most a block
	if of.thread != noThread {
		thread := uint64(of.thread) //nolint:gosec // an index
		q.Thread = &thread
	}
	answer, _, err := m.ask(&pb.Question{About: &pb.Question_Memory{Memory: q}})
	if err != nil {
		return r, err
	}
	a := answer.GetMemory()
	start, end := at&^(blockSize-1), at|(blockSize-1)
	r = run{start: a.GetAddress(), data: a.GetData()}
	if r.start < start || r.start > at || uint64(len(r.data)) > end-r.start+1 || uint64(len(r.data)) < at-r.start {
		return r, fmt.Errorf("the machine of the target: %d bytes from %#x on, asked for the memory at %#x", len(r.data), r.start, at)
	}
	if a.GetKind() != pb.MemoryAnswer_READ {
		r.err = memoryError{a.GetKind(), string(a.GetError())}
	}
	if uint64(len(r.data)) == at-r.start && r.err == nil {
		return r, fmt.Errorf("the machine of the target: neither memory at %#x nor why there is none", at)
	}
	return r, nil
}

// memoryError is an error of the target's machine.
type memoryError struct {
	kind pb.MemoryAnswer_Kind
	text string
}

func (e memoryError) Error() string { return e.text }

// Is says of which kind it is.
func (e memoryError) Is(err error) bool {
	return e.kind == pb.MemoryAnswer_ABSENT && err == target.ErrNoMemory || e.kind == pb.MemoryAnswer_END_OF_STACK && err == target.ErrEndOfStack
}
