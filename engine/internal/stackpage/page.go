// SPDX-License-Identifier: Apache-2.0

// Package stackpage writes stacks as a page of HTML: one file that a browser shows without a
// network, and that can be read without its script. Its input is text that was escaped
// already (internal/escape), so that nothing in it changes the direction of a line; the
// package keeps it from being taken for HTML.
package stackpage

import (
	"bufio"
	_ "embed"
	"html/template"
	"io"
	"iter"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/look"
)

// Kind is the kind of a piece of a line, for its colour.
type Kind string

// The kinds of pieces. They are the classes of the page's style.
const (
	Plain    Kind = ""
	Head     Kind = "h" // the name of a stack or of a part of the page
	Function Kind = "n"
	Place    Kind = "p" // a file and a line
	Faint    Kind = "f" // seldom needed
	Warning  Kind = "w" // wrong, or only guessed
	Device   Kind = "d" // executed on an accelerator
	Address  Kind = "a"
	Current  Kind = "c" // the line of source or the instruction where a frame is
)

// Piece is text of one kind.
type Piece struct {
	Kind Kind
	Text string
	Full string // the text that Text is short for; "" where it is not
}

// Line is a line of the text form, without its end.
type Line []Piece

// About is the description of a target above its stacks.
type About struct {
	Name  string // the title of the page
	Lines []Line // the first is the target, and why it was kept
	Hints []Hint
	Facts []Fact
	// Globals are variables beside the stacks.
	Globals []Variable
}

// Hint names something that the frames lack, and what would give it. All but Text is for programs
// that read the page.
type Hint struct{ Text, Needs, Module, BuildID string }

// Fact is a fact about a process or a machine.
type Fact struct{ Name, Value string }

// Stack is a stack with the threads that have it.
type Stack struct {
	Title     Line
	IsOpen    bool // shown without a click
	IsCrashed bool
	Outline   string // the innermost functions
	About     []Line
	Flags     []string  // a word or two each
	Kind      string    // of its threads: a title above the stacks of a kind
	Threads   []Threads // with names, which Title does not have
	Parts     iter.Seq[Part]
}

// Usual is the kind of threads that need no title where no others stand before them.
const Usual = "threads"

// Threads are the threads of a Stack of one kind.
type Threads struct {
	Kind string
	List []Thread
}

// Thread is a thread of a Stack.
type Thread struct{ ID, Name string }

// Part is the frames of a thread: the stack's own, or a launcher's.
type Part struct {
	Launch []Line // whose frames these are
	// Frames calls write with each frame, which is valid until write returns: a part may have a
	// million.
	Frames func(write func(*Frame))
	End    []Line // why there are no more
}

// Frame is a frame: the calls that were inlined into it, innermost first, and then the
// function itself. Where frames were omitted it is a Note instead, which describes them; Folded are
// these frames, where they are on the page.
type Frame struct {
	Calls  []Call
	Note   Line
	Folded []Frame
}

// HasInlined reports whether calls were inlined into the frame.
func (f Frame) HasInlined() bool { return len(f.Calls) > 1 }

// Call is a function in a frame.
type Call struct {
	Line      Line
	IsInlined bool
	IsGuess   bool
	IsOwn     bool   // the program's own function in which it failed
	Module    string // "" of an inlined call, as FoundBy: these are the frame's
	FoundBy   string
	Source    []Line
	Code      []Line
	Lanes     *Lanes
	Registers []Line
	Locals    []Variables
}

// VariableCount is the number of variables of a call.
func (c Call) VariableCount() (n int) {
	for i := range c.Locals {
		n += len(c.Locals[i].List)
	}
	return n
}

// Lanes are the states of the lanes of a frame.
type Lanes struct {
	Rows   []LaneRow // nil: Groups have all of it
	Groups []LaneGroup
}

// LaneRow is lanes beside one another.
type LaneRow struct {
	First int
	Lanes []Lane
}

// Lane is the state of a lane, and by its mark its group.
type Lane struct{ State, Mark string }

// LaneGroup is lanes in one state at one place.
type LaneGroup struct {
	Lane
	Line Line
}

// Variables are variables of a function, or of the lanes that Title names.
type Variables struct {
	Title Line // nil: of the function
	List  []Variable
}

// Variable is a variable as lines of the text form, and as a tree of its parts.
type Variable struct {
	Lines []Line
	Type  string // "" where the lines say it
	Parts []Value
}

// Value is a part of a variable.
type Value struct {
	Name, Text, Type string
	Parts            []Value
	Note             string // the omitted parts
}

// Module is a module of the target.
type Module struct {
	Start     string
	Name      string
	Status    string // of its debug information
	IsBad     bool   // Status is a problem of a module that a frame is in
	BuildID   string
	DebugFile string
	Problem   string
}

// Modules are all modules of a target.
type Modules struct {
	List   []Module
	IsOpen bool
	Bad    int // number with problems
}

// End is the part below the stacks.
type End struct {
	Problems   []Line   // that were met since the head was written
	Hints      []Hint   // which the head does not have
	Sourceless []string // why there are no lines of source files
	Modules    Modules
}

var (
	//go:embed page.html
	layout string
	//go:embed page.css
	style string
	//go:embed page.js
	script string

	// parts is parsed where a page is written, not at the start of every command.
	parts = sync.OnceValue(func() *template.Template { return look.Template(layout) })
)

// Sources are the script and the style of every page, for the policy of one that shows
// pages in a frame.
func Sources() (code, styled string) { return look.Script + script, look.Style + style }

// Writer writes a page from its head to its end.
type Writer struct {
	b    *bufio.Writer
	kind string // of the last stack
	err  error
}

// NewWriter makes a Writer of a page that begins with the description of the target.
func NewWriter(w io.Writer, about *About) *Writer {
	p := &Writer{b: bufio.NewWriterSize(w, 1<<16), kind: Usual}
	p.execute("head", struct {
		*About
		Policy string
		Style  template.CSS
	}{about, look.Policy(Sources()), template.CSS(look.Style + style)})
	return p
}

// Stack writes a stack. The error is the first one of all writes.
func (p *Writer) Stack(s *Stack) error {
	if s.Kind != p.kind {
		p.execute("kind", s.Kind)
		p.kind = s.Kind
	}
	p.execute("stack", s)
	for part := range s.Parts {
		p.part(&part)
	}
	p.put("</details>\n")
	return p.err
}

// Close writes the part below the stacks.
func (p *Writer) Close(end *End) error {
	p.execute("end", struct {
		*End
		Script template.JS
	}{end, template.JS(look.Script + script)}) //nolint:gosec // it is ours
	if p.err != nil {
		return p.err
	}
	return p.b.Flush()
}

func (p *Writer) execute(name string, data any) {
	if p.err == nil {
		p.err = parts().ExecuteTemplate(p.b, name, data)
	}
}
