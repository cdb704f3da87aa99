// SPDX-License-Identifier: Apache-2.0

// Package stackpage writes stacks as a page of HTML: one file that a browser shows without a
// network, and that can be read without its script. What it is given is text that was
// escaped already (internal/escape), so that nothing in it changes the direction of a
// line; that nothing in it is taken for HTML is seen to here.
package stackpage

import (
	"bufio"
	_ "embed"
	"html/template"
	"io"
	"sync"

	"github.com/unwindd/unwindd/engine/report/look"
)

// A Kind says what a piece of a line is, for its colour.
type Kind string

// The kinds of pieces. They are the classes of the page's style.
const (
	Plain    Kind = ""
	Head     Kind = "h" // what a stack or a part of the page is called
	Function Kind = "n"
	Place    Kind = "p" // a file and a line
	Faint    Kind = "f" // what is seldom needed
	Warning  Kind = "w" // what is wrong, or only guessed
	Device   Kind = "d" // what executes on an accelerator
	Address  Kind = "a"
	Current  Kind = "c" // the line of source or the instruction where a frame is
)

// A Piece is text of one kind.
type Piece struct {
	Kind Kind
	Text string
}

// A Line is a line of the text form, without its end.
type Line []Piece

// About is what is said of a target above its stacks.
type About struct {
	Name  string // what the page is called
	Lines []Line // the first says what the target is, and why it was kept
	Facts []Fact
	// Globals are variables beside the stacks.
	Globals []Variable
}

// A Fact is something that is known of a process or a machine.
type Fact struct{ Name, Value string }

// A Stack is a stack with the threads that have it.
type Stack struct {
	Title     Line
	IsOpen    bool // shown without being asked for
	IsCrashed bool
	Outline   string // the innermost functions
	About     []Line
	Threads   []Thread // all, where Title leaves some out
	Parts     []Part
}

// A Thread is a thread of a Stack.
type Thread struct{ ID, Name string }

// A Part is the frames of a thread: the stack's own, or of one that launched it.
type Part struct {
	Launch []Line // whose frames these are
	Frames []Frame
	End    []Line // why there are no more
}

// A Frame is a frame: the calls that were inlined into it, innermost first, and then
// the function itself. Where frames were left out it is a Note instead, which says so.
type Frame struct {
	Calls []Call
	Note  Line
}

// HasInlined says whether calls were inlined into the frame.
func (f Frame) HasInlined() bool { return len(f.Calls) > 1 }

// A Call is a function in a frame.
type Call struct {
	Line      Line
	IsInlined bool
	IsGuess   bool
	Module    string // "" of an inlined call, as FoundBy: these are the frame's
	FoundBy   string
	Source    []Line
	Code      []Line
	Lanes     *Lanes
	Registers []Line
	Locals    []Variables
}

// VariableCount is how many variables a call has.
func (c Call) VariableCount() (n int) {
	for i := range c.Locals {
		n += len(c.Locals[i].List)
	}
	return n
}

// Lanes are what the lanes of a frame do.
type Lanes struct {
	Rows   []LaneRow // nil: there is no more to see than Groups say
	Groups []LaneGroup
}

// A LaneRow is lanes beside one another.
type LaneRow struct {
	First int
	Lanes []Lane
}

// A Lane is the state of a lane, and by its mark the group that it is in.
type Lane struct{ State, Mark string }

// A LaneGroup is lanes in one state at one place.
type LaneGroup struct {
	Lane
	Line Line
}

// Variables are variables of a function, or of the lanes that Title names.
type Variables struct {
	Title Line // nil: of the function
	List  []Variable
}

// A Variable is a variable as lines of the text form, and as a tree of its parts.
type Variable struct {
	Lines []Line
	Type  string // "" where the lines say it
	Parts []Value
}

// A Value is a part of a variable.
type Value struct {
	Name, Text, Type string
	Parts            []Value
	Note             string // what was left out of Parts
}

// A Module is a module of the target.
type Module struct {
	Start     string
	Name      string
	Status    string // what debug information it has
	IsBad     bool   // Status is a problem of a module that a frame is in
	BuildID   string
	DebugFile string
	Problem   string
}

// Modules are all modules of a target.
type Modules struct {
	List   []Module
	IsOpen bool
	Bad    int // how many have problems
}

// End is what is said below the stacks.
type End struct {
	Problems []Line // that were met since the head was written
	Modules  Modules
}

var (
	//go:embed page.html
	layout string
	//go:embed page.css
	style string
	//go:embed page.js
	script string

	// parts is parsed where a page is written, not at the start of every command.
	parts = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Parse(layout)) })
)

// Sources are the script and the style of every page, for the policy of one that shows
// pages in a frame.
func Sources() (code, styled string) { return look.Script + script, look.Style + style }

// A Writer writes a page from its head to its end.
type Writer struct {
	b   *bufio.Writer
	err error
}

// NewWriter makes a Writer of a page that begins with the head.
func NewWriter(w io.Writer, head *About) *Writer {
	p := &Writer{b: bufio.NewWriterSize(w, 1<<16)}
	p.execute("head", struct {
		*About
		Policy string
		Style  template.CSS
	}{head, look.Policy(Sources()), template.CSS(look.Style + style)})
	return p
}

// Stack writes a stack. The error is the first one of all writes.
func (p *Writer) Stack(s *Stack) error {
	p.execute("stack", s)
	return p.err
}

// Close writes what stands below the stacks.
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
