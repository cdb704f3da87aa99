package x86_64

import (
	"encoding/binary"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// A stub is the code of an entry of a procedure linkage table: bytes, of which
// those of wild are any.
type stub struct {
	code string // hexadecimal digits; ? is any
	// steps are how far above the stack pointer the CFA is, from an offset on.
	steps []stubStep
	// header says that this is the first entry, whose jump goes through the word
	// after the one that it pushes. (An entry for TLS descriptors looks the same
	// but for that, and is called with less on the stack.)
	header bool
}

type stubStep struct {
	from int
	cfa  int64
}

// The entries that linkers write (psABI 5.2; the forms for BND and IBT of GNU
// ld, lld and mold). The index is pushed before the first entry is entered.
var stubs = []stub{
	{code: "ff35????????ff25????????", steps: []stubStep{{0, 16}, {6, 24}}, header: true},
	{code: "ff35????????f2ff25????????", steps: []stubStep{{0, 16}, {6, 24}}, header: true},
	{code: "f30f1efa4153ff35????????ff25????????", steps: []stubStep{{0, 8}, {6, 16}, {12, 24}}, header: true},
	{code: "ff25????????68????????e9????????", steps: []stubStep{{0, 8}, {11, 16}}},
	{code: "f30f1efa68????????f2e9????????", steps: []stubStep{{0, 8}, {9, 16}}},
	{code: "f30f1efa68????????e9????????", steps: []stubStep{{0, 8}, {9, 16}}},
	{code: "68????????f2e9????????", steps: []stubStep{{0, 8}, {5, 16}}},
	{code: "f30f1efaf2ff25????????", steps: []stubStep{{0, 8}}},
	{code: "f30f1efaff25????????", steps: []stubStep{{0, 8}}},
	{code: "f30f1efa41bb????????ff25????????", steps: []stubStep{{0, 8}}},
	{code: "41bb????????ff25????????", steps: []stubStep{{0, 8}}},
	{code: "f2ff25????????", steps: []stubStep{{0, 8}}},
	{code: "ff25????????", steps: []stubStep{{0, 8}}},
}

// pltRows returns the rows of the entry of a linkage table in which an
// instruction begins at an offset. Entries begin on 8 bytes. Of entries that
// hold each other the longest counts. No entry calls, so a PC inside a call is
// in none.
func pltRows(r *sdk.CodeRange, at int) []cfi.Row {
	if !r.Exact {
		return nil
	}
	for i := range stubs {
		s := &stubs[i]
		length := len(s.code) / 2
		for start := max(0, at-length+1); start <= at; start++ {
			if (r.Start+uint64(start))%8 != 0 || !s.matches(r.Code[start:]) || !beginsAt(r.Code[start:], at-start) {
				continue
			}
			if s.header && !s.isHeader(r.Code[start:]) {
				return nil
			}
			var list rowList
			for j, step := range s.steps {
				end := length
				if j+1 < len(s.steps) {
					end = s.steps[j+1].from
				}
				base := r.Start + uint64(start)
				list.add(base+uint64(step.from), base+uint64(end),
					cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(rsp), Offset: step.cfa},
					[]cfi.RegisterRule{{Column: uint64(rip), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}}})
			}
			return list.rows
		}
	}
	return nil
}

func (s *stub) matches(code []byte) bool {
	if len(code) < len(s.code)/2 {
		return false
	}
	for i := 0; i < len(s.code); i += 2 {
		if s.code[i] != '?' && code[i/2] != hexDigit(s.code[i])<<4|hexDigit(s.code[i+1]) {
			return false
		}
	}
	return true
}

// beginsAt says whether an instruction begins at an offset of code that begins
// with one.
func beginsAt(code []byte, offset int) bool {
	at := 0
	for at < offset {
		e, ok := layout(code[at:])
		if !ok {
			return false
		}
		at += e.length
	}
	return at == offset
}

func hexDigit(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

// isHeader says whether the jump goes through the word after the pushed one.
func (s *stub) isHeader(code []byte) bool {
	length := len(s.code) / 2
	code = code[:length]
	push := 2 // of the displacement
	for code[push-2] != 0xff || code[push-1] != 0x35 {
		push++
	}
	jump := length - 4
	pushed := int64(push) + 4 + int64(int32(binary.LittleEndian.Uint32(code[push:])))
	jumped := int64(length) + int64(int32(binary.LittleEndian.Uint32(code[jump:])))
	return jumped == pushed+8
}
