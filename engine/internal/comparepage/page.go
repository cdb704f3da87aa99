// SPDX-License-Identifier: Apache-2.0

// Package comparepage writes a comparison of many targets as a page of HTML: classes of targets, the tree of their
// stacks, and each target's own stacks. It is one file that a browser shows without a network; without its
// script the text form of the comparison is there. The package escapes all text of the comparison.
package comparepage

import (
	"bufio"
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/look"
	"github.com/unwindd/unwindd/engine/trace"
)

// packed are the files of the page. After a change of one of them `go test ./engine/internal/comparepage -run
// Packed -update` writes it again.
//
//go:embed page.packed
var packed []byte

// source is the page without a comparison.
type source struct {
	parts         *template.Template
	script, style string
}

// sources is the source, which is unpacked where a page is written, not at the start of every command.
var sources = sync.OnceValue(func() *source {
	files, err := look.Unpack(packed)
	if err != nil {
		panic("comparepage: " + err.Error()) // a test reads it
	}
	return &source{parts: look.Template(files[0]), style: look.Style + files[1], script: look.Script + files[2]}
})

// maxPage bounds the bytes of the data of a page: a page with more is slow to send and to open.
const maxPage = 19 << 20

// Write writes the page of a comparison. The text form is on the page for browsers that run no scripts, and on
// paper; it was escaped already. Of a comparison that is too large for maxPage stacks are left out, outer frames
// of many targets last, and the page says how many.
func Write(w io.Writer, c *trace.Comparison, text string) error {
	return write(w, c, text, ordinary, maxPage)
}

// ordinary are the limits of a page: a browser opens one in seconds.
var ordinary = limits{nodes: 1_000_000, threads: 1_000_000, targets: 250_000, classes: 50_000, text: 4096}

// write is Write by other limits, which are halved until the data have at most a number of bytes.
func write(w io.Writer, c *trace.Comparison, text string, l limits, most int) error {
	data := bytes.Buffer{}
	var leftOut []string
	for {
		var err error
		if leftOut, err = writeData(&data, c, l); err != nil {
			return err
		}
		if data.Len() <= most || l == l.half() {
			break
		}
		data.Reset()
		l = l.half()
	}
	return writePage(w, c, text, leftOut, data.Bytes())
}

// writePage writes the page around its data.
func writePage(w io.Writer, c *trace.Comparison, text string, leftOut []string, data []byte) error {
	s := sources()
	b := bufio.NewWriterSize(w, 1<<16)
	err := s.parts.ExecuteTemplate(b, "head", struct {
		Policy, Name, Text string
		Style              template.CSS
		Facts              []fact
		Problems, LeftOut  []string
		HasMore            bool // the page has operations or modules beside the tree
	}{
		look.Policy(s.script, s.style), title(c), text, template.CSS(s.style), facts(c), problems(c), leftOut, //nolint:gosec // it is ours
		len(c.Collectives)+len(c.Modules) > 0,
	})
	if err != nil {
		return err
	}
	_, _ = b.WriteString(`<script type="text/plain" id="data">`) // Flush has the error
	_, _ = b.Write(data)
	_, _ = b.WriteString("</script>\n")
	if err := s.parts.ExecuteTemplate(b, "end", struct{ Script template.JS }{template.JS(s.script)}); err != nil { //nolint:gosec // it is ours
		return err
	}
	return b.Flush()
}

// fact is a fact about the comparison.
type fact struct{ Name, Value string }

// word is the word for the targets of a comparison.
func word(c *trace.Comparison) string {
	if c.ByThread {
		return "thread"
	}
	return "target"
}

// plural is a number with a word.
func plural(n int, word string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(word, "s"):
		word += "es"
	default:
		word += "s"
	}
	return grouped(n) + " " + word
}

// grouped is a number as people write it: 10,000.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// title is the title of the page.
func title(c *trace.Comparison) string {
	return plural(len(c.Targets), word(c)) + " in " + plural(readClasses(c), "class")
}

// readClasses is the number of classes of targets that could be read.
func readClasses(c *trace.Comparison) (n int) {
	for i := range c.Classes {
		if c.Classes[i].Unread == "" {
			n++
		}
	}
	return n
}

// facts are the totals.
func facts(c *trace.Comparison) []fact {
	threads, unread, moments, stacks := 0, 0, 0, 0
	for i := range c.Targets {
		threads += c.Targets[i].Threads
		moments = max(moments, c.Targets[i].Count)
	}
	for i := range c.Classes {
		if c.Classes[i].Unread != "" {
			unread += len(c.Classes[i].Targets)
		}
	}
	for i := range c.Functions {
		if c.Functions[i].Ends > 0 {
			stacks++
		}
	}
	list := []fact{{"different stacks", grouped(stacks)}}
	switch {
	case c.CrashedOnly: // of threads too: it says that others were left out
		list = append([]fact{{"threads that crashed", grouped(threads)}}, list...)
	case !c.ByThread:
		list = append([]fact{{"threads", grouped(threads)}}, list...)
	}
	if moments > 1 {
		list = append(list, fact{"moments", "up to " + strconv.Itoa(moments) + " of a " + word(c)})
	}
	if unread > 0 {
		list = append(list, fact{"not read", grouped(unread)})
	}
	return list
}

// maxProblems is how many problems a page has of a target and of the comparison.
const maxProblems = 100

// problems are the problems of the comparison.
func problems(c *trace.Comparison) (list []string) {
	t := &texts{most: 2000}
	for i, p := range c.Problems {
		if i == maxProblems {
			return append(list, strconv.Itoa(len(c.Problems)-i)+" more problems are not on this page.")
		}
		list = append(list, t.shown(p))
	}
	return list
}
