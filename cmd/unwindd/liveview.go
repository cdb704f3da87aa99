// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/trace"
)

// liveView shows a recording on the terminal while it is made, in the lines at the bottom. Above them
// the recorded program writes, and scrolls, as always.
type liveView struct {
	out     io.Writer
	size    func() (columns, rows int)
	file    *os.File
	path    string
	name    string
	begun   time.Time
	profile func(size int64) (*trace.Profile, error)
	stop    chan struct{}
	done    chan struct{}

	samples int
	lines   []string // of the profile

	mu            sync.Mutex
	isOver        bool
	columns, rows int // as the lines were reserved; 0: they are not
	height        int
}

const (
	// viewPause is the least time from one view to the next.
	viewPause = 700 * time.Millisecond
	// viewShare is how many times as long as making a view takes nothing is made: the processors
	// are the program's.
	viewShare = 15
	// maxView is how many lines are shown at most, and leastRows how many a terminal has to have.
	maxView   = 14
	leastRows = 12
)

// shownView is the view on the terminal, which is left as it was however the command ends.
var shownView atomic.Pointer[liveView]

// restoreTerminal ends the view. It does not wait for a terminal that takes nothing, nor for the
// goroutine that it may be called by: one whose write has failed.
func restoreTerminal() {
	v := shownView.Load()
	for attempt := 0; v != nil && attempt < 10; attempt++ {
		if v.mu.TryLock() {
			v.clearLocked()
			v.mu.Unlock()
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// newLiveView begins to show a recording while it is made; nil where there is no terminal that could.
func (f *profileFlags) newLiveView(ctx context.Context, e *engine.Engine, subject string, r *recording) *liveView {
	fd := int(os.Stderr.Fd())
	v := &liveView{
		out: stderr, file: r.file, path: r.path, name: subject, begun: time.Now(), stop: make(chan struct{}), done: make(chan struct{}),
		size: func() (int, int) {
			columns, rows, err := term.GetSize(fd)
			if err != nil {
				return 0, 0
			}
			return columns, rows
		},
	}
	_, rows := v.size()
	if name := os.Getenv("TERM"); !f.live || !term.IsTerminal(fd) || rows < leastRows || name == "" || name == "dumb" {
		return nil
	}
	v.profile = func(size int64) (*trace.Profile, error) {
		return e.Profile(ctx, v.path, trace.ProfileOptions{Jobs: 1, Kallsyms: f.kallsyms, Roots: f.roots, Size: size})
	}
	shownView.Store(v)
	go v.show()
	return v
}

// end removes the view. It may be called more than once, and of nil.
func (v *liveView) end() {
	if v == nil || isClosed(v.stop) {
		return
	}
	close(v.stop)
	<-v.done
	v.clear()
	shownView.CompareAndSwap(v, nil)
}

// show draws again and again.
func (v *liveView) show() {
	defer close(v.done)
	next := time.Now()
	tick := time.NewTicker(viewPause)
	defer tick.Stop()
	for {
		select {
		case <-v.stop:
			return
		case <-tick.C:
		}
		size := v.recorded()
		if begun := time.Now(); size > 0 && begun.After(next) {
			v.make(size)
			next = time.Now().Add(viewShare * time.Since(begun))
		}
		v.draw(size)
	}
}

// recorded returns how many bytes the recording has.
func (v *liveView) recorded() int64 {
	info, err := v.file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// make makes the lines of the profile of the first bytes of the recording. Where these are no
// recording yet, the lines stay.
func (v *liveView) make(size int64) {
	p, err := v.profile(size)
	if err != nil || len(p.Samples) == 0 {
		return
	}
	r, err := report.NewProfile(p)
	if err != nil {
		return
	}
	var text bytes.Buffer
	if r.WriteText(&text, report.TextOptions{}) != nil {
		return
	}
	v.samples, v.lines = len(p.Samples), viewLines(text.String())
}

// viewLines selects the lines of a profile's text: of the functions in which most happens, and of
// the heaviest calls.
func viewLines(text string) []string {
	parts := strings.SplitN(strings.TrimSuffix(text, "\n"), "\n\n", 4)
	if len(parts) < 3 {
		return nil
	}
	functions, calls := strings.Split(parts[1], "\n"), strings.Split(parts[2], "\n")
	functions = functions[:min(len(functions), maxView/3+1)]
	return append(functions, calls[:min(len(calls), maxView-1-len(functions))]...)
}

// status is the first line of the view.
func (v *liveView) status(size int64) string {
	var line bytes.Buffer
	what := "preparing"
	if size > 0 {
		what = fmt.Sprintf("%.1f s, %.1f MB", time.Since(v.begun).Seconds(), float64(size)/1e6)
		if v.samples > 0 {
			what += fmt.Sprintf(", shown: %d samples", v.samples)
		}
	}
	report.NewLinePrinter(&line).Printf("recording %s: %s, Ctrl-C ends and shows", v.name, what)
	return strings.TrimSuffix(line.String(), "\n")
}

// draw writes the lines at the bottom of the terminal, by one write.
func (v *liveView) draw(size int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.isOver {
		return
	}
	columns, rows := v.size()
	if columns <= 0 || rows < leastRows {
		return
	}
	var b strings.Builder
	if columns != v.columns || rows != v.rows {
		if v.rows > 0 {
			b.WriteString("\x1b7\x1b[r\x1b8")
		}
		v.columns, v.rows, v.height = columns, rows, min(maxView, rows/2)
		// The lines on the terminal move up, and only the ones above the view scroll from now on.
		b.WriteString(strings.Repeat("\n", v.height))
		fmt.Fprintf(&b, "\x1b[%dA\x1b7\x1b[1;%dr\x1b8", v.height, rows-v.height)
	}
	b.WriteString("\x1b7")
	lines := append([]string{v.status(size)}, v.lines...)
	for i := range v.height {
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[2K", v.rows-v.height+1+i)
		if i < len(lines) {
			b.WriteString(cutTo(lines[i], columns-1))
		}
	}
	b.WriteString("\x1b8")
	_, _ = io.WriteString(v.out, b.String())
}

// clear leaves the terminal as it was.
func (v *liveView) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clearLocked()
}

// clearLocked is clear for a caller that has locked the view.
func (v *liveView) clearLocked() {
	wasOver := v.isOver
	v.isOver = true
	if wasOver || v.rows == 0 {
		return
	}
	var b strings.Builder
	b.WriteString("\x1b7\x1b[r")
	for i := range v.height {
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[2K", v.rows-v.height+1+i)
	}
	b.WriteString("\x1b8")
	_, _ = io.WriteString(v.out, b.String())
}

// cutTo returns the first characters of a line: one that is wrapped would move the others.
func cutTo(line string, width int) string {
	if runes := []rune(line); len(runes) > width {
		return string(runes[:max(width, 0)])
	}
	return line
}
