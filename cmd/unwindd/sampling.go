// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/unwindd/unwindd/engine/report"
)

// sampling is a living process that is sampled until it was looked at often enough, or until
// Ctrl-C. On a terminal a line says how far it is.
type sampling struct {
	enough  chan struct{}
	process string // as it is called in the line
	repeat  int
	moments atomic.Int64
	out     io.Writer // nil: there is no terminal
	width   int       // of the terminal
	shown   time.Time // when the line was written last
}

// newSampling begins to take SIGINT: the first one ends the sampling, where there is a sample,
// and the second one the command.
func newSampling(pid, repeat int) *sampling {
	s := &sampling{enough: make(chan struct{}), process: fmt.Sprintf("process %d", pid), repeat: repeat}
	if name := processName(pid); name != "" {
		s.process += " (" + name + ")"
	}
	if fd := int(os.Stderr.Fd()); term.IsTerminal(fd) {
		s.out, s.shown = stderr, time.Now()
		s.width, _, _ = term.GetSize(fd)
	}
	take := func(sig syscall.Signal) bool {
		if sig != syscall.SIGINT || s.isEnded() || s.moments.Load() == 0 {
			return false
		}
		close(s.enough)
		return true
	}
	signalTaker.Store(&take)
	return s
}

// isEnded reports whether SIGINT has ended the sampling.
func (s *sampling) isEnded() bool {
	select {
	case <-s.enough:
		return true
	default:
		return false
	}
}

// linePause is how long a line of progress stays as it is.
const linePause = 100 * time.Millisecond

// progress notes that the process was looked at.
func (s *sampling) progress(moments int) {
	s.moments.Store(int64(moments))
	if s.out == nil || time.Since(s.shown) < linePause {
		return
	}
	s.shown = time.Now()
	var line bytes.Buffer
	of := ""
	if s.repeat > 0 {
		of = fmt.Sprintf(" of %d", s.repeat)
	}
	report.NewLinePrinter(&line).Printf("sampling %s: %d%s, Ctrl-C ends and shows", s.process, moments, of)
	text := []rune(line.String())
	if s.width > 0 && len(text) >= s.width {
		text = text[:s.width-1] // a line that is wrapped cannot be cleared
	}
	_, _ = fmt.Fprintf(s.out, "\r\x1b[K%s", string(text))
}

// end clears the line. From then on SIGINT ends the command.
func (s *sampling) end() {
	signalTaker.Store(nil)
	if s.out != nil && s.moments.Load() > 0 {
		_, _ = io.WriteString(s.out, "\r\x1b[K")
	}
}
