// SPDX-License-Identifier: Apache-2.0

// Package flamepage writes a profile as a page of HTML: a flame graph for every event, and
// the functions in which most of it happened. It is one file that a browser shows without a
// network; without its script the functions are there. Its input is text that was escaped
// already (internal/escape); the package keeps it from being taken for HTML.
package flamepage

import (
	"bufio"
	"cmp"
	_ "embed"
	"encoding/json"
	"html/template"
	"io"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/look"
)

// Page is a profile.
type Page struct {
	Name      string // the title of the page
	Facts     []Fact
	Problems  []string
	Functions []Function // functions and names of threads, which calls refer to
	Events    []Event
}

// Fact is a fact about the recording.
type Fact struct{ Name, Value string }

// Kind is the kind of processor that executes a function.
type Kind int

// The kinds. The page's script has them in this order.
const (
	Thread Kind = iota // no function: all threads of a name
	CPU
	Kernel
	GPU
)

// Function is the contents of a box of the graph.
type Function struct {
	Name   string `json:"n"`
	Short  string `json:"s,omitempty"` // shown in the place of Name; "": Name is
	Kind   Kind   `json:"k"`
	Place  string `json:"p,omitempty"` // its file and line, as far as they are known
	Module string `json:"m,omitempty"`
}

// Event is the samples of one event.
type Event struct {
	Name    string
	Amount  string // all of it, in words
	Samples int
	Graph   Graph
	Top     []Row
	Rest    string // the functions that Top leaves out, in words; "": none
}

// Graph is calls, each behind its caller. Of call i, Functions[i] is the index of its
// function and Totals[i] its weight, including the calls that it makes. Callers[i] is its
// caller; -1: it is outermost.
type Graph struct {
	Total     uint64   `json:"total"`
	Unit      string   `json:"unit"` // nanoseconds or count
	Callers   []int32  `json:"callers"`
	Functions []int32  `json:"functions"`
	Totals    []uint64 `json:"totals"`
	// LeftOut is the number of omitted calls, and Least the weight below which calls are
	// omitted.
	LeftOut int    `json:"left_out,omitempty"`
	Least   uint64 `json:"least,omitempty"`
}

// Row is a function of the table.
type Row struct {
	Flat, FlatShare, Cum, CumShare string
	Function
}

// Shown is the name in boxes and tables.
func (f Function) Shown() string { return cmp.Or(f.Short, f.Name) }

// KindName names the processor of a function, unless it is a program on the CPU.
func (f Function) KindName() string { return [...]string{"", "", "kernel", "GPU"}[f.Kind] }

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

// Write writes a page.
func Write(w io.Writer, p *Page) error {
	b := bufio.NewWriterSize(w, 1<<16)
	err := parts().ExecuteTemplate(b, "head", struct {
		*Page
		Policy string
		Style  template.CSS
	}{p, look.Policy(Sources()), template.CSS(look.Style + style)})
	if err != nil {
		return err
	}
	data := struct {
		Functions []Function `json:"functions"`
		Events    []Graph    `json:"events"`
	}{Functions: p.Functions}
	for i := range p.Events {
		data.Events = append(data.Events, p.Events[i].Graph)
	}
	// The encoder's output ends no element of HTML: it escapes <, > and &.
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	for _, part := range []string{`<script type="application/json" id="data">`, string(text), "</script>\n"} {
		_, _ = b.WriteString(part) // Flush has the error
	}
	if err := parts().ExecuteTemplate(b, "end", struct{ Script template.JS }{template.JS(look.Script + script)}); err != nil { //nolint:gosec // it is ours
		return err
	}
	return b.Flush()
}
