// SPDX-License-Identifier: Apache-2.0

package report

// EventTop is the functions in which most of an event happened.
type EventTop struct {
	Event     string        `json:"event"`
	Unit      string        `json:"unit"`
	Samples   int           `json:"samples"`
	Total     uint64        `json:"total"`
	Functions []TopFunction `json:"functions"`
	// LeftOut counts the functions beyond the requested number, and LeftOutSelf is the part of the
	// event in them.
	LeftOut     int    `json:"left_out"`
	LeftOutSelf uint64 `json:"left_out_self"`
}

// TopFunction is a function with the part of an event in it. Self is without the functions that
// it calls, Total with them.
type TopFunction struct {
	Function string `json:"function"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"` // where the function begins
	Module   string `json:"module,omitempty"`
	Self     uint64 `json:"self"`
	Total    uint64 `json:"total"`
	Guessed  uint64 `json:"guessed,omitempty"` // the part of Total with the function as a guess
	Device   bool   `json:"device,omitempty"`  // it is an accelerator's
}

// Top returns up to count functions for every event, as the tables of WriteText have them.
func (r *Profile) Top(count int) (list []EventTop) {
	t := &profileText{r: r}
	t.nameLines()
	for i := range r.values {
		v := &r.values[i]
		if v.kind == valueOfWeight {
			list = append(list, t.topOf(v, count))
		}
	}
	return list
}

// topOf returns the functions of one event.
func (t *profileText) topOf(v *profileValue, count int) EventTop {
	c := t.count(v)
	top := EventTop{Event: v.name, Unit: v.unit, Samples: c.samples, Total: c.total, Functions: []TopFunction{}}
	for i, line := range t.ordered(c) {
		if i >= count {
			top.LeftOut++
			top.LeftOutSelf = add(top.LeftOutSelf, c.flat[line])
			continue
		}
		f := &t.lines[line]
		top.Functions = append(top.Functions, TopFunction{
			Function: f.name, File: f.file, Line: f.line, Module: f.module,
			Self: c.flat[line], Total: c.cum[line], Guessed: c.guessed[line], Device: f.isDevice,
		})
	}
	return top
}
