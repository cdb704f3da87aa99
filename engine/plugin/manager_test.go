// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/sdk"
)

// vendor puts an executable into dir that behaves in a mode. Its name may add
// something after a plus sign; extra makes its hash another one.
func vendor(t *testing.T, dir, name, extra string) string {
	t.Helper()
	return vendorOf(t, architectures, dir, name, extra)
}

// vendorOf is vendor for a kind of plugin.
func vendorOf(t *testing.T, k *kind, dir, name, extra string) string {
	t.Helper()
	from, err := os.Open(self(t))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(dir, k.prefix+name)
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if _, err := to.WriteString(extra); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// ownCache gives the test a cache of its own and returns the directory of
// descriptions in it.
func ownCache(t *testing.T) string {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	return filepath.Join(dir, "unwindd", "plugins")
}

func TestVendorIsDescribedOnceAndCached(t *testing.T) {
	cache := ownCache(t)
	dir := t.TempDir()
	path := vendor(t, dir, "good", "")
	sum, err := confine.HashFile(path)
	if err != nil {
		t.Fatal(err)
	}
	generations := func(want uint64) *Arch {
		t.Helper()
		m := manager(t, Options{Dirs: []string{dir}})
		a, err := m.ForObject(File{Machine: machine(testMachine), OSABI: 3, Flags: 7})
		if err != nil {
			t.Fatal(err)
		}
		if a.Generation() != want || a.PID() != 0 {
			t.Errorf("generation %d, process %d; expected %d and none", a.Generation(), a.PID(), want)
		}
		return a
	}
	a := generations(1)
	if a.Origin() != path || a.Name() != "test-good" {
		t.Errorf("origin %s, name %s", a.Origin(), a.Name())
	}
	if got, err := obey(t, a, "echo x"); err != nil || got != "x" {
		t.Errorf("%q, %v", got, err)
	}

	// Again: nothing is started for it.
	a = generations(0)
	want := testDescription(good)
	want.Feature = sdk.Feature // of the plugin, which is of the same build
	if d := difference(a.Description(), want); d != "" {
		t.Errorf("the description from the cache: %s", d)
	}
	if got, err := obey(t, a, "echo x"); err != nil || got != "x" {
		t.Errorf("%q, %v", got, err)
	}

	info, err := os.Stat(cache)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(cache)
	if err != nil || len(entries) != 1 || !strings.HasPrefix(entries[0].Name(), sum) {
		t.Fatalf("%v, %v", entries, err)
	}
	entry := filepath.Join(cache, entries[0].Name())
	whole, err := os.ReadFile(entry)
	if err != nil {
		t.Fatal(err)
	}
	// A flipped bit, a cut, nothing, another's description that is whole but
	// not valid: all as if it were not there, and written again.
	flipped := append([]byte(nil), whole...)
	flipped[len(flipped)/2] ^= 1
	invalid := []byte(`{"Name":"a b"}`)
	for name, b := range map[string][]byte{"flipped": flipped, "cut": whole[:len(whole)/2], "empty": nil,
		"invalid": append([]byte(digest(invalid)+"\n"), invalid...)} {
		if err := os.WriteFile(entry, b, 0o600); err != nil {
			t.Fatal(err)
		}
		generations(1)
		if again, err := os.ReadFile(entry); err != nil || string(again) != string(whole) {
			t.Errorf("%s: the entry is not written again: %v", name, err)
		}
	}

	// A valid description that is not this executable's is found out when the
	// process starts.
	body := strings.Replace(string(whole[65:]), `"Version":"1.0"`, `"Version":"6.6"`, 1)
	if err := os.WriteFile(entry, []byte(digest([]byte(body))+"\n"+body), 0o600); err != nil {
		t.Fatal(err)
	}
	a = generations(0)
	if _, err := obey(t, a, "echo x"); err == nil || !strings.Contains(err.Error(), "Version is 1.0, expected 6.6") {
		t.Errorf("got %v", err)
	}
}

func TestCacheOfOthersIsNotUsed(t *testing.T) {
	cache := ownCache(t)
	if err := os.MkdirAll(filepath.Dir(cache), 0o700); err != nil {
		t.Fatal(err)
	}
	// A link to somewhere else, and then a directory that all may write to.
	if err := os.Symlink(t.TempDir(), cache); err != nil {
		t.Fatal(err)
	}
	if c := openCache(); c.dir != "" {
		t.Errorf("a symbolic link is used: %s", c.dir)
	}
	os.Remove(cache)
	if err := os.Mkdir(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(cache, 0o777); err != nil {
		t.Fatal(err)
	}
	if c := openCache(); c.dir == "" {
		t.Error("our own directory is not used")
	}
	if info, err := os.Stat(cache); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestPins(t *testing.T) {
	ownCache(t)
	dir := t.TempDir()
	sum, err := confine.HashFile(vendor(t, dir, "good", ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, pin, want string
	}{
		{"right", sum, ""},
		{"right, upper case", strings.ToUpper(sum), ""},
		{"wrong", strings.Repeat("0", 64), "has SHA-256 " + sum + ", and " + strings.Repeat("0", 64) + " is pinned"},
	} {
		m := manager(t, Options{Dirs: []string{dir}, Pins: map[string]string{"good": c.pin}})
		a, err := m.ForMachine(machine(testMachine))
		if c.want != "" {
			if !errors.Is(err, ErrNoArchitecture) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.name, err)
			}
			if l := m.List(); l[0].Generation != 0 || !strings.Contains(l[0].Problem, c.want) || !l[0].Pinned {
				t.Errorf("%s: %+v", c.name, l[0])
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if _, err := obey(t, a, "echo x"); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := NewManager(Options{Pins: map[string]string{"good": "sha256"}}); err == nil {
		t.Error("a pin that is no hash is accepted")
	}
}

func TestExecutableThatChangesIsNotStarted(t *testing.T) {
	ownCache(t)
	dir := t.TempDir()
	path := vendor(t, dir, "good", "")
	m := manager(t, Options{Dirs: []string{dir}})
	a, err := m.ForMachine(machine(testMachine))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	vendor(t, dir, "good", "another one")
	if _, err := obey(t, a, "echo x"); err == nil || !strings.Contains(err.Error(), "has SHA-256") {
		t.Errorf("got %v", err)
	}
}

func TestTwoThatClaimTheSameAreNamedBoth(t *testing.T) {
	ownCache(t)
	dir := t.TempDir()
	one, two := vendor(t, dir, "good", ""), vendor(t, dir, "good+2", "2")
	m := manager(t, Options{Dirs: []string{dir}, Bundled: bundledTest(other)})
	_, err := m.ForObject(File{Machine: machine(testMachine)})
	var ambiguous *ErrAmbiguous
	if !errors.As(err, &ambiguous) {
		t.Fatal(err)
	}
	want := []string{"good (" + one + ")", "good+2 (" + two + ")"}
	if d := cmp.Diff(want, ambiguous.Names); d != "" {
		t.Error(d)
	}
	for _, w := range append(want, "ELF machine 32343") {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not name %q", err, w)
		}
	}
	if n := len(m.Descriptions()); n != 3 {
		t.Errorf("%d descriptions, expected 3", n)
	}
	if a, err := m.ForMachine(machine(testMachine + 1)); err != nil || a.Origin() != "bundled" {
		t.Errorf("the third: %v", err)
	}
	if _, err := m.Find("test-good"); !errors.As(err, &ambiguous) {
		t.Errorf("by name: %v", err)
	}
	if _, err := m.ForMachine(machine(1)); !errors.Is(err, ErrNoArchitecture) {
		t.Errorf("a machine of nobody: %v", err)
	}
	if _, err := m.ForNote("TEST"); !errors.As(err, &ambiguous) || len(ambiguous.Names) != 3 {
		t.Errorf("notes: %v", err)
	}
}

func TestDiscoveryTakesExecutablesOnly(t *testing.T) {
	ownCache(t)
	dir := t.TempDir()
	vendor(t, dir, "good", "")
	if err := os.Symlink(architectures.prefix+"good", filepath.Join(dir, architectures.prefix+"link")); err != nil {
		t.Fatal(err)
	}
	write := func(name string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(architectures.prefix+"text", 0o644)
	write(architectures.prefix+"no program", 0o755)
	write(architectures.prefix+"data", 0o755)
	write("something-else", 0o755)
	if err := os.Mkdir(filepath.Join(dir, architectures.prefix+"directory"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, architectures.prefix+"dangling")); err != nil {
		t.Fatal(err)
	}
	// A directory that stands twice is looked at once.
	m := manager(t, Options{Dirs: []string{dir, dir}})
	type row struct{ Name, Problem string }
	var got []row
	for _, s := range m.List() {
		problem := s.Problem
		for _, known := range []string{"not executable", "not a regular file", "characters other than", "no such file", "exec format error"} {
			if strings.Contains(problem, known) {
				problem = known
			}
		}
		got = append(got, row{s.Name, problem})
	}
	want := []row{
		{"dangling", "no such file"},
		{"data", "exec format error"},
		{"directory", "not a regular file"},
		{"good", ""},
		{"no program", "characters other than"},
		{"text", "not executable"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// The bad ones cost nobody anything.
	if _, err := m.ForMachine(machine(testMachine)); err != nil {
		t.Error(err)
	}
	if _, err := NewManager(Options{Dirs: []string{filepath.Join(dir, "none")}}); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func TestRecognisers(t *testing.T) {
	d := func(r ...sdk.Recogniser) *sdk.Description { return &sdk.Description{Recognises: r} }
	type object struct {
		machine uint16
		osabi   uint8
		flags   uint32
		magic   string
	}
	for _, c := range []struct {
		name string
		d    *sdk.Description
		o    object
		want bool
	}{
		{"machine", d(sdk.Recogniser{ELFMachine: 62, OSABI: -1}), object{62, 3, 1, "\x7fELF"}, true},
		{"other machine", d(sdk.Recogniser{ELFMachine: 62, OSABI: -1}), object{183, 3, 1, "\x7fELF"}, false},
		{"ABI", d(sdk.Recogniser{ELFMachine: 224, OSABI: 64}), object{machine: 224, osabi: 64}, true},
		{"other ABI", d(sdk.Recogniser{ELFMachine: 224, OSABI: 64}), object{machine: 224}, false},
		{"ABI 0", d(sdk.Recogniser{ELFMachine: 224}), object{machine: 224, osabi: 64}, false},
		{"flags", d(sdk.Recogniser{ELFMachine: 1, OSABI: -1, FlagsMask: 0xff, Flags: 0x3f}), object{machine: 1, flags: 0x53f}, true},
		{"other flags", d(sdk.Recogniser{ELFMachine: 1, OSABI: -1, FlagsMask: 0xff, Flags: 0x3f}), object{machine: 1, flags: 0x53e}, false},
		{"magic", d(sdk.Recogniser{OSABI: -1, Magic: []byte("CNSW")}), object{magic: "CNSW1234"}, true},
		{"other magic", d(sdk.Recogniser{OSABI: -1, Magic: []byte("CNSW")}), object{magic: "CNS"}, false},
		{"one of two", d(sdk.Recogniser{ELFMachine: 1, OSABI: -1}, sdk.Recogniser{ELFMachine: 2, OSABI: -1}), object{machine: 2}, true},
		{"note only", d(sdk.Recogniser{OSABI: -1, NoteOwner: "AMD"}), object{machine: 2, magic: "\x7fELF"}, false},
		{"nothing set", d(sdk.Recogniser{OSABI: -1}), object{machine: 2}, false},
	} {
		f := File{Machine: machine(c.o.machine), OSABI: c.o.osabi, Flags: c.o.flags, Magic: []byte(c.o.magic)}
		if got := recognises(c.d, &f) > 0; got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if recognisesMachine(d(sdk.Recogniser{OSABI: -1, Magic: []byte("x")}), machine(0)) > 0 || recognisesNote(d(sdk.Recogniser{ELFMachine: 1}), "") > 0 {
		t.Error("nothing is claimed")
	}
}

func TestDifferenceNamesThePlace(t *testing.T) {
	for _, c := range []struct {
		change func(*sdk.Description)
		want   string
	}{
		{func(*sdk.Description) {}, ""},
		{func(d *sdk.Description) { d.Dialects = []sdk.Dialect{} }, ""},
		{func(d *sdk.Description) { d.Version = "2" }, "Version is 2, expected 1.0"},
		{func(d *sdk.Description) { d.Registers[0].Names = []string{"x%d"} }, "Registers[0].Names[0] is x%d, expected r%d"},
		{func(d *sdk.Description) { d.FramePointer = &cfi.Row{} }, "FramePointer is set in one only"},
		{func(d *sdk.Description) { d.Recognises = d.Recognises[:1] }, "Recognises has 1 entries, expected 2"},
		{func(d *sdk.Description) { d.DefaultRules[0].Rule.Expr = []byte{1} }, "DefaultRules[0].Rule.Expr has 1 entries, expected 0"},
	} {
		d := testDescription(good)
		c.change(d)
		if got := difference(d, testDescription(good)); got != c.want {
			t.Errorf("%q, expected %q", got, c.want)
		}
	}
}

func TestUnusableOptions(t *testing.T) {
	if _, err := NewManager(Options{Bundled: []confine.Bundled{{Name: "x"}}}); err == nil {
		t.Error("a bundled plugin without functions is accepted")
	}
	// Without Self there is nothing to sandbox a process with, so there is none.
	alone, err := NewManager(Options{Bundled: bundledTest(good)})
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	a, err := alone.Find("good")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := obey(t, a, "echo x"); err == nil || !strings.Contains(err.Error(), "Options.Self") {
		t.Errorf("without Self: %v", err)
	}
	m := manager(t, Options{Bundled: []confine.Bundled{{Name: "x", New: func() sdk.Architecture { return nil }, Description: func() *sdk.Description { return &sdk.Description{Name: "a b"} }}}})
	if _, err := m.Find("x"); !errors.Is(err, ErrNoArchitecture) || !strings.Contains(err.Error(), "the description that is compiled in") {
		t.Errorf("got %v", err)
	}
	if err := confine.ServeMain([]string{"none"}, testBundled(), nil); !errors.Is(err, confine.ErrUsage) {
		t.Errorf("got %v", err)
	}
}
