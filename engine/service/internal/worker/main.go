// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/service/job"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/symbolize"
	"github.com/unwindd/unwindd/internal/garbage"
	"github.com/unwindd/unwindd/internal/panics"
)

// Setup has the settings of a worker, the same for all requests. Its Confinement bounds
// where it may read.
type Setup struct {
	Sysroot     string   // beneath which paths of targets are looked up; an empty folder: nowhere
	DebugDirs   []string // searched for separate debug files
	PluginDirs  []string // of vendors' plugins
	Pins        map[string]string
	Choice      plugin.Choice // of plugins
	InProcess   bool          // the bundled architectures run in the worker
	MaxUnpacked uint64        // bytes that a packed target may unpack to
	CacheBytes  uint64        // see engine.Options
	Memory      uint64        // bytes that the worker may have: garbage is collected before
}

// socketFD is the descriptor of a worker's socket.
const socketFD = 3

// Args are the first arguments of a worker, after the executable's name.
var Args = []string{"serve", "worker"}

// IsWorker reports whether arguments begin with Args.
func IsWorker(args []string) bool {
	return len(args) >= len(Args) && slices.Equal(args[:len(Args)], Args)
}

// Main runs a worker: args follow Args. It is executed twice. First it confines itself and
// executes itself again, because the runtime has threads already, and confinement applies
// to single threads. plugins makes the options for starting plugins. It returns when the
// process that started it is gone.
func Main(args []string, plugins func(*Setup) (plugin.Options, error)) error {
	if len(args) == 0 {
		return fmt.Errorf("serve worker: unwindd starts it itself: %w", confineProcess())
	}
	c, err := newConn(os.NewFile(socketFD, "server"))
	if err != nil {
		return fmt.Errorf("serve worker: unwindd starts it itself: %w", err)
	}
	defer c.Close()
	w := &worker{conn: c}
	return w.serve(strings.Split(args[0], "\n"), plugins)
}

// confineProcess reads the first message and executes this executable again, confined.
func confineProcess() error {
	b := make([]byte, maxMessage)
	n, err := syscall.Read(socketFD, b)
	if err != nil {
		return fmt.Errorf("read descriptor %d: %w", socketFD, err)
	}
	var first toWorker
	if err := json.Unmarshal(b[:n], &first); err != nil {
		return err
	}
	if first.Confine == nil {
		return errors.New("the first message does not say how it is confined")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return first.Confine.Exec(self, func(missing []string) []string {
		return slices.Concat([]string{os.Args[0]}, Args, []string{strings.Join(missing, "\n")})
	}, os.Environ())
}

// worker answers requests, one at a time.
type worker struct {
	conn  *conn
	tools job.Tools

	mu      sync.Mutex
	running uint64 // the number of the current run; 0: none
	cancel  context.CancelFunc

	fetches   pending[fetched]
	questions pending[answer]
	unpacks   pending[unpacked]
	handed    handed
}

func (w *worker) serve(missing []string, plugins func(*Setup) (plugin.Options, error)) error {
	ignoreLargeFiles()
	var setup toWorker
	if _, err := w.conn.receive(&setup); err != nil || setup.Setup == nil {
		return fmt.Errorf("serve worker: the second message: %w", errors.Join(err, errors.New("expected a setup")))
	}
	if err := w.open(setup.Setup, plugins); err != nil {
		return fmt.Errorf("serve worker: %w", err)
	}
	defer w.tools.Engine.Close()
	defer func() { _ = w.tools.Symbolizer.Close() }()
	if err := w.conn.send(fromWorker{Ready: &ready{slices.DeleteFunc(missing, func(s string) bool { return s == "" })}}); err != nil {
		return err
	}
	for {
		var m toWorker
		files, err := w.conn.receive(&m)
		if err != nil {
			end() // the server is gone, or ended this worker
		}
		switch {
		case m.Run != nil && len(files) == 2:
			w.begin(m.Run, files[0], files[1])
			continue
		case m.Cancel != 0:
			w.cancelRun(m.Cancel)
		case m.Fetched != nil:
			m.Fetched.file, files = first(files)
			w.fetches.deliver(m.Fetched.Number, *m.Fetched)
		case m.Answer != nil:
			m.Answer.file, files = first(files)
			w.questions.deliver(m.Answer.Number, *m.Answer)
		case m.Unpacked != nil:
			m.Unpacked.file, files = first(files)
			w.unpacks.deliver(m.Unpacked.Number, *m.Unpacked)
		}
		closeAll(files)
	}
}

// first returns the first of files, nil where there is none, and the others.
func first(files []*os.File) (*os.File, []*os.File) {
	if len(files) == 0 {
		return nil, nil
	}
	return files[0], files[1:]
}

// endGrace bounds the time that the plugins of a worker take to end with it.
const endGrace = 500 * time.Millisecond

// end ends this process and its plugins at once, whatever is under way. It does not return.
func end() {
	time.AfterFunc(endGrace, func() { os.Exit(0) }) // remaining plugins die with this process
	plugin.Abandon()
	os.Exit(0)
}

// open makes the engine.
func (w *worker) open(s *Setup, plugins func(*Setup) (plugin.Options, error)) error {
	p, err := plugins(s)
	if err != nil {
		return err
	}
	garbage.CollectSeldom()
	if s.Memory > 0 && s.Memory < math.MaxInt64 {
		debug.SetMemoryLimit(int64(s.Memory / 8 * 7))
	}
	w.tools.Options = engine.Options{
		Plugins: p, Sysroot: s.Sysroot, IsUnseen: true, DebugDirs: s.DebugDirs, MaxUnpacked: s.MaxUnpacked, CacheBytes: s.CacheBytes,
		Remote: remote{w, false}, Symbols: remote{w, true}, Unpack: w.unpack,
	}
	if w.tools.Engine, err = engine.New(w.tools.Options); err != nil {
		return err
	}
	w.tools.NewSymbolizer = func() *symbolize.Symbolizer {
		return symbolize.New(symbolize.Options{Sysroot: s.Sysroot, IsUnseen: true, DebugDirs: s.DebugDirs, Remote: w.tools.Options.Remote})
	}
	w.tools.Symbolizer = w.tools.NewSymbolizer()
	w.tools.Ask = w.ask
	return nil
}

// begin starts a run, whose end is sent to the server.
func (w *worker) begin(r *run, input, output *os.File) {
	ctx, cancel := context.WithCancel(context.Background())
	w.mu.Lock()
	w.running, w.cancel = r.Number, cancel
	w.mu.Unlock()
	go func() {
		defer cancel()
		d := done{Number: r.Number}
		d.Outcome, d.Failure = w.run(ctx, r, input, output)
		closeAll([]*os.File{input, output})
		w.handed.endRun()
		w.mu.Lock()
		w.running = 0
		w.mu.Unlock()
		_ = w.conn.send(fromWorker{Done: &d}) // the server may be gone
	}()
}

// run does a job. A panic becomes its failure. Deferred unlocks keep shared state usable,
// but the server ends this worker after a panic.
func (w *worker) run(ctx context.Context, r *run, input, output *os.File) (o job.Outcome, f *Failure) {
	defer func() {
		if p := recover(); p != nil {
			f = &Failure{Kind: Crashed, Detail: "panic: " + panics.Line(fmt.Sprint(p), panics.Place())}
		}
	}()
	w.tools.Engine.Plugins().ForgetProblems() // of the previous job
	w.tools.Forget(r.Forget.IDs, r.Forget.All)
	o, err := r.Job.Run(ctx, &job.Request{Tools: &w.tools, Input: input, Name: r.Name, Report: output})
	return o, failureOf(ctx, err)
}

// cancelRun ends a run if it is still under way.
func (w *worker) cancelRun(number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running == number {
		w.cancel()
	}
}

// pending are questions to the server that are not answered yet.
type pending[T any] struct {
	mu      sync.Mutex
	last    uint64 // the number of the last question
	waiting map[uint64]chan T
}

// begin registers a question, whose answer comes by the channel.
func (p *pending[T]) begin() (number uint64, got chan T) {
	got = make(chan T, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		p.waiting = map[uint64]chan T{}
	}
	p.last++
	p.waiting[p.last] = got
	return p.last, got
}

// deliver sends an answer to its waiting question.
func (p *pending[T]) deliver(number uint64, answer T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := p.waiting[number]; got != nil {
		delete(p.waiting, number)
		got <- answer
	}
}

// ask sends a question to the caller of the run.
func (w *worker) ask(q *pb.Question) (*pb.Answer, string, error) {
	b, err := proto.Marshal(q)
	if err != nil {
		return nil, "", err
	}
	number, got := w.questions.begin()
	if err := w.conn.send(fromWorker{Ask: &question{number, b}}); err != nil {
		return nil, "", err
	}
	a := <-got // if the server goes, so does this process
	if a.Failure != "" {
		return nil, "", errors.New(a.Failure)
	}
	out := &pb.Answer{}
	return out, w.handed.pathOfRun(a.Path, a.file), proto.Unmarshal(a.Proto, out)
}

// remote asks the server for files: a worker has no network.
type remote struct {
	worker    *worker
	isSymbols bool
}

// Fetch implements object.Remote.
func (r remote) Fetch(file object.RemoteFile) (path string, tried []object.Attempt) {
	w := r.worker
	number, got := w.fetches.begin()
	if err := w.conn.send(fromWorker{Fetch: &fetch{number, r.isSymbols, file}}); err != nil {
		return "", []object.Attempt{{Path: "the server", Reason: err.Error(), Kind: object.Unreadable}}
	}
	f := <-got // if the server goes, so does this process
	return w.handed.path(f.Path, f.file), f.Tried
}

// handed has the files that the server opened for this worker, which may not open them itself. The objects of a file
// are kept by its path, so a file that is handed again keeps the descriptor that it has.
type handed struct {
	mu    sync.Mutex
	files map[string]*os.File // by the server's path
	order []string            // of the paths, the oldest first
	ofRun []string            // the paths that are handed to the current run alone
}

// maxHanded bounds the open files of handed. Once a file is mapped, it need not be open.
const maxHanded = maxDescriptors / 4

// path returns the path by which a worker reads a file with a name on the server: that of its descriptor, if it was handed one.
func (h *handed) path(name string, file *os.File) string {
	if file == nil {
		return name
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch before := h.files[name]; {
	case before != nil && isSame(before, file):
		_ = file.Close()
		file = before
	case before != nil: // another file has the path by now
		_ = before.Close()
		h.files[name] = file
	default:
		h.add(name, file)
	}
	return fmt.Sprintf("/proc/self/fd/%d", file.Fd())
}

// pathOfRun is path for a file of the target of the current run, which the server removes when that has ended.
func (h *handed) pathOfRun(name string, file *os.File) string {
	path := h.path(name, file)
	if file != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ofRun = append(h.ofRun, name)
	}
	return path
}

// endRun closes the files of the run that ends.
func (h *handed) endRun() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range h.ofRun {
		if f := h.files[name]; f != nil {
			_ = f.Close()
			delete(h.files, name)
		}
	}
	if len(h.ofRun) > 0 {
		h.order = slices.DeleteFunc(h.order, func(name string) bool { return h.files[name] == nil })
	}
	h.ofRun = nil
}

func (h *handed) add(path string, file *os.File) {
	if h.files == nil {
		h.files = map[string]*os.File{}
	}
	if len(h.order) == maxHanded {
		_ = h.files[h.order[0]].Close()
		delete(h.files, h.order[0])
		h.order = h.order[1:]
	}
	h.files[path], h.order = file, append(h.order, path)
}

func isSame(a, b *os.File) bool {
	x, err := a.Stat()
	y, failed := b.Stat()
	return err == nil && failed == nil && os.SameFile(x, y)
}
