// SPDX-License-Identifier: Apache-2.0

package codeflow

// Pieces are code that lies in several places, put one after the other so that a flow follows
// it as one: its addresses are offsets in Code. No edge leads through the code between two
// pieces.
type Pieces struct {
	Code   []byte
	pieces []piece
}

type piece struct {
	start  uint64 // its address
	offset uint64 // in Code
	size   uint64
}

// OnePiece returns code in one place.
func OnePiece(start uint64, code []byte) *Pieces {
	var p Pieces
	p.Add(start, code, nil)
	return &p
}

// Add adds the code at an address. A copy of separator comes before it where it is not the
// first.
func (p *Pieces) Add(start uint64, code, separator []byte) {
	if len(p.pieces) == 0 {
		p.Code = code[:len(code):len(code)]
	} else {
		p.Code = append(append(p.Code, separator...), code...)
	}
	p.pieces = append(p.pieces, piece{start, uint64(len(p.Code) - len(code)), uint64(len(code))})
}

// Address returns the address of the code at an offset; ok is false between two pieces.
func (p *Pieces) Address(offset uint64) (address uint64, ok bool) {
	for i := range p.pieces {
		if x := &p.pieces[i]; offset-x.offset < x.size {
			return x.start + offset - x.offset, true
		}
	}
	return 0, false
}

// Target returns the offset of the code at a distance from the code at an offset; ok is false
// where it is in no piece.
func (p *Pieces) Target(offset, distance uint64) (target uint64, ok bool) {
	if len(p.pieces) < 2 {
		return offset + distance, offset+distance < uint64(len(p.Code))
	}
	address, ok := p.Address(offset)
	if !ok {
		return 0, false
	}
	return p.Offset(address + distance)
}

// Offset returns the offset of the code at an address; ok is false where it is in no piece.
func (p *Pieces) Offset(address uint64) (offset uint64, ok bool) {
	for i := range p.pieces {
		if x := &p.pieces[i]; address-x.start < x.size {
			return x.offset + address - x.start, true
		}
	}
	return 0, false
}
