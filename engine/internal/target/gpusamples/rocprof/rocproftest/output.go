// SPDX-License-Identifier: Apache-2.0

package rocproftest

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"
)

// output writes JSON in pieces.
type output struct {
	w          *bufio.Writer
	isIndented bool
	depth      int
	isFirst    bool // the object or array is empty yet
	digits     []byte
}

func newOutput(w io.Writer, isIndented bool) *output {
	return &output{w: bufio.NewWriterSize(w, 1<<20), isIndented: isIndented, isFirst: true}
}

// end flushes the output.
func (o *output) end() error {
	o.put("\n")
	return o.w.Flush()
}

// put writes text. end returns its error.
func (o *output) put(text string) { _, _ = o.w.WriteString(text) }

func (o *output) line() {
	if !o.isIndented {
		return
	}
	o.put("\n")
	for range o.depth {
		o.put("  ")
	}
}

// name begins a member, or an element where it is "".
func (o *output) name(name string) {
	if !o.isFirst {
		o.put(",")
	}
	o.isFirst = false
	if o.depth > 0 {
		o.line()
	}
	if name == "" {
		return
	}
	o.put(`"`)
	o.put(name)
	if o.put(`":`); o.isIndented {
		o.put(" ")
	}
}

func (o *output) nest(name, begin, end string, body func()) {
	o.name(name)
	o.put(begin)
	o.depth++
	o.isFirst = true
	body()
	o.depth--
	if !o.isFirst {
		o.line()
	}
	o.isFirst = false
	o.put(end)
}

func (o *output) object(name string, body func()) { o.nest(name, "{", "}", body) }
func (o *output) array(name string, body func())  { o.nest(name, "[", "]", body) }

func (o *output) number(name string, n uint64) {
	o.name(name)
	o.digits = strconv.AppendUint(o.digits[:0], n, 10)
	_, _ = o.w.Write(o.digits)
}

func (o *output) signed(name string, n int64) {
	o.name(name)
	o.digits = strconv.AppendInt(o.digits[:0], n, 10)
	_, _ = o.w.Write(o.digits)
}

func (o *output) boolean(name string, b bool) {
	o.name(name)
	o.put(strconv.FormatBool(b))
}

func (o *output) text(name, text string) {
	o.name(name)
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(text) // a string has no error
			_, _ = o.w.Write(quoted)
			return
		}
	}
	o.put(`"`)
	o.put(text)
	o.put(`"`)
}

func (o *output) texts(name string, list []string) {
	o.array(name, func() {
		for _, text := range list {
			o.text("", text)
		}
	})
}
