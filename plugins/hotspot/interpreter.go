// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// The interpreter is made of codelets, one after the other in a blob: one for each bytecode, and
// entries and exits of methods.

const (
	// maxCodelets bounds the codelets. HotSpot 17 has 280.
	maxCodelets = 1 << 12
	// maxInterpreter bounds the size of the interpreter, in bytes.
	maxInterpreter = 16 << 20
)

// codelet is a piece of the interpreter.
type codelet struct {
	codeRange
	description string
	// frame are the parts in which the frame of a method is there.
	frame []codeRange
}

// interpreterCode is the code of the interpreter.
type interpreterCode struct {
	codeRange
	codelets []codelet // by address
}

// find returns the codelet with an address; nil: none has it.
func (c *interpreterCode) find(pc uint64) *codelet {
	i := sort.Search(len(c.codelets), func(i int) bool { return c.codelets[i].end > pc })
	if i < len(c.codelets) && c.codelets[i].has(pc) {
		return &c.codelets[i]
	}
	return nil
}

// readInterpreter reads the codelets.
func (m *machine) readInterpreter(r *sdk.MemoryReader) error {
	queue, err := r.Pointer(m.interpreter)
	if err != nil {
		return fmt.Errorf("its interpreter: %w", err)
	}
	var buffer, begin, end uint64
	err = getAll(r, queue, []memberInto{{m.queueBuffer, &buffer}, {m.queueBegin, &begin}, {m.queueEnd, &end}})
	switch {
	case err != nil:
		return fmt.Errorf("its interpreter at %#x: %w", queue, err)
	case begin >= end || end > maxInterpreter || m.heapOf(buffer) == nil:
		return fmt.Errorf("its interpreter has code from %#x to %#x at %#x", begin, end, buffer)
	}
	m.queue.codeRange = codeRange{buffer + begin, buffer + end}
	code, err := r.Bytes(buffer+begin, end-begin)
	if err != nil {
		return fmt.Errorf("the code of its interpreter: %w", err)
	}
	var texts []uint64
	for at := uint64(0); at < uint64(len(code)); {
		rest := code[at:]
		if uint64(len(rest)) < m.sizes.codelet {
			break
		}
		size := r.Number(rest[m.codeletSize.offset:][:4])
		if size < m.sizes.codelet || size > uint64(len(rest)) || len(texts) >= maxCodelets {
			return fmt.Errorf("the piece of its interpreter at %#x has %d bytes, expected %d to %d", m.queue.start+at, size, m.sizes.codelet, len(rest))
		}
		start := m.queue.start + at
		m.queue.codelets = append(m.queue.codelets, codelet{codeRange: codeRange{start + m.sizes.codelet, start + size}})
		texts = append(texts, r.Number(rest[m.codeletDescription.offset:][:8]))
		at += size
	}
	r.Prefetch(texts, 64)
	for i := range m.queue.codelets {
		c := &m.queue.codelets[i]
		if c.description, err = r.Text(texts[i], maxBlobName); err != nil || !isPlain(c.description) {
			return fmt.Errorf("the name of the piece of its interpreter at %#x: %w", c.start, cmp.Or(err, errRange))
		}
		c.findFrame(code[c.start-m.queue.start : c.end-m.queue.start])
	}
	return nil
}

// The instructions of x86_64 that make and take down a frame, each in the two ways in which it
// may be encoded.
var (
	enterCode = [][]byte{{0x55, 0x48, 0x8b, 0xec}, {0x55, 0x48, 0x89, 0xe5}} // push rbp; mov rbp, rsp
	leaveCode = byte(0xc9)
	moveRSP   = [][]byte{{0x48, 0x8b}, {0x48, 0x89}, {0x49, 0x8b}, {0x4c, 0x89}} // the first bytes of mov rsp, r64
)

// leaveTail is how many bytes behind a leave the return address and the stack pointer of the
// caller are taken.
const leaveTail = 32

// findFrame finds the parts of a codelet in which the frame of a method is there: behind the
// instructions that make it, and not behind those that take it down.
func (c *codelet) findFrame(code []byte) {
	if strings.HasPrefix(c.description, "method entry point") {
		at := firstOf(code, enterCode)
		if at < 0 {
			return
		}
		c.frame = []codeRange{{c.start + uint64(at) + 4, c.end}} //nolint:gosec // an index
	} else {
		c.frame = []codeRange{{c.start, c.end}}
	}
	for at := int(c.frame[0].start - c.start); at < len(code); at++ { //nolint:gosec // in the codelet
		if code[at] != leaveCode || !isExit(code[at+1:]) {
			continue
		}
		last := &c.frame[len(c.frame)-1]
		behind := c.start + uint64(at) + 1 //nolint:gosec // an index
		next := min(behind+leaveTail, c.end)
		if at := firstOf(code[at+1:], [][]byte{{0xff}}); at >= 0 && uint64(at) < leaveTail { //nolint:gosec // an index
			next = min(behind+uint64(at)+2, c.end) //nolint:gosec // behind the jump
		}
		end := last.end
		last.end = behind
		c.frame = append(c.frame, codeRange{next, end})
		at = int(next-c.start) - 1 //nolint:gosec // in the codelet
	}
	c.frame = slices.DeleteFunc(c.frame, func(part codeRange) bool { return part.start >= part.end })
}

// isExit reports whether code pops a register and loads the stack pointer.
func isExit(code []byte) bool {
	if len(code) > 0 && code[0] == 0x41 {
		code = code[1:]
	}
	if len(code) < 4 || code[0]&0xf8 != 0x58 {
		return false
	}
	return slices.ContainsFunc(moveRSP, func(p []byte) bool { return bytes.HasPrefix(code[1:], p) })
}

// firstOf returns where the first of some instructions is; -1: there is none.
func firstOf(code []byte, list [][]byte) int {
	first := -1
	for _, p := range list {
		if at := bytes.Index(code, p); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

// maxCallStub bounds the code from the start of the call stub to where Java returns to it.
const maxCallStub = 1 << 10

// readCallStub finds the code by which native code calls Java: behind the instructions that make
// its frame, up to where Java returns to it.
func (m *machine) readCallStub(r *sdk.MemoryReader) {
	back, err := r.Pointer(m.callStub)
	if err != nil || m.heapOf(back) == nil {
		return
	}
	code, err := r.Bytes(back-maxCallStub, maxCallStub)
	if err != nil {
		return
	}
	for _, p := range enterCode {
		if at := bytes.LastIndex(code, p); at >= 0 {
			start := back - maxCallStub + uint64(at) + 4 //nolint:gosec // an index
			if m.entry.start < start {
				m.entry = codeRange{start, back + 1}
			}
		}
	}
}
