// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// TestFactsBesideATarget: what systemd-coredump and apport write beside a core is of
// its process.
func TestFactsBesideATarget(t *testing.T) {
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	core := "../examples/crash/server.core"
	dir := t.TempDir()
	packed := filepath.Join(dir, "core.server.1000.0123.5266.1764000000000000.zst")
	if err := os.WriteFile(packed, []byte(oracle.Run(t, "zstd", "-c", core)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"exe": "/srv/example/server", "timestamp": "1764000000000000", "pid": "77", "hostname": "box"} {
		if err := oracle.SetAttribute(packed, "user.coredump."+name, value); err != nil {
			oracle.Missing(t, "extended attributes: %v", err)
		}
	}
	crash := filepath.Join(dir, "server.crash")
	text := "ProblemType: Crash\nDistroRelease: Ubuntu 24.04\nExecutablePath: /srv/example/server\nProcCmdline: /srv/example/server --port 80\nUname: Linux 6.8.0-45-generic x86_64\nCoreDump: base64\n " +
		oracle.Run(t, "sh", "-c", "gzip -c "+core+" | base64 -w0") + "\n"
	if err := os.WriteFile(crash, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	plain, err := e.Open(core)
	if err != nil {
		t.Fatal(err)
	}
	pid := plain.Info().Facts.Process.ID
	for path, want := range map[string]string{
		core:   "server  0",
		packed: "/srv/example/server  1764000000",
		crash:  "/srv/example/server /srv/example/server --port 80 0 6.8.0-45-generic Ubuntu 24.04",
	} {
		target, err := e.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		f := target.Info().Facts
		kept := f.Process.Kept.Unix()
		if f.Process.Kept.IsZero() {
			kept = 0
		}
		command := f.Process.Command
		if path != crash {
			command = ""
		}
		got := fmt.Sprintf("%s %s %d", f.Process.Executable, command, kept)
		if f.Distribution != nil {
			got += fmt.Sprintf(" %s %s", f.System.Version, f.Distribution.Description)
		}
		if got != want || f.Process.ID != pid || f.Crash == nil {
			t.Errorf("%s: %q, pid %d, expected %q, %d", path, got, f.Process.ID, want, pid)
		}
	}
	if f := plain.Info().Facts; f.Process.Kept != (time.Time{}) || len(f.Annotations) > 0 {
		t.Errorf("the facts of another target have changed: %+v", f)
	}
}

func TestTargetsIn(t *testing.T) {
	dir := t.TempDir()
	core, err := os.ReadFile("../examples/crash/server.core")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"core.2": string(core), "core.1": string(core[:200]), "crash.dmp": "MDMP", "a.snapshot": "PK\x03\x04", ".hidden": string(core), "log": "text", "empty": "",
		"exe": string(core[:16]) + "\x02\x00", "big": "\x7fELF\x02\x02\x01" + strings.Repeat("\x00", 9) + "\x00\x04", "other.xz": "\xfd7zXZ\x00",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []func(string) error{
		func(p string) error { return os.Mkdir(p+"sub", 0o700) },
		func(p string) error { return oracle.Mkfifo(p + "fifo") },
		func(p string) error { return os.Symlink("core.2", p+"link") },
	} {
		if err := f(dir + "/"); err != nil {
			t.Fatal(err)
		}
	}
	paths, others, err := TargetsIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range paths {
		names = append(names, filepath.Base(p))
	}
	if got := strings.Join(names, " "); got != "a.snapshot big core.1 core.2 crash.dmp link" || len(others) != 4 {
		t.Errorf("%s; %v", got, others)
	}
	if _, _, err := TargetsIn(dir + "/none"); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}
