// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// terminalLine is the line of the terminal that shows how far something is. A
// transfer has it before the work that waits for it.
var terminalLine lineOwner

type lineOwner struct {
	sync.Mutex
	work    *workProgress // the work that is shown; nil: none
	isTaken bool          // a transfer is shown
}

// yield clears the line for a transfer.
func (l *lineOwner) yield() {
	l.Lock()
	defer l.Unlock()
	l.isTaken = true
	if l.work != nil {
		_ = l.work.bar.Clear()
	}
}

// giveBack says that the transfer is not shown any more.
func (l *lineOwner) giveBack() {
	l.Lock()
	defer l.Unlock()
	l.isTaken = false
}

// workProgress shows how far work on many samples is, once it has taken long.
type workProgress struct {
	out   io.Writer
	since time.Time
	after time.Duration            // how long work takes that is worth a line
	bar   *progressbar.ProgressBar // nil as long as it has not taken that long
}

// newWorkProgress is nil where standard error is no terminal.
func newWorkProgress() *workProgress {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil
	}
	return &workProgress{out: stderr, since: time.Now(), after: unshown}
}

// told is what engine.ProfileOptions.Progress calls; nil where nothing is shown.
func (p *workProgress) told() func(done, total uint64) {
	if p == nil {
		return nil
	}
	return p.show
}

func (p *workProgress) show(done, total uint64) {
	if p.bar == nil && time.Since(p.since) < p.after {
		return
	}
	terminalLine.Lock()
	defer terminalLine.Unlock()
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(int64(min(total, 1<<62)), //nolint:gosec // bounded
			progressbar.OptionSetWriter(p.out), progressbar.OptionSetDescription("samples"), progressbar.OptionSetWidth(20),
			progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetSpinnerChangeInterval(0))
		terminalLine.work = p
	}
	if !terminalLine.isTaken {
		_ = p.bar.Set64(int64(min(done, total, 1<<62))) //nolint:gosec // bounded
	}
}

// end clears the line. It may be called more than once.
func (p *workProgress) end() {
	if p == nil || p.bar == nil {
		return
	}
	terminalLine.Lock()
	defer terminalLine.Unlock()
	if terminalLine.work == p {
		terminalLine.work = nil
		_ = p.bar.Clear()
	}
}
