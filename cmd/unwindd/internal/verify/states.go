// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// stateSuffix follows the name of a recorded state in the name of the file with its expected
// stacks. A recorded state is a target, usually a snapshot with the files of its code. The
// stacks are JSON of `stack`, which may leave out anything: the members that it has must match.
// The whole of what `stack --format json` prints without other flags matches.
const stateSuffix = ".expected.json"

// maxExpected bounds a file of expected stacks, in bytes.
const maxExpected = 64 << 20

// states walks the recorded states.
func (v *verifier) states() {
	if len(v.States) == 0 {
		return
	}
	v.examinee.rest()
	ask := job.NewStack()
	ask.Format = "json"
	err := ask.Check()
	var e *engine.Engine
	var dir string
	if err == nil {
		e, dir, err = v.newEngine(&ask)
	}
	if err != nil {
		v.find(archtest.Error, "Mend what other checks find first.", fmt.Sprintf("no engine with the plugin: %v", err))
		return
	}
	defer os.RemoveAll(dir)
	defer e.Close()
	for _, path := range v.States {
		v.state(e, &ask, path)
	}
}

// newEngine makes an engine for a report, with the plugin, linked into a folder of its own, and the bundled
// architectures that are no rivals of it.
func (v *verifier) newEngine(ask *job.Stack) (e *engine.Engine, dir string, err error) {
	path, err := filepath.Abs(v.Path)
	if err != nil {
		return nil, "", err
	}
	if dir, err = os.MkdirTemp("", "unwindd-verify-"); err != nil {
		return nil, "", err
	}
	name := filepath.Base(path)
	if plugin.NameOf(path) == "" {
		name = sdk.ExecutablePrefix + "examined"
	}
	executable := filepath.Join(dir, name)
	if data := path + plugin.DataSuffix; isFolder(data) {
		err = os.Symlink(data, executable+plugin.DataSuffix)
	}
	if err == nil {
		err = os.Symlink(path, executable)
	}
	if err == nil {
		others := slices.DeleteFunc(slices.Clone(v.Bundled), func(b confine.Bundled) bool {
			return v.desc != nil && isRival(b.Description(), v.desc) // a runtime has no rival
		})
		e, err = engine.New(ask.Engine(engine.Options{Plugins: plugin.Options{
			Self: v.Self, Build: v.Build, Dirs: []string{dir}, Bundled: others, Logger: v.Logger, StartDeadline: v.StartDeadline, CallDeadline: v.CallDeadline,
		}}))
	}
	if err != nil {
		os.RemoveAll(dir)
	}
	return e, dir, err
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isRival reports whether two descriptions claim the same code objects or notes.
func isRival(a, b *sdk.Description) bool {
	if a.Name == b.Name {
		return true
	}
	for _, r := range a.Recognises {
		if slices.ContainsFunc(b.Recognises, func(o sdk.Recogniser) bool {
			return isRivalMachine(&r, &o) || r.NoteOwner != "" && r.NoteOwner == o.NoteOwner ||
				len(r.Magic) > 0 && len(o.Magic) > 0 && (bytes.HasPrefix(r.Magic, o.Magic) || bytes.HasPrefix(o.Magic, r.Magic))
		}) {
			return true
		}
	}
	return false
}

// isRivalMachine reports whether two recognisers claim files of one machine, class and encoding
// of data.
func isRivalMachine(a, b *sdk.Recogniser) bool {
	isSame := func(a, b uint8) bool { return a == b || a == 0 || b == 0 }
	return a.ELFMachine != 0 && a.ELFMachine == b.ELFMachine && isSame(a.ELFClass, b.ELFClass) && isSame(a.ELFData, b.ELFData)
}

// state walks a recorded state and compares its report.
func (v *verifier) state(e *engine.Engine, ask *job.Stack, path string) {
	expected, err := readExpected(path + stateSuffix)
	if err != nil {
		name := filepath.Base(path)
		v.find(archtest.Error, fmt.Sprintf("Write what is true of the state beside it: `unwindd stack %s --format json >%s%s`, looked through, is a beginning.", name, name, stateSuffix), err.Error())
		return
	}
	got, err := v.walked(e, ask, path)
	if err != nil {
		v.find(archtest.Error, "Name a core, a minidump or a snapshot with threads of the architecture.", fmt.Sprintf("%s: %v", path, err))
		return
	}
	if d := compare(expected, got); d != nil {
		v.find(archtest.Error, d.fix(), fmt.Sprintf("%s: %s", path, d))
	}
}

func readExpected(path string) (any, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: there is no such file", path)
	case err != nil:
		return nil, err
	case info.Size() > maxExpected:
		return nil, fmt.Errorf("%s: %d bytes, expected at most %d", path, info.Size(), maxExpected)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var expected any
	if err := decode(b, &expected); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return expected, nil
}

// decode reads JSON and keeps the text of numbers.
func decode(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(into)
}

// walked returns the report of a target, as `stack --format json` without other flags prints it.
func (v *verifier) walked(e *engine.Engine, ask *job.Stack, path string) (got any, err error) {
	t, err := e.Open(path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	stacks, err := ask.Of(v.ctx, t)
	if err != nil {
		return nil, err
	}
	defer stacks.Close()
	var b bytes.Buffer
	if err := stacks.WriteReport(v.ctx, &b, job.WriteOptions{}); err != nil {
		return nil, err
	}
	if err := stacks.Err(); err != nil {
		return nil, err
	}
	err = decode(b.Bytes(), &got)
	return got, err
}
