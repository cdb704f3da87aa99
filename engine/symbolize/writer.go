// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/escape"
)

// Style is a format of answers.
type Style int

// The styles. Each is the output of another tool, byte for byte.
const (
	StyleLLVM      Style = iota // llvm-symbolizer's own
	StyleLLVMGNU                // llvm-symbolizer --output-style=GNU
	StyleJSON                   // llvm-symbolizer --output-style=JSON
	StyleAddr2line              // binutils' addr2line
)

// FunctionNames selects the names of functions that are written.
type FunctionNames int

// The names.
const (
	LinkageNames FunctionNames = iota // for linkers
	ShortNames                        // DW_AT_name
	NoNames                           // none: lines alone
)

// PathStyle selects the part of a file's path that is written.
type PathStyle int

// The paths.
const (
	AbsolutePaths PathStyle = iota // as debug information has it, made absolute
	RelativePaths                  // without the compilation directory
	BaseNames                      // without any directory
)

// WriterOptions are the options of a Writer.
type WriterOptions struct {
	Style     Style
	Functions FunctionNames
	Demangle  bool // names are written as in the source, in the tool's style
	Paths     PathStyle
	Pretty    bool // a function and its line are one line; JSON is indented
	Addresses bool // the address comes first
	Verbose   bool // all known facts of each frame are written
	// Context is the number of lines of source around each position; 0: none.
	Context int64
}

// Writer writes answers. One goroutine may use it.
type Writer struct {
	options  WriterOptions
	w        io.Writer
	err      error
	buf      []byte // an answer that is being written
	list     []any  // of a JSON list
	listed   bool
	source   sourceFile
	readable readableNames
}

// NewWriter makes a writer; it writes nothing yet. Append alone needs no
// io.Writer.
func NewWriter(w io.Writer, o WriterOptions) *Writer {
	return &Writer{options: o, w: w}
}

// BeginList begins a list: in JSON the answers until EndList are one array.
func (s *Writer) BeginList() { s.listed = s.options.Style == StyleJSON }

// EndList ends a list.
func (s *Writer) EndList() error {
	if s.listed {
		s.listed = false
		if s.list == nil {
			s.list = []any{}
		}
		s.flush(s.json(nil, s.list))
		s.list = nil
	}
	return s.err
}

// Write writes an answer. The error is that of the io.Writer, the first one.
func (s *Writer) Write(a *Answer) error {
	if s.listed {
		s.list = append(s.list, s.jsonAnswer(a))
		return s.err
	}
	s.buf = s.Append(s.buf[:0], a)
	s.flush(s.buf)
	return s.err
}

func (s *Writer) flush(text []byte) {
	if s.err == nil {
		_, s.err = s.w.Write(text)
	}
}

// Append appends the text that Write writes outside of a list.
func (s *Writer) Append(dst []byte, a *Answer) []byte {
	if s.options.Style == StyleJSON {
		return s.json(dst, s.jsonAnswer(a))
	}
	return s.text(dst, a)
}

func (s *Writer) text(dst []byte, a *Answer) []byte {
	if s.options.Addresses && (a.HasAddress || s.options.Style == StyleAddr2line) {
		digits, end := "0x%x", "\n"
		if s.options.Style == StyleAddr2line {
			digits = "0x%016x"
		}
		if s.options.Pretty {
			end = ": "
		}
		dst = append(fmt.Appendf(dst, digits, a.Address), end...)
	}
	switch {
	case a.Kind == AnswerData:
		dst = fmt.Appendf(dst, "%s\n%d %d\n", known(s.demangle(a.Data.Name)), a.Data.Start, a.Data.Size)
		if a.Data.File == "" {
			dst = append(dst, "??:?\n"...)
		} else {
			dst = fmt.Appendf(dst, "%s:%d\n", known(a.Data.File), a.Data.Line)
		}
	case a.Kind == AnswerFrame:
		dst = appendLocals(dst, a.Locals)
	case s.options.Style == StyleAddr2line:
		return s.addr2line(dst, a.Frames)
	case len(a.Frames) == 0:
		dst = s.frame(dst, &trace.Symbol{}, false)
	default:
		for i := range a.Frames {
			dst = s.frame(dst, &a.Frames[i], i > 0 && a.Kind == AnswerCode)
		}
	}
	if s.options.Style == StyleLLVM {
		dst = append(dst, '\n')
	}
	return dst
}

// appendLocals appends the variables of a frame: the function, the name, the declaration, and
// the offset in the frame, the size and the tag's offset.
func appendLocals(dst []byte, list []symbol.Local) []byte {
	if len(list) == 0 {
		return append(dst, "??\n"...)
	}
	for i := range list {
		l := &list[i]
		offset, size, tag := "??", "??", "??"
		if l.HasFrameOffset {
			offset = strconv.FormatInt(l.FrameOffset, 10)
		}
		if l.HasSize {
			size = strconv.FormatUint(l.Size, 10)
		}
		if l.HasTagOffset {
			tag = strconv.FormatUint(l.TagOffset, 10)
		}
		dst = fmt.Appendf(dst, "%s\n%s\n%s:%d\n%s %s %s\n", known(l.Function), known(l.Name), known(l.File), l.Line, offset, size, tag)
	}
	return dst
}

// known is a name, or the placeholder of both tools where there is none. The tools write a
// name unchanged; here a line break in it does not split an answer.
func known(name string) string {
	if name == "" {
		return "??"
	}
	return escape.Text(name)
}

func (s *Writer) frame(dst []byte, f *trace.Symbol, inlined bool) []byte {
	if s.options.Functions != NoNames {
		if s.options.Pretty && inlined {
			dst = append(dst, " (inlined by) "...)
		}
		dst = append(dst, known(s.function(f))...)
		if s.options.Pretty {
			dst = append(dst, " at "...)
		} else {
			dst = append(dst, '\n')
		}
	}
	file := s.path(f, f.File)
	if s.options.Verbose {
		return s.verbose(dst, f, file)
	}
	dst = append(append(dst, known(file)...), ':')
	dst = strconv.AppendInt(dst, int64(f.Line), 10)
	switch {
	case s.options.Style == StyleLLVM:
		dst = strconv.AppendInt(append(dst, ':'), int64(f.Column), 10)
	case f.Discriminator != 0:
		dst = fmt.Appendf(dst, " (discriminator %d)", f.Discriminator)
	}
	return append(append(dst, '\n'), s.context(f, escape.Line)...)
}

// verbose appends all known facts of a frame.
func (s *Writer) verbose(dst []byte, f *trace.Symbol, file string) []byte {
	dst = fmt.Appendf(dst, "  Filename: %s\n", known(file))
	if f.StartLine != 0 {
		dst = fmt.Appendf(dst, "  Function start filename: %s\n  Function start line: %d\n", escape.Text(s.startFile(f)), f.StartLine)
	}
	if f.HasStart && s.options.Style == StyleLLVM {
		dst = fmt.Appendf(dst, "  Function start address: 0x%x\n", f.Start)
	}
	dst = fmt.Appendf(dst, "  Line: %d\n  Column: %d\n", f.Line, f.Column)
	if f.Discriminator != 0 {
		dst = fmt.Appendf(dst, "  Discriminator: %d\n", f.Discriminator)
	}
	return dst
}

// addr2line appends the frames of an address.
func (s *Writer) addr2line(dst []byte, frames []trace.Symbol) []byte {
	if len(frames) == 0 {
		if s.options.Functions != NoNames {
			if s.options.Pretty {
				dst = append(dst, "?? "...)
			} else {
				dst = append(dst, "??\n"...)
			}
		}
		return append(dst, "??:0\n"...)
	}
	for i := range frames {
		f := &frames[i]
		if s.options.Pretty && i > 0 {
			dst = append(dst, " (inlined by) "...)
		}
		if s.options.Functions != NoNames {
			dst = append(dst, known(s.function(f))...)
			if s.options.Pretty {
				dst = append(dst, " at "...)
			} else {
				dst = append(dst, '\n')
			}
		}
		dst = append(append(dst, known(s.path(f, f.File))...), ':')
		if f.Line == 0 {
			dst = append(dst, "?\n"...)
			continue
		}
		dst = strconv.AppendInt(dst, int64(f.Line), 10)
		if f.Discriminator != 0 {
			dst = fmt.Appendf(dst, " (discriminator %d)", f.Discriminator)
		}
		dst = append(dst, '\n')
	}
	return dst
}

// function is the written name of a function; "" where none is known.
func (s *Writer) function(f *trace.Symbol) string {
	name := f.LinkageName
	switch {
	case s.options.Functions == NoNames:
		return ""
	case s.options.Functions == ShortNames && f.Name != "":
		name = f.Name
	case name == "":
		// The scope of the declaration is left out. A Function that differs is the linkage
		// name, which is not mangled, and may well end in Name: __clang_ocl_kern_imp_f of the
		// body of a kernel f.
		if name = f.Function; f.Name != "" && strings.HasSuffix(name, "::"+f.Name) {
			name = f.Name
		}
	}
	return s.demangle(name)
}

// startFile is the file of a function's declaration, where llvm-symbolizer has it.
func (s *Writer) startFile(f *trace.Symbol) string {
	if f.ImplicitStartFile {
		return ""
	}
	return s.path(f, f.StartFile)
}

// path is the written form of a file's path.
func (s *Writer) path(f *trace.Symbol, file string) string {
	switch {
	case file == "":
		return ""
	case s.options.Paths == BaseNames:
		return path.Base(file)
	case s.options.Paths == RelativePaths && f.CompDir != "":
		if rest, ok := strings.CutPrefix(file, strings.TrimSuffix(f.CompDir, "/")+"/"); ok && rest != "" {
			return rest
		}
	}
	return file
}
