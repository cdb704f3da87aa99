// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// childPatience bounds the wait for a child that was told to end.
const childPatience = 10 * time.Second

// maxSaid bounds the bytes that are kept of a child's standard error.
const maxSaid = 16 << 10

// child is a program that is recorded, or perf, which records one. It ends with this process.
type child struct {
	cmd     *exec.Cmd
	said    bytes.Buffer  // its standard error, unless it has this process's
	ended   chan struct{} // it has ended, and cmd.ProcessState is there
	mayWait chan struct{} // closed once it may be waited for
	isTold  atomic.Bool   // it was told to end
	waitErr error
}

// livingChild is the child that ends with this process.
var livingChild atomic.Pointer[child]

// endLiving tells the child to end, whatever it does.
func endLiving() {
	if c := livingChild.Load(); c != nil {
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
	}
}

// startChild starts a program. isShown: it has this process's standard files. It is waited for once
// mayWait is closed: while this process traces it, waiting would take the tracer's stops.
func startChild(path string, args []string, isShown bool) (*child, error) {
	c := &child{cmd: exec.Command(path, args[1:]...), ended: make(chan struct{}), mayWait: make(chan struct{})}
	c.cmd.Args[0] = args[0]
	c.cmd.SysProcAttr = recorderAttributes()
	c.cmd.Stderr = &limited{&c.said}
	if isShown {
		c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // for recorderAttributes
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		if err == nil {
			livingChild.Store(c)
		}
		started <- err
		if err != nil {
			return
		}
		<-c.mayWait
		c.waitErr = c.cmd.Wait()
		livingChild.CompareAndSwap(c, nil)
		close(c.ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// limited keeps the first bytes that are written.
type limited struct{ buffer *bytes.Buffer }

// Write implements io.Writer.
func (l *limited) Write(b []byte) (int, error) {
	l.buffer.Write(b[:min(len(b), maxSaid-l.buffer.Len())])
	return len(b), nil
}

// tell tells the child to end by a signal.
func (c *child) tell(signal syscall.Signal) {
	c.isTold.Store(true)
	_ = c.cmd.Process.Signal(signal)
}

// outcome says how a program ended that did not end well; "" where it did, or was told to.
func (c *child) outcome(name string) string {
	var exit *exec.ExitError
	if c.isTold.Load() || !errors.As(c.waitErr, &exit) {
		return ""
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return fmt.Sprintf("%s was ended by a signal: %v", name, status.Signal())
	}
	return fmt.Sprintf("%s ended with status %d", name, exit.ExitCode())
}
