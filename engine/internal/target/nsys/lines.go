// SPDX-License-Identifier: Apache-2.0

package nsys

import (
	"bytes"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
)

const (
	// maxHeadLines is how many lines decide whether a file is an export.
	maxHeadLines = 2000
	// maxNames bounds the kinds of lines that are counted.
	maxNames = 1 << 10
)

// oldEvents are the members of lines of old exports (nsys export --type json), with the columns of
// the table that took their place.
var oldEvents = map[string][]struct {
	table string
	// has is a member without which the line is of another table; "": none is needed.
	has     string
	columns []string
}{
	"CudaEvent": {
		{"CUPTI_ACTIVITY_KIND_KERNEL", "kernel", []string{"startNs", "endNs", "deviceId", "streamId", "correlationId", "globalPid", "kernel.demangledName", "kernel.shortName", "kernel.mangledName"}},
		{"CUPTI_ACTIVITY_KIND_MEMCPY", "memcpy", []string{"startNs", "endNs", "deviceId", "streamId", "correlationId", "globalPid", "memcpy.copyKind"}},
		{"CUPTI_ACTIVITY_KIND_MEMSET", "memset", []string{"startNs", "endNs", "deviceId", "streamId", "correlationId", "globalPid"}},
	},
	"TraceProcessEvent": {{"CUPTI_ACTIVITY_KIND_RUNTIME", "", []string{"startNs", "endNs", "globalTid", "name", "correlationId", ""}}},
	"NvtxEvent":         {{"NVTX_EVENTS", "", []string{"Timestamp", "EndTimestamp", "GlobalTid", "TextId", "Text", "Type"}}},
}

// AcceptsLines reports whether a file has lines of an export.
func AcceptsLines(data []byte) bool {
	if trimmed := bytes.TrimLeft(data[:min(len(data), 64)], " \r\n\t"); len(trimmed) == 0 || trimmed[0] != '{' {
		return false
	}
	for range maxHeadLines {
		line, rest, more := bytes.Cut(data, []byte("\n"))
		data = rest
		line = bytes.TrimSpace(line)
		if len(line) > 0 {
			if line[0] != '{' || line[len(line)-1] != '}' {
				return false
			}
			if isExportLine(line) {
				return true
			}
		}
		if !more {
			return false
		}
	}
	return false
}

// isExportLine reports whether a line is one that only exports have.
func isExportLine(line []byte) bool {
	l := lineReader{members: map[string]value{}}
	if len(line) > jsontext.MaxText || l.read(line) != nil {
		return false
	}
	if name, ok := l.members["table"]; ok {
		_, isKnown := tables[name.text]
		return isKnown
	}
	for name := range oldEvents {
		if l.inner == name {
			return true
		}
	}
	return false
}

// lineReader reads a line: its members, and the ones of objects in it as "outer.inner".
type lineReader struct {
	members map[string]value
	inner   string   // the first member that is an object
	texts   []string // the first line of old exports has all texts
}

func (l *lineReader) read(line []byte) error {
	clear(l.members)
	l.inner, l.texts = "", nil
	r := &jsontext.Reader{Data: line}
	if err := r.Object(func(name []byte) error { return l.member(r, "", string(name), 0) }); err != nil {
		return err
	}
	return r.End()
}

// maxInner bounds how deep the objects in a line are looked at.
const maxInner = 3

// member reads a member of an object.
func (l *lineReader) member(r *jsontext.Reader, prefix, name string, depth int) error {
	switch c := r.Next(); {
	case c == '{' && depth < maxInner:
		if depth == 0 && l.inner == "" {
			l.inner = name
		}
		inside := prefix + name + "."
		if depth == 0 {
			inside = ""
		} else {
			l.members[prefix+name] = value{}
		}
		return r.Object(func(name []byte) error { return l.member(r, inside, string(name), depth+1) })
	case c == '[' && depth == 0 && name == "data":
		return r.Array(func(int) error {
			if r.Next() != '"' {
				return r.Skip()
			}
			text, err := r.Text()
			l.texts = append(l.texts, string(text))
			return err
		})
	case c == '"':
		text, err := r.Text()
		v := value{text: string(text)}
		v.n, v.isNumber = parse(v.text)
		l.members[prefix+name] = v
		return err
	case c == '-' || c >= '0' && c <= '9':
		text, err := r.Number()
		v := value{}
		v.n, v.isNumber = parse(string(text))
		l.members[prefix+name] = v
		return err
	}
	return r.Skip()
}

// parse reads a whole number; exports have large ones in quotes.
func parse(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// ReadLines reads an export to lines of JSON. A line that cannot be read is left out.
func ReadLines(path string, data []byte) (*stacktree.File, error) {
	c := newCollector(path)
	l := &lineReader{members: map[string]value{}}
	others := map[string]int{}
	bad, firstBad := 0, ""
	for number := 1; len(data) > 0; number++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := l.read(line); err != nil {
			if bad++; bad == 1 {
				firstBad = fmt.Sprintf("line %d, %v", number, err)
			}
			continue
		}
		if other := c.addLine(l); other != "" && (others[other] > 0 || len(others) < maxNames) {
			others[other]++
		}
	}
	if bad > 0 {
		c.Problem("%d lines cannot be read, the first: %s: they are left out", bad, firstBad)
	}
	if len(others) > 0 {
		c.Problem("lines that are not shown: %s", countedNames(others))
	}
	return c.build(), nil
}

// addLine adds a line; other is its kind where that is not read.
func (c *collector) addLine(l *lineReader) (other string) {
	for i, text := range l.texts {
		c.strings[int64(i)] = text
	}
	if len(l.texts) > 0 {
		return ""
	}
	if name, ok := l.members["table"]; ok {
		t, isKnown := tables[name.text]
		if !isKnown {
			return jsontext.Clip(name.text)
		}
		t.add(c, l.row(t.columns))
		return ""
	}
	for _, old := range oldEvents[l.inner] {
		if _, has := l.members[old.has]; has || old.has == "" {
			tables[old.table].add(c, l.row(old.columns))
			return ""
		}
	}
	return jsontext.Clip(l.inner)
}

// row returns the values of columns.
func (l *lineReader) row(columns []string) []value {
	row := make([]value, len(columns))
	for i, name := range columns {
		row[i] = l.members[name]
	}
	return row
}

// countedNames writes names with how often they occurred, the most frequent first.
func countedNames(counts map[string]int) string {
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := counts[names[i]], counts[names[j]]
		return a > b || a == b && names[i] < names[j]
	})
	const most = 10
	text := ""
	for i, name := range names {
		if i == most {
			return text + ", and others"
		}
		if i > 0 {
			text += ", "
		}
		text += strings.TrimSpace(fmt.Sprintf("%d %s", counts[name], name))
	}
	return text
}
