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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/confine"
)

// waits measures the time in which a worker waits for answers to its questions.
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

// total returns the time of all waits up to now.
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
	stderr  head // the beginning of its standard error
	remotes [2]object.Remote
	done    chan done                     // its answers: of one run at a time
	ended   chan struct{}                 // closed when it is dead, and state is set
	number  uint64                        // of the last run
	asker   atomic.Pointer[Asker]         // of the current run; nil: it asks nothing
	request string                        // the ID of the current one
	remote  atomic.Pointer[object.Remote] // of the current run; nil: the pool's
	changes changes                       // since the last run
	waits   waits                         // for the caller of the run
	fetches atomic.Int64                  // of the run
	files   atomic.Pointer[runFiles]      // that the run unpacks into; nil: there is no run
	caller  string                        // whose requests it has done; "": it has done none
	address string                        // of the last request
	isLow   bool                          // its priority
	read    []string                      // folders whose files it may open
	memory  uint64                        // bytes that it had after its last request
	isIdle  atomic.Bool

	group        *group                 // that bounds its memory; nil: watch does
	excess       atomic.Pointer[string] // why watch killed it; nil: it did not
	killing      sync.Once
	isKilledHere atomic.Bool // by killUnlessEnded
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
	w := &process{remotes: [2]object.Remote{p.Remote, p.Symbols}, done: make(chan done, 1), ended: make(chan struct{}), conn: ours, read: slices.Concat(p.Read, p.Open)}
	w.command = exec.Command(p.Self, Args...) //nolint:gosec // this executable
	w.command.Dir, w.command.ExtraFiles, w.command.Stderr = dir, []*os.File{theirs}, &w.stderr
	w.command.Env = []string{"TMPDIR=" + dir, "HOME=" + dir}
	w.command.SysProcAttr = ownSession()
	if err = w.command.Start(); err == nil {
		if w.group, err = p.groups.start(w.command.Process.Pid, p.Setup.Memory); err != nil { // it waits for the first message
			_ = w.command.Process.Kill()
			_ = w.command.Wait()
		}
	}
	_ = theirs.Close()
	if err != nil {
		_ = os.Remove(dir)
		_ = ours.Close()
		return nil, nil, err
	}
	if !p.add(w) {
		w.kill()
	}
	go func() {
		_ = w.command.Wait()
		if w.group.isOver() {
			w.tooLarge("more", p.Setup.Memory)
		}
		w.group.remove()
		_ = os.RemoveAll(dir)
		p.remove(w)
		close(w.ended)
	}()
	go w.watchMemory(p.Setup.Memory)
	missing, err := w.shakeHands(p, dir)
	if err != nil {
		w.killUnlessEnded()
		if w.isKilled() && !w.isKilledHere.Load() {
			return nil, nil, errKilled
		}
		return nil, nil, fmt.Errorf("a worker did not start: %v: %w", err, w.died()) //nolint:errorlint // a broken socket is not the request's fault
	}
	go w.listen()
	return w, missing, nil
}

// NameLength is the length of the name of a worker's folder: it has the sockets of plugins,
// whose paths are bounded.
const NameLength = 4

// newFolder makes a folder with a new name in parent.
func newFolder(parent string) (dir string, err error) {
	for {
		dir = filepath.Join(parent, strings.ToLower(rand.Text()[:NameLength]))
		if err = os.Mkdir(dir, 0o700); !errors.Is(err, os.ErrExist) {
			return dir, err
		}
	}
}

func (w *process) shakeHands(p *Pool, dir string) (missing []string, err error) {
	c := confine.Confinement{
		Read: p.Read, Open: p.Open, Execute: append([]string{p.Self}, p.Execute...), Write: []string{dir},
		Memory: p.Setup.Memory, FileSize: 0, Files: maxDescriptors,
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

// maxDescriptors bounds the descriptors of a worker: a target may have many files, which
// are mapped one after the other.
const maxDescriptors = 1024

// listen reads the worker's messages, until it is gone.
func (w *process) listen() {
	for {
		var m fromWorker
		files, err := w.conn.receive(&m)
		closeAll(files) // none is expected
		if err != nil {
			w.kill()
			return
		}
		switch {
		case m.Done != nil:
			select {
			case w.done <- *m.Done:
			default: // the run was given up
			}
		case m.Fetch != nil:
			go w.fetch(m.Fetch)
		case m.Ask != nil:
			go w.answer(m.Ask)
		case m.Unpack != nil:
			go w.unpack(m.Unpack)
		case m.Drop != 0:
			w.files.Load().drop(m.Drop)
		}
	}
}

// fetch asks for a file on behalf of the worker.
func (w *process) fetch(f *fetch) {
	answer := fetched{Number: f.Number}
	which := 0
	if f.IsSymbols {
		which = 1
	}
	r := w.remotes[which]
	if own := w.remote.Load(); own != nil && !f.IsSymbols {
		r = *own
	}
	switch {
	case w.fetches.Add(1) > maxFetches:
		answer.Tried = []object.Attempt{{Reason: fmt.Sprintf("not asked for: %d files were asked for already", maxFetches), Kind: object.Unreadable}}
	case r != nil:
		answer.Path, answer.Tried = r.Fetch(f.File)
	}
	handed, err := w.handed(answer.Path)
	if err != nil {
		answer.Path, answer.Tried = "", append(answer.Tried, object.Attempt{Path: "the server", Reason: err.Error(), Kind: object.Unreadable})
	}
	defer closeAll(handed)
	if w.conn.send(toWorker{Fetched: &answer}, handed...) != nil {
		// The reasons may be too long for a message.
		answer.Tried = nil
		_ = w.conn.send(toWorker{Fetched: &answer}, handed...)
	}
}

// handed opens the file of a path for the worker, if it cannot open it by itself: a file that a caller sent. None is
// returned for the path "".
func (w *process) handed(path string) ([]*os.File, error) {
	if path == "" || slices.ContainsFunc(w.read, func(dir string) bool { return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") }) {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return []*os.File{f}, nil
}

// maxFetches bounds the files that a request looks for: a hostile file may name any number.
const maxFetches = download.DefaultMaxFiles

// answer asks the caller a question of the current run.
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
	handed, err := w.handed(a.Path)
	if err != nil {
		a.Path, a.Failure = "", err.Error()
	}
	defer closeAll(handed)
	if w.conn.send(toWorker{Answer: &a}, handed...) != nil {
		_ = w.conn.send(toWorker{Answer: &answer{Number: q.Number, Failure: "the answer is too long"}})
	}
}

// endRun ends a run: no question of it is answered, and no file is made for it, any more.
func (w *process) endRun() {
	w.asker.Store(nil)
	w.remote.Store(nil)
	if files := w.files.Swap(nil); files != nil {
		_ = files.end() // Do returns its error
	}
}

// errKilled is the error of a worker that was killed from outside as it started.
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

// kill ends the worker and its plugins at once.
func (w *process) kill() {
	w.killing.Do(func() {
		killAll(w.command.Process)
		_ = w.conn.Close()
	})
}

// died describes how the worker ended. ended has to be closed.
func (w *process) died() error {
	if why := w.excess.Load(); why != nil {
		return errors.New(*why)
	}
	state := w.command.ProcessState
	if state == nil {
		return errors.New("it ended in an unknown way")
	}
	text := state.String()
	if line := w.stderr.firstLine(); line != "" {
		text += ": " + line
	}
	return errors.New(text)
}

// isKilled reports whether the worker was killed, which is not its request's fault.
func (w *process) isKilled() bool {
	if w.excess.Load() != nil {
		return false
	}
	status, ok := w.command.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// head keeps the beginning of a standard error, where the runtime of a dying process writes
// the reason.
type head struct {
	mu   sync.Mutex
	text []byte
}

// maxStderr bounds the kept bytes of a worker's standard error.
const maxStderr = 4 << 10

// Write implements io.Writer.
func (t *head) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[:min(len(p), maxStderr-len(t.text))]...)
	return len(p), nil
}

// firstLine returns the first line that is not blank.
func (t *head) firstLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range bytes.Lines(t.text) {
		if s := strings.TrimSpace(string(line)); s != "" {
			return s
		}
	}
	return ""
}

var _ io.Writer = (*head)(nil)
