// SPDX-License-Identifier: Apache-2.0

// Package flamepage writes a profile as a page of HTML: flame graphs from above and from
// below, callers and callees of a function, and a table of functions, by time and by thread.
// It is one file that a browser shows without a network; without its script the heaviest
// functions are there. A page may compare two profiles: then samples have a second weight.
// Its input is text that was escaped already (internal/escape); the package keeps it from
// being taken for HTML.
package flamepage

import (
	"bufio"
	"cmp"
	_ "embed"
	"html/template"
	"io"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/look"
)

// Page is a profile, or the difference of two.
type Page struct {
	Name      string // the title of the page
	Facts     []Fact
	Problems  []string
	Functions []Function // calls refer to them, names of threads included
	Threads   []Thread   // samples refer to them; none: all are of one
	Calls     []Call     // of all events
	Events    []Event
	LeftOut   string // says which calls are left out; "": none are
}

// Fact is a fact about the recording.
type Fact struct{ Name, Value string }

// Kind is the kind of code that a function is of.
type Kind int

// The kinds. The page's script has them in this order.
const (
	ThreadName Kind = iota // no function: all threads of a name
	CPU
	Kernel
	GPU
	JIT     // made by the program while it ran
	Managed // executed by the runtime of a language
	Gap     // no function: callers are missing here
)

// Function is the contents of a box of the graph.
type Function struct {
	Name   string
	Short  string // shown in the place of Name; "": Name is
	Kind   Kind
	Place  string // its file and line, as far as they are known
	Module string
}

// Thread is a thread under one name.
type Thread struct {
	Name     string
	PID, TID int // -1: not known
}

// Call is a function where it was called: a node of a tree. A caller comes before the calls
// that it makes, and calls a function once as a guess and once not.
type Call struct {
	Caller   int32 // index of Calls; -1: it is outermost
	Function int32 // index of Functions
	IsGuess  bool  // that it was called there is a guess
}

// Event is the samples of one event.
type Event struct {
	Name    string
	Unit    string // nanoseconds, bytes or count
	Amount  string // all of it, in words
	Count   int    // of samples, which Samples may have joined
	Samples []Sample
	// IsTimed is true where samples have their times: the page has a range of time then.
	IsTimed bool
	// Base names the other profile where samples have the weight in that one: the page colours
	// calls by the difference then. "" where there is none.
	Base string
	Top  []Row
	Rest string // the functions that Top leaves out, in words; "": none
}

// Sample is a weight in a call itself, without the calls that it makes.
type Sample struct {
	Call   int32  // index of Calls; -1: in none
	Thread int32  // index of Threads
	Time   uint64 // nanoseconds, by any clock
	Weight uint64
	// Base is the weight in the other profile, in the unit and by the scale of Weight: weights
	// of recordings of different length are made comparable before.
	Base uint64
}

// Row is a function of the table that the page has without its script.
type Row struct {
	Flat, FlatShare, Cum, CumShare string
	Function
}

// Shown is the name in boxes and tables.
func (f Function) Shown() string { return cmp.Or(f.Short, f.Name) }

// KindName names the kind of a function, unless it is of a program on the CPU.
func (f Function) KindName() string {
	return [...]string{"", "", "kernel", "GPU", "JIT", "managed", ""}[f.Kind]
}

// packed are the files of the page, deflated: a third of their size. After a change of one of
// them `go test ./engine/internal/flamepage -update` writes it again.
//
//go:embed page.packed
var packed []byte

// source is the page without a profile.
type source struct {
	parts         *template.Template
	script, style string
}

// sources is the source, which is unpacked where a page is written, not at the start of every
// command.
var sources = sync.OnceValue(func() *source {
	files, err := look.Unpack(packed)
	if err != nil {
		panic("flamepage: " + err.Error()) // a test reads it
	}
	return &source{
		parts: look.Template(files[0]), style: look.Style + files[1], script: look.Script + files[2],
	}
})

// Sources are the script and the style of every page, for the policy of one that shows
// pages in a frame.
func Sources() (code, styled string) { return sources().script, sources().style }

// Write writes a page.
func Write(w io.Writer, p *Page) error {
	s := sources()
	b := bufio.NewWriterSize(w, 1<<16)
	err := s.parts.ExecuteTemplate(b, "head", struct {
		*Page
		Policy string
		Style  template.CSS
	}{p, look.Policy(s.script, s.style), template.CSS(s.style)})
	if err != nil {
		return err
	}
	_, _ = b.WriteString(`<script type="text/plain" id="data">`) // Flush has the error
	if err := writeData(b, p); err != nil {
		return err
	}
	_, _ = b.WriteString("</script>\n")
	if err := s.parts.ExecuteTemplate(b, "end", struct{ Script template.JS }{template.JS(s.script)}); err != nil { //nolint:gosec // it is ours
		return err
	}
	return b.Flush()
}
