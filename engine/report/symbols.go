package report

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/internal/escape"
)

// A SymbolStyle is a form in which addresses' symbols are written.
type SymbolStyle int

// The styles. They are those of other tools, byte for byte.
const (
	StyleLLVM      SymbolStyle = iota // llvm-symbolizer's own
	StyleLLVMGNU                      // llvm-symbolizer --output-style=GNU
	StyleJSON                         // llvm-symbolizer --output-style=JSON
	StyleAddr2line                    // binutils' addr2line
)

// FunctionNames says which name of a function is written.
type FunctionNames int

// The names.
const (
	LinkageNames FunctionNames = iota // as linkers have them
	ShortNames                        // DW_AT_name
	NoNames
)

// PathStyle says how much of a file's path is written.
type PathStyle int

// The paths.
const (
	AbsolutePaths PathStyle = iota
	RelativePaths           // without the compilation directory
	BaseNames
)

// SymbolOptions say what a SymbolWriter writes.
type SymbolOptions struct {
	Style     SymbolStyle
	Functions FunctionNames
	Demangle  bool
	Paths     PathStyle
	Pretty    bool // in one line; JSON indented
	Addresses bool // the address first
	Verbose   bool // all that is known of each frame
	// Context is how many lines of source are written around each position.
	Context int64
}

// An Answer is what is known at one address, or of one name.
type Answer struct {
	Module string // as the question has it
	// Address is what was asked for; HasAddress is false where a Symbol was, or
	// where the question could not be understood.
	Address    uint64
	HasAddress bool
	Symbol     string
	// Error is what is wrong with the question or the file. In JSON an answer
	// with an error is nothing else.
	Error string

	Kind   AnswerKind
	Frames []symbol.Frame // of Code and Named, innermost first
	Data   DataAnswer
	Locals []symbol.Local // of Frame
}

// AnswerKind says what was asked for.
type AnswerKind int

// The kinds.
const (
	AnswerCode  AnswerKind = iota // functions at an address
	AnswerNamed                   // the position of each function of a name
	AnswerData                    // a variable
	AnswerFrame                   // the variables of a frame
)

// A DataAnswer is a variable.
type DataAnswer struct {
	Name        string
	Start, Size uint64
	File        string // that declares it
	Line        int
}

// A SymbolWriter writes answers. It is of one goroutine.
type SymbolWriter struct {
	options  SymbolOptions
	w        io.Writer
	err      error
	buf      []byte // an answer that is being written
	list     []any  // of a JSON list
	listed   bool
	source   sourceFile
	readable readableNames
}

// NewSymbolWriter makes a writer; it writes nothing yet. Append alone needs no
// io.Writer.
func NewSymbolWriter(w io.Writer, o SymbolOptions) *SymbolWriter {
	return &SymbolWriter{options: o, w: w}
}

// BeginList begins a list: in JSON the answers until EndList are one array.
func (s *SymbolWriter) BeginList() { s.listed = s.options.Style == StyleJSON }

// EndList ends a list.
func (s *SymbolWriter) EndList() error {
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
func (s *SymbolWriter) Write(a *Answer) error {
	if s.listed {
		s.list = append(s.list, s.jsonAnswer(a))
		return s.err
	}
	s.buf = s.Append(s.buf[:0], a)
	s.flush(s.buf)
	return s.err
}

func (s *SymbolWriter) flush(text []byte) {
	if s.err == nil {
		_, s.err = s.w.Write(text)
	}
}

// Append appends an answer as Write writes it outside of a list.
func (s *SymbolWriter) Append(dst []byte, a *Answer) []byte {
	if s.options.Style == StyleJSON {
		return s.json(dst, s.jsonAnswer(a))
	}
	return s.text(dst, a)
}

func (s *SymbolWriter) text(dst []byte, a *Answer) []byte {
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
		dst = s.frame(dst, &symbol.Frame{}, false)
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

// appendLocals appends the variables of a frame: the function, the name, the
// declaration, and the offset in the frame, the size and the tag's offset.
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

// known is a name, or what both tools write where there is none. The tools write
// a name as it is; here one with a line break does not make an answer of two.
func known(name string) string {
	if name == "" {
		return "??"
	}
	return escape.Text(name)
}

func (s *SymbolWriter) frame(dst []byte, f *symbol.Frame, inlined bool) []byte {
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

// verbose appends all that is known of a frame.
func (s *SymbolWriter) verbose(dst []byte, f *symbol.Frame, file string) []byte {
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
func (s *SymbolWriter) addr2line(dst []byte, frames []symbol.Frame) []byte {
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

// function is the name that is written of a function; "" where none is known.
func (s *SymbolWriter) function(f *symbol.Frame) string {
	name := f.LinkageName
	switch {
	case s.options.Functions == NoNames:
		return ""
	case s.options.Functions == ShortNames && f.Name != "":
		name = f.Name
	case name == "":
		// What the function is declared in is left out. Where Function is
		// another name, it is the linkage name, which is not mangled, and may
		// well end in Name: __clang_ocl_kern_imp_f of the body of a kernel f.
		if name = f.Function; f.Name != "" && strings.HasSuffix(name, "::"+f.Name) {
			name = f.Name
		}
	}
	return s.demangle(name)
}

func (s *SymbolWriter) demangle(name string) string {
	if !s.options.Demangle {
		return name
	}
	n := s.readable.of(name)
	if n.raw != name {
		if n.raw, n.readable = name, ""; s.options.Style == StyleAddr2line {
			n.readable = symbol.DemangleGNU(name)
		} else {
			n.readable = symbol.DemangleLLVM(name)
		}
	}
	return n.readable
}

// readableNames are names that were demangled lately, in places by a few bytes of
// them: the names of neighbouring addresses are mostly the same strings in
// memory, which is seen at once.
type readableNames [1 << 10]struct{ raw, readable string }

// of is the place of a name.
func (t *readableNames) of(name string) *struct{ raw, readable string } {
	h := uint32(len(name))
	if n := len(name); n >= 8 {
		h ^= binary.LittleEndian.Uint32([]byte(name[n-8:])) * 0x9e3779b1
		h ^= binary.LittleEndian.Uint32([]byte(name[n/2-2:])) * 0x85ebca77
		h ^= binary.LittleEndian.Uint32([]byte(name[n/4:])) * 0xc2b2ae3d
	}
	return &t[h>>22]
}

// startFile is the file of a function's declaration, where llvm-symbolizer has it.
func (s *SymbolWriter) startFile(f *symbol.Frame) string {
	if f.ImplicitStartFile {
		return ""
	}
	return s.path(f, f.StartFile)
}

// path is a file's path as it is written.
func (s *SymbolWriter) path(f *symbol.Frame, file string) string {
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

// The members of these types are in the order of their names, as
// llvm-symbolizer writes them.
type jsonError struct {
	Message string
}

type jsonFrame struct {
	Column        int
	Discriminator uint64
	FileName      string
	FunctionName  string
	Line          int
	Source        string `json:",omitempty"`
	StartAddress  string
	StartFileName string
	StartLine     int
}

type jsonData struct {
	Name  string
	Size  string
	Start string
}

type jsonLocal struct {
	DeclFile     string
	DeclLine     int
	FrameOffset  *int64 `json:",omitempty"`
	FunctionName string
	Name         string
	Size         string
	TagOffset    string
}

func jsonLocals(list []symbol.Local) *[]jsonLocal {
	out := make([]jsonLocal, len(list))
	for i := range list {
		l := &list[i]
		o := &out[i]
		o.DeclFile, o.DeclLine, o.FunctionName, o.Name = l.File, l.Line, l.Function, l.Name
		if l.HasFrameOffset {
			o.FrameOffset = &l.FrameOffset
		}
		if l.HasSize {
			o.Size = hexadecimal(l.Size)
		}
		if l.HasTagOffset {
			o.TagOffset = hexadecimal(l.TagOffset)
		}
	}
	return &out
}

type jsonAnswer struct {
	Address    string       `json:",omitempty"`
	Data       *jsonData    `json:",omitempty"`
	Error      *jsonError   `json:",omitempty"`
	Frame      *[]jsonLocal `json:",omitempty"`
	Loc        *[]jsonFrame `json:",omitempty"`
	ModuleName string
	SymName    string       `json:",omitempty"`
	Symbol     *[]jsonFrame `json:",omitempty"`
}

func hexadecimal(v uint64) string { return "0x" + strconv.FormatUint(v, 16) }

func (s *SymbolWriter) jsonAnswer(a *Answer) *jsonAnswer {
	out := jsonAnswer{ModuleName: a.Module, SymName: a.Symbol}
	if a.HasAddress {
		out.Address = hexadecimal(a.Address)
	}
	switch {
	case a.Error != "":
		out.Error = &jsonError{a.Error}
	case a.Kind == AnswerData:
		out.Data = &jsonData{s.demangle(a.Data.Name), hexadecimal(a.Data.Size), hexadecimal(a.Data.Start)}
	case a.Kind == AnswerFrame:
		out.Frame = jsonLocals(a.Locals)
	default:
		list := make([]jsonFrame, 0, len(a.Frames))
		for i := range a.Frames {
			list = append(list, s.jsonFrame(&a.Frames[i], a.Kind == AnswerCode))
		}
		if a.Kind == AnswerNamed {
			out.Loc = &list
		} else {
			out.Symbol = &list
		}
	}
	return &out
}

func (s *SymbolWriter) jsonFrame(f *symbol.Frame, context bool) jsonFrame {
	out := jsonFrame{
		Column: f.Column, Discriminator: f.Discriminator, FileName: s.path(f, f.File), FunctionName: s.function(f),
		Line: f.Line, StartFileName: s.startFile(f), StartLine: f.StartLine,
	}
	if context {
		out.Source = s.context(f, func(line string) string { return line })
	}
	if f.HasStart {
		out.StartAddress = hexadecimal(f.Start)
	}
	return out
}

// json appends a value and a newline.
func (s *SymbolWriter) json(dst []byte, v any) []byte {
	b := bytes.NewBuffer(dst)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if s.options.Pretty {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(v); err != nil {
		panic(err) // text and numbers can be encoded
	}
	return b.Bytes()
}

// maxSource bounds a source file that lines are shown of.
const maxSource = 64 << 20

// sourceFile is the source file that was read last.
type sourceFile struct {
	path, text string
}

func (c *sourceFile) read(path string) string {
	if c.path == path {
		return c.text
	}
	*c = sourceFile{path: path}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > maxSource {
		return ""
	}
	if b, err := os.ReadFile(path); err == nil {
		c.text = string(b)
	}
	return c.text
}

// context is the lines of source around a frame's position, each with its
// number, as written writes them; "" where none are asked for or the source is
// not there.
func (s *SymbolWriter) context(f *symbol.Frame, written func(line string) string) string {
	lines := s.options.Context
	if lines <= 0 || f.File == "" {
		return ""
	}
	text := f.Source
	if text == "" {
		// The path is looked up as it is written.
		text = s.source.read(s.path(f, f.File))
	}
	first := max(1, int64(f.Line)-lines/2)
	last := first + min(lines, math.MaxInt64-first) - 1
	width := int(math.Ceil(math.Log10(float64(last))))
	var out strings.Builder
	for n := int64(1); n <= last && text != ""; n++ {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		if n < first {
			continue
		}
		mark := "  : "
		if n == int64(f.Line) {
			mark = " >: "
		}
		fmt.Fprintf(&out, "%*d%s%s\n", width, n, mark, written(strings.TrimSuffix(line, "\r")))
	}
	return out.String()
}
