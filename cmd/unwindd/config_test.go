// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWrongConfigurationIsNamedWithItsLine: the key, the line, and what is
// expected; nothing of how it is read here.
func TestWrongConfigurationIsNamedWithItsLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.toml")
	for _, c := range []struct{ text, want string }{
		{"[plugins]\n\ndir = []\n", `:3: there is no setting "plugins.dir", expected dirs or pins`},
		{"\n[plugin]\ndirs = []\n", `:2: there is no setting "plugin", expected [plugins], [serve], [stack], [profile], [symbols] or disassembler`},
		{"x = 1\n[plugins]\ny = 2\n", ":1: there is no setting \"x\", expected [plugins], [serve], [stack], [profile], [symbols] or disassembler\nPATH:3: there is no setting \"plugins.y\", expected dirs or pins"},
		{"[plugins]\ndirs = \"/x\"\n", ":2: plugins.dirs: expected a list of strings"},
		{"[plugins]\ndirs = [\n\"/x\",\n3]\n", ":4: plugins.dirs: expected a list of strings"},
		{"[plugins]\npins = { a = 3 }\n", ":2: plugins.pins: expected a table of strings: the SHA-256 of each plugin by its name"},
		{"[plugins.pins]\na = \"\"\nb = true\n", ":3: plugins.pins: expected a table of strings: the SHA-256 of each plugin by its name"},
		{"plugins = 3\n", ":1: plugins: expected a table with dirs and pins"},
		{"disassembler = [\"/x\"]\n", ":1: disassembler: expected a string: the path of an llvm-mc or llvm-objdump"},
		{"[[plugins]]\n", ":1: plugins: expected a table with dirs and pins"},
		{"[plugins]\ndirs = []\ndirs = []\n", ":3:1: key dirs is already defined"},
		{"\n[plugins\n", ":2:9: expected ']' to close table name"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := (&globals{config: path}).settings()
		if err == nil {
			t.Errorf("%q is read", c.text)
			continue
		}
		want := path + strings.ReplaceAll(c.want, "PATH", path)
		if err.Error() != want {
			t.Errorf("%q: %s\nexpected %s", c.text, err, want)
		}
	}
}
