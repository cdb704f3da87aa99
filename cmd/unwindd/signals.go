// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/internal/host"
)

// exitSignal plus the number of a signal is a shell's exit status for a command that the
// signal ended.
const exitSignal = 128

// signals are the signals that this process was sent.
var signals = make(chan os.Signal, 4)

// watchSignals makes the usual signals end this command at once, whatever it waits for, and
// without leaving unfinished files. A signal that this process was started to ignore, as by
// nohup, is ignored.
func watchSignals() {
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	// SIGPIPE comes for the connections of plugins too. Taking it here makes writes fail
	// with EPIPE; on a standard file that ends the command.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		for {
			s := (<-signals).(syscall.Signal)
			if take := signalTaker.Load(); take == nil || !(*take)(s) {
				endBy(s)
			}
		}
	}()
}

// signalTaker gets signals first; nil: they end the command.
var signalTaker atomic.Pointer[func(syscall.Signal) bool]

// takeSignals lets a command that serves until it is ended handle signals: take reports
// whether it handled one. SIGHUP comes even where it was ignored: to such a command it does
// not mean that a terminal is gone.
func takeSignals(take func(syscall.Signal) bool) {
	signalTaker.Store(&take)
	signal.Notify(signals, syscall.SIGHUP)
}

// endBy ends this process as a signal does. It does not return.
func endBy(s syscall.Signal) {
	leaveNothing()
	if s == syscall.SIGINT || s == syscall.SIGTERM {
		os.Exit(exitSignal + int(s))
	}
	// The others have their default effect on a Go program: SIGQUIT prints the stacks of
	// goroutines.
	signal.Reset(s)
	host.Raise(s)
}

// leaveNothing removes unfinished files, and ends the processes of plugins. Afterwards
// neither can be begun.
func leaveNothing() {
	restoreTerminal()
	endLiving()
	engine.Abandon()
	unfinished.abandon()
}

// standard is standard output or standard error. Where its reader has gone, writing to it
// ends the command, as SIGPIPE does.
type standard struct{ *os.File }

var stdout, stderr = standard{os.Stdout}, standard{os.Stderr}

// Write implements io.Writer.
func (s standard) Write(b []byte) (int, error) {
	n, err := s.File.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		leaveNothing()
		signal.Reset(syscall.SIGPIPE)
		_, _ = s.File.Write(b) // the signal ends the process here
		os.Exit(exitSignal + int(syscall.SIGPIPE))
	}
	return n, err
}
