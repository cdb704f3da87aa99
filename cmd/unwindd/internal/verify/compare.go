// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// difference is the first difference of a report from the expected one.
type difference struct {
	// place is the path of the member without the indices of lists: "threads[].frames[].pc".
	place string
	text  string
}

func (d *difference) String() string { return d.text }

// differenceFixes are the fixes for differences, by the beginnings of their places. The first
// match counts.
var differenceFixes = []struct{ place, fix string }{
	{"threads[].frames[].locals", "Variables are read where the debug information or the plugin's Variables say: see the frame's registers first (`unwindd stack --registers`), then the dialect that OpenObject answers."},
	{"threads[].frames[].registers", "Find the first frame whose registers are wrong: the row of the frame inside it has the rules (`unwindd plugin call FrameRules`)."},
	{"threads[].frames[].lanes", "Lanes are bound by BindThreads, and followed by the rows: `unwindd plugin call BindThreads` prints the thread's lanes and active lanes."},
	{"threads[].frames[].module", "The frame is in another module: see the modules' addresses first, then the row of the frame inside it."},
	{"threads[].frames[].function", nameFix}, {"threads[].frames[].short_name", nameFix}, {"threads[].frames[].linkage_name", nameFix},
	{"threads[].frames[].file", nameFix}, {"threads[].frames[].line", nameFix}, {"threads[].frames[].column", nameFix},
	{"threads[].frames[].inlined", nameFix}, {"threads[].frames[].scope_from", nameFix}, {"threads[].frames[].source", nameFix},
	{"threads[].frames", frameFix}, {"threads[].stopped", frameFix}, {"threads[].left_out", frameFix}, {"threads[].cycles", frameFix},
	{"threads[].signature", frameFix},
	{"threads[].stop", "Why a thread stopped is in its note, or in what OpenTarget answers (`unwindd plugin call OpenTarget`)."},
	{"threads[].wave", targetFix}, {"threads[].launched_by", targetFix}, {"threads[].executes", targetFix},
	{"threads", "Threads are those of the target's notes and of OpenTarget (`unwindd plugin call OpenTarget`); how their registers are recorded is in RegisterSets of the description."},
	{"target.fact", "What happened is explained by the signal, the registers and the instruction at the PC. If the stacks are right, see Kind, Register and Accesses of that instruction (`unwindd plugin call Disassemble`) and SignalFrame of the description."},
	{"target.problems", "A problem is new, or one is gone. If it is right, write the report again."},
	{"target", "This member is the target's, and of what OpenTarget answers (`unwindd plugin call OpenTarget`). If it is right, write the report again."},
	{"modules", "Modules are those of the target's notes and of OpenTarget, and of files beside the state: take the snapshot with --files, or leave out of the expected report what depends on files elsewhere."},
	{"", "If the report is right, write it again: `unwindd stack STATE --format json`."},
}

const (
	frameFix  = "Find the first frame that is wrong: `unwindd plugin call FrameRules` prints the rows that the plugin gives for a PC, and `unwindd stack -v` how each frame was found."
	nameFix   = "Names and lines are of the module's symbols and debug information, at the frame's PC: see whether the PC is right, and `unwindd stack -v` for the files that were looked for."
	targetFix = "This member is of what OpenTarget answers: `unwindd plugin call OpenTarget` prints it."
)

// fix returns what to do about the difference.
func (d *difference) fix() string {
	for _, f := range differenceFixes {
		if strings.HasPrefix(d.place, f.place) {
			return f.fix
		}
	}
	return ""
}

// comparison compares a report with the expected one.
type comparison struct {
	// moved and folder replace the path of the target, and its folder, in expected texts: it
	// does not matter where a state lies.
	moved, folder [2]string
}

// compare returns the first difference of a report from the expected one; nil if there is none.
// Objects may have further members; lists must be equally long, and in order.
func compare(expected, got any) *difference {
	c := comparison{moved: [2]string{pathOf(expected), pathOf(got)}}
	for i, name := range c.moved {
		c.folder[i] = filepath.Dir(name) + string(filepath.Separator)
	}
	return c.missing("", "", expected, got)
}

// pathOf returns the path of a report's target; "" if it has none.
func pathOf(report any) string {
	object, _ := report.(map[string]any)
	target, _ := object["target"].(map[string]any)
	name, _ := target["path"].(string)
	return name
}

// firstMembers are compared before the other members of an object: where they are wrong, others
// are wrong for that reason.
var firstMembers = []string{"threads", "frames", "pc", "cfa"}

// inOrder orders the names of members as they are compared.
func inOrder(a, b string) int {
	rank := func(name string) int {
		if i := slices.Index(firstMembers, name); i >= 0 {
			return i
		}
		return len(firstMembers)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// missing compares a value at a path, of which place has no indices.
func (c *comparison) missing(where, place string, expected, got any) *difference {
	differs := func(format string, args ...any) *difference {
		return &difference{place, fmt.Sprintf("%s %s", where, fmt.Sprintf(format, args...))}
	}
	switch expected := expected.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return differs("is %s, expected an object", brief(got))
		}
		for _, name := range slices.SortedFunc(maps.Keys(expected), inOrder) {
			dot := strings.TrimPrefix(where+"."+name, ".")
			if d := c.missing(dot, strings.TrimPrefix(place+"."+name, "."), expected[name], object[name]); d != nil {
				return d
			}
		}
		return nil
	case []any:
		list, ok := got.([]any)
		if !ok {
			return differs("is %s, expected a list", brief(got))
		}
		for i := range min(len(list), len(expected)) {
			if d := c.missing(fmt.Sprintf("%s[%d]", where, i), place+"[]", expected[i], list[i]); d != nil {
				return d
			}
		}
		if len(list) != len(expected) {
			return differs("has %d entries, expected %d", len(list), len(expected))
		}
		return nil
	case string:
		if c.here(expected) == got {
			return nil
		}
	}
	if expected != got {
		return differs("is %s, expected %s", brief(got), brief(expected))
	}
	return nil
}

// here returns an expected text with the target where it lies now.
func (c *comparison) here(text string) string {
	if rest, ok := strings.CutPrefix(text, c.moved[0]); ok && c.moved[0] != "" && (rest == "" || rest[0] == ':') {
		return c.moved[1] + rest
	}
	if rest, ok := strings.CutPrefix(text, c.folder[0]); ok && c.folder[0] != "."+string(filepath.Separator) {
		return c.folder[1] + rest
	}
	return text
}

// maxBrief bounds the text of a quoted value, in bytes.
const maxBrief = 200

func brief(value any) string {
	if value == nil {
		return "absent"
	}
	b, err := json.Marshal(value)
	if err != nil {
		return "unknown"
	}
	if len(b) > maxBrief {
		return strings.ToValidUTF8(string(b[:maxBrief]), "") + "..."
	}
	return string(b)
}
