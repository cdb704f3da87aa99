// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zlib"
)

// This file reads the reports of Ubuntu's apport (/var/crash/*.crash): fields in the format
// of RFC 822. CoreDump is packed and in base64. A report is read once from front to back,
// and its lines may be as long as they like: apport writes a megabyte in one.

// dumpField is the field with the core of a process.
const dumpField = "CoreDump"

// Bounds on the other fields that are kept: bytes of a value, and their number.
const (
	maxField  = 4 << 10
	maxFields = 256
)

// report is an apport report while it is read.
type report struct {
	input   *bufio.Reader
	labels  []Label
	isKept  bool // continuation lines belong to the last label
	hasDump bool
	others  []string // names of fields in base64
	packed  io.Reader
}

// isReport reports whether a stream is a report. apport writes ProblemType first; people
// put a Package in front, which its tools ask for.
func isReport(head []byte) bool {
	const first = "ProblemType: "
	if bytes.HasPrefix(head, []byte(first)) {
		return true
	}
	name, _, _ := bytes.Cut(head, []byte(":"))
	return isFieldName(name) && bytes.Contains(head, []byte("\n"+first))
}

// isFieldName reports whether a text can be the name of a field.
func isFieldName(name []byte) bool {
	if len(name) == 0 || len(name) > 100 {
		return false
	}
	for _, c := range name {
		if c <= ' ' || c >= 0x7f || c == ':' {
			return false
		}
	}
	return true
}

// openReport returns the core in a report.
func (p *peeler) openReport(input *bufio.Reader) (io.Reader, error) {
	r := &report{input: input}
	p.reports = append(p.reports, r)
	if err := r.fields(); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("it has no field %s%s", dumpField, r.about())
	} else if err != nil {
		return nil, err
	}
	packed := bufio.NewReaderSize(&base64Lines{report: r, isStart: true, line: 1}, 64<<10)
	r.packed = packed
	// gzip and Zstandard are known by their magic. Before apport 1.0 the core was packed by
	// zlib.
	if head, _ := packed.Peek(2); len(head) == 2 && head[0]&0xf == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(packed)
	}
	return packed, nil
}

// finish reads the fields after the core, where unpacking the core stopped before them.
func (r *report) finish() error {
	const most = 64 << 20
	_, err := io.CopyN(io.Discard, r.packed, most)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// about describes a report without a core.
func (r *report) about() string {
	for _, l := range r.labels {
		if l.Name == "ProblemType" {
			return fmt.Sprintf(": it is of the type %s, with %d other fields", l.Value, len(r.labels)+len(r.others)-1)
		}
	}
	return ""
}

// fields reads fields, up to the first line of the core. io.EOF: the rest of the report has
// no core.
func (r *report) fields() error {
	for isStart := true; ; {
		piece, err := r.input.ReadSlice('\n')
		if len(piece) > 0 && r.add(piece, isStart) {
			return nil
		}
		isStart = err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// add reads a line, or another piece of it, and reports whether the core follows.
func (r *report) add(piece []byte, isStart bool) (isDump bool) {
	if !isStart || piece[0] == ' ' {
		if isStart {
			piece = append([]byte("\n"), piece[1:]...)
		}
		r.extend(piece)
		return false
	}
	r.isKept = false
	name, value, _ := bytes.Cut(piece, []byte(":"))
	value = bytes.TrimSpace(value)
	switch {
	case !isFieldName(name):
	case string(value) == "base64":
		isDump = string(name) == dumpField && !r.hasDump
		r.hasDump = r.hasDump || isDump
		if len(r.others) < maxFields {
			r.others = append(r.others, string(name))
		}
	case len(r.labels) < maxFields:
		r.labels, r.isKept = append(r.labels, Label{Name: string(name)}), true
		r.extend(value)
	}
	return isDump
}

// extend appends to the value of the last label.
func (r *report) extend(text []byte) {
	if !r.isKept {
		return
	}
	l := &r.labels[len(r.labels)-1]
	if l.Value == "" {
		text = bytes.TrimLeft(text, "\n") // a value of several lines begins on its second
	}
	text = bytes.TrimRight(text, "\r\n")
	l.Value += strings.ToValidUTF8(string(text[:min(len(text), maxField-len(l.Value))]), "\uFFFD")
	r.isKept = len(l.Value) < maxField
}

// base64Lines decodes the value of a field. Each line is encoded by itself.
type base64Lines struct {
	*report
	isStart bool   // at the start of a line
	line    int    // counts from 1
	left    []byte // characters that are less than a group of four
	decoded []byte
	ready   []byte // of decoded
	err     error
}

// Read implements io.Reader.
func (d *base64Lines) Read(b []byte) (int, error) {
	for len(d.ready) == 0 {
		if d.err != nil {
			return 0, d.err
		}
		d.err = d.more()
	}
	n := copy(b, d.ready)
	d.ready = d.ready[n:]
	return n, nil
}

// more decodes a line, or a piece of it. io.EOF: the value has ended, and the fields after
// it were read.
func (d *base64Lines) more() error {
	if d.isStart {
		head, err := d.input.Peek(1)
		if err != nil {
			return err
		}
		if head[0] != ' ' {
			return d.fields()
		}
		_, _ = d.input.Discard(1)
		d.isStart = false
	}
	piece, err := d.input.ReadSlice('\n')
	isEnd := err == nil
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
		return err
	}
	d.left = append(d.left, bytes.TrimRight(piece, "\r\n")...)
	whole := len(d.left) &^ 3
	if cap(d.decoded) < whole {
		d.decoded = make([]byte, whole)
	}
	n, decodeErr := base64.StdEncoding.Decode(d.decoded[:cap(d.decoded)], d.left[:whole])
	d.ready, d.left = d.decoded[:n], append(d.left[:0], d.left[whole:]...)
	switch {
	case decodeErr != nil:
		return fmt.Errorf("line %d of %s: %w", d.line, dumpField, decodeErr)
	case errors.Is(err, io.EOF) && len(d.left) > 0:
		return io.ErrUnexpectedEOF
	case errors.Is(err, io.EOF):
		return io.EOF
	case isEnd && len(d.left) > 0:
		return fmt.Errorf("line %d of %s: its length is no multiple of 4", d.line, dumpField)
	case isEnd:
		d.isStart, d.line = true, d.line+1
	}
	return nil
}
