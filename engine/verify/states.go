// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/plugin/confine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// A recorded state is a target, usually a snapshot with the files of its code, and beside
// it a file with the same name and this behind it: the stacks that it has, which somebody
// knows from elsewhere. It is JSON of `stack`, of which anything may be left out: what is
// there must be so.
const stateSuffix = ".expected.json"

// maxExpected bounds such a file, in bytes.
const maxExpected = 64 << 20

// states walks the recorded states.
func (v *verifier) states() {
	if len(v.States) == 0 {
		return
	}
	v.examinee.rest()
	e, dir, err := v.newEngine()
	if err != nil {
		v.find(archtest.Error, "Mend what other checks find first.", fmt.Sprintf("no engine with the plugin: %v", err))
		return
	}
	defer os.RemoveAll(dir)
	defer e.Close()
	for _, path := range v.States {
		v.state(e, path)
	}
}

// newEngine makes an engine with the plugin, which is linked into a folder of its own, and
// with those bundled architectures that are no rivals of it.
func (v *verifier) newEngine() (e *engine.Engine, dir string, err error) {
	path, err := filepath.Abs(v.Path)
	if err != nil {
		return nil, "", err
	}
	if dir, err = os.MkdirTemp("", "unwindd-verify-"); err != nil {
		return nil, "", err
	}
	name := plugin.NameOf(path)
	if name == "" {
		name = "examined"
	}
	if err = os.Symlink(path, filepath.Join(dir, "unwindd-arch-"+name)); err == nil {
		others := slices.DeleteFunc(slices.Clone(v.Bundled), func(b confine.Bundled) bool { return isRival(b.Description(), v.desc) })
		e, err = engine.New(engine.Options{Plugins: plugin.Options{
			Self: v.Self, Build: v.Build, Dirs: []string{dir}, Bundled: others, Logger: v.Logger, StartDeadline: v.StartDeadline, CallDeadline: v.CallDeadline,
		}})
	}
	if err != nil {
		os.RemoveAll(dir)
	}
	return e, dir, err
}

// isRival says whether two descriptions claim the same.
func isRival(a, b *sdk.Description) bool {
	if a.Name == b.Name {
		return true
	}
	for _, r := range a.Recognises {
		if slices.ContainsFunc(b.Recognises, func(o sdk.Recogniser) bool {
			return r.ELFMachine != 0 && r.ELFMachine == o.ELFMachine || r.NoteOwner != "" && r.NoteOwner == o.NoteOwner ||
				len(r.Magic) > 0 && len(o.Magic) > 0 && (bytes.HasPrefix(r.Magic, o.Magic) || bytes.HasPrefix(o.Magic, r.Magic))
		}) {
			return true
		}
	}
	return false
}

// state walks one and compares.
func (v *verifier) state(e *engine.Engine, path string) {
	expected, err := readExpected(path + stateSuffix)
	if err != nil {
		v.find(archtest.Error, "Write the true stacks beside the state: `unwindd stack "+filepath.Base(path)+" --format json`, looked through, is a beginning.", err.Error())
		return
	}
	got, err := v.walked(e, path)
	if err != nil {
		v.find(archtest.Error, "Name a core, a minidump or a snapshot with threads of the architecture.", fmt.Sprintf("%s: %v", path, err))
		return
	}
	if d := missing("", expected, got); d != "" {
		v.find(archtest.Error, "Find the first frame that is wrong: `unwindd plugin call FrameRules` prints the rows that the plugin gives for a PC, and `unwindd stack -v` how each frame was found.",
			path+": "+d)
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

// decode reads JSON with its numbers as they are written.
func decode(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(into)
}

// walked is the JSON of a target's stacks.
func (v *verifier) walked(e *engine.Engine, path string) (got any, err error) {
	t, err := e.Open(path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	stacks := slices.Collect(t.Stacks(v.ctx))
	if err := t.Walked(stacks); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := report.NewStacks(t, slices.Values(stacks)).WriteJSON(&b); err != nil {
		return nil, err
	}
	err = decode(b.Bytes(), &got)
	return got, err
}

// missing says where a value is not what is expected, with what is there; "" where all
// that is expected is there. Members of objects that are not expected do not matter; lists
// are equally long, and in order.
func missing(at string, expected, got any) string {
	switch expected := expected.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %s, expected an object", at, brief(got))
		}
		for _, name := range slices.Sorted(maps.Keys(expected)) {
			if d := missing(strings.TrimPrefix(at+"."+name, "."), expected[name], object[name]); d != "" {
				return d
			}
		}
		return ""
	case []any:
		list, ok := got.([]any)
		if !ok {
			return fmt.Sprintf("%s is %s, expected a list", at, brief(got))
		}
		for i := range min(len(list), len(expected)) {
			if d := missing(fmt.Sprintf("%s[%d]", at, i), expected[i], list[i]); d != "" {
				return d
			}
		}
		if len(list) != len(expected) {
			return fmt.Sprintf("%s has %d entries, expected %d", at, len(list), len(expected))
		}
		return ""
	}
	if expected != got {
		return fmt.Sprintf("%s is %s, expected %s", at, brief(got), brief(expected))
	}
	return ""
}

// maxBrief is how much of a value is quoted, in bytes.
const maxBrief = 200

func brief(value any) string {
	if value == nil {
		return "absent"
	}
	b, err := json.Marshal(value)
	if err != nil {
		return "unknown"
	}
	if len(b) > maxBrief {
		return strings.ToValidUTF8(string(b[:maxBrief]), "") + "..."
	}
	return string(b)
}
