// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"slices"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// pattern matches a word whose bits of mask equal value.
type pattern struct{ mask, value uint32 }

// The instructions of entries of linkage tables.
var (
	btiC      = pattern{0xffffffff, 0xd503245f}
	pushX16   = pattern{0xffffffff, 0xa9bf7bf0} // STP X16, X30, [SP, #-16]!
	pushX2    = pattern{0xffffffff, 0xa9bf0fe2} // STP X2, X3, [SP, #-16]!
	adrpX16   = pattern{0x9f00001f, 0x90000010}
	adrpX2    = pattern{0x9f00001f, 0x90000002}
	adrpX3    = pattern{0x9f00001f, 0x90000003}
	loadX17   = pattern{0xffc003ff, 0xf9400211} // LDR X17, [X16, #n]
	loadX2    = pattern{0xffc003ff, 0xf9400042} // LDR X2, [X2, #n]
	addX16    = pattern{0xffc003ff, 0x91000210} // ADD X16, X16, #n
	addX3     = pattern{0xffc003ff, 0x91000063} // ADD X3, X3, #n
	authX17   = pattern{0xffffffff, 0xd503219f} // AUTIA1716
	jumpX17   = pattern{0xffffffff, 0xd61f0220}
	jumpX2    = pattern{0xffffffff, 0xd61f0040}
	braaX17   = pattern{0xffffffff, 0xd71f0a30} // BRAA X17, X16
	fetch     = []pattern{adrpX16, loadX17, addX16}
	stubCodes = [][]pattern{
		// The first entry, and the one for TLS descriptors.
		slices.Concat([]pattern{btiC, pushX16}, fetch, []pattern{jumpX17}),
		slices.Concat([]pattern{pushX16}, fetch, []pattern{jumpX17}),
		{btiC, pushX2, adrpX2, adrpX3, loadX2, addX3, jumpX2},
		{pushX2, adrpX2, adrpX3, loadX2, addX3, jumpX2},
		// The others (AAELF64, and the variants for BTI and PAC of GNU ld and lld).
		slices.Concat([]pattern{btiC}, fetch, []pattern{jumpX17}),
		slices.Concat([]pattern{btiC}, fetch, []pattern{authX17, jumpX17}),
		slices.Concat([]pattern{btiC}, fetch, []pattern{braaX17}),
		slices.Concat(fetch, []pattern{jumpX17}),
		slices.Concat(fetch, []pattern{authX17, jumpX17}),
		slices.Concat(fetch, []pattern{braaX17}),
	}
)

// isLinkage reports whether code of a name may be entries of a linkage table: it is the
// name of a section, or of a symbol that a tool makes for an entry.
func isLinkage(name string) bool {
	return strings.HasPrefix(name, ".plt") || strings.HasPrefix(name, ".iplt") || strings.HasSuffix(name, "@plt")
}

// stubRows returns the rows of the entry of a linkage table that an exact PC is in. No entry
// calls, so a PC inside a call is in none.
func stubRows(r *sdk.CodeRange) []cfi.Row {
	skipped := -r.Start % instructionSize
	if !r.Exact || r.PC%instructionSize != 0 || r.PC-r.Start < skipped {
		return nil
	}
	start, code := r.Start+skipped, r.Code[skipped:]
	at := (r.PC - start) / instructionSize
	for _, stub := range stubCodes {
		length := uint64(len(stub))
		for first := at - min(at, length-1); first <= at; first++ {
			if !isStub(code, first, stub) {
				continue
			}
			entry := code[first*instructionSize : (first+length)*instructionSize]
			if rows, err := functionRows(codeflow.OnePiece(start+first*instructionSize, entry)); err == nil {
				return rows
			}
		}
	}
	return nil
}

func isStub(code []byte, first uint64, stub []pattern) bool {
	for i, p := range stub {
		if n := first + uint64(i); !isInstruction(code, n) || word(code, n)&p.mask != p.value { //nolint:gosec // not negative
			return false
		}
	}
	return true
}
