// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine/download"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin/confine"
)

// waits counts the time in which a worker has asked something that is not answered yet.
type waits struct {
	mu    sync.Mutex
	open  int // questions
	since time.Time
	took  time.Duration // up to since
}

func (w *waits) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open++; w.open == 1 {
		w.since = time.Now()
	}
}

func (w *waits) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open--; w.open == 0 {
		w.took += time.Since(w.since)
	}
}

// total is how long all waits were up to now.
func (w *waits) total() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == 0 {
		return w.took
	}
	return w.took + time.Since(w.since)
}

// process is a worker, as the server sees it.
type process struct {
	command *exec.Cmd
	conn    *conn
	said    tail // what it wrote to standard error last
	remotes [2]object.Remote
	done    chan done             // its answers: of one run at a time
	ended   chan struct{}         // closed when it is dead, and state is set
	number  uint64                // of the last run
	asker   atomic.Pointer[Asker] // of the run that is under way; nil: it asks nothing
	request string                // that it has
	waits   waits                 // for whoever asked for the run
	fetches atomic.Int64          // of the run

	killing      sync.Once
	isKilledHere atomic.Bool // as it started
}

// start starts a worker, and waits until it takes runs.
func (p *Pool) start() (*process, []string, error) {
	dir, err := newFolder(p.Dir)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs, err := socketPair()
	if err != nil {
		_ = os.Remove(dir)
		return nil, nil, err
	}
	w := &process{remotes: [2]object.Remote{p.Remote, p.Symbols}, done: make(chan done, 1), ended: make(chan struct{}), conn: ours}
	w.command = exec.Command(p.Self, Args...) //nolint:gosec // this executable
	w.command.Dir, w.command.ExtraFiles, w.command.Stderr = dir, []*os.File{theirs}, &w.said
	w.command.Env = []string{"TMPDIR=" + dir, "HOME=" + dir}
	w.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it has no terminal, and no keys reach it
	err = w.command.Start()
	_ = theirs.Close()
	if err != nil {
		_ = os.Remove(dir)
		_ = ours.Close()
		return nil, nil, err
	}
	if !p.join(w) {
		w.kill()
	}
	go func() {
		_ = w.command.Wait()
		_ = os.RemoveAll(dir)
		p.part(w)
		close(w.ended)
	}()
	missing, err := w.shakeHands(p, dir)
	if err != nil {
		w.killUnlessEnded()
		if w.isKilled() && !w.isKilledHere.Load() {
			return nil, nil, errKilled
		}
		return nil, nil, fmt.Errorf("a worker did not start: %v: %w", err, w.died()) //nolint:errorlint // the end of its socket says nothing of a request
	}
	go w.listen()
	return w, missing, nil
}

// NameLength is how long the name of a worker's folder is: paths of sockets are bounded, and
// its plugins have theirs there.
const NameLength = 4

// newFolder makes a folder with a name of its own.
func newFolder(in string) (dir string, err error) {
	for {
		dir = filepath.Join(in, strings.ToLower(rand.Text()[:NameLength]))
		if err = os.Mkdir(dir, 0o700); !errors.Is(err, os.ErrExist) {
			return dir, err
		}
	}
}

// socketPair makes the two ends of a worker's socket.
func socketPair() (ours *conn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	theirs = os.NewFile(uintptr(fds[1]), "worker")                              //nolint:gosec // a descriptor
	if ours, err = newConn(os.NewFile(uintptr(fds[0]), "worker")); err != nil { //nolint:gosec // a descriptor
		_ = theirs.Close()
	}
	return ours, theirs, err
}

func (w *process) shakeHands(p *Pool, dir string) (missing []string, err error) {
	c := confine.Confinement{
		Read: p.Read, Execute: append([]string{p.Self}, p.Execute...), Write: []string{dir},
		Memory: p.Setup.Memory, FileSize: p.MaxFile, Files: maxDescriptors,
	}
	if err := errors.Join(w.conn.send(toWorker{Confine: &c}), w.conn.send(toWorker{Setup: &p.Setup})); err != nil {
		return nil, err
	}
	var m fromWorker
	if _, err := w.conn.receive(&m); err != nil {
		return nil, err
	}
	if m.Ready == nil {
		return nil, errors.New("its first message is not that it is ready")
	}
	return m.Ready.Missing, nil
}

// maxDescriptors is how many descriptors a worker may have: targets may be of many files,
// which are mapped one after the other.
const maxDescriptors = 1024

// listen reads what the worker says, until it is gone.
func (w *process) listen() {
	for {
		var m fromWorker
		files, err := w.conn.receive(&m)
		closeAll(files)
		if err != nil {
			w.kill()
			return
		}
		switch {
		case m.Done != nil:
			select {
			case w.done <- *m.Done:
			default: // nobody waits for it
			}
		case m.Fetch != nil:
			go w.fetch(m.Fetch)
		case m.Ask != nil:
			go w.answer(m.Ask)
		}
	}
}

// fetch asks who has a file, for the worker.
func (w *process) fetch(f *fetch) {
	answer := fetched{Number: f.Number}
	which := 0
	if f.IsSymbols {
		which = 1
	}
	switch r := w.remotes[which]; {
	case w.fetches.Add(1) > maxFetches:
		answer.Tried = []object.Attempt{{Reason: fmt.Sprintf("not asked for: %d files were asked for already", maxFetches), Kind: object.Unreadable}}
	case r != nil:
		answer.Path, answer.Tried = r.Fetch(f.File)
	}
	if w.conn.send(toWorker{Fetched: &answer}) != nil {
		// Reasons may be longer than a message.
		answer.Tried = nil
		_ = w.conn.send(toWorker{Fetched: &answer})
	}
}

// maxFetches bounds the files that a request has looked for: what it names comes from what
// was sent, which may be made to name any number.
const maxFetches = download.DefaultMaxFiles

// answer has a question of the run that is under way answered.
func (w *process) answer(q *question) {
	w.waits.begin()
	defer w.waits.end()
	a := answer{Number: q.Number, Failure: "nobody answers"}
	if asker := w.asker.Load(); asker != nil {
		b, path, err := (*asker)(q.Proto)
		if a.Proto, a.Path, a.Failure = b, path, ""; err != nil {
			a.Failure = err.Error()
		}
	}
	if w.conn.send(toWorker{Answer: &a}) != nil {
		_ = w.conn.send(toWorker{Answer: &answer{Number: q.Number, Failure: "the answer is too long"}})
	}
}

// errKilled says that somebody killed a worker before it took runs.
var errKilled = errors.New("a worker was killed when it started")

// killUnlessEnded ends a worker that ends by itself, or is stuck, and waits for its end.
func (w *process) killUnlessEnded() {
	select {
	case <-w.ended:
	case <-time.After(cancelGrace):
		w.isKilledHere.Store(true)
	}
	w.kill()
	<-w.ended
}

// kill ends the worker at once, with its plugins: those die with it.
func (w *process) kill() {
	w.killing.Do(func() {
		_ = w.command.Process.Kill()
		_ = w.conn.Close()
	})
}

// died says how the worker ended. It may be asked once ended is closed.
func (w *process) died() error {
	state := w.command.ProcessState
	if state == nil {
		return errors.New("it ended in an unknown way")
	}
	text := state.String()
	if line := w.said.firstLine(); line != "" {
		text += ": " + line
	}
	return errors.New(text)
}

// isKilled reports whether somebody killed the worker: its end says nothing of its request.
func (w *process) isKilled() bool {
	status, ok := w.command.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// tail keeps the beginning of what a dying process says, where its runtime says why.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// maxSaid bounds what is kept of a worker's standard error.
const maxSaid = 4 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[:min(len(p), maxSaid-len(t.text))]...)
	return len(p), nil
}

// firstLine is the first line that says something.
func (t *tail) firstLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range bytes.Lines(t.text) {
		if s := strings.TrimSpace(string(line)); s != "" {
			return s
		}
	}
	return ""
}

var _ io.Writer = (*tail)(nil)
