// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/funcname"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/escape"
)

// This file describes the devices that executed waves, and counts the waves of each launch by
// the reason for their stop.

// addDevices adds the devices that executed waves.
func (t *Target) addDevices(d *trace.Devices, threads *target.ThreadList) {
	for _, a := range d.Agents {
		t.Agents = append(t.Agents, Agent{a.ID, a.Processor})
	}
	for _, q := range d.Queues {
		t.Queues = append(t.Queues, Queue{q.ID, q.Agent, q.Kind})
	}
	known := func(n [3]uint32) *[3]uint32 {
		if n == [3]uint32{} {
			return nil
		}
		return &n
	}
	var waves map[string]waveCount
	if len(d.Dispatches) > 0 {
		waves = countWaves(threads)
	}
	for _, x := range d.Dispatches {
		t.Dispatches = append(t.Dispatches, Dispatch{x.ID, x.Queue, x.Kernel, known(x.Grid), known(x.Group), waves[x.ID]})
	}
}

// waveCount is the number of waves of a dispatch in each state.
type waveCount map[waveState]int

// waveState is the state of a wave.
type waveState struct {
	isRunning bool
	isWaiting bool   // or does something else that the target has words for
	reason    string // why it stopped
	trap      uint32
	hasTrap   bool
}

// wavePlace is which wave a thread is. Threads whose lanes have states of their own may be parts of
// one.
type wavePlace struct {
	dispatch string
	group    [3]uint32
	inGroup  uint32
}

// countWaves counts the waves of each dispatch, by its ID. A wave of which several threads are parts
// is in the state of the first.
func countWaves(threads *target.ThreadList) map[string]waveCount {
	counts := map[string]waveCount{}
	seen := map[wavePlace]bool{}
	isWave := func(th *trace.Thread) bool { return th.Wave != nil }
	for _, th := range threads.Where(isWave) {
		if w := th.Wave; len(th.LaneStates) > 0 && w.HasGroup && w.HasInGroup {
			place := wavePlace{w.Dispatch, w.Group, w.InGroup}
			if seen[place] {
				continue
			}
			seen[place] = true
		}
		state := waveState{isRunning: th.IsRunning, isWaiting: th.State != ""}
		if s := th.Stop; s != nil {
			state = waveState{reason: s.Reason, trap: s.TrapID, hasTrap: s.HasTrapID}
		}
		count := counts[th.Wave.Dispatch]
		if count == nil {
			count = waveCount{}
			counts[th.Wave.Dispatch] = count
		}
		count[state]++
	}
	return counts
}

// String is "3 waves: 1 stopped by trap 2, 2 running", or "3 waves running".
func (c waveCount) String() string {
	states := slices.SortedFunc(maps.Keys(c), func(a, b waveState) int {
		if a.reason == "" || b.reason == "" {
			return cmp.Or(-cmp.Compare(a.reason, b.reason), cmp.Compare(a.text(), b.text()))
		}
		return cmp.Or(cmp.Compare(a.reason, b.reason), cmp.Compare(a.trap, b.trap))
	})
	all := 0
	var parts []string
	for _, s := range states {
		all += c[s]
		parts = append(parts, fmt.Sprintf("%d %s", c[s], s.text()))
	}
	waves := plural(all, "wave", "waves")
	if len(states) == 1 {
		return waves + " " + states[0].text()
	}
	return waves + ": " + strings.Join(parts, ", ")
}

func (s waveState) text() string {
	switch {
	case s.reason != "":
		return "stopped by " + stopName(&trace.Stop{Reason: s.reason, TrapID: s.trap, HasTrapID: s.hasTrap})
	case s.isRunning:
		return "running"
	case s.isWaiting:
		return "not running"
	}
	return "stopped"
}

// maxDispatches is the largest number of dispatches in the text.
const maxDispatches = 16

// devices writes the devices that executed waves, and their queues and dispatches.
func (t *text) devices(target *Target) {
	for _, a := range target.Agents {
		queues := 0
		for _, q := range target.Queues {
			if q.Agent == a.ID {
				queues++
			}
		}
		t.printf("agent %s: %s, %s\n", a.ID, cmp.Or(a.Processor, "a processor that is not known"), plural(queues, "queue", "queues"))
	}
	for i, d := range target.Dispatches {
		if i == maxDispatches {
			t.printf("and %s more\n", plural(len(target.Dispatches)-i, "dispatch", "dispatches"))
			return
		}
		t.printf("dispatch %s of queue %s", d.ID, d.Queue)
		if d.Kernel != "" {
			t.printf(": %s", kernelName(d.Kernel))
		}
		if d.Grid != nil {
			t.printf(", %s work-items", dimensions(d.Grid))
		}
		if d.Group != nil {
			t.printf(" in groups of %s", dimensions(d.Group))
		}
		if len(d.waves) > 0 {
			t.printf("; %s", d.waves)
		}
		t.printf("\n")
	}
}

// kernelName is the text's name of a kernel.
func kernelName(linkage string) string {
	name := symbol.Demangle(linkage)
	if name == linkage {
		return linkage
	}
	return funcname.Fit(escape.Text(funcname.Of(&trace.Symbol{Function: name, LinkageName: linkage})), wideName)
}

// dimensions are sizes in three dimensions, without trailing ones that are 1.
func dimensions(n *[3]uint32) string {
	text := strconv.FormatUint(uint64(n[0]), 10)
	for i := 1; i < 3 && (n[i] != 1 || n[2] != 1); i++ {
		text += "x" + strconv.FormatUint(uint64(n[i]), 10)
	}
	return text
}
