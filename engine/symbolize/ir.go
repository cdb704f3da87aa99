// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/listing"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// openIR opens a file in an intermediate representation; nil for any other file.
func (s *Session) openIR(path string) (symbol.IR, error) {
	if f, ok := s.irs[path]; ok {
		return f, nil
	}
	f, err := listing.OpenIR(path)
	if errors.Is(err, listing.ErrNotIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.irs[path] = f
	if s.Log != nil {
		for _, p := range f.Problems() {
			s.Log(p)
		}
	}
	return f, nil
}

func (s *Session) closeIRs() {
	for _, f := range s.irs {
		_ = f.Close()
	}
}

// fillIR answers a question about a file in an intermediate representation.
func (s *Session) fillIR(p *pending, frames []trace.Symbol) {
	if p.Kind == AnswerNamed {
		p.Kind = AnswerCode
	}
	position, err := p.ir.Find(p.question.text, s.Hex)
	if p.Kind != AnswerCode {
		err = fmt.Errorf("%s files have positions of code only", p.ir.Format())
	}
	switch {
	case err != nil && s.Output.Style == StyleJSON:
		p.Error = err.Error()
	case err != nil:
		p.message = s.message(p.question.text, err.Error())
	case s.Inlines:
		p.Frames = append(frames, position.Frames...)
	case s.Output.Style == StyleAddr2line, !s.hasLinkageNames(): // the innermost function
		p.Frames = append(frames, position.Frames[0])
	default:
		p.Frames = append(frames, outermost(position.Frames))
	}
	if p.Symbol != "" {
		p.Symbol = p.question.text
	}
}
