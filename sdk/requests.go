// SPDX-License-Identifier: Apache-2.0

package sdk

import "fmt"

// The methods below are the same for all architectures: a plugin may use them.

// Answer answers the request with classify's result for each PC: whether a call ends with
// code, at pc, and the target of a direct one. The error names the bytes that the request
// lacks.
func (r *ClassifyReturnRequest) Answer(classify func(pc uint64, code []byte) (class ReturnClass, target uint64)) (*ClassifyReturnAnswer, error) {
	if len(r.Offsets) != len(r.PCs)+1 {
		return nil, fmt.Errorf("ClassifyReturn: %d offsets for %d PCs, expected one more than PCs", len(r.Offsets), len(r.PCs))
	}
	answer := &ClassifyReturnAnswer{
		Classes: make([]ReturnClass, len(r.PCs)),
		Targets: make([]uint64, len(r.PCs)),
	}
	for i, pc := range r.PCs {
		start, end := r.Offsets[i], r.Offsets[i+1]
		if start > end || uint64(end) > uint64(len(r.Code)) {
			return nil, fmt.Errorf("ClassifyReturn: bytes %d to %d of PC %d, expected a range of %d bytes", start, end, i, len(r.Code))
		}
		answer.Classes[i], answer.Targets[i] = classify(pc, r.Code[start:end])
	}
	return answer, nil
}

// SymbolEnd returns the end of a symbol's function, the address behind it. Functions in
// assembly language often have no size: then the next symbol of the request or the end of
// the section bounds them. It is the symbol's own address where neither is known.
func (r *OpenObjectRequest) SymbolEnd(s *SymbolInfo) uint64 {
	end := s.Address + s.Size
	if s.Size > 0 && end > s.Address {
		return end
	}
	end = s.Address
	for i := range r.Sections {
		if x := &r.Sections[i]; s.Address-x.Address < x.Size && x.Address+x.Size > x.Address {
			end = x.Address + x.Size
			break
		}
	}
	for i := range r.Symbols {
		if a := r.Symbols[i].Address; a > s.Address && a < end {
			end = a
		}
	}
	return end
}
