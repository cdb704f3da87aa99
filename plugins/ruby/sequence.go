// SPDX-License-Identifier: Apache-2.0

package ruby

import (
	"fmt"
	"math"
	"math/bits"
)

// sequence is a sequence of instructions: a method, a block, a program.
type sequence struct {
	address          uint64
	label, path      string
	kind             uint64
	code, size       uint64 // of its instructions: where they are, and how many words
	firstLine        uint32
	lines, lineCount uint64 // the list of lines, in the order of the instructions
	index            uint64 // the index of positions
	parent, local    uint64
	locals, count    uint64 // the names of locals
	params           uint64 // how many of them are parameters
	err              error
}

// The kinds of sequences.
const (
	sequenceTop = iota
	sequenceMethod
	sequenceBlock
	sequenceClass
	sequenceRescue
	sequenceEnsure
	sequenceEval
	sequenceMain
	sequencePlain
)

const (
	maxCode  = 1 << 24 // words of a sequence's instructions
	maxLine  = math.MaxInt32
	maxLines = maxCode
)

// sequence reads a sequence of instructions.
func (r *reader) sequence(address uint64) (*sequence, error) {
	s := r.sequences[address]
	if s == nil {
		s = &sequence{address: address}
		r.sequences[address] = s
		s.err = r.readSequence(s)
	}
	return s, s.err
}

func (r *reader) readSequence(s *sequence) error {
	flags, err := r.flags("instructions", s.address, typeInternal)
	if err != nil {
		return err
	}
	if kind := flags >> internalShift & internalMask; kind != internalSequence {
		return fmt.Errorf("instructions at %#x are of the internal type %d, expected %d", s.address, kind, internalSequence)
	}
	body, err := r.word("the body of instructions", s.address+iseqBody)
	if err != nil {
		return err
	}
	if !isPlace(body) {
		return fmt.Errorf("the body at %#x of the instructions at %#x: expected an address", body, s.address)
	}
	b, err := r.Bytes(body, bodyBytes)
	if err != nil {
		return fmt.Errorf("the body of instructions: %w", err)
	}
	get := func(at uint64) uint64 { return r.Number(b[at:][:8]) }
	get4 := func(at uint64) uint64 { return r.Number(b[at:][:4]) }
	s.kind, s.size, s.code = get4(bodyType), get4(bodySize), get(bodyCode)
	s.lines, s.lineCount, s.index = get(r.bodyInfo), get4(r.bodyInfo+infoCount), get(r.bodyInfo+infoIndex)
	s.parent, s.local = get(r.bodyParent), get(r.bodyLocalParent)
	s.locals, s.count = get(r.bodyLocals), get4(r.bodyLocalCount)
	s.params = get4(bodyParams)
	first := get4(r.bodyFirstLine)
	if !r.isFirstLinePlain {
		first = get(r.bodyFirstLine) >> 1
	}
	switch {
	case s.kind > sequencePlain:
		return fmt.Errorf("the instructions at %#x are of the kind %d, expected at most %d", s.address, s.kind, sequencePlain)
	case s.size == 0 || s.size > maxCode || !isPlace(s.code):
		return fmt.Errorf("the instructions at %#x are %d words at %#x", s.address, s.size, s.code)
	case s.lineCount > s.size:
		return fmt.Errorf("the instructions at %#x have %d lines for %d words", s.address, s.lineCount, s.size)
	case first > maxLine:
		return fmt.Errorf("the instructions at %#x begin at line %d", s.address, first)
	}
	s.firstLine = uint32(first) //nolint:gosec // checked
	if s.label, err = r.text(get(bodyLabel)); err != nil {
		return fmt.Errorf("the label of the instructions at %#x: %w", s.address, err)
	}
	if s.path, err = r.path(get(bodyPath)); err != nil {
		return fmt.Errorf("the path of the instructions at %#x: %w", s.address, err)
	}
	return nil
}

// path returns the path of a file: a String, or the first of an Array of two.
func (r *reader) path(object uint64) (string, error) {
	flags, err := r.flags("a path", object, typeString, typeArray)
	if err != nil {
		return "", err
	}
	if flags&typeMask == typeArray {
		if object, err = r.element(object, 0); err != nil {
			return "", err
		}
	}
	return r.text(object)
}

// line returns the line of the instruction before a PC; 0: unknown.
func (r *reader) line(s *sequence, pc uint64) (uint32, error) {
	word := (pc - s.code) / 8
	switch {
	case pc < s.code || (pc-s.code)%8 != 0 || word > s.size:
		return 0, fmt.Errorf("the PC %#x is not among the %d instructions at %#x", pc, s.size, s.code)
	case s.lineCount == 0:
		return 0, nil
	case word > 0:
		word--
	}
	index := uint64(1)
	if s.lineCount > 1 {
		var err error
		if index, err = r.rank(s.index, word); err != nil {
			return 0, err
		}
	}
	if index == 0 || index > s.lineCount {
		return 0, fmt.Errorf("instruction %d of %q has line %d of %d", word, s.label, index, s.lineCount)
	}
	line, err := r.Uint(s.lines+(index-1)*r.lineSize, 4)
	if err != nil {
		return 0, err
	}
	if line > maxLine {
		return 0, fmt.Errorf("instruction %d of %q is at line %d", word, s.label, line)
	}
	return uint32(line), nil //nolint:gosec // checked
}

const (
	rankSmall  = 54 // positions whose ranks are there, 9 in a word of 7 bits each
	rankBlock  = 512
	rankHeader = 16 // of a block: ranks before it, and before each of its words
	rankBytes  = rankHeader + rankBlock/8
)

// rank returns how many positions of a succinct bit vector are at most x.
func (r *reader) rank(vector, x uint64) (uint64, error) {
	if x < rankSmall {
		w, err := r.word("an index of lines", vector+x/9*8)
		return w >> (x % 9 * 7) & 0x7f, err
	}
	x -= rankSmall
	b, err := r.Bytes(vector+rankSmall/9*8+x/rankBlock*rankBytes, rankBytes)
	if err != nil {
		return 0, fmt.Errorf("an index of lines: %w", err)
	}
	rank, ranks := r.Number(b[:4]), r.Number(b[8:16])
	x %= rankBlock
	word := r.Number(b[rankHeader+x/64*8:][:8])
	if n := x / 64; n > 0 {
		rank += ranks >> (9 * (n - 1)) & 0x1ff
	}
	return rank + uint64(bits.OnesCount64(word<<(63-x%64))), nil //nolint:gosec // a count
}
