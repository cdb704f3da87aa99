// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/ruby"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// said is the trace of a thread as Ruby has it.
type said struct {
	id, name, state string
	frames          []frame
	locals          map[string]string // of the function holder
	raised          *raised           // the exception on its way
}

// raised is an exception.
type raised struct {
	kind, text string
	frames     []frame
}

// frame is a frame of Ruby.
type frame struct {
	label, path string
	line        int
}

// String writes the frame.
func (f frame) String() string { return fmt.Sprintf("%s %s:%d", f.label, f.path, f.line) }

// compare runs a program, and compares the stacks of its core with what it wrote.
func compare(ctx context.Context, v *rubyVersion, folder, program string) (c count, err error) {
	work, err := os.MkdirTemp("", "ruby-")
	if err != nil {
		return c, err
	}
	defer func() {
		if !*keepCore {
			os.RemoveAll(work)
		}
	}()
	core, traces, err := crash(ctx, v, folder, program, work)
	if err != nil {
		return c, err
	}
	if *keepCore {
		fmt.Println(v.name(), program, core)
	}
	got, err := read(ctx, core, *record, v.name()+"-"+strings.TrimSuffix(filepath.Base(program), ".rb"))
	if err != nil {
		return c, err
	}
	left := *details
	tell := func(format string, args ...any) {
		if left > 0 {
			fmt.Printf("%s %s: %s\n", v.name(), filepath.Base(program), fmt.Sprintf(format, args...))
		}
		left--
	}
	c.threads = len(traces)
	for id, s := range got {
		if s.problem != "" {
			c.problems++
			tell("thread %s: %s", id, s.problem)
		}
	}
	for _, t := range traces {
		id := t.id
		if s := got[id]; s == nil || len(s.frames) == 0 {
			id = best(t, got)
		}
		s := got[id]
		if s == nil {
			c.missing += len(t.frames)
			tell("thread %s %q is missing", t.id, t.name)
			continue
		}
		delete(got, id)
		compareThread(&c, t, s, tell)
	}
	for id, s := range got {
		c.extra += len(s.frames)
		if len(s.frames) > 0 {
			tell("thread %s is not Ruby's: %v", id, s.frames)
		}
	}
	return c, nil
}

// compareThread compares the frames of a thread.
func compareThread(c *count, t said, s *stack, tell func(format string, args ...any)) {
	want, have := t.frames, s.frames
	for name, text := range t.locals {
		c.locals++
		if got, ok := s.locals[name]; !ok || got != text {
			c.wrong++
			tell("%s is %q, Ruby says %q", name, got, text)
		}
	}
	if t.raised != nil {
		c.locals++
		if s.raised == nil || s.raised.kind != t.raised.kind || s.raised.text != t.raised.text || !slices.Equal(s.raised.frames, t.raised.frames) {
			c.wrong++
			tell("raised %+v, Ruby says %+v", s.raised, t.raised)
		}
	} else if s.raised != nil {
		c.wrong++
		tell("raised %+v, Ruby says nothing", s.raised)
	}
	if t.state == "run" { // it wrote the traces at the line at which it ended
		want, have = fromTrace(want), fromTrace(have)
	}
	for i := range max(len(want), len(have)) {
		switch {
		case i >= len(have):
			c.missing++
			tell("thread %s, frame %d: %v is missing", t.id, i, want[i])
		case i >= len(want):
			c.extra++
			tell("thread %s, frame %d: %v is not in Ruby's trace", t.id, i, have[i])
		case want[i] == have[i]:
			c.equal++
		default:
			c.differ++
			tell("thread %s, frame %d: %v, Ruby says %v", t.id, i, have[i], want[i])
		}
	}
}

// fromTrace returns the frames from the function on that wrote the trace: trace, or trace_ractor.
func fromTrace(list []frame) []frame {
	i := slices.IndexFunc(list, func(f frame) bool { return strings.HasPrefix(strings.TrimPrefix(f.label, "Object#"), "trace") })
	return list[max(i, 0):]
}

// best returns the thread whose frames are most like those of a trace.
func best(t said, got map[string]*stack) (id string) {
	most := -1
	for k, s := range got {
		same := 0
		for i := 1; i <= min(len(t.frames), len(s.frames)); i++ {
			if t.frames[len(t.frames)-i] == s.frames[len(s.frames)-i] {
				same++
			}
		}
		if len(s.frames) > 0 && same > most {
			id, most = k, same
		}
	}
	return id
}

// crash runs a program until it ends with a core, and returns that and what it wrote.
func crash(ctx context.Context, v *rubyVersion, folder, program, work string) (core string, traces []said, err error) {
	argv, err := v.command(folder, program)
	if err != nil {
		return "", nil, err
	}
	if argv[len(argv)-1], err = filepath.Abs(program); err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", append([]string{"-c", `ulimit -c unlimited; exec "$@"`, "bash"}, argv...)...)
	file := filepath.Join(work, "trace.txt")
	cmd.Dir, cmd.Env = work, []string{"PATH=/usr/bin:/bin", "TRACE=" + file, "LC_ALL=C.UTF-8", "TMPDIR=" + os.TempDir()}
	out, _ := cmd.CombinedOutput()
	cores, err := filepath.Glob(filepath.Join(work, "core*"))
	if err != nil || len(cores) != 1 {
		return "", nil, fmt.Errorf("%d cores, expected one: kernel.core_pattern is \"core\"? It wrote:\n%s", len(cores), out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", nil, err
	}
	return cores[0], parse(string(text)), nil
}

// parse parses what a program wrote.
func parse(text string) (list []said) {
	var locals map[string]string
	var exception *raised
	for line := range strings.Lines(text) {
		part := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case part[0] == "thread" && len(part) == 4:
			list = append(list, said{id: part[1], name: part[2], state: part[3], locals: locals, raised: exception})
			locals, exception = nil, nil
		case part[0] == "raised" && len(part) == 3:
			exception = &raised{kind: part[1], text: part[2]}
		case part[0] == "at" && len(part) == 4:
			n, _ := strconv.Atoi(part[3])
			exception.frames = append(exception.frames, frame{part[1], part[2], n})
		case part[0] == "locals":
			locals = map[string]string{}
		case part[0] == "local" && len(part) == 3:
			locals[part[1]] = part[2]
		case len(part) == 3 && len(list) > 0:
			n, _ := strconv.Atoi(part[2])
			t := &list[len(list)-1]
			t.frames = append(t.frames, frame{part[0], part[1], n})
		}
	}
	return list
}

// write writes what was kept.
func write(path string, k *kept) error {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		err = json.NewEncoder(z).Encode(k)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// stack is what the plugin read of a thread.
type stack struct {
	frames          []frame
	problem, reason string
	locals          map[string]string
	raised          *raised
}

// read walks a core, and returns the frames that the plugin found, by thread.
func read(ctx context.Context, core, folder, name string) (map[string]*stack, error) {
	r := &recorder{Runtime: ruby.New(), got: map[string]*stack{}}
	e, err := engine.New(engine.Options{MaxFrames: 1 << 15, Locals: &trace.ValueLimits{Depth: 2, Elements: 200}, Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}, InProcessRuntimes: []sdk.Runtime{r}}})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	target, err := e.Open(core)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	for range target.Stacks(ctx) {
	}
	if folder != "" {
		if err := write(filepath.Join(folder, name+".json.gz"), &r.kept); err != nil {
			return nil, err
		}
	}
	for i, s := range r.waiting { // a thread of Ruby, and no fiber, is in the traces
		if s.reason == "" {
			r.got[fmt.Sprint("parked ", i)] = s
		}
	}
	return r.got, r.failed
}
