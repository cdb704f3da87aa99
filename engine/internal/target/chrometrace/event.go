// SPDX-License-Identifier: Apache-2.0

package chrometrace

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
)

// event is an event as it is read.
type event struct {
	phase                                           byte
	name, category                                  []byte
	thread                                          threadKey
	time, length                                    number
	id                                              number
	correlation, external, device, stream, pythonID number
	label, labels, stack                            []byte // args.name, args.labels and args["Call stack"]
}

// number is a number that may be absent.
type number struct {
	integer int64
	nanos   int64 // of microseconds
	isThere bool
	isTime  bool // nanos is valid
}

// The members of an event and of its arguments.
var eventMembers = map[string]func(r *reader) error{
	"ph":   func(r *reader) error { return r.readPhase() },
	"name": func(r *reader) error { return r.readText(&r.event.name) },
	"cat":  func(r *reader) error { return r.readText(&r.event.category) },
	"pid":  func(r *reader) error { return r.readID(&r.event.thread.pid) },
	"tid":  func(r *reader) error { return r.readID(&r.event.thread.tid) },
	"ts":   func(r *reader) error { return r.readNumber(&r.event.time) },
	"dur":  func(r *reader) error { return r.readNumber(&r.event.length) },
	"id":   func(r *reader) error { return r.readNumber(&r.event.id) },
	"args": func(r *reader) error { return r.readArguments() },
}

var argumentMembers = map[string]func(r *reader) error{
	"correlation": func(r *reader) error { return r.readNumber(&r.event.correlation) },
	"External id": func(r *reader) error { return r.readNumber(&r.event.external) },
	"external id": func(r *reader) error { return r.readNumber(&r.event.external) },
	"device":      func(r *reader) error { return r.readNumber(&r.event.device) },
	"stream":      func(r *reader) error { return r.readNumber(&r.event.stream) },
	"Python id":   func(r *reader) error { return r.readNumber(&r.event.pythonID) },
	"name":        func(r *reader) error { return r.readText(&r.event.label) },
	"labels":      func(r *reader) error { return r.readText(&r.event.labels) },
	"Call stack":  func(r *reader) error { return r.readText(&r.event.stack) },
}

// readEvent reads an event.
func (r *reader) readEvent() error {
	r.event = event{}
	return r.json.Object(func(name []byte) error { return r.member(eventMembers, name) })
}

func (r *reader) readArguments() error {
	if r.json.Next() != '{' {
		return skip(r.json)
	}
	return r.json.Object(func(name []byte) error { return r.member(argumentMembers, name) })
}

// member reads a member by a table.
func (r *reader) member(table map[string]func(*reader) error, name []byte) error {
	if read, ok := table[string(name)]; ok {
		return read(r)
	}
	return skip(r.json)
}

func (r *reader) readPhase() error {
	var text []byte
	err := r.readText(&text)
	if len(text) == 1 {
		r.event.phase = text[0]
	}
	return err
}

// readText reads a string; a value of another kind counts as absent.
func (r *reader) readText(into *[]byte) error {
	if r.json.Next() != '"' {
		return skip(r.json)
	}
	text, err := r.json.Text()
	*into = text
	return err
}

// readID reads the ID of a process or a thread: a number or a word.
func (r *reader) readID(into *int64) error {
	if r.json.Next() == '"' {
		text, err := r.json.Text()
		if n, numberErr := strconv.ParseInt(string(text), 10, 32); numberErr == nil {
			*into = n
		} else {
			*into = -(1 << 40) - int64(r.text(text))
		}
		return err
	}
	var n number
	err := r.readNumber(&n)
	*into = n.integer
	return err
}

// readNumber reads a number, also in quotes; another value counts as absent.
func (r *reader) readNumber(into *number) error {
	*into = number{}
	if n, ok := r.number(); ok {
		*into = n
		return nil
	}
	return skip(r.json)
}

// number reads a number if one follows.
func (r *reader) number() (n number, ok bool) {
	var text []byte
	var err error
	start := *r.json
	switch c := r.json.Next(); {
	case c == '"':
		text, err = r.json.Text()
	case c == '-' || c >= '0' && c <= '9':
		text, err = r.json.Number()
	default:
		return n, false
	}
	if err == nil {
		n, ok = parseNumber(text)
	}
	if !ok {
		*r.json = start
	}
	return n, ok
}

// maxMicros bounds times: more are no nanoseconds of 63 bits.
const maxMicros = math.MaxInt64 / 1000 / 4

// parseNumber reads a number. Times have more digits than a float64 keeps, so their decimal digits
// are read.
func parseNumber(text []byte) (n number, ok bool) {
	const milli = 3 // digits behind the point that are nanoseconds
	digits, isNegative := text, false
	if len(digits) > 0 && digits[0] == '-' {
		digits, isNegative = digits[1:], true
	}
	point, i := -1, 0
	var whole, fraction int64
	places := 0
	for ; i < len(digits); i++ {
		c := digits[i]
		switch {
		case c == '.' && point < 0:
			point = i
		case c < '0' || c > '9':
			return parseFloat(text)
		case point < 0:
			if whole > (math.MaxInt64-9)/10 {
				return parseFloat(text)
			}
			whole = whole*10 + int64(c-'0')
		case places < milli:
			fraction = fraction*10 + int64(c-'0')
			places++
		}
	}
	if i == 0 {
		return n, false
	}
	for ; places < milli; places++ {
		fraction *= 10
	}
	n = number{integer: whole, isThere: true}
	if n.isTime = whole <= maxMicros; n.isTime {
		n.nanos = whole*1000 + fraction
	}
	if isNegative {
		n.integer, n.nanos = -n.integer, -n.nanos
	}
	return n, true
}

// parseFloat reads a number with an exponent.
func parseFloat(text []byte) (n number, ok bool) {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsNaN(v) {
		return n, false
	}
	n.isThere = true
	if n.isTime = math.Abs(v) <= maxMicros; n.isTime {
		n.integer, n.nanos = int64(v), int64(math.Round(v*1000))
	}
	return n, true
}

// skip passes over a value. Writers leave NaN and Infinity in it, which are no JSON: such a value
// ends where its brackets are closed.
func skip(r *jsontext.Reader) error {
	start := *r
	err := r.Skip()
	if err == nil {
		return nil
	}
	*r = start
	end := valueEnd(r.Data, r.At)
	if end < 0 {
		return err
	}
	r.At = end
	return nil
}

// valueEnd returns where a value ends that may have words that are no JSON; -1 where it does not.
func valueEnd(data []byte, i int) int {
	depth := 0
	for ; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				return i
			}
			if data[i] == ',' {
				continue
			}
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// text returns the index of a name, kept once.
func (r *reader) text(name []byte) uint32 {
	i, ok := r.texts[string(name)]
	if !ok {
		i = uint32(len(r.names)) //nolint:gosec // fewer than the bytes of the file
		r.names = append(r.names, string(name))
		r.texts[r.names[i]] = i
	}
	return i
}

// reportLeftOut says which kinds of events are not in the profile.
func (r *reader) reportLeftOut() {
	kinds := make([]string, 0, len(r.leftOut))
	for kind := range r.leftOut {
		kinds = append(kinds, kind)
	}
	sort.Slice(kinds, func(i, j int) bool {
		a, b := r.leftOut[kinds[i]], r.leftOut[kinds[j]]
		return a > b || a == b && kinds[i] < kinds[j]
	})
	const most = 8
	if len(kinds) > most {
		kinds = slices.Concat(kinds[:most:most], []string{"others"})
	}
	for i, kind := range kinds {
		if n := r.leftOut[kind]; n > 0 {
			kinds[i] = fmt.Sprintf("%d %s", n, kind)
		}
	}
	if len(kinds) > 0 {
		r.Problem("events that are neither spans of threads nor work of accelerators are not shown: %s", strings.Join(kinds, ", "))
	}
}
