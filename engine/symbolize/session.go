// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/internal/listing"
	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// Session answers questions about addresses, in the protocol of llvm-symbolizer: each is
// "[CODE
//
// # DATA
//
// FRAME] [FILE:
//
// BUILDID:]NAME ADDRESS", without the name where the session has a file.
type Session struct {
	Symbolizer *Symbolizer
	Output     WriterOptions

	Tool    string // the name that begins messages
	Object  string // the file of all questions; "": every question names its own
	BuildID []byte // of the file of all questions, instead of Object; nil: none
	Inlines bool   // inlined calls are frames of their own
	Hex     bool   // numbers are hexadecimal, with 0x or without
	// AdjustVMA is subtracted from every address.
	AdjustVMA uint64
	// IsRelative: addresses of PE files are RVAs, without the image base.
	IsRelative bool
	// IR enables answers about files in an intermediate representation. The tools whose
	// protocol this is do not know them.
	IR bool

	// Elsewhere, where it is not nil, answers the questions about files with build IDs.
	Elsewhere Elsewhere
	// Encoded writes answers as a Session of another machine reads them, in the place of text; WithSource: with the
	// source that debug information has inside. CodeFirst opens the file of BuildID that has the code, where it is
	// known, before one of debug information alone.
	Encoded, WithSource, CodeFirst bool

	// Message, where it is not nil, receives the problem of a question, a line without its
	// end, when all answers before it are written.
	Message func(text string)
	// Log, where it is not nil, receives the problems of files, a sentence at a time.
	Log func(text string)
	// Refuse returns an error for a file that may not be read; nil: all may. The first such
	// error is the error of the session, after all answers.
	Refuse func(path string) error

	unknown *atomic.Pointer[string] // a name that no file has
	refusal error                   // the first error of Refuse
	failed  map[string]bool         // files that could not be opened, after their message
	irs     map[string]*listing.IRFile
}

// Run answers the questions, or where there are none the lines of input, and writes the
// answers to w. Lines that are already available are answered together, on all cores, and
// before more lines are read.
//
// The error of an Object that cannot be opened is a FileError; in JSON its answer was
// written.
func (s *Session) Run(w io.Writer, questions []string, input io.Reader) error {
	s.unknown = new(atomic.Pointer[string])
	s.failed, s.irs, s.refusal = map[string]bool{}, map[string]*listing.IRFile{}, nil
	defer s.closeIRs()
	out := bufio.NewWriterSize(w, outputBuffer)
	if s.Object != "" {
		f, _, err := s.open(&question{path: s.Object})
		if f != nil && f.Object.IsPDB() && s.Message != nil {
			s.Message(s.Tool + ": " + s.Object + ": a PDB file has no image base: addresses are offsets from the beginning of the image (RVA)")
		}
		if err != nil {
			if s.Output.Style == StyleJSON {
				_ = NewWriter(out, s.Output).Write(&Answer{Module: s.Object, HasAddress: true, Error: reason(s.Object, err)})
				_ = out.Flush()
			}
			return &FileError{s.Object, err}
		}
	}
	a := answering{out: out, message: s.Message, options: s.Output, prepare: s.prepare, fill: s.fill, failed: s.faulted}
	if s.Elsewhere != nil {
		a.elsewhere = s.askElsewhere
	}
	if s.Encoded {
		a.encode = s.encode
	}
	err := a.run(questions, input)
	return errors.Join(s.refusal, err)
}

// Unknown returns the name of a question that the file has no function of; "" where there was none.
func (s *Session) Unknown() string {
	if s.unknown == nil || s.unknown.Load() == nil {
		return ""
	}
	return *s.unknown.Load()
}

// hasLinkageNames reports whether functions are written with their linkage names.
func (s *Session) hasLinkageNames() bool { return s.Output.Functions == LinkageNames }

// message is the message about a question.
func (s *Session) message(about string, text string) string {
	return fmt.Sprintf("%s: error: '%s': %s", s.Tool, about, text)
}

// prepare parses a line, and opens the file that it is about.
func (s *Session) prepare(line string) pending {
	line = strings.ReplaceAll(line, "\r", "")
	q, err := s.parse(line)
	if err != nil {
		p := pending{Answer: Answer{Module: q.module, Frames: []trace.Symbol{{}}}}
		if !errors.Is(err, errNoQuestion) {
			p.message = s.message(line, err.Error())
		}
		return p
	}
	p := pending{Answer: Answer{Module: q.module, Kind: q.kind, Symbol: q.symbol, Address: q.address, HasAddress: q.symbol == ""}}
	if q.symbol != "" && q.kind == AnswerCode {
		p.Kind = AnswerNamed
	}
	f, ir, err := s.open(&q)
	switch {
	case s.Elsewhere != nil && q.buildID != nil: // the file may be there alone
		p.file, p.buildID, p.question = f, q.buildID, q
	case err != nil:
		s.fail(&p, &q, err)
	default:
		p.file, p.ir, p.question = f, ir, q
	}
	return p
}

// fail makes the answer to a question about a file that cannot be opened.
func (s *Session) fail(p *pending, q *question, err error) {
	switch {
	case s.failed[q.module]:
		// The message was written the first time.
		if !s.Inlines && p.Kind == AnswerCode {
			p.Frames = []trace.Symbol{{}}
		}
		return
	case s.Output.Style == StyleJSON:
		p.Error = reason(q.path, err)
	default:
		p.message = s.message(q.module, reason(q.path, err))
	}
	s.failed[q.module] = true
}

// notFound notes a name that no function has.
func (s *Session) notFound(p *pending, name string) {
	p.unknown = name
	s.unknown.Store(&name)
}

// faulted reports a file that was cut while it was read.
func (s *Session) faulted(p *pending) error {
	p.message = s.message(p.Module, p.err.Error())
	return nil
}

// open opens the file that a question is about: a code object, or one in an
// intermediate representation.
func (s *Session) open(q *question) (*File, symbol.IR, error) {
	if q.buildID != nil {
		open := s.Symbolizer.OpenBuildID
		if s.CodeFirst {
			open = s.Symbolizer.OpenCode
		}
		f, err := open(q.buildID)
		return f, nil, err
	}
	if s.Refuse != nil {
		if err := s.Refuse(q.path); err != nil {
			s.refusal = cmp.Or(s.refusal, err)
			return nil, nil, err
		}
	}
	f, err := s.Symbolizer.Open(q.path)
	if s.IR && errors.Is(err, object.ErrNotELF) {
		ir, irErr := s.openIR(q.path)
		switch {
		case ir != nil:
			return nil, ir, nil
		case irErr != nil:
			err = irErr
		}
	}
	return f, nil, err
}

// fill answers a question.
func (s *Session) fill(p *pending, frames []trace.Symbol) {
	q, f := &p.question, p.file
	switch {
	case p.ir != nil:
		s.fillIR(p, frames)
	case countsBySection(f.Object):
		s.fillBySection(p, frames)
	case p.Kind == AnswerNamed:
		for _, named := range f.Lookup(q.symbol) {
			address := named.Start
			if q.offset < named.Size {
				address += q.offset
			}
			if frame := outermost(f.FramesLLVM(frames, address, s.hasLinkageNames())); frame.File != "" {
				p.Frames = append(p.Frames, frame)
			}
		}
		if len(f.Lookup(q.symbol)) == 0 {
			s.notFound(p, q.symbol)
		}
	case q.symbol != "": // variables are found by address only
	default:
		s.fillAddress(p, frames, q.address-s.AdjustVMA)
	}
	if f != nil && p.Kind == AnswerCode {
		f.note(p.Frames)
	}
	if f != nil && s.Output.Demangle && f.isWin32() {
		for i := range p.Frames {
			p.Frames[i].LinkageName = pe.WithoutConvention(p.Frames[i].LinkageName)
		}
	}
}

// fillAddress answers a question about an address.
func (s *Session) fillAddress(p *pending, frames []trace.Symbol, address uint64) {
	f := p.file
	if base, ok := f.Object.ImageBase(); ok && s.IsRelative && f.Object.IsPE() {
		address += base
	}
	switch {
	case p.Kind == AnswerData:
		p.Data = f.Data(address)
	case p.Kind == AnswerFrame:
		p.Locals = f.Locals(address)
	case s.Output.Style == StyleAddr2line:
		p.Frames = f.FramesGNU(frames, address, s.Inlines)
	case s.Inlines:
		p.Frames = f.FramesLLVM(frames, address, s.hasLinkageNames())
	case f.resolver.PDB() != nil: // lines of the calls are the function's
		all := f.FramesLLVM(frames, address, s.hasLinkageNames())
		p.Frames = all[len(all)-1:]
	case s.Output.Style == StyleLLVMGNU, !s.hasLinkageNames(): // the innermost function
		p.Frames = f.FramesLLVM(frames, address, s.hasLinkageNames())[:1]
	default:
		p.Frames = append(frames, outermost(f.FramesLLVM(frames, address, s.hasLinkageNames())))
	}
}

// outermost joins the frames of an address into one: the function that has the code, at the
// position of the innermost.
func outermost(frames []trace.Symbol) trace.Symbol {
	frame, last := frames[0], &frames[len(frames)-1]
	if last.HasStart || len(frames) > 1 {
		frame.Function, frame.LinkageName, frame.Name = last.Function, last.LinkageName, last.Name
		frame.Start, frame.HasStart = last.Start, last.HasStart
	}
	frame.Inlined = false
	return frame
}
