// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"sync"
	"time"
)

// live has the processes that have a directory.
var live = struct {
	sync.Mutex
	processes map[*process]bool
}{processes: map[*process]bool{}}

// open makes the directory of a process.
func (p *process) open() (err error) {
	live.Lock()
	defer live.Unlock()
	if p.dir, err = newDirectory(); err == nil {
		live.processes[p] = true
	}
	return err
}

// close removes the directory.
func (p *process) close() {
	live.Lock()
	defer live.Unlock()
	p.dir.remove()
	delete(live.processes, p)
}

// Abandon kills the processes of all plugins, of every Manager, and removes their files.
// It is for a program that is about to end without closing its Managers, as by a signal:
// from then on no plugin can be started, and calls that would start or stop one wait for
// ever.
func Abandon() {
	live.Lock() // for good
	for p := range live.processes {
		_ = p.child.Kill(context.Background())
	}
	for p := range live.processes {
		if p.child.PID() != 0 {
			p.child.waitExit(time.Second)
		}
		p.dir.remove()
	}
}
