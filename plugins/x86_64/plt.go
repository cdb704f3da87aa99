// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"encoding/binary"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// stub is the code of an entry of a procedure linkage table.
type stub struct {
	cfa  int64 // the distance of the CFA above the stack pointer at its beginning
	code []stubInstruction
	// header marks the first entry, whose jump goes through the word after the one that
	// it pushes. (An entry for TLS descriptors is the same except for that, and is called
	// with less on the stack.)
	header bool
}

// stubInstruction begins with bytes, which any others may follow.
type stubInstruction struct {
	bytes  string
	any    int
	pushes bool
}

var (
	endbr   = stubInstruction{bytes: bytesEndbr64}
	pushR11 = stubInstruction{bytes: bytesPushR11, pushes: true}
	pushRIP = stubInstruction{bytes: bytesPushRIP, any: 4, pushes: true}
	pushImm = stubInstruction{bytes: bytesPushImm, any: 4, pushes: true}
	movR11D = stubInstruction{bytes: bytesMovR11D, any: 4}
	jump    = stubInstruction{bytes: bytesJump, any: 4}
	bndJump = stubInstruction{bytes: bytesBnd + bytesJump, any: 4}

	jumpRIP    = stubInstruction{bytes: bytesJumpRIP, any: 4}
	bndJumpRIP = stubInstruction{bytes: bytesBnd + bytesJumpRIP, any: 4}
)

// The entries that linkers write (psABI 5.2; the variants for BND and IBT of GNU ld, lld
// and mold). The index is pushed before the first entry is entered.
var stubs = []stub{
	{cfa: 16, code: []stubInstruction{pushRIP, jumpRIP}, header: true},
	{cfa: 16, code: []stubInstruction{pushRIP, bndJumpRIP}, header: true},
	{cfa: 8, code: []stubInstruction{endbr, pushR11, pushRIP, jumpRIP}, header: true},
	{cfa: 8, code: []stubInstruction{jumpRIP, pushImm, jump}},
	{cfa: 8, code: []stubInstruction{endbr, pushImm, bndJump}},
	{cfa: 8, code: []stubInstruction{endbr, pushImm, jump}},
	{cfa: 8, code: []stubInstruction{pushImm, bndJump}},
	{cfa: 8, code: []stubInstruction{endbr, bndJumpRIP}},
	{cfa: 8, code: []stubInstruction{endbr, jumpRIP}},
	{cfa: 8, code: []stubInstruction{endbr, movR11D, jumpRIP}},
	{cfa: 8, code: []stubInstruction{movR11D, jumpRIP}},
	{cfa: 8, code: []stubInstruction{bndJumpRIP}},
	{cfa: 8, code: []stubInstruction{jumpRIP}},
}

func (i *stubInstruction) length() int { return len(i.bytes) + i.any }

func (s *stub) length() (n int) {
	for i := range s.code {
		n += s.code[i].length()
	}
	return n
}

// pltRows returns the rows of the entry of a linkage table in which an instruction begins
// at an offset. Entries begin on 8 bytes. Of entries that contain each other the longest
// counts. No entry calls, so a PC inside a call is in none.
func pltRows(r *sdk.CodeRange, offset int) []cfi.Row {
	if !r.Exact {
		return nil
	}
	for i := range stubs {
		s := &stubs[i]
		for start := max(0, offset-s.length()+1); start <= offset; start++ {
			if (r.Start+uint64(start))%8 != 0 || !s.isAt(r.Code[start:]) || !isInstructionStart(r.Code[start:], offset-start) {
				continue
			}
			if s.header && !s.isHeader(r.Code[start:]) {
				return nil
			}
			return s.rows(r.Start + uint64(start))
		}
	}
	return nil
}

// rows returns the rows of the entry at an address.
func (s *stub) rows(address uint64) []cfi.Row {
	var rows codeflow.Rows
	cfa := s.cfa
	for i := range s.code {
		in := &s.code[i]
		end := address + uint64(in.length())
		rows.Add(&cfi.Row{Start: address, End: end, ReturnAddress: uint64(rip),
			CFA:   cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(rsp), Offset: cfa},
			Rules: []cfi.RegisterRule{{Column: uint64(rip), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}}}})
		if in.pushes {
			cfa += 8
		}
		address = end
	}
	return rows
}

func (s *stub) isAt(code []byte) bool {
	for i := range s.code {
		in := &s.code[i]
		if len(code) < in.length() || !hasPrefix(code, in.bytes) {
			return false
		}
		code = code[in.length():]
	}
	return true
}

// isInstructionStart reports whether an instruction begins at an offset of code that begins
// with one.
func isInstructionStart(code []byte, offset int) bool {
	start := 0
	for start < offset {
		e, ok := layout(code[start:])
		if !ok {
			return false
		}
		start += e.length
	}
	return start == offset
}

// isHeader reports whether the jump goes through the word after the pushed one. The push
// and the jump are the last two instructions, and end with a displacement.
func (s *stub) isHeader(code []byte) bool {
	const displacement = 4
	end := s.length()
	pushEnd := end - s.code[len(s.code)-1].length()
	through := func(end int) int64 {
		return int64(end) + int64(int32(binary.LittleEndian.Uint32(code[end-displacement:])))
	}
	return through(end) == through(pushEnd)+8
}
