// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	riscv64 "example.com/arch-riscv64"
	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/visa"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// pluginPrefix begins the names by which this program is a plugin.
const pluginPrefix = sdk.ExecutablePrefix

// architectures are the architectures of plugins that die.
var architectures = map[string]func() sdk.Architecture{"x86_64": x86_64.New, "amdgpu": amdgpu.New, "visa": visa.New, "riscv64": riscv64.New}

// bundled are the architectures that come with unwindd.
var bundled = []confine.Bundled{
	{Name: "x86_64", New: x86_64.New, Description: x86_64.Description},
	{Name: "amdgpu", New: amdgpu.New, Description: amdgpu.Description},
	{Name: "visa", New: visa.New, Description: visa.Description},
}

// mortal is an architecture whose process stops in the Nth call to it, to be killed.
type mortal struct {
	sdk.Architecture
	after int64
	calls atomic.Int64
}

// servePlugin is a plugin: its name has the architecture, and at which call it dies.
func servePlugin(name string) {
	architecture, call, _ := strings.Cut(name, "-")
	after, err := strconv.ParseInt(call, 10, 64)
	if err != nil || architectures[architecture] == nil {
		fmt.Fprintf(os.Stderr, "%s: expected ARCHITECTURE-CALL\n", name)
		os.Exit(1)
	}
	sdk.Serve(&mortal{Architecture: architectures[architecture](), after: after})
}

// call counts a call. The signal is for the thread that makes the call: that of the process
// may come to another one, and this one goes on and answers before it is stopped.
func (m *mortal) call() {
	if m.calls.Add(1) == m.after {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		_ = unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGSTOP)
	}
}

func (m *mortal) Describe(ctx context.Context) (*sdk.Description, error) {
	m.call()
	return m.Architecture.Describe(ctx)
}

func (m *mortal) OpenTarget(ctx context.Context, e sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
	m.call()
	return m.Architecture.OpenTarget(ctx, e, req)
}

func (m *mortal) OpenObject(ctx context.Context, e sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	m.call()
	return m.Architecture.OpenObject(ctx, e, req)
}

func (m *mortal) FrameRules(ctx context.Context, e sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	m.call()
	return m.Architecture.FrameRules(ctx, e, req)
}

func (m *mortal) BindThreads(ctx context.Context, e sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	m.call()
	return m.Architecture.BindThreads(ctx, e, req)
}

func (m *mortal) Translate(ctx context.Context, e sdk.Engine, req *sdk.TranslateRequest) (*sdk.TranslateAnswer, error) {
	m.call()
	return m.Architecture.Translate(ctx, e, req)
}

func (m *mortal) ClassifyReturn(ctx context.Context, req *sdk.ClassifyReturnRequest) (*sdk.ClassifyReturnAnswer, error) {
	m.call()
	return m.Architecture.ClassifyReturn(ctx, req)
}

func (m *mortal) Disassemble(ctx context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	m.call()
	return m.Architecture.Disassemble(ctx, req)
}

// mortalWalk is a target that is walked while a plugin dies.
type mortalWalk struct {
	architecture, file string
	compare            comparer
}

var mortalWalks = []mortalWalk{
	{"x86_64", "server.core", compareStacks}, {"x86_64", "mixed.snapshot", compareStacks}, {"x86_64", "perf.data", compareProfiles},
	{"amdgpu", "mixed.snapshot", compareStacks}, {"amdgpu", "crash.core", compareStacks},
	{"visa", "gen.snapshot", compareStacks}, {"riscv64", "riscv64.snapshot", compareStacks},
}

// deathsLimit is how long a walk may take whose plugin dies all the time: it is started again
// later and later, until it is given up.
const deathsLimit = 3 * time.Minute

// deaths has plugins die at each of their calls, until a walk has no more: the first process
// alone, and every one that is started in its place.
func (b *bench) deaths() error {
	for _, w := range mortalWalks {
		var whole *result
		for _, isOnce := range []bool{true, false} {
			kind := fmt.Sprintf("the plugin of %s dies at each call in turn", w.architecture)
			if !isOnce {
				kind += ", and so do those after it"
			}
			if !isChosen(kind) || *isSmall && !isOnce || *isSmall && (w.architecture != "amdgpu" || w.file != "mixed.snapshot") {
				continue
			}
			if whole == nil {
				whole, _ = b.walkWith(w, 0, isOnce)
				if err := whole.check(); err != nil {
					return fmt.Errorf("%s, without a death: %w", kind, err)
				}
			}
			b.deathsOf(&command{name: w.file, compare: w.compare, whole: whole}, w, isOnce, kind)
		}
	}
	return nil
}

func (b *bench) deathsOf(c *command, w mortalWalk, isOnce bool, kind string) {
	for n := 1; ; n++ {
		r, deaths := b.walkWith(w, n, isOnce)
		if deaths == 0 {
			return
		}
		o, why := c.judge(&fault{}, r)
		b.note(kind, fmt.Sprintf("%s, call %d of %s, %d deaths", kind, n, w.file, deaths), o, why, r.took)
	}
}

// walkWith walks with a plugin that dies at the Nth call; 0: it does not.
func (b *bench) walkWith(w mortalWalk, n int, isOnce bool) (r *result, deaths int) {
	r = &result{}
	began := time.Now()
	dir := filepath.Join(b.dir, "plugins")
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, fmt.Sprintf("%s%s-%d", pluginPrefix, w.architecture, n))
	err := errors.Join(b.makeFolders(), os.MkdirAll(dir, 0o700))
	if err == nil {
		err = os.Link(filepath.Join(b.dir, "faults"), name)
	}
	if err != nil {
		return &result{status: notEntered, stderr: err.Error()}, 0
	}
	done, killed := make(chan struct{}), make(chan int)
	go func() { killed <- killStopped(done, isOnce) }()
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), deathsLimit)
	defer cancel()
	err = b.walk(ctx, w, dir, &out)
	r.isHung = ctx.Err() != nil
	close(done)
	r.answer = out.Bytes()
	if err != nil {
		r.status, r.stderr = 1, "unwindd: "+err.Error() // as the command says it
		if errors.Is(err, trace.ErrNotWalked) {
			r.status = 3
		}
	}
	r.left, r.took = b.processesLeft(), time.Since(began)
	return r, <-killed
}

// walk walks with the plugin in a folder.
func (b *bench) walk(ctx context.Context, w mortalWalk, dir string, out io.Writer) error {
	options := engine.Options{Plugins: plugin.Options{Self: b.unwindd(), Dirs: []string{dir}}}
	for _, one := range bundled {
		if one.Name != w.architecture {
			options.Plugins.Bundled = append(options.Plugins.Bundled, one)
		}
	}
	e, err := engine.New(options)
	if err != nil {
		return err
	}
	defer e.Close()
	file := filepath.Join(b.material(), w.file)
	if w.file == "perf.data" {
		p, err := e.Profile(ctx, file, trace.ProfileOptions{})
		if err != nil {
			return err
		}
		r, err := report.NewProfile(p)
		if err != nil {
			return err
		}
		return r.WriteJSON(out)
	}
	t, err := e.Open(file)
	if err != nil {
		return err
	}
	defer t.Close()
	j := job.NewStack()
	j.Format, j.Lanes, j.Code = "json", true, 1
	stacks, err := j.Of(ctx, t)
	if err != nil {
		return err
	}
	defer stacks.Close()
	return errors.Join(stacks.WriteReport(ctx, out, job.WriteOptions{}), stacks.Err())
}

// killStopped kills processes that stop: all, or the first one, and has the others go on.
func killStopped(done <-chan struct{}, isOnce bool) (deaths int) {
	killed := map[int]bool{} // one that is killed is stopped for a moment longer
	for {
		select {
		case <-done:
			return len(killed)
		case <-time.After(time.Millisecond):
		}
		for _, pid := range stopped() {
			if len(killed) > 0 && isOnce && !killed[pid] {
				_ = syscall.Kill(pid, syscall.SIGCONT)
				continue
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
			killed[pid] = true
		}
	}
}

// stopped are the children that are stopped.
func stopped() (list []int) {
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, path := range tasks {
		data, _ := os.ReadFile(path)
		for _, word := range strings.Fields(string(data)) {
			stat, _ := os.ReadFile("/proc/" + word + "/stat")
			_, rest, _ := strings.Cut(string(stat), ") ")
			if pid, err := strconv.Atoi(word); err == nil && strings.HasPrefix(rest, "T") {
				list = append(list, pid)
			}
		}
	}
	return list
}
