// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file writes a variable whose value differs in many lanes as a table.

// manyValues is the number of values from which on a variable is written as a table.
const manyValues = 5

// laneRun is consecutive lanes, with the text of each one's value.
type laneRun struct {
	first uint32
	texts []string
}

func (r *laneRun) lanes() string {
	if len(r.texts) == 1 {
		return strconv.FormatUint(uint64(r.first), 10)
	}
	return fmt.Sprintf("%d-%d", r.first, r.first+uint32(len(r.texts))-1)
}

// laneTable writes the values of a variable in lanes, in the order of the lanes; false where
// they are few, or have parts.
func (t *text) laneTable(values []trace.FrameVariable) bool {
	if len(values) < manyValues {
		return false
	}
	for i := range values {
		if len(values[i].Children) > 0 {
			return false
		}
	}
	runs := laneRuns(values)
	width, longest := 0, 0
	for i := range runs {
		if runs[i].steps() == "" {
			for _, text := range runs[i].texts {
				width = max(width, len(text))
			}
		}
	}
	for i := range runs {
		for _, row := range runs[i].rows(width) {
			longest = max(longest, len(row.lanes()))
		}
	}
	name := variableName(&values[0])
	for i := range runs {
		for _, row := range runs[i].rows(width) {
			t.printf(localsIndent+"%s %s %*s =", name, t.faint("lanes"), longest, row.lanes())
			if steps := row.steps(); steps != "" {
				t.printf(" %s", steps)
			} else {
				for _, text := range row.texts {
					t.printf(" %*s", width, text)
				}
			}
			if strings.TrimSpace(name) != "" {
				t.remarks(&values[0])
			}
			name = strings.Repeat(" ", len(name))
			t.printf("\n")
		}
	}
	return true
}

// laneRuns are the lanes that have a value, as runs.
func laneRuns(values []trace.FrameVariable) (runs []laneRun) {
	texts := map[uint32]string{}
	last := uint32(0)
	for i := range values {
		text := value.Line(&values[i].Value, values[i].Language)
		for lane := range values[i].Lanes.All() {
			texts[lane] = text
			last = max(last, lane)
		}
	}
	for lane := uint32(0); lane <= last; lane++ {
		text, ok := texts[lane]
		if !ok {
			continue
		}
		if n := len(runs); n > 0 && runs[n-1].first+uint32(len(runs[n-1].texts)) == lane {
			runs[n-1].texts = append(runs[n-1].texts, text)
			continue
		}
		runs = append(runs, laneRun{lane, []string{text}})
	}
	return runs
}

// rows are the run as rows of a table whose columns have a width: each has a power of two of
// lanes, and begins at a multiple of that. Values with a constant step from each lane to the
// next are one row.
func (r *laneRun) rows(width int) []laneRun {
	if r.steps() != "" {
		return []laneRun{*r}
	}
	const most, columns = 16, 96
	n := uint32(most)
	for n > 1 && int(n)*(width+1) > columns {
		n /= 2
	}
	var rows []laneRun
	for lane, left := r.first, r.texts; len(left) > 0; {
		take := min(int(n-lane%n), len(left))
		rows = append(rows, laneRun{lane, left[:take]})
		lane, left = lane+uint32(take), left[take:]
	}
	return rows
}

// fewSteps is the number of lanes that are written one by one even where they have a constant
// step.
const fewSteps = 4

// steps describes integers that have a constant step from each lane to the next; "" for
// others.
func (r *laneRun) steps() string {
	if len(r.texts) <= fewSteps {
		return ""
	}
	var numbers []int64
	for _, text := range r.texts {
		n, err := strconv.ParseInt(text, 0, 64)
		if err != nil {
			return ""
		}
		numbers = append(numbers, n)
	}
	step := numbers[1] - numbers[0]
	for i := 1; i < len(numbers); i++ {
		if numbers[i]-numbers[i-1] != step {
			return ""
		}
	}
	first, last := r.texts[0], r.texts[len(r.texts)-1]
	switch {
	case step == 0:
		return first
	case step == 1:
		return first + " to " + last
	case strings.HasPrefix(first, "0x"):
		return fmt.Sprintf("%s to %s, %#x apart", first, last, step)
	}
	return fmt.Sprintf("%s to %s, %d apart", first, last, step)
}
