// SPDX-License-Identifier: Apache-2.0

package stacktext

import (
	"bytes"
	"math"

	"github.com/unwindd/unwindd/engine/internal/target/linetext"
)

// header is the line of perf script that begins a sample. Which fields it has is said by
// perf script -F.
type header struct {
	comm       string
	pid, tid   int // -1: not there
	cpu        uint32
	hasCPU     bool
	time       uint64 // nanoseconds
	period     uint64
	hasPeriod  bool
	event      string // "": not there
	rest       []byte // what follows the fields: a frame, or the fields of a tracepoint
	restIsCode bool   // rest is a frame
}

// token is a word of a line, and where it begins.
type token struct {
	text  []byte
	start int
}

// maxTokens bounds the words that are looked at: names of threads have at most 15 bytes.
const maxTokens = 24

func tokens(line []byte) (list []token) {
	for i := 0; i < len(line) && len(list) < maxTokens; {
		if line[i] == ' ' || line[i] == '\t' {
			i++
			continue
		}
		end := i
		for end < len(line) && line[end] != ' ' && line[end] != '\t' {
			end++
		}
		list = append(list, token{line[i:end], i})
		i = end
	}
	return list
}

// parseHeader reads the line that begins a sample. The name of a thread may have spaces and
// digits: the first word with which all further ones are fields ends it.
func parseHeader(line []byte) (h header, ok bool) {
	list := tokens(line)
	for i := range list {
		if h, ok = fieldsAt(line, list, i); ok {
			h.comm = string(bytes.TrimSpace(line[:list[i].start]))
			return h, true
		}
	}
	return h, false
}

// fieldsAt reads the fields from a word on.
func fieldsAt(line []byte, list []token, i int) (h header, ok bool) {
	h.pid, h.tid = -1, -1
	known := false // a field that no name of a thread has
	next := func() []byte {
		if i < len(list) {
			return list[i].text
		}
		return nil
	}
	pid, tid, hasID := ids(next())
	if hasID {
		h.pid, h.tid = pid, tid
		i++
	}
	if h.cpu, h.hasCPU = cpuOf(next()); h.hasCPU {
		known = true
		i++
	}
	if i+1 < len(list) && isMisc(next()) && isTime(list[i+1].text) {
		i++
	}
	if time, isTime := parseTime(next()); isTime {
		h.time, known = time, true
		i++
	}
	if n, isNumber := linetext.Decimal(next()); isNumber {
		h.period, h.hasPeriod = n, true
		i++
	}
	if name := next(); isEvent(name) {
		h.event, known = string(name[:len(name)-1]), known || hasID
		i++
	}
	if i < len(list) {
		h.rest = line[list[i].start:]
		_, h.restIsCode = parseAddress(h.rest)
	}
	return h, known && (h.event != "" || h.rest == nil || h.restIsCode)
}

// ids reads TID or PID/TID.
func ids(text []byte) (pid, tid int, ok bool) {
	first, second, both := bytes.Cut(text, []byte("/"))
	if !both {
		tid, ok = id(text)
		return -1, tid, ok
	}
	if pid, ok = id(first); !ok {
		return 0, 0, false
	}
	tid, ok = id(second)
	return pid, tid, ok
}

func id(text []byte) (int, bool) {
	if string(text) == "-1" {
		return -1, true
	}
	n, ok := linetext.Decimal(text)
	return int(n), ok && n <= math.MaxInt32 //nolint:gosec // checked
}

// cpuOf reads the number of a processor: [003].
func cpuOf(text []byte) (uint32, bool) {
	if len(text) < 3 || text[0] != '[' || text[len(text)-1] != ']' {
		return 0, false
	}
	n, ok := linetext.Decimal(text[1 : len(text)-1])
	return uint32(n), ok && n <= math.MaxUint32 //nolint:gosec // checked
}

// isMisc reports whether a word is the mode of a sample: U, K, H, and others of perf's.
func isMisc(text []byte) bool {
	return len(text) > 0 && len(bytes.Trim(text, "UKHGgMECSDFspd.")) == 0
}

func isTime(text []byte) bool {
	_, ok := parseTime(text)
	return ok
}

// parseTime reads seconds with a fraction and a colon, as nanoseconds.
func parseTime(text []byte) (uint64, bool) {
	const perSecond, digits = 1_000_000_000, 9
	text, isTime := bytes.CutSuffix(text, []byte(":"))
	whole, fraction, hasPoint := bytes.Cut(text, []byte("."))
	seconds, ok := linetext.Decimal(whole)
	part, okPart := linetext.Decimal(fraction)
	if !isTime || !hasPoint || !ok || !okPart || len(fraction) > digits || seconds > math.MaxUint64/perSecond-1 {
		return 0, false
	}
	for range digits - len(fraction) {
		part *= 10
	}
	return seconds*perSecond + part, true
}

// isEvent reports whether a word is the name of an event, with a colon behind it.
func isEvent(text []byte) bool {
	if len(text) < 2 || text[len(text)-1] != ':' || isTime(text) {
		return false
	}
	c := text[0] | 0x20
	return c >= 'a' && c <= 'z' || text[0] == '_'
}
