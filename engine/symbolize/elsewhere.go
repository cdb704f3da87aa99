// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/fxamacker/cbor/v2"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file answers questions on another machine: a Session there writes answers that are encoded, and one
// here writes them as its options say.

// Elsewhere has another machine answer questions about a file with a build ID. file is the one here; nil: it is
// not here. Answers are as Session.Encoded writes them, one for each question.
type Elsewhere func(buildID []byte, file *File, questions []string) (answers []byte, err error)

// ErrNotElsewhere is the error of an Elsewhere that does not take a file, whose questions are then answered here.
var ErrNotElsewhere = errors.New("the file is read here")

// encodedAnswer is an answer of another machine. What the question said is not repeated.
type encodedAnswer struct {
	Kind    AnswerKind     `cbor:"1,keyasint,omitempty"`
	Symbol  string         `cbor:"2,keyasint,omitempty"`
	Error   string         `cbor:"3,keyasint,omitempty"`
	Message string         `cbor:"4,keyasint,omitempty"` // written before the answer
	Unknown string         `cbor:"5,keyasint,omitempty"` // a name that no function has
	Frames  []trace.Symbol `cbor:"6,keyasint,omitempty"`
	Data    *Datum         `cbor:"7,keyasint,omitempty"`
	Locals  []symbol.Local `cbor:"8,keyasint,omitempty"`
}

var (
	answerEncoding = must(cbor.EncOptions{Sort: cbor.SortNone}.EncMode())
	answerDecoding = must(cbor.DecOptions{
		MaxArrayElements: 1 << 16, MaxMapPairs: 1 << 10, MaxNestedLevels: 16, UTF8: cbor.UTF8DecodeInvalid, // names have any bytes
		IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
	}.DecMode())
)

// must returns the mode of options that are constant.
func must[T any](mode T, err error) T {
	if err != nil {
		panic(err)
	}
	return mode
}

// encode appends an answer as another machine reads it.
func (s *Session) encode(dst []byte, p *pending) []byte {
	a := encodedAnswer{Kind: p.Kind, Symbol: p.Symbol, Error: p.Error, Message: p.message, Unknown: p.unknown, Frames: p.Frames, Locals: p.Locals}
	if p.Data != (Datum{}) {
		a.Data = &p.Data
	}
	if p.err != nil {
		a.Message = s.message(p.Module, p.err.Error())
	}
	if !s.WithSource {
		for i := range a.Frames {
			a.Frames[i].Source = ""
		}
	}
	b := bytes.NewBuffer(dst)
	if err := answerEncoding.NewEncoder(b).Encode(&a); err != nil {
		panic(err) // text and numbers can be encoded
	}
	return b.Bytes()
}

// errFewAnswers is the error of a machine that does not answer all questions.
var errFewAnswers = errors.New("fewer answers than questions came from the server")

// askElsewhere answers the questions of a batch that are about files with build IDs, on another machine.
func (s *Session) askElsewhere(batch []pending) error {
	asked := map[string][]*pending{}
	var order []string
	for i := range batch {
		p := &batch[i]
		id := string(p.buildID)
		if p.file != nil && p.buildID == nil {
			id = string(p.file.Object.BuildID())
		}
		if p.ir != nil || id == "" || p.file == nil && p.buildID == nil {
			continue // it is answered here, or has its answer
		}
		if asked[id] == nil {
			order = append(order, id)
		}
		asked[id] = append(asked[id], p)
	}
	for _, id := range order {
		if err := s.askAbout([]byte(id), asked[id]); err != nil {
			return err
		}
	}
	return nil
}

// askAbout answers questions about a file.
func (s *Session) askAbout(id []byte, list []*pending) error {
	questions := make([]string, len(list))
	for i, p := range list {
		questions[i] = questionPrefixes[p.question.kind] + p.question.text
	}
	data, err := s.Elsewhere(id, list[0].file, questions)
	if errors.Is(err, ErrNotElsewhere) && list[0].file != nil {
		return nil
	}
	if errors.Is(err, ErrNoBuildID) {
		for _, p := range list {
			s.fail(p, &p.question, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	in := answerDecoding.NewDecoder(bytes.NewReader(data))
	for _, p := range list {
		var a encodedAnswer
		if err := in.Decode(&a); err != nil {
			if errors.Is(err, io.EOF) {
				err = errFewAnswers
			}
			return fmt.Errorf("build ID %x: %w", id, err)
		}
		s.take(p, &a)
	}
	return nil
}

// questionPrefixes begin questions of a kind; "": none does.
var questionPrefixes = [...]string{AnswerCode: "CODE ", AnswerData: "DATA ", AnswerFrame: "FRAME "}

// take completes an answer.
func (s *Session) take(p *pending, a *encodedAnswer) {
	p.Kind, p.Symbol, p.Error, p.message, p.Frames, p.Locals = a.Kind, a.Symbol, a.Error, a.Message, a.Frames, a.Locals
	if a.Data != nil {
		p.Data = *a.Data
	}
	if a.Unknown != "" {
		s.unknown.Store(&a.Unknown)
	}
	if p.file != nil && p.Kind == AnswerCode {
		p.file.note(p.Frames)
	}
	p.file = nil
}
