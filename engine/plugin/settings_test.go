// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/sdk"
)

// script puts an executable into a folder that is no plugin.
func script(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, architectures.prefix+name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// A setting that names no plugin is an error with its place: a pin with a slip pins nothing.
func TestSettingsOfNoPluginAreErrors(t *testing.T) {
	dir := t.TempDir()
	script(t, dir, "mychip")
	zeros := strings.Repeat("0", 64)
	for want, o := range map[string]Options{
		"plugins.pins.mychop: no executable of that name, unwindd-arch-mychop or unwindd-runtime-mychop, is in the plugin directories, expected one of mychip": {Pins: map[string]string{"mychop": zeros}},
		"plugins.pins.arm: no executable of that name":                                                 {Pins: map[string]string{"arm": zeros}}, // it is no vendor's
		`plugins.disabled: "x86": there is no plugin of that name, expected one of arm, mychip`:        {Choice: Choice{Disabled: []string{"arm", "x86"}}},
		"plugins.replace.arm: \"mychop\": no executable of that name, unwindd-arch-mychop":             {Choice: Choice{Replace: map[string]string{"arm": "mychop"}}},
		"plugins.replace.mips: there is no plugin of that name":                                        {Choice: Choice{Replace: map[string]string{"mips": "mychip"}}},
		"a process that somebody else started has no pin, and pinned_only allows pinned plugins alone": {Choice: Choice{PinnedOnly: true}, Attached: map[string]sdk.Reattachment{"mychip": {}}},
	} {
		o.Dirs, o.InProcess = []string{dir}, []sdk.Architecture{claims("arm", sdk.LittleEndian, sdk.Recogniser{ELFMachine: 40, OSABI: -1})}
		m, err := NewManager(o)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v\nexpected %s", err, want)
		}
		var setting *SettingError
		if strings.HasPrefix(want, "plugins.") != errors.As(err, &setting) {
			t.Errorf("%v is no setting", err)
		}
		if m != nil {
			m.Close()
		}
	}
	// Without folders no vendor's plugin runs, pinned or not.
	m, err := NewManager(Options{Pins: map[string]string{"mychip": zeros}})
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
}

// A disabled plugin is not there, and one that replaces another has its code objects and its name.
func TestPluginsAreDisabledAndReplaced(t *testing.T) {
	ownCache(t)
	dir := t.TempDir()
	vendor(t, dir, "good", "")
	rival := claims("rival", sdk.LittleEndian, sdk.Recogniser{ELFMachine: testMachine, OSABI: -1})
	both := Options{Dirs: []string{dir}, InProcess: []sdk.Architecture{rival}}
	var several *ErrAmbiguous
	if _, err := manager(t, both).ForMachine(machine(testMachine)); !errors.As(err, &several) {
		t.Fatalf("both: %v", err)
	}
	for want, choice := range map[string]Choice{
		"rival":     {Disabled: []string{"good"}},
		"test-good": {Disabled: []string{"rival"}},
	} {
		o := both
		o.Choice = choice
		if a, err := manager(t, o).ForMachine(machine(testMachine)); err != nil || a.Name() != want {
			t.Errorf("%v: %v, %v", choice, a, err)
		}
	}
	o := both
	o.Choice = Choice{Replace: map[string]string{"rival": "good"}}
	m := manager(t, o)
	for _, name := range []string{"rival", "test-good", "good"} {
		if a, err := m.Find(name); err != nil || a.Name() != "test-good" {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
	if a, err := m.ForMachine(machine(testMachine)); err != nil || a.Name() != "test-good" {
		t.Errorf("%v, %v", a, err)
	}
}

// pinned_only starts what is pinned, and nothing else: its problem says how to pin it.
func TestOnlyPinnedPluginsRun(t *testing.T) {
	cache := ownCache(t)
	dir := t.TempDir()
	path := vendor(t, dir, "good", "")
	m := manager(t, Options{Dirs: []string{dir}, Choice: Choice{PinnedOnly: true}})
	list := m.List()
	if len(list) != 1 || !strings.HasSuffix(list[0].Problem, "unwindd plugin pin good") || list[0].Generation != 0 {
		t.Errorf("%+v", list)
	}
	if _, err := os.Stat(cache); err == nil {
		if entries, _ := os.ReadDir(cache); len(entries) > 0 {
			t.Errorf("it was described: %v", entries)
		}
	}
	sum, err := confine.HashFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m = manager(t, Options{Dirs: []string{dir}, Pins: map[string]string{"good": sum}, Choice: Choice{PinnedOnly: true}})
	if a, err := m.Find("good"); err != nil || a.Name() != "test-good" {
		t.Errorf("%v, %v", a, err)
	}
}

// What another user could have put there is not used: the message has the command that mends it.
func TestWhatOthersMayWriteToIsNotUsed(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "plugins")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := script(t, dir, "mychip")
	data := path + DataSuffix
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	problem := func() string {
		m, err := NewManager(Options{Self: self(t), Dirs: []string{dir}})
		if err != nil {
			return err.Error()
		}
		defer m.Close()
		return m.plugins[0].problemNow()
	}
	if got := problem(); got != "" {
		t.Fatal(got)
	}
	for _, c := range []struct {
		path string
		mode os.FileMode
		want string
	}{
		{dir, 0o777, "chmod go-w " + dir},
		{dir, 0o775, "chmod g-w " + dir},
		{dir, 0o757, "chmod o-w " + dir},
		{dir, os.ModeSticky | 0o777, "chmod go-w " + dir},
		{base, 0o777, "chmod go-w " + base},
		{base, os.ModeSticky | 0o777, ""}, // as /tmp: only owners replace its entries
		{path, 0o777, "chmod go-w " + path},
		{path, 0o775, "chmod g-w " + path},
		{data, 0o777, "chmod go-w " + data},
	} {
		was, err := os.Stat(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(c.path, c.mode); err != nil {
			t.Fatal(err)
		}
		if got := problem(); !strings.HasSuffix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s with %v: %q, expected %q", c.path, c.mode, got, c.want)
		}
		if err := os.Chmod(c.path, was.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() != 0 {
		return // only root gives files away
	}
	for _, p := range []string{base, dir, path, data} {
		if err := os.Chown(p, 4711, -1); err != nil {
			t.Fatal(err)
		}
		if got := problem(); !strings.Contains(got, p+" belongs to user 4711") || !strings.HasSuffix(got, "chown 0 "+p) {
			t.Errorf("%s of another user: %q", p, got)
		}
		if err := os.Chown(p, 0, -1); err != nil {
			t.Fatal(err)
		}
	}
}

// problemNow is the reason that a vendor's plugin is not started, without starting it.
func (p *plug) problemNow() string {
	if p.transport != nil {
		return ""
	}
	_, err := p.find()
	return err.Error()
}

// A plugin reads the folder beside it, all of it, and writes nothing there; its path is told by
// the environment. The folder itself is no plugin.
func TestPluginReadsItsData(t *testing.T) {
	ownCache(t)
	dir := t.TempDir()
	path := vendor(t, dir, "good", "")
	data := path + DataSuffix
	if err := os.MkdirAll(filepath.Join(data, "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	table := filepath.Join(data, "deep", "table")
	if err := os.WriteFile(table, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(dir, "other")
	if err := os.WriteFile(outside, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	m := manager(t, Options{Dirs: []string{dir}})
	if names := m.List(); len(names) != 1 {
		t.Errorf("%+v", names)
	}
	a, err := m.Find("good")
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{"read " + table: "done", "list " + data: "done", "write " + table: "EACCES", "read " + outside: "EACCES"} {
		if got, err := obey(t, a, command); err != nil || got != want {
			t.Errorf("%s: %q, %v; expected %s", command, got, err, want)
		}
	}
	if got, err := obey(t, a, "environment"); err != nil || !slices.Contains(strings.Fields(got), sdk.DataVariable) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := obey(t, a, "data-folder"); err != nil || got != data {
		t.Errorf("%q, %v", got, err)
	}
}

// A plugin that starts threads without end is ended, and the reason says why.
func TestThreadsAreCounted(t *testing.T) {
	a := testArchOf(t, good, Options{})
	a.transport.(*supervisor).launch.threads = 150
	if got, err := obey(t, a, "threads 60"); err != nil || got != "60" {
		t.Errorf("%q, %v", got, err)
	}
	_, err := obey(t, a, "threads 300")
	if err == nil || !strings.Contains(err.Error(), "threads, expected at most 150, and was killed") {
		t.Errorf("%v", err)
	}
}
