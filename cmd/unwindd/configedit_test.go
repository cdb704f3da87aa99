// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// A pin is written where pins are, and all else stays as it is: comments, order, line ends.
func TestAPinIsWrittenBesideTheOthers(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	for text, want := range map[string]string{
		"":                                  "[plugins.pins]\nmychip = \"SUM\"\n",
		"# mine\n[stack]\ntop = 3 # few":    "# mine\n[stack]\ntop = 3 # few\n\n[plugins.pins]\nmychip = \"SUM\"\n",
		"[plugins]\ndirs = ['/x'] # here\n": "[plugins]\ndirs = ['/x'] # here\n\n[plugins.pins]\nmychip = \"SUM\"\n",
		"[plugins.pins] # all\n\n[stack]\ntop = 3\n":      "[plugins.pins] # all\nmychip = \"SUM\"\n\n[stack]\ntop = 3\n",
		"[plugins.pins]\na = 'b' # its\n# end\n[stack]\n": "[plugins.pins]\na = 'b' # its\nmychip = \"SUM\"\n# end\n[stack]\n",
		"[plugins.pins]\r\na = 'b'\r\n[stack]\r\n":        "[plugins.pins]\r\na = 'b'\r\nmychip = \"SUM\"\r\n[stack]\r\n",
		"[plugins.pins]\na = 'b'":                         "[plugins.pins]\na = 'b'\nmychip = \"SUM\"\n",
		"[plugins.pins]\nmychip = 'old' # was\nz = ''\n":  "[plugins.pins]\nmychip = \"SUM\" # was\nz = ''\n",
		"[plugins]\npins.a = 'b'\ndirs = []\n":            "[plugins]\npins.a = 'b'\npins.mychip = \"SUM\"\ndirs = []\n",
		"plugins.pins.mychip = 'old'\n":                   "plugins.pins.mychip = \"SUM\"\n",
		"plugins.pins.a = 'b'\n[stack]\ntop = 1\n":        "plugins.pins.a = 'b'\nplugins.pins.mychip = \"SUM\"\n[stack]\ntop = 1\n",
		"[plugins]\npins = { a = 'b' }\n":                 "", // by hand
		"plugins = { dirs = [] }\n":                       "",
	} {
		got, err := withPin([]byte(text), "mychip", sum)
		if want == "" {
			if err == nil || !strings.HasSuffix(err.Error(), `write it by hand, under [plugins.pins]: mychip = "`+sum+`"`) {
				t.Errorf("%q: %q, %v", text, got, err)
			}
			continue
		}
		if err != nil || string(got) != strings.ReplaceAll(want, "SUM", sum) {
			t.Errorf("%q:\n%q, %v, expected\n%q", text, got, err, want)
		}
	}
	if got, err := withPin(nil, "a.b+c", sum); err != nil || !strings.Contains(string(got), `"a.b+c" = `) {
		t.Errorf("%q, %v", got, err)
	}
}

func FuzzWithPin(f *testing.F) {
	for _, seed := range []string{"", "[plugins.pins]\na = 'b'\n", "plugins.pins.mychip = 'x'", "[plugins]\npins = {}\n", "[[plugins]]\n"} {
		f.Add([]byte(seed), "mychip")
	}
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		changed, err := withPin(text, name, "00")
		if err != nil {
			return
		}
		var s struct {
			Plugins struct{ Pins map[string]any }
		}
		if err := toml.Unmarshal(changed, &s); err != nil || s.Plugins.Pins[name] != "00" {
			t.Errorf("%q: %q: %v", text, changed, err)
		}
	})
}

// plugin pin writes the hash of an executable, which it does not start; a pin with a slip in its
// name is an error with its line, whichever command needs plugins.
func TestPluginPin(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	started := filepath.Join(t.TempDir(), "started")
	path := filepath.Join(dir, "unwindd-arch-mychip")
	if err := os.WriteFile(path, []byte("#!/bin/sh\ntouch "+started+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "new", "config.toml")
	out, errs, status := ran(t, "plugin", "pin", "mychip", "--plugin-dir", dir, "--config", config)
	if status != 0 || !strings.Contains(out, "pinned in "+config) || !strings.Contains(errs, "is not among the folders") {
		t.Fatalf("%d: %s%s", status, out, errs)
	}
	text, err := os.ReadFile(config)
	if err != nil || !strings.HasPrefix(string(text), "[plugins.pins]\nmychip = \"") {
		t.Fatalf("%q, %v", text, err)
	}
	if info, err := os.Stat(config); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(started); err == nil {
		t.Error("it was started")
	}
	if _, errs, status := ran(t, "plugin", "pin", "other", "--plugin-dir", dir, "--config", config); status == 0 || !strings.Contains(errs, "there are: mychip") {
		t.Errorf("%d: %s", status, errs)
	}

	// The executable changes: it does not run, and the message names the command that pins it.
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, _, _ := ran(t, "plugin", "list", "--plugin-dir", dir, "--config", config); !strings.Contains(out, "is pinned; if it is to run: unwindd plugin pin mychip") {
		t.Error(out)
	}
	if out, errs, status := ran(t, "plugin", "pin", "mychip", "--plugin-dir", dir, "--config", config); status != 0 || !strings.Contains(out, "was pinned before") {
		t.Errorf("%d: %s%s", status, out, errs)
	}

	slip := writeConfig(t, "[plugins]\ndirs = ['"+dir+"']\n\n[plugins.pins]\nmychop = '"+strings.Repeat("0", 64)+"'\n")
	for _, args := range [][]string{{"plugin", "list"}, {"plugin", "info", "x86_64"}, {"stack", os.Args[0]}} {
		_, errs, status := ran(t, append(args, "--config", slip)...)
		if want := slip + ":5: plugins.pins.mychop: no executable of that name, unwindd-arch-mychop or unwindd-runtime-mychop, is in the plugin directories, expected one of mychip"; status == 0 || !strings.Contains(errs, want) {
			t.Errorf("%v: %d: %s", args, status, errs)
		}
	}
	only := writeConfig(t, "[plugins]\ndirs = ['"+dir+"']\npinned_only = true\ndisabled = ['amdgpu']\n")
	if out, _, _ := ran(t, "plugin", "list", "--config", only); !strings.Contains(out, "pinned_only allows pinned plugins alone") || strings.Contains(out, "amdgpu") {
		t.Error(out)
	}
}
