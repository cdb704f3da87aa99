// SPDX-License-Identifier: Apache-2.0

// Package enginetest walks targets in this process as the command does, for tests.
package enginetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/internal/bundled"
	"github.com/unwindd/unwindd/internal/schema"
	"github.com/unwindd/unwindd/plugins/aarch64"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/nvidia"
	"github.com/unwindd/unwindd/plugins/visa"
	"github.com/unwindd/unwindd/plugins/x86"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// Ask has the options of a walk and of its output.
type Ask struct {
	Engine engine.Options
	Stack  job.Stack
}

// Engine returns an engine with the bundled architectures in this process, until the test
// ends.
func Engine(t testing.TB, o engine.Options) *engine.Engine {
	t.Helper()
	o.Plugins.InProcess = append(o.Plugins.InProcess, []sdk.Architecture{x86_64.New(), x86.New(), aarch64.New(), amdgpu.New(), visa.New(), nvidia.New()}...)
	for _, r := range bundled.Runtimes {
		o.Plugins.InProcessRuntimes = append(o.Plugins.InProcessRuntimes, r.New())
	}
	e, err := engine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// Open opens a target with an engine of its own, until the test ends.
func Open(t testing.TB, path string, set ...func(*Ask)) (*engine.Target, error) {
	t.Helper()
	a := newAsk(t, set)
	return Engine(t, a.Stack.Engine(a.Engine)).Open(path)
}

func newAsk(t testing.TB, set []func(*Ask)) *Ask {
	t.Helper()
	a := &Ask{Stack: job.NewStack()}
	for _, f := range set {
		f(a)
	}
	if err := a.Stack.Check(); err != nil {
		t.Fatal(err)
	}
	return a
}

// Write writes the stacks of a target. The error is the command's.
func Write(t testing.TB, path string, set ...func(*Ask)) (written string, err error) {
	t.Helper()
	a := newAsk(t, set)
	target, err := Engine(t, a.Stack.Engine(a.Engine)).Open(path)
	if err != nil {
		return "", err
	}
	stacks, err := a.Stack.Of(t.Context(), target)
	if err != nil {
		return "", err
	}
	defer stacks.Close()
	var b bytes.Buffer
	if err := stacks.WriteReport(t.Context(), &b, job.WriteOptions{}); err != nil {
		return "", err
	}
	return b.String(), stacks.Err()
}

// Text returns the stacks of a target as text.
func Text(t testing.TB, path string, set ...func(*Ask)) string {
	t.Helper()
	text, err := Write(t, path, set...)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return text
}

// Report returns the JSON of the stacks of a target, checked against its
// schema.
func Report(t testing.TB, path string, set ...func(*Ask)) *report.Report {
	t.Helper()
	r, err := ReportOf(t, path, set...)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return r
}

// Signature returns the JSON of the signature of a target, checked against its
// schema.
func Signature(t testing.TB, path string, set ...func(*Ask)) *report.Signature {
	t.Helper()
	r := &report.Signature{}
	written := Text(t, path, append(set, func(a *Ask) { a.Stack.Signature, a.Stack.Format = true, "json" })...)
	decode(t, path, written, schema.Docs(t, "stack.schema.json").Definition("signature"), r)
	return r
}

// ReportOf returns the Report of a target that may not be walked whole, with the error
// of Write.
func ReportOf(t testing.TB, path string, set ...func(*Ask)) (*report.Report, error) {
	t.Helper()
	written, failed := Write(t, path, append(set, func(a *Ask) { a.Stack.Format = "json" })...)
	if written == "" {
		return nil, failed
	}
	r := &report.Report{}
	decode(t, path, written, schema.Docs(t, "stack.schema.json"), r)
	return r, failed
}

// decode reads JSON and checks it against a schema.
func decode(t testing.TB, path, written string, s schema.Schema, into any) {
	t.Helper()
	var document any
	if err := errors.Join(json.Unmarshal([]byte(written), &document), json.Unmarshal([]byte(written), into)); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, written)
	}
	for i, wrong := range s.Check("stack", document) {
		if i < 10 {
			t.Errorf("%s: %s", filepath.Base(path), wrong)
		}
	}
}

// Snapshot writes a snapshot of a target to a file.
func Snapshot(t testing.TB, path string, o engine.SnapshotOptions, set ...func(*Ask)) (file string, s *engine.Snapshot) {
	t.Helper()
	target, err := Open(t, path, set...)
	if err != nil {
		t.Fatal(err)
	}
	s, err = target.Snapshot(t.Context(), o)
	if err == nil {
		err = s.Unwalked
	}
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "taken.snapshot")
	f, err := os.Create(file)
	if err == nil {
		err = errors.Join(s.Write(f), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return file, s
}

// SameStacks compares the stacks of a snapshot with its target's, frame by frame, with
// all their fields.
func SameStacks(t testing.TB, name string, want, got *report.Report) {
	t.Helper()
	if d := cmp.Diff(want.Threads, got.Threads); d != "" {
		t.Errorf("%s (-target +snapshot):\n%s", name, d)
	}
	if want.Target.Signal != got.Target.Signal {
		t.Errorf("%s: signal %d, the target has %d", name, got.Target.Signal, want.Target.Signal)
	}
}
