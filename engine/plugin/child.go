// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"

	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/internal/host"
	"github.com/unwindd/unwindd/sdk"
)

// memoryInterval is the time between checks of the memory of a process.
const memoryInterval = 250 * time.Millisecond

// maxReport bounds the size of a confine.Report that is read.
const maxReport = 64 << 10

// child is the process of a plugin. It implements runner.Runner, through which go-plugin
// starts and stops processes.
type child struct {
	path      string   // of the executable
	command   []string // the executable's name and arguments
	env       []string
	isBundled bool // command is this project's own, which confines itself
	socketDir string
	memory    uint64 // bytes that it may have
	threads   uint64 // that it may have
	hasInput  bool   // it reads stdin, or the file; else its input is empty
	inputFile []byte // the contents of a file that is its standard input; nil: that is a pipe
	stdin     *os.File
	stdout    *os.File
	stderr    *os.File
	report    *os.File

	exited chan struct{} // closed when the process is dead and state is set
	silent chan struct{} // closed when standard error has been read to its end

	mu       sync.Mutex
	pid      int // 0: not started
	isDead   bool
	isKilled bool                // by Kill, before it was dead
	excess   string              // why watch killed it; "": it did not
	state    *syscall.WaitStatus // how it ended
	open     []string            // parts of the sandbox that this side could not apply
	pending  string              // the step of the start that is waited for
	said     confine.Report
	read     chan struct{} // closed when said is complete
}

var _ runner.Runner = (*child)(nil)

func newChild(memory uint64) *child {
	return &child{memory: memory, threads: confine.MaxThreads, exited: make(chan struct{}), silent: make(chan struct{}), read: make(chan struct{})}
}

// prepare sets the command that is executed: a vendor's as `self plugin exec ... --
// command...`, a bundled one as it is. Its environment is env alone: all that a plugin
// needs to know is in its requests.
func (c *child) prepare(l *launch, socketDir string, env []string) {
	flags := []string{"--report-fd", strconv.Itoa(confine.ReportFD)}
	if l.build != "" {
		flags = append(flags, "--build", l.build)
	}
	c.env, c.socketDir, c.isBundled = env, socketDir, l.isBundled
	c.threads = cmp.Or(l.threads, c.threads)
	if c.path = l.self; l.isThis {
		c.path = thisExecutable
	}
	if l.isBundled {
		c.command = slices.Concat([]string{l.self}, l.command, flags)
		return
	}
	args := slices.Concat([]string{l.self, "plugin", "exec"}, flags, []string{"--parent", strconv.Itoa(os.Getpid()), "--socket-dir", socketDir})
	if l.data != "" {
		args = append(args, "--data-dir", l.data)
		c.env = append(slices.Clone(env), sdk.DataVariable+"="+l.data)
	}
	if l.sha256 != "" {
		args = append(args, "--sha256", l.sha256)
	}
	c.command = append(append(args, "--"), l.command...)
}

// Start starts the process. The goroutine that forks stays on its thread until
// the process is dead, because the signal for the parent's death is sent when
// the forking thread ends, not the process.
func (c *child) Start(context.Context) error {
	ends := make([]*os.File, 0, 8)
	closeAll := func() {
		for _, f := range ends {
			f.Close()
		}
	}
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll()
			return err
		}
		ends = append(ends, r, w)
	}
	input, err := c.openInput()
	if err != nil {
		closeAll()
		return err
	}
	ends = append(ends, input)
	if c.stdin != nil {
		ends = append(ends, c.stdin)
	}
	c.stdout, c.stderr, c.report = ends[0], ends[2], ends[4]

	started := make(chan error)
	go c.live([]uintptr{input.Fd(), ends[1].Fd(), ends[3].Fd(), ends[5].Fd()}, started)
	if err := <-started; err != nil {
		closeAll()
		return err
	}
	for _, f := range []*os.File{ends[1], ends[3], ends[5], input} {
		f.Close()
	}
	go c.readReport()
	go c.watch()
	return nil
}

// openInput opens the standard input of the process, whose other end is stdin.
func (c *child) openInput() (input *os.File, err error) {
	switch {
	case !c.hasInput:
		return os.Open(os.DevNull)
	case c.inputFile != nil:
		return host.Memory("input", c.inputFile)
	}
	input, c.stdin, err = os.Pipe()
	return input, err
}

// watch kills the process when it has more memory, or more threads, than it may. Its rlimits
// count writable memory only, when it is mapped: memory that was written and then protected is
// beyond them. They count threads with all others of the user, or not at all.
func (c *child) watch() {
	ticks := time.NewTicker(memoryInterval)
	defer ticks.Stop()
	for {
		select {
		case <-c.exited:
			return
		case <-ticks.C:
		}
		c.mu.Lock()
		if !c.isDead {
			c.excess = c.excessOf(usageOf(c.pid))
		}
		isOver := c.excess != ""
		if isOver {
			_ = killGroup(c.pid)
		}
		c.mu.Unlock()
		if isOver {
			return
		}
	}
}

// excessOf describes what the process has more of than it may; "": nothing.
func (c *child) excessOf(u usage) string {
	switch {
	case c.memory < confine.Unlimited && u.memory > c.memory:
		return fmt.Sprintf("used %d MiB of memory, expected at most %d MiB, and was killed", u.memory>>20, c.memory>>20)
	case u.threads > c.threads:
		return fmt.Sprintf("had %d threads, expected at most %d, and was killed", u.threads, c.threads)
	}
	return ""
}

// await records the step of the start that is waited for.
func (c *child) await(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = what
}

// readReport reads the process's report of its sandbox, which ends when it is confined.
func (c *child) readReport() {
	defer close(c.read)
	defer c.report.Close()
	b, _ := io.ReadAll(io.LimitReader(c.report, maxReport))
	var said confine.Report
	for line := range bytes.Lines(b) {
		var r confine.Report
		if json.Unmarshal(line, &r) == nil {
			said.Missing = append(said.Missing, r.Missing...)
			said.Error += r.Error
		}
	}
	c.mu.Lock()
	said.Missing = append(said.Missing, c.open...)
	c.said = said
	c.mu.Unlock()
}

// sandbox waits until the process is confined, and returns its report.
func (c *child) sandbox() confine.Report {
	<-c.read
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said
}

// Kill kills the process and its group. It may be called at any time and often;
// a process that is not started yet is killed when it is.
func (c *child) Kill(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isDead {
		return nil
	}
	c.isKilled = true
	if c.pid == 0 {
		return nil
	}
	err := killGroup(c.pid)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// Wait waits until the process is dead.
func (c *child) Wait(context.Context) error {
	<-c.exited
	return nil
}

// PID is the process id; 0 before the start.
func (c *child) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pid
}

// processorTime is the processor time that the process has used; 0 before the start.
func (c *child) processorTime() (time.Duration, error) {
	pid := c.PID()
	if pid == 0 {
		return 0, nil
	}
	return processorTime(pid)
}

// died describes the end of the process: "was killed by signal 9 (killed)", "exited with
// status 3". It may be called once exited is closed.
func (c *child) died() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.excess != "" {
		return c.excess
	}
	return describeExit(c.state)
}

// isKilledByUs reports whether Kill ended the process: then its end tells nothing about
// it.
func (c *child) isKilledByUs() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == nil {
		return c.isKilled
	}
	return c.isKilled && c.state.Signaled() && c.state.Signal() == syscall.SIGKILL
}

func describeExit(state *syscall.WaitStatus) string {
	switch {
	case state == nil:
		return "ended in an unknown way"
	case state.Signaled():
		return fmt.Sprintf("was killed by signal %d (%s)", int(state.Signal()), state.Signal())
	}
	return fmt.Sprintf("exited with status %d", state.ExitStatus())
}

// lastReader closes end at the end of its file.
type lastReader struct {
	*os.File
	once sync.Once
	end  chan struct{}
}

func (r *lastReader) Read(p []byte) (int, error) {
	n, err := r.File.Read(p)
	if err != nil {
		r.once.Do(func() { close(r.end) })
	}
	return n, err
}

// waitSilent waits at most d until standard error has been read to its end, which may be
// after the process's end: the reader has to be scheduled first.
func (c *child) waitSilent(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.silent:
	case <-t.C:
	}
}

// waitExit waits at most d for the process to end.
func (c *child) waitExit(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.exited:
		return true
	case <-t.C:
		return false
	}
}

func (c *child) Stdout() io.ReadCloser           { return c.stdout }
func (c *child) Stderr() io.ReadCloser           { return &lastReader{File: c.stderr, end: c.silent} }
func (c *child) Name() string                    { return c.path }
func (c *child) Diagnose(context.Context) string { return "" }

// ID is the process id in decimal; "" before the start, which go-plugin takes
// to mean that there is nothing to stop.
func (c *child) ID() string {
	if pid := c.PID(); pid != 0 {
		return strconv.Itoa(pid)
	}
	return ""
}

// PluginToHost checks the address at which a plugin claims to listen, before anything
// connects: it must be a Unix socket in the private directory.
func (c *child) PluginToHost(network, address string) (string, string, error) {
	if network != "unix" {
		return "", "", fmt.Errorf("listens on network %q, expected unix", clip(network))
	}
	if filepath.Dir(address) != c.socketDir || strings.HasPrefix(address, "@") {
		return "", "", fmt.Errorf("listens at %q, expected a socket in %s", clip(address), c.socketDir)
	}
	info, err := os.Lstat(address)
	if err != nil {
		return "", "", fmt.Errorf("listens at %q: %w", clip(address), err)
	}
	if info.Mode().Type() != os.ModeSocket {
		return "", "", fmt.Errorf("listens at %q, which is no socket", clip(address))
	}
	return network, address, nil
}

// HostToPlugin is not needed: the engine listens nowhere.
func (c *child) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
