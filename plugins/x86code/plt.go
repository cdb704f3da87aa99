// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"encoding/binary"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// Stub is the code of an entry of a procedure linkage table.
type Stub struct {
	CFA  int64 // the distance of the CFA above the stack pointer at its beginning
	Code []StubInstruction
	// Header marks the first entry, whose jump goes through the word after the one that
	// it pushes. (An entry for TLS descriptors is the same except for that, and is called
	// with less on the stack.)
	Header bool
}

// StubInstruction begins with bytes, which Any others may follow.
type StubInstruction struct {
	Bytes  string
	Any    int
	Pushes bool
}

func (i *StubInstruction) length() int { return len(i.Bytes) + i.Any }

func (s *Stub) length() (n int) {
	for i := range s.Code {
		n += s.Code[i].length()
	}
	return n
}

// pltRows returns the rows of the entry of a linkage table in which an instruction begins
// at an offset. Entries begin on 8 bytes. Of entries that contain each other the longest
// counts. No entry calls, so a PC inside a call is in none.
func (m *Mode) pltRows(r *sdk.CodeRange, offset int) []cfi.Row {
	if !r.Exact {
		return nil
	}
	for i := range m.Stubs {
		s := &m.Stubs[i]
		for start := max(0, offset-s.length()+1); start <= offset; start++ {
			if (r.Start+uint64(start))%8 != 0 || !s.isAt(r.Code[start:]) || !m.isInstructionStart(r.Code[start:], offset-start) {
				continue
			}
			if s.Header && !s.isHeader(m, r.Code[start:]) {
				return nil
			}
			return s.rows(m, r.Start+uint64(start))
		}
	}
	return nil
}

// rows returns the rows of the entry at an address.
func (s *Stub) rows(m *Mode, address uint64) []cfi.Row {
	var rows codeflow.Rows
	cfa := s.CFA
	for i := range s.Code {
		in := &s.Code[i]
		end := address + uint64(in.length())
		rows.Add(&cfi.Row{Start: address, End: end, ReturnAddress: uint64(m.PC),
			CFA:   cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(m.Numbers[SP]), Offset: cfa},
			Rules: []cfi.RegisterRule{{Column: uint64(m.PC), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -int64(m.Word)}}}})
		if in.Pushes {
			cfa += int64(m.Word)
		}
		address = end
	}
	return rows
}

func (s *Stub) isAt(code []byte) bool {
	for i := range s.Code {
		in := &s.Code[i]
		if len(code) < in.length() || !HasPrefix(code, in.Bytes) {
			return false
		}
		code = code[in.length():]
	}
	return true
}

// isInstructionStart reports whether an instruction begins at an offset of code that begins
// with one.
func (m *Mode) isInstructionStart(code []byte, offset int) bool {
	start := 0
	for start < offset {
		e, ok := m.layout(code[start:])
		if !ok {
			return false
		}
		start += e.length
	}
	return start == offset
}

// isHeader reports whether the jump goes through the word after the pushed one. The push
// and the jump are the last two instructions, and end with a displacement.
func (s *Stub) isHeader(m *Mode, code []byte) bool {
	const displacement = 4
	end := s.length()
	pushEnd := end - s.Code[len(s.Code)-1].length()
	through := func(end int) int64 {
		place := int64(int32(binary.LittleEndian.Uint32(code[end-displacement:])))
		if m.Word == 8 {
			place += int64(end) // relative to the instruction
		}
		return place
	}
	return through(end) == through(pushEnd)+int64(m.Word)
}
