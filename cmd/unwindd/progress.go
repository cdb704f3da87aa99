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

// terminalLine is the line of the terminal that shows progress. A transfer has it before
// the work that waits for the transfer.
var terminalLine lineOwner

type lineOwner struct {
	sync.Mutex
	work    *workProgress // the shown work; nil: none
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

// restore returns the line from a transfer to the work.
func (l *lineOwner) restore() {
	l.Lock()
	defer l.Unlock()
	l.isTaken = false
}

// workProgress shows the progress of work on many samples or targets, once it has taken long.
type workProgress struct {
	out   io.Writer
	what  string // is counted
	since time.Time
	after time.Duration            // the time before it is shown
	bar   *progressbar.ProgressBar // nil before that
}

// newWorkProgress returns nil where standard error is no terminal.
func newWorkProgress(what string) *workProgress {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil
	}
	return &workProgress{out: stderr, what: what, since: time.Now(), after: unshown}
}

// callback returns the function for engine.ProfileOptions.Progress; nil where nothing is
// shown.
func (p *workProgress) callback() func(done, total uint64) {
	if p == nil {
		return nil
	}
	return p.show
}

func (p *workProgress) show(done, total uint64) {
	if p == nil {
		return
	}
	if p.bar == nil && time.Since(p.since) < p.after {
		return
	}
	terminalLine.Lock()
	defer terminalLine.Unlock()
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(int64(min(total, 1<<62)), //nolint:gosec // bounded
			progressbar.OptionSetWriter(p.out), progressbar.OptionSetDescription(p.what), progressbar.OptionSetWidth(20),
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
