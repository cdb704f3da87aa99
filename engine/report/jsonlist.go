// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/escape"
)

// output is a buffer for JSON whose first error stays in it: Flush and check return it.
type output struct{ *bufio.Writer }

func newOutput(w io.Writer) output { return output{bufio.NewWriterSize(w, 1<<16)} }

func (o output) put(parts ...string) {
	for _, p := range parts {
		_, _ = o.WriteString(p)
	}
}

// check returns the error of the writes so far.
func (o output) check() error {
	_, err := o.Write(nil)
	return err
}

// jsonList writes a JSON object with a list of any length, and the problems behind it.
type jsonList struct {
	output
	problems problemList
	comma    string
}

func newJSONList(w io.Writer, name string) *jsonList {
	l := &jsonList{output: newOutput(w)}
	l.put(`{"`, name, `":[`)
	return l
}

// next begins another member of the list.
func (l *jsonList) next() {
	l.put(l.comma, "\n ")
	l.comma = ","
}

func (l *jsonList) finish() error {
	l.put("\n],\"problems\":[")
	for i, p := range l.problems.list() {
		if i > 0 {
			l.put(",")
		}
		l.put("\n " + quoted(p))
	}
	l.put("]}\n")
	return l.Flush()
}

// marshal is a value in JSON on one line, without the escapes that only HTML
// needs.
func marshal(v any) (string, error) {
	b, err := escape.AppendJSON(nil, v, "")
	return strings.TrimSuffix(string(b), "\n"), err
}

// quoted is a string in JSON.
func quoted(s string) string {
	if isPlainJSON(s) {
		return `"` + s + `"`
	}
	text, err := marshal(s)
	if err != nil {
		panic(err) // every string can be marshalled
	}
	return text
}

// isPlainJSON reports whether a string needs no escapes in JSON. Names and rules of real
// files need none.
func isPlainJSON(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// WriteRowsJSON writes the rows of every FDE, one line each, and the problems.
func (c *CallFrames) WriteRowsJSON(w io.Writer) error {
	l := newJSONList(w, "fdes")
	keys := map[uint64]string{} // `"rbx":"`
	comma := ""
	err := c.rows(func(r *cfi.Row) error {
		l.put(comma + "\n  {\"pc\":\"0x")
		comma = ","
		l.put(strconv.FormatUint(r.Start, 16))
		l.put(`"`)
		if r.CFA.Kind != cfi.NoCFA {
			l.put(`,"cfa":`)
			l.put(quoted(c.cfa(&r.CFA, hexExpr)))
		}
		l.put(`,"rules":{`)
		for i := range r.Rules {
			if i > 0 {
				l.put(`,`)
			}
			key, ok := keys[r.Rules[i].Column]
			if !ok {
				key = quoted(c.Register(r.Rules[i].Column)) + ":"
				keys[r.Rules[i].Column] = key
			}
			l.put(key)
			l.writeRule(c, &r.Rules[i].Rule)
		}
		l.put(`}`)
		if r.WindowSave {
			l.put(`,"window_save":true`)
		}
		l.put(`}`)
		return l.check()
	}, func(f *function) error {
		l.next()
		comma = ""
		fmt.Fprintf(l, `{"section":%s,"offset":%d,"start":"0x%x","end":"0x%x",`, quoted(f.section), f.offset, f.start, f.end)
		if f.code != "" {
			l.put(`"code":`, quoted(f.code), `,`)
		}
		l.put(`"rows":[`)
		return l.check()
	}, func(*function) error {
		l.put("]}")
		return l.check()
	}, l.problems.add)
	if err != nil {
		return err
	}
	return l.finish()
}

// writeRule writes a rule as a JSON string. Most are at an offset from the CFA.
func (l *jsonList) writeRule(c *CallFrames, r *cfi.Rule) {
	switch r.Kind {
	case cfi.Offset:
	case cfi.Undefined:
		l.put(`"undefined"`)
		return
	case cfi.SameValue:
		l.put(`"same"`)
		return
	default:
		l.put(quoted(c.rule(r, hexExpr)))
		return
	}
	l.put(`"cfa`)
	if r.Offset >= 0 {
		l.put(`+`)
	}
	_, _ = l.Write(strconv.AppendInt(l.AvailableBuffer(), r.Offset, 10))
	l.put(`"`)
}
