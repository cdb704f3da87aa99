// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"

	"github.com/unwindd/unwindd/engine/trace"
)

// Signature is the key by which a crash is grouped with others; see signature.Signature.
type Signature struct {
	Version      int      `json:"version"`
	Path         string   `json:"path,omitempty"`   // of the target, in a report of its own
	Thread       string   `json:"thread,omitempty"` // its ID, in a report of its own
	Signature    string   `json:"signature"`        // unwindd-2:6f1a0e6d0c0a4b58
	Hash         string   `json:"hash"`
	Frames       []string `json:"frames"`
	RestsOnGuess bool     `json:"rests_on_guess,omitempty"`
	HasOffsets   bool     `json:"has_offsets,omitempty"`
}

// NewSignature is the signature of a thread of a target.
func NewSignature(path string, th *trace.Thread, s *trace.Signature) *Signature {
	return &Signature{s.Version, path, th.ID, s.String(), s.Hash, s.Frames, s.RestsOnGuess, s.HasOffsets}
}

// WriteText writes a line: the signature and its frames; unless isOne, the target's path
// before them.
func (s *Signature) WriteText(w io.Writer, isOne bool) error {
	p := NewPrinter(w)
	if !isOne {
		p.printf("%s: ", s.Path)
	}
	p.printf("%s", s.Signature)
	for i, f := range s.Frames {
		if i > 0 {
			p.printf(" |")
		}
		p.printf(" %s", f)
	}
	if s.RestsOnGuess {
		p.printf(" (rests on a guess)")
	}
	if s.HasOffsets {
		p.printf(" (names are missing)")
	}
	p.printf("\n")
	return p.Flush()
}

// signatureOf writes the signature of a thread that has one.
func (j *stackJSON) signatureOf(th *trace.Thread) {
	if j.signature == nil {
		return
	}
	s := j.signature(th)
	if s == nil {
		return
	}
	j.member("signature")
	j.open("{")
	j.numberMember("version", s.Version)
	j.stringMember("signature", s.String())
	j.stringMember("hash", s.Hash)
	j.textsMember("frames", s.Frames)
	j.trueMember("rests_on_guess", s.RestsOnGuess)
	j.trueMember("has_offsets", s.HasOffsets)
	j.close("}")
}
