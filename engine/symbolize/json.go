// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"strconv"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/escape"
)

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

func (s *Writer) jsonAnswer(a *Answer) *jsonAnswer {
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

func (s *Writer) jsonFrame(f *trace.Symbol, context bool) jsonFrame {
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
func (s *Writer) json(dst []byte, v any) []byte {
	indent := ""
	if s.options.Pretty {
		indent = "  "
	}
	dst, err := escape.AppendJSON(dst, v, indent)
	if err != nil {
		panic(err) // text and numbers can be encoded
	}
	return dst
}
