// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/internal/stackpage"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/escape"
)

// maxPageFacts bounds the facts of one kind on a page: handles, unloaded files.
const maxPageFacts = 1000

// facts are the facts about the process, its machine and its end.
func (p *pageText) facts() []stackpage.Fact {
	f := p.about.facts
	if f == nil {
		return nil
	}
	var list []stackpage.Fact
	add := func(name, value string) {
		if value != "" {
			list = append(list, stackpage.Fact{Name: escape.Text(name), Value: escape.Text(value)})
		}
	}
	for _, fact := range processFacts {
		value := fact.text(f)
		if process := p.about.Target.Process; fact.name == "executable" && process != nil {
			value = process.Executable
		}
		name := fact.name
		if name == momentFact && p.about.isEnd() {
			name = "ended"
		}
		add(name, value)
	}
	add("signal sent by", sender(f.Crash))
	if len(p.about.Target.Annotations) == 0 { // else they are in the head
		for _, m := range f.Messages {
			add("message of "+path.Base(m.Module), m.Text)
		}
		for _, a := range f.Annotations {
			add(a.Name, a.Value)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(f.LastErrors)) {
		add("last error of thread "+id, f.LastErrors[id])
	}
	for _, l := range f.Limits {
		add(l.Name, limit(l.Soft, l.Unit)+", at most "+limit(l.Hard, l.Unit))
	}
	some(add, "unloaded modules", f.Unloaded, func(m *trace.UnloadedModule) (string, string) {
		return "unloaded module", inWords(m.Name, "at", address(m.Base), "to", address(m.Base+m.Size))
	})
	some(add, "handles", f.Handles, func(h *trace.Handle) (string, string) {
		return "handle " + address(h.Number), inWords(h.Type, h.Name)
	})
	return list
}

// some adds the first facts of a list, and the number of the others.
func some[T any](add func(name, value string), kind string, list []T, fact func(*T) (name, value string)) {
	for i := range list {
		if i == maxPageFacts {
			add("more "+kind, strconv.Itoa(len(list)-i))
			return
		}
		add(fact(&list[i]))
	}
}

// sender is the process that sent a signal; "" where none did.
func sender(c *trace.Crash) string {
	if c == nil || c.Sender == nil {
		return ""
	}
	return c.Sender.String()
}

// limit is one of the limits of a resource.
func limit(n uint64, unit string) string {
	if n == trace.Unlimited {
		return "unlimited"
	}
	return inWords(strconv.FormatUint(n, 10), unit)
}

// momentFact is the fact when a target was written: of a process that goes on.
const momentFact = "taken"

// isEnd reports whether the process ended when the target was written.
func (h *Head) isEnd() bool {
	return h.Target.Signal != 0 || h.Target.Crash != nil && !h.Target.Crash.Requested
}

// processFacts are a page's facts about a process and its machine, each by its name; "" where
// it is not known.
var processFacts = []struct {
	name string
	text func(*trace.Facts) string
}{
	{"process", func(f *trace.Facts) string { return positive(f.Process.ID) }},
	{"command", func(f *trace.Facts) string { return f.Process.Command }},
	{"executable", func(f *trace.Facts) string { return f.Process.Executable }},
	{"user", func(f *trace.Facts) string {
		if f.Process.User == nil {
			return ""
		}
		return strconv.FormatUint(uint64(*f.Process.User), 10)
	}},
	{"started", func(f *trace.Facts) string { return moment(f.Process.Created) }},
	{momentFact, func(f *trace.Facts) string { return moment(f.Process.Kept) }},
	{"system", func(f *trace.Facts) string { return inWords(f.System.OS, f.System.Version, f.System.Build) }},
	{"distribution", func(f *trace.Facts) string {
		if d := f.Distribution; d != nil {
			return cmp.Or(d.Description, inWords(d.ID, d.Release))
		}
		return ""
	}},
	{"machine", func(f *trace.Facts) string { return inWords(f.System.Arch, f.System.CPU) }},
	{"processors", func(f *trace.Facts) string { return positive(int64(f.System.Processors)) }},
	{"mappings", func(f *trace.Facts) string { return positive(int64(f.Mappings)) }},
	{"microcode", func(f *trace.Facts) string {
		if !f.System.HasMicrocode {
			return ""
		}
		return address(f.System.Microcode)
	}},
}

// positive is a number; "" for one that means unknown.
func positive(n int64) string {
	if n <= 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// moment is a time in UTC; "" where it is not known.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// inWords joins the texts that are not empty, with blanks between.
func inWords(list ...string) string {
	return strings.Join(strings.Fields(strings.Join(list, " ")), " ")
}
