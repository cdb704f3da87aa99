// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/unpack"
)

// exitSignal is what a shell adds to the number of the signal that ended a
// command, to make its exit status.
const exitSignal = 128

// signals are those that this process was sent.
var signals = make(chan os.Signal, 4)

// watchSignals makes the signals that people and systems end commands with end
// this one at once, whatever it waits for, and without anything half made left
// behind. A signal that this process was started to ignore, as by nohup, is
// ignored.
func watchSignals() {
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	// SIGPIPE comes for the connections of plugins too. That it is taken here
	// makes writes say EPIPE, and those to a standard file end the command.
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

// signalTaker is asked first what a signal does; nil: it ends the command.
var signalTaker atomic.Pointer[func(syscall.Signal) bool]

// takeSignals has a command that goes on until it is ended decide itself: take says
// whether it did what the signal is for. SIGHUP comes too where it was to be ignored: to
// such a command it means something else than that a terminal is gone.
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
	// The others do what they do to a program of Go that knows nothing of them:
	// SIGQUIT prints where its goroutines are.
	signal.Reset(s)
	_ = syscall.Kill(os.Getpid(), s)
	select {}
}

// leaveNothing removes what is not whole, and ends the processes of plugins.
// Nothing that it waits for can be begun afterwards.
func leaveNothing() {
	plugin.Abandon()
	unfinished.abandon()
	unpack.Abandon()
}

// standard is standard output or standard error. Where nobody reads it any more,
// writing to it ends the command, as SIGPIPE does.
type standard struct{ *os.File }

var stdout, stderr = standard{os.Stdout}, standard{os.Stderr}

// Write implements io.Writer.
func (s standard) Write(b []byte) (int, error) {
	n, err := s.File.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		leaveNothing()
		signal.Reset(syscall.SIGPIPE)
		_, _ = s.File.Write(b) // which the signal ends now
		os.Exit(exitSignal + int(syscall.SIGPIPE))
	}
	return n, err
}
