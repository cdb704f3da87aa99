// SPDX-License-Identifier: Apache-2.0

package worker

import "time"

// slowAfter is how long a worker works on a request before its priority becomes low: those who wait
// for little do not feel it any more then. What it starts later is looked for as often.
const slowAfter = time.Second

// low is the nice value of a worker that takes long.
const low = 15

// lower lowers the priority of a worker, and of the processes that it has started, if its request
// takes long.
func (p *Pool) lower(w *process, on *work) {
	if on.took() < slowAfter || p.keeps.Load() {
		return
	}
	w.isLow = true // perhaps in part
	if err := lowerPriority(w.command.Process.Pid); err != nil {
		p.keeps.Store(true)
	}
}

// raise makes the priority of a worker what it was. Where that fails once, no other is lowered: a
// worker that ends has nothing ready for the next request.
func (p *Pool) raise(w *process) error {
	if !w.isLow {
		return nil
	}
	w.isLow = false
	err := raisePriority(w.command.Process.Pid)
	if err != nil {
		p.keeps.Store(true)
	}
	return err
}
