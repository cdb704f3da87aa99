// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/engine/service/fleet"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// examples are the examples of the project. The programs run in the folder of this
// module.
const examples = "../../examples"

// anyName is the name of every target for the command. A job has another name.
const anyName = "the-target-of-a-job"

// kind of jobs: the request, its input, and the right answer.
type kind struct {
	name    string
	options func(name string) proto.Message
	task    string // stack or profile
	body    []byte
	want    string // what the command writes; "": the job fails
}

// material is the files that jobs send.
type material struct {
	unwindd, dir string
	isClocked    bool   // its processes have wall clocks that jump
	crash        []byte // the executable
	crashID      []byte // its build ID
	kinds        []*kind
}

func stackOf(set func(*pb.StackOptions)) func(string) proto.Message {
	return func(name string) proto.Message {
		o := &pb.StackOptions{Name: name, Format: "text"}
		set(o)
		return o
	}
}

func profileOf(name string) proto.Message { return &pb.ProfileOptions{Name: name, Format: "folded"} }

// newMaterial makes the jobs, and gets the right answers from the command.
func newMaterial(unwindd, dir string) (*material, error) {
	exe, err := filepath.Abs(filepath.Join(examples, "crash", "server"))
	if err != nil {
		return nil, err
	}
	m := &material{unwindd: unwindd, dir: dir}
	if m.crash, err = os.ReadFile(exe); err != nil {
		return nil, err
	}
	if m.crashID, err = cost.BuildID(exe); err != nil {
		return nil, err
	}
	core := filepath.Join(examples, "crash", "server.core")
	snapshot := filepath.Join(dir, "crash.snapshot")
	if out, err := exec.Command(unwindd, "snapshot", core, "--exe", exe, "-o", snapshot).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w\n%s", core, err, out)
	}
	crashed := stackOf(func(o *pb.StackOptions) { o.Crashed = true })
	whole := stackOf(func(*pb.StackOptions) {})
	for _, k := range []struct {
		name, task string
		options    func(string) proto.Message
		file       string
		size       int64 // of the file, as it is asked of; 0: all
		args       []string
	}{
		{"core", "stack", crashed, core, 0, []string{"--crashed", "--exe", exe}},
		{"minidump", "stack", whole, filepath.Join(examples, "crash", "server.dmp"), 0, []string{"--exe", exe}},
		{"snapshot", "stack", whole, snapshot, 0, []string{"--exe", exe}},
		{"waves", "stack", whole, filepath.Join(examples, "mixed", "mixed.snapshot"), 0, nil},
		{"recording", "profile", profileOf, filepath.Join(examples, "profile", "perf.data"), 0, []string{"--format", "folded"}},
		{"locals", "stack", stackOf(func(o *pb.StackOptions) { o.Locals = true }), core, 0, []string{"--locals", "--exe", exe}},
		{"cut core", "stack", crashed, core, 300_000, []string{"--crashed", "--exe", exe}},
		{"no core", "stack", crashed, core, 50, nil},
		{"no snapshot", "stack", whole, filepath.Join(examples, "mixed", "mixed.snapshot"), 5_000, nil},
		{"no recording", "profile", profileOf, filepath.Join(examples, "profile", "perf.data"), 12, []string{"--format", "folded"}},
	} {
		one := &kind{name: strings.ReplaceAll(k.name, " ", "-"), options: k.options, task: k.task}
		if one.body, err = os.ReadFile(k.file); err != nil {
			return nil, err
		}
		if k.size > 0 {
			one.body = one.body[:k.size]
		}
		if one.want, err = m.byCommand(one, k.args); err != nil {
			return nil, err
		}
		if isHostile := strings.HasPrefix(k.name, "no "); isHostile != (one.want == "") {
			return nil, fmt.Errorf("the command writes %d bytes of %s", len(one.want), k.name)
		}
		m.kinds = append(m.kinds, one)
	}
	return m, nil
}

// byCommand is the command's output for a target; "" where it fails.
func (m *material) byCommand(k *kind, args []string) (string, error) {
	dir := filepath.Join(m.dir, "targets", k.name)
	empty := filepath.Join(dir, "nothing")
	if err := os.MkdirAll(empty, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, anyName), k.body, 0o600); err != nil {
		return "", err
	}
	cmd := exec.Command(m.unwindd, append([]string{k.task, anyName, "--sysroot", empty}, args...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) && failed.ExitCode() == 1 {
		return "", nil
	}
	return plain(string(out)), err
}

// absent are the words about a file that is not there. The command says where it was looked
// for, and a worker that it can be put.
var absent = regexp.MustCompile(`: (no file with build ID|its file is not here).*`)

// plain is a report without the parts that depend on the machine rather than on the
// target.
func plain(text string) string { return absent.ReplaceAllString(text, ": no file") }

// wanted job, and its right answer.
type wanted struct {
	kind *kind
	name string
	body []byte
	id   string // once it was asked for
}

// wants makes so many jobs, each of which is another one.
func (m *material) wants(n int) (list []*wanted) {
	for i := range n {
		k := m.kinds[i%len(m.kinds)]
		w := &wanted{kind: k, name: fmt.Sprintf("%s-%06d", k.name, i), body: k.body}
		if i/len(m.kinds)%20 == 0 && (k.name == "core" || k.name == "locals" || k.name == "minidump") {
			// What follows a core or a minidump is no part of it: it is another input.
			w.body = binary.BigEndian.AppendUint64(bytes.Clone(k.body), uint64(i)) //nolint:gosec // not negative
		}
		list = append(list, w)
	}
	return list
}

// submit asks for the job.
func (w *wanted) submit(ctx context.Context, q *fleet.Queue) (*fleet.Submitted, error) {
	t, err := fleet.NewTask(w.kind.task, w.kind.options(w.name))
	if err != nil {
		return nil, err
	}
	return q.Submit(ctx, t, bytes.NewReader(w.body), fleet.How{})
}

// wrongWith returns the error in a result.
func (w *wanted) wrongWith(ctx context.Context, q *fleet.Queue, r *fleet.Result) error {
	state := fleet.Done
	if w.kind.want == "" {
		state = fleet.Failed
	}
	if r.State != state {
		return fmt.Errorf("%s is %s (%+v), expected %s", w.name, r.State, r.Problem, state)
	}
	if state == fleet.Failed {
		return nil
	}
	var b strings.Builder
	if err := q.Report(ctx, r, &b); err != nil {
		return fmt.Errorf("the report of %s: %w", w.name, err)
	}
	if want := strings.ReplaceAll(w.kind.want, anyName, w.name); plain(b.String()) != want {
		return fmt.Errorf("%s: the report is\n%s\nexpected\n%s", w.name, b.String(), want)
	}
	return nil
}

// sendFiles sends the files of code that jobs need.
func (m *material) sendFiles(ctx context.Context, q *fleet.Queue) error {
	_, err := q.PutObject(ctx, m.crashID, "executable", bytes.NewReader(m.crash))
	return err
}
