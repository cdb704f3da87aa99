// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"time"

	"github.com/unwindd/unwindd/engine/plugin"
)

// memoryInterval is the time between looks at the memory of a worker that has a request, idleLooks how many of them are left out
// for one that has none.
const (
	memoryInterval = 250 * time.Millisecond
	idleLooks      = 20
)

// watchMemory ends the worker when it and its plugins have more private memory together than they may.
func (w *process) watchMemory(most uint64) {
	if most == 0 {
		return
	}
	ticks := time.NewTicker(memoryInterval)
	defer ticks.Stop()
	for n := 0; ; n++ {
		select {
		case <-w.ended:
			return
		case <-ticks.C:
		}
		if w.isIdle.Load() && n%idleLooks != 0 {
			continue
		}
		if used := plugin.GroupMemory(w.command.Process.Pid); used > most {
			w.tooLarge(fmt.Sprintf("%d MiB", used>>20), most)
			w.kill()
			return
		}
	}
}

// tooLarge records that the worker is ended, or was, because of its memory.
func (w *process) tooLarge(used string, most uint64) {
	why := fmt.Sprintf("it and its plugins had %s of memory, expected at most %d MiB together", used, most>>20)
	w.excess.CompareAndSwap(nil, &why)
}
