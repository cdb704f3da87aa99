// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/escape"
)

// targetNames names the targets of a comparison for people, many in one line: by a label that tells
// them apart, or by their paths.
type targetNames struct {
	targets []trace.ComparedTarget
	label   string // "": by path
	names   []targetName
	// order are the indices of targets by their names, numbers in them by their values.
	order []int
	// values counts the targets with a value of a label.
	values map[string]map[string]int
}

// targetName is a name in parts: a number, and what stands before and behind it.
type targetName struct {
	text           string // "": the target has no value of the label
	prefix, suffix string
	number         uint64
	isNumbered     bool
	digits         int // of a number that begins with 0, else 0
}

// rankLabel names targets wherever one has it, and threadLabel threads that are compared.
const (
	rankLabel   = "rank"
	threadLabel = "thread"
)

// pluralLabels are the labels whose plural is with s in the field's language.
var pluralLabels = map[string]bool{rankLabel: true, "host": true, "pod": true, threadLabel: true}

func newTargetNames(c *trace.Comparison) *targetNames {
	n := &targetNames{targets: c.Targets, values: map[string]map[string]int{}, names: make([]targetName, len(c.Targets))}
	for i := range c.Targets {
		for label, value := range c.Targets[i].Labels {
			if n.values[label] == nil {
				n.values[label] = map[string]int{}
			}
			n.values[label][value]++
		}
	}
	n.label = n.choose(c.ByThread)
	folder := commonFolder(c.Targets)
	for i := range c.Targets {
		t := &c.Targets[i]
		name := t.Labels[n.label]
		if n.label == "" {
			name = strings.TrimPrefix(t.Path, folder)
		}
		n.names[i] = splitName(name)
		n.order = append(n.order, i)
	}
	slices.SortFunc(n.order, func(a, b int) int { return cmp.Or(n.names[a].compare(&n.names[b]), a-b) })
	return n
}

// choose returns the label by which targets are named: the IDs of threads, ranks, or else the first one that is
// another for each.
func (n *targetNames) choose(byThread bool) string {
	switch {
	case byThread && len(n.values[threadLabel]) > 0:
		return threadLabel
	case len(n.values[rankLabel]) > 0:
		return rankLabel
	}
	for _, label := range slices.Sorted(maps.Keys(n.values)) {
		if len(n.values[label]) == len(n.targets) {
			return label
		}
	}
	return ""
}

// commonFolder is the folder that all paths begin with, with a slash at its end.
func commonFolder(targets []trace.ComparedTarget) string {
	if len(targets) == 0 {
		return ""
	}
	folder, _ := path.Split(targets[0].Path)
	for i := range targets {
		for !strings.HasPrefix(targets[i].Path, folder) {
			folder, _ = path.Split(strings.TrimSuffix(folder, "/"))
		}
	}
	return folder
}

// splitName finds the last number of a name.
func splitName(text string) targetName {
	n := targetName{text: text, prefix: text}
	end := strings.LastIndexAny(text, "0123456789") + 1
	start := end
	for start > 0 && '0' <= text[start-1] && text[start-1] <= '9' {
		start--
	}
	number, err := strconv.ParseUint(text[start:end], 10, 64)
	if err != nil {
		return n
	}
	n.prefix, n.suffix, n.number, n.isNumbered = text[:start], text[end:], number, true
	if text[start] == '0' && end-start > 1 {
		n.digits = end - start
	}
	return n
}

func (n *targetName) compare(other *targetName) int {
	return cmp.Or(strings.Compare(n.prefix, other.prefix), strings.Compare(n.suffix, other.suffix), cmp.Compare(n.digits, other.digits),
		cmp.Compare(n.number, other.number), strings.Compare(n.text, other.text))
}

// follows reports whether a name is another one with the next number.
func (n *targetName) follows(other *targetName) bool {
	return n.isNumbered && other.isNumbered && n.prefix == other.prefix && n.suffix == other.suffix && n.digits == other.digits && n.number == other.number+1
}

// isNumber reports whether the name is nothing but a number.
func (n *targetName) isNumber() bool {
	return n.isNumbered && n.prefix == "" && n.suffix == "" && n.digits == 0
}

// nameSpan is names of which each has the next number.
type nameSpan struct{ first, last *targetName }

func (s *nameSpan) String() string {
	switch {
	case s.first == s.last:
		return s.first.text
	case s.first.isNumber():
		return s.first.text + "-" + s.last.text
	}
	digits := func(n *targetName) string { return n.text[len(n.prefix) : len(n.text)-len(n.suffix)] }
	return s.first.prefix + "{" + digits(s.first) + ".." + digits(s.last) + "}" + s.first.suffix
}

// size is the number of names.
func (s *nameSpan) size() int { return int(s.last.number-s.first.number) + 1 } //nolint:gosec // a number of targets

// spans are the names of targets in order, each once, and the number of targets without a name.
func (n *targetNames) spans(targets []int) (list []nameSpan, unnamed int) {
	isIn := make([]bool, len(n.targets))
	for _, i := range targets {
		isIn[i] = true
	}
	for _, i := range n.order {
		name := &n.names[i]
		switch end := len(list) - 1; {
		case !isIn[i]:
		case name.text == "":
			unnamed++
		case end >= 0 && list[end].last.text == name.text:
		case end >= 0 && name.follows(list[end].last):
			list[end].last = name
		default:
			list = append(list, nameSpan{name, name})
		}
	}
	return list, unnamed
}

// of names targets in at most a number of characters, or a little more: "ranks 0-511 but 137".
func (n *targetNames) of(targets []int, most int) string {
	spans, unnamed := n.spans(targets)
	var parts []string
	if len(spans) > 0 {
		isOne := len(spans) == 1 && spans[0].first == spans[0].last
		word := n.label
		if !isOne && pluralLabels[word] {
			word += "s"
		}
		if word != "" {
			word += " "
		}
		parts = append(parts, escape.Text(word)+joinSpans(spans, most-utf8.RuneCountInString(word)))
	}
	switch {
	case unnamed > 0 && len(parts) == 0 && unnamed == 1:
		parts = append(parts, cutFront(escape.Text(n.targets[targets[0]].Path), most))
	case unnamed > 0 && n.label != "":
		parts = append(parts, fmt.Sprintf("%d without a %s", unnamed, escape.Text(n.label)))
	}
	return strings.Join(parts, " and ")
}

// cutFront is the end of a text of at most a number of characters.
func cutFront(s string, most int) string {
	runes := []rune(s)
	if len(runes) <= max(most, 1) {
		return s
	}
	return "…" + string(runes[len(runes)-max(most, 1)+1:])
}

// joinSpans is the text of names in about a number of characters: all numbers but a few, where that is
// shorter, and where there are too many the first ones and how many the others are.
func joinSpans(spans []nameSpan, most int) string {
	separator := ", "
	if !slices.ContainsFunc(spans, func(s nameSpan) bool { return !s.first.isNumber() }) {
		separator = ","
		if but := allBut(spans, most); but != "" {
			return but
		}
	}
	more := 0
	for i := range spans {
		more += spans[i].size()
	}
	var b strings.Builder
	width := 0
	for i := range spans {
		text := cutFront(escape.Text(spans[i].String()), most)
		size := utf8.RuneCountInString(text) + len(separator)
		rest := 0
		if i < len(spans)-1 {
			rest = len(" and 1000 more")
		}
		if i > 0 && width+size+rest > most {
			fmt.Fprintf(&b, " and %d more", more)
			break
		}
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(text)
		width += size
		more -= spans[i].size()
	}
	return b.String()
}

// allBut is the text of numbers by those between them that are missing; "" where that is not shorter, or
// does not fit.
func allBut(spans []nameSpan, most int) string {
	if len(spans) < 2 {
		return ""
	}
	first, last := spans[0].first, spans[len(spans)-1].last
	b := []byte(first.text + "-" + last.text + " but ")
	missing := uint64(0)
	for i := 1; i < len(spans) && len(b) <= most; i++ {
		from, to := spans[i-1].last.number+1, spans[i].first.number-1
		if i > 1 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, from, 10)
		if to > from {
			b = strconv.AppendUint(append(b, '-'), to, 10)
		}
		missing += to - from + 1
	}
	if len(b) > most || missing > (last.number-first.number)/2 {
		return ""
	}
	return string(b)
}

// maxCommon is how many labels are named that targets have in common.
const maxCommon = 3

// common are the labels, but the one that names them, of which these targets have one value and others
// another one or none: "host node17".
func (n *targetNames) common(targets []int) (list []string) {
	for _, label := range slices.Sorted(maps.Keys(n.values)) {
		if label == n.label || len(list) == maxCommon {
			continue
		}
		value, ok := n.targets[targets[0]].Labels[label]
		if !ok || n.values[label][value] == len(n.targets) {
			continue
		}
		if !slices.ContainsFunc(targets, func(i int) bool { v, ok := n.targets[i].Labels[label]; return !ok || v != value }) {
			list = append(list, cutShort(escape.Text(label+" "+value), 40))
		}
	}
	return list
}

// inRanks is a text of numbers in short, "0-5,7", by those that are missing where that is shorter.
func inRanks(text string, most int) string {
	var names []targetName
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		a, b := splitName(first), splitName(first)
		if isRange {
			b = splitName(last)
		}
		if !a.isNumber() || !b.isNumber() || b.number < a.number || len(names) > 0 && a.number <= names[len(names)-1].number {
			return cutShort(escape.Text(text), most)
		}
		names = append(names, a, b)
	}
	var spans []nameSpan
	for i := 0; i < len(names); i += 2 {
		s := nameSpan{&names[i], &names[i+1]}
		if s.first.number == s.last.number {
			s.last = s.first
		}
		spans = append(spans, s)
	}
	return joinSpans(spans, most)
}
