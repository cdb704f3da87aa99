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
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// stateSuffix follows the name of a recorded state in the name of the file with its expected
// stacks. A recorded state is a target, usually a snapshot with the files of its code. The
// stacks are JSON of `stack`, which may leave out anything: the members that it has must match.
const stateSuffix = ".expected.json"

// maxExpected bounds a file of expected stacks, in bytes.
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

// newEngine makes an engine with the plugin, linked into a folder of its own, and the bundled
// architectures that are no rivals of it.
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
	executable := filepath.Join(dir, "unwindd-arch-"+name)
	if data := path + plugin.DataSuffix; isFolder(data) {
		err = os.Symlink(data, executable+plugin.DataSuffix)
	}
	if err == nil {
		err = os.Symlink(path, executable)
	}
	if err == nil {
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

// state walks a recorded state and compares its stacks.
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

// decode reads JSON and keeps the text of numbers.
func decode(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(into)
}

// walked returns the JSON of a target's stacks.
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

// missing describes the first difference of a value from the expected one; "" if there is none.
// place is the path of the value. Objects may have further members; lists must be equally long,
// and in order.
func missing(place string, expected, got any) string {
	switch expected := expected.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %s, expected an object", place, brief(got))
		}
		for _, name := range slices.Sorted(maps.Keys(expected)) {
			if d := missing(strings.TrimPrefix(place+"."+name, "."), expected[name], object[name]); d != "" {
				return d
			}
		}
		return ""
	case []any:
		list, ok := got.([]any)
		if !ok {
			return fmt.Sprintf("%s is %s, expected a list", place, brief(got))
		}
		for i := range min(len(list), len(expected)) {
			if d := missing(fmt.Sprintf("%s[%d]", place, i), expected[i], list[i]); d != "" {
				return d
			}
		}
		if len(list) != len(expected) {
			return fmt.Sprintf("%s has %d entries, expected %d", place, len(list), len(expected))
		}
		return ""
	}
	if expected != got {
		return fmt.Sprintf("%s is %s, expected %s", place, brief(got), brief(expected))
	}
	return ""
}

// maxBrief bounds the text of a quoted value, in bytes.
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
