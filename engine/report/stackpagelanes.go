// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strconv"

	"github.com/unwindd/unwindd/engine/internal/stackpage"
	"github.com/unwindd/unwindd/engine/trace"
)

// laneColumns is the number of lanes beside one another in a page.
const laneColumns = 16

// laneMarks are the letters of states in a page.
var laneMarks = map[trace.LaneState]string{
	trace.LaneActive: "A", trace.LaneInactive: "I", trace.LaneNotOnEntry: "N", trace.LaneUnknown: "?",
}

// lanes describes the lanes of a frame, as a grid where their states differ, or where other lanes of
// the wave are other threads; nil where there are none.
func (p *pageText) lanes(f *trace.Frame, width int) *stackpage.Lanes {
	groups := f.Lanes()
	lines := p.take(func() { p.text.lanes(groups, width) })
	if len(lines) == 0 {
		return nil
	}
	out := &stackpage.Lanes{}
	if len(lines) != len(groups) { // the text leaves out the usual state of one lane
		for _, line := range lines {
			out.Groups = append(out.Groups, stackpage.LaneGroup{Line: line})
		}
		return out
	}
	marks := laneGroupMarks(groups)
	for i := range groups {
		out.Groups = append(out.Groups, stackpage.LaneGroup{Lane: marks[i], Line: lines[i]})
	}
	most := 0
	if th := p.thread; th != nil && ownLanes(th) != "" {
		most = int(th.Lanes)
	}
	if len(groups) > 1 || most > 0 {
		out.Rows = laneRows(groups, marks, most)
	}
	return out
}

// laneGroupMarks mark groups by their states, and groups with one state by a number too.
func laneGroupMarks(groups []trace.LaneGroup) []stackpage.Lane {
	count, seen := map[trace.LaneState]int{}, map[trace.LaneState]int{}
	for i := range groups {
		count[groups[i].State]++
	}
	marks := make([]stackpage.Lane, len(groups))
	for i := range groups {
		state := groups[i].State
		marks[i] = stackpage.Lane{State: string(state), Mark: laneMarks[state]}
		if seen[state]++; count[state] > 1 {
			marks[i].Mark += strconv.Itoa(seen[state])
		}
	}
	return marks
}

// laneRows are the lanes of groups in their order, and further ones, which are in no group, up to a
// number of lanes.
func laneRows(groups []trace.LaneGroup, marks []stackpage.Lane, most int) (rows []stackpage.LaneRow) {
	all := make([]stackpage.Lane, most)
	for i := range groups {
		for lane := range groups[i].Lanes.All() {
			for len(all) <= int(lane) {
				all = append(all, stackpage.Lane{})
			}
			all[lane] = marks[i]
		}
	}
	for first := 0; first < len(all); first += laneColumns {
		rows = append(rows, stackpage.LaneRow{First: first, Lanes: all[first:min(first+laneColumns, len(all))]})
	}
	return rows
}
