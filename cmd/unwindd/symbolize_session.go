package main

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/symbolize"
)

// maxQuestion bounds a line of standard input, in bytes.
const maxQuestion = 1 << 20

// symbolSession answers questions about addresses, in the protocol of
// llvm-symbolizer: each is "[CODE|DATA|FRAME] [FILE:|BUILDID:]NAME ADDRESS",
// without the name where the command line gives a file.
type symbolSession struct {
	tool      string // the name that begins messages
	object    string // "": every question names its file
	buildID   []byte // likewise
	inlines   bool
	hex       bool // numbers are hexadecimal, with 0x or without
	style     symbolize.Style
	linkage   bool // functions have their linkage names
	adjustVMA uint64

	symbolizer *symbolize.Symbolizer
	out        *bufio.Writer
	stderr     *report.Printer
	log        func(text string)
	options    symbolize.WriterOptions
	failed     map[string]bool // files that could not be opened, and were said so
	// refused gives an error for a file that may not be read; nil: none is refused.
	// The first such error is kept: nothing that was asked counts then.
	refused func(path string) error
	refusal error
	// Files in an intermediate representation, or nil, by path; the tools whose
	// place the executable takes do not know them.
	irs map[string]*engine.IRFile
}

// run answers the questions, or those of standard input where there are none.
func (s *symbolSession) run(questions []string, stdin io.Reader) error {
	s.failed = map[string]bool{}
	defer s.closeIRs()
	if s.object != "" {
		if _, _, err := s.open(&question{path: s.object}); err != nil {
			if s.style == symbolize.StyleJSON {
				_ = symbolize.NewWriter(s.out, s.options).Write(&symbolize.Answer{Module: s.object, HasAddress: true, Error: sayFile(s.object, err)})
				_ = s.out.Flush()
			}
			return &fileError{s.object, err}
		}
	}
	a := answering{out: s.out, stderr: s.stderr, options: s.options, prepare: s.prepare, fill: s.fill, failed: s.faulted}
	var err error
	if len(questions) > 0 {
		err = a.list(questions)
	} else {
		err = a.lines(stdin)
	}
	return errors.Join(s.refusal, err)
}

// A fileError is a file that cannot be opened.
type fileError struct {
	name string
	err  error
}

func (e *fileError) Error() string { return fmt.Sprintf("'%s': %s", e.name, sayFile(e.name, e.err)) }
func (e *fileError) Unwrap() error { return e.err }

// sayFile says why a file of a name cannot be opened, where llvm-symbolizer has a
// sentence for it in its words.
func sayFile(name string, err error) string {
	var number syscall.Errno
	switch {
	case errors.Is(err, symbolize.ErrNoBuildID):
		return symbolize.ErrNoBuildID.Error()
	case errors.Is(err, syscall.ENOENT):
		return "No such file or directory"
	case errors.Is(err, syscall.EACCES):
		return "Permission denied"
	case errors.Is(err, object.ErrNotRegular) && isDirectory(name):
		return "Is a directory"
	case errors.Is(err, object.ErrNotELF), errors.Is(err, object.ErrEmpty):
		return "The file was not recognized as a valid object file"
	case errors.As(err, &number):
		return number.Error()
	}
	return err.Error()
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// A question is a line of the protocol.
type question struct {
	kind    symbolize.AnswerKind
	module  string // as the answer names it
	path    string
	buildID []byte
	address uint64
	symbol  string // instead of an address
	offset  uint64 // in it
	text    string // behind the name of the file
}

// errNoQuestion is the error of an empty line, which is answered without a word.
var errNoQuestion = errors.New("")

const blanks = " \n\r"

// parse reads a line. With an error comes what was read so far.
func (s *symbolSession) parse(line string) (q question, err error) {
	if line == "" {
		return q, errNoQuestion
	}
	for prefix, kind := range map[string]symbolize.AnswerKind{"CODE ": symbolize.AnswerCode, "DATA ": symbolize.AnswerData, "FRAME ": symbolize.AnswerFrame} {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			line, q.kind = rest, kind
			break
		}
	}
	if line, err = s.parseFile(line, &q); err != nil {
		return q, err
	}
	line = strings.TrimLeft(line, blanks)
	if line == "" {
		return q, errors.New("no module offset has been specified")
	}
	q.text = strings.TrimRight(line, blanks)
	if end := strings.IndexAny(line, blanks); end >= 0 {
		line = line[:end]
	}
	switch {
	case s.hex:
		// Whatever is a hexadecimal number is one, like addr2line's.
		digits := strings.TrimPrefix(strings.TrimPrefix(line, "0x"), "0X")
		if q.address, err = strconv.ParseUint(digits, 16, 64); err == nil {
			return q, nil
		}
		if line[0] >= '0' && line[0] <= '9' {
			return q, errors.New("expected a number as module offset")
		}
	case line[0] >= '0' && line[0] <= '9':
		if q.address, err = parseNumber(line); err != nil {
			return q, errors.New("expected a number as module offset")
		}
		return q, nil
	}
	q.symbol = line
	if name, offset, ok := strings.Cut(line, "+"); ok && name != "" {
		if n, err := parseNumber(offset); err == nil {
			q.symbol, q.offset = name, n
		}
	}
	return q, nil
}

// parseFile reads the name of a file and gives the rest of the line.
func (s *symbolSession) parseFile(line string, q *question) (string, error) {
	isFile, isID := false, false
	for {
		line = strings.TrimLeft(line, blanks)
		rest, ok := strings.CutPrefix(line, "FILE:")
		if !ok {
			if rest, ok = strings.CutPrefix(line, "BUILDID:"); !ok {
				break
			}
			if isID || isFile {
				return "", errors.New("duplicate input file specification prefix")
			}
			line, isID = rest, true
			continue
		}
		if isID || isFile {
			return "", errors.New("duplicate input file specification prefix")
		}
		line, isFile = rest, true
	}
	if s.object != "" || s.buildID != nil {
		if isFile || isID {
			return "", errors.New("input file has already been specified")
		}
		q.path, q.module, q.buildID = s.object, s.object, s.buildID
		if s.buildID != nil {
			q.module = strings.ToUpper(hex.EncodeToString(s.buildID))
		}
		return line, nil
	}
	name := ""
	if line != "" && (line[0] == '"' || line[0] == '\'') {
		if end := strings.IndexByte(line[1:], line[0]); end >= 0 {
			name, line = line[1:1+end], line[2+end:]
		}
	} else {
		end := strings.IndexAny(line, blanks)
		if end < 0 {
			end = len(line)
		}
		name, line = line[:end], line[end:]
	}
	switch {
	case name == "" && isFile:
		return "", errors.New("must be followed by an input file")
	case name == "" && isID:
		return "", errors.New("must be followed by a hash")
	case name == "":
		return "", errors.New("no input filename has been specified")
	}
	if isID {
		id, err := hex.DecodeString(name)
		if err != nil {
			return "", errors.New("wrong format of build-id")
		}
		q.buildID, q.module = id, strings.ToUpper(name)
		return line, nil
	}
	q.path, q.module = name, name
	return line, nil
}

// parseNumber reads a number as C has them, and 0b and 0o.
func parseNumber(text string) (uint64, error) {
	base := 10
	if len(text) > 1 && text[0] == '0' {
		switch text[1] {
		case 'x', 'X':
			base, text = 16, text[2:]
		case 'b', 'B':
			base, text = 2, text[2:]
		case 'o':
			base, text = 8, text[2:]
		default:
			base, text = 8, text[1:]
		}
	}
	return strconv.ParseUint(text, base, 64)
}

// message is what is said about a question.
func (s *symbolSession) message(about string, text string) string {
	return fmt.Sprintf("%s: error: '%s': %s", s.tool, about, text)
}

// prepare reads a line, and opens the file that it is about.
func (s *symbolSession) prepare(line string) pending {
	line = strings.ReplaceAll(line, "\r", "")
	q, err := s.parse(line)
	if err != nil {
		p := pending{Answer: symbolize.Answer{Module: q.module, Frames: []symbol.Frame{{}}}}
		if !errors.Is(err, errNoQuestion) {
			p.message = s.message(line, err.Error())
		}
		return p
	}
	p := pending{Answer: symbolize.Answer{Module: q.module, Kind: q.kind, Symbol: q.symbol, Address: q.address, HasAddress: q.symbol == ""}}
	if q.symbol != "" && q.kind == symbolize.AnswerCode {
		p.Kind = symbolize.AnswerNamed
	}
	f, ir, err := s.open(&q)
	switch {
	case err != nil && s.failed[q.module]:
		// It was said the first time.
		if !s.inlines && p.Kind == symbolize.AnswerCode {
			p.Frames = []symbol.Frame{{}}
		}
	case err != nil:
		s.failed[q.module] = true
		if s.style == symbolize.StyleJSON {
			p.Error = sayFile(q.path, err)
			break
		}
		p.message = s.message(q.module, sayFile(q.path, err))
	default:
		p.file, p.ir, p.question = f, ir, q
	}
	return p
}

// faulted tells of a file that was cut while it was read.
func (s *symbolSession) faulted(p *pending) error {
	p.message = s.message(p.Module, p.err.Error())
	return nil
}

// open opens the file that a question is about: a code object, or one in an
// intermediate representation.
func (s *symbolSession) open(q *question) (*symbolize.File, symbol.IR, error) {
	if q.buildID != nil {
		f, err := s.symbolizer.OpenBuildID(q.buildID)
		return f, nil, err
	}
	if s.refused != nil {
		if err := s.refused(q.path); err != nil {
			s.refusal = cmp.Or(s.refusal, err)
			return nil, nil, err
		}
	}
	f, err := s.symbolizer.Open(q.path)
	if s.irs != nil && errors.Is(err, object.ErrNotELF) {
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

// openIR opens a file in an intermediate representation; nil where it is none.
func (s *symbolSession) openIR(path string) (symbol.IR, error) {
	if f, ok := s.irs[path]; ok {
		return f, nil
	}
	f, err := engine.OpenIR(path)
	if errors.Is(err, engine.ErrNotIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.irs[path] = f
	for _, p := range f.Problems() {
		s.log(p)
	}
	return f, nil
}

func (s *symbolSession) closeIRs() {
	for _, f := range s.irs {
		_ = f.Close()
	}
}

// fill looks up what was asked for.
func (s *symbolSession) fill(p *pending, frames []symbol.Frame) {
	q, f := &p.question, p.file
	address := q.address - s.adjustVMA
	switch {
	case p.ir != nil:
		s.fillIR(p, frames)
	case p.Kind == symbolize.AnswerNamed:
		for _, named := range f.Lookup(q.symbol) {
			at := named.Start
			if q.offset < named.Size {
				at += q.offset
			}
			if frame := outermost(f.FramesLLVM(frames, at, s.linkage)); frame.File != "" {
				p.Frames = append(p.Frames, frame)
			}
		}
	case q.symbol != "": // variables are found by address only
	case p.Kind == symbolize.AnswerData:
		p.Data = f.Data(address)
	case p.Kind == symbolize.AnswerFrame:
		p.Locals = f.Locals(address)
	case s.style == symbolize.StyleAddr2line:
		p.Frames = f.FramesGNU(frames, address, s.inlines)
	case s.inlines:
		p.Frames = f.FramesLLVM(frames, address, s.linkage)
	case s.style == symbolize.StyleLLVMGNU, !s.linkage: // the innermost function
		p.Frames = f.FramesLLVM(frames, address, s.linkage)[:1]
	default:
		p.Frames = append(frames, outermost(f.FramesLLVM(frames, address, s.linkage)))
	}
}

// fillIR looks up a position in an intermediate representation.
func (s *symbolSession) fillIR(p *pending, frames []symbol.Frame) {
	if p.Kind == symbolize.AnswerNamed {
		p.Kind = symbolize.AnswerCode
	}
	at, err := p.ir.Find(p.question.text, s.hex)
	if p.Kind != symbolize.AnswerCode {
		err = fmt.Errorf("%s files have positions of code only", p.ir.Format())
	}
	switch {
	case err != nil && s.style == symbolize.StyleJSON:
		p.Error = err.Error()
	case err != nil:
		p.message = s.message(p.question.text, err.Error())
	case s.inlines:
		p.Frames = append(frames, at.Frames...)
	case s.style == symbolize.StyleAddr2line, !s.linkage: // the innermost function
		p.Frames = append(frames, at.Frames[0])
	default:
		p.Frames = append(frames, outermost(at.Frames))
	}
	if p.Symbol != "" {
		p.Symbol = p.question.text
	}
}

// outermost joins the frames of an address into one: the function that holds
// the code, at the position of the innermost.
func outermost(frames []symbol.Frame) symbol.Frame {
	frame, last := frames[0], &frames[len(frames)-1]
	if last.HasStart || len(frames) > 1 {
		frame.Function, frame.LinkageName, frame.Name = last.Function, last.LinkageName, last.Name
		frame.Start, frame.HasStart = last.Start, last.HasStart
	}
	frame.Inlined = false
	return frame
}
