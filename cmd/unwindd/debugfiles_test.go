// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/oracle"
)

// objcopy runs binutils' objcopy.
func objcopy(t *testing.T, args ...string) {
	t.Helper()
	oracle.Run(t, "objcopy", args...)
}

// stripped is the crash example without its debug information, which is in a
// file of its own.
type stripped struct {
	core, exe string
	debug     []byte // of the debug file
	byID      string // where it is, under a directory of debug files
}

// strip makes it. The executable's link leads to server.debug.
func strip(t *testing.T) *stripped {
	t.Helper()
	dir := t.TempDir()
	s := &stripped{core: filepath.Join(dir, "server.core"), exe: filepath.Join(dir, "server")}
	copyFile(t, "server.core", s.core, nil)
	made := filepath.Join(t.TempDir(), "server.debug")
	objcopy(t, "--only-keep-debug", filepath.Join(crashDir, "server"), made)
	objcopy(t, "--strip-all", "--add-gnu-debuglink="+made, filepath.Join(crashDir, "server"), s.exe)
	var err error
	if s.debug, err = os.ReadFile(made); err != nil {
		t.Fatal(err)
	}
	o, err := object.Open(s.exe)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	id := hex.EncodeToString(o.BuildID())
	s.byID = filepath.Join(".build-id", id[:2], id[2:]+".debug")
	return s
}

// put writes a file under a directory of the test.
func put(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// readFile is the bytes of a file.
func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// otherID is a debug file whose build ID is another one.
func otherID(t *testing.T, s *stripped) []byte {
	t.Helper()
	b := append([]byte(nil), s.debug...)
	id, err := hex.DecodeString(filepath.Base(filepath.Dir(s.byID)) + strings.TrimSuffix(filepath.Base(s.byID), ".debug"))
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(b), string(id))
	if at < 0 {
		t.Fatal("the debug file has no build ID")
	}
	b[at] ^= 0xff
	return b
}

// TestDebugFilesThatCannotBeUsed: that a debug file is there and of no use is
// said without -v, once, and in JSON.
func TestDebugFilesThatCannotBeUsed(t *testing.T) {
	s := strip(t)
	for _, c := range []struct {
		name string
		at   string // under --debug-dir; "": nothing is there
		data []byte
		info string
		says string // "": nothing
	}{
		{"cut, by build ID", s.byID, s.debug[:3000], "unreadable", "is damaged: section headers at offset"},
		{"cut within its ELF header", s.byID, s.debug[:40], "unreadable", "cut"},
		{"empty", s.byID, nil, "unreadable", "empty"},
		{"not ELF", s.byID, []byte("<html>404</html>"), "unreadable", "not an ELF file"},
		{"cut, by its link", "server.debug", s.debug[:3000], "unreadable", "is damaged: section headers at offset"},
		{"of another build ID", s.byID, otherID(t, s), "mismatch", "build ID is "},
		{"of another build ID, by its link", "server.debug", otherID(t, s), "mismatch", "build ID is "},
		{"none", "", nil, "none", ""},
		{"by build ID", s.byID, s.debug, "found", ""},
		{"flat, by its link", "server.debug", s.debug, "found", ""},
		{"flat, under another name", "renamed", s.debug, "found", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := ""
			if c.at != "" {
				path = put(t, dir, c.at, c.data)
			}
			args := []string{"stack", "--in-process", s.core, "--exe", s.exe, "--debug-dir", dir}
			stdout, stderr, status := unwindd(t, args...)
			if status != 0 {
				t.Fatalf("status %d\n%s", status, stderr)
			}
			said := "debug file " + path + " was not used: "
			if c.says != "" {
				mustSay(t, stdout, said, c.says)
				if n := strings.Count(stdout, said); n != 1 {
					t.Errorf("said %d times:\n%s", n, stdout)
				}
			} else if strings.Contains(stdout, "was not used") {
				t.Errorf("says what is no problem:\n%s", stdout)
			}
			if found := strings.Contains(stdout, "server.c:"); found != (c.info == "found") {
				t.Errorf("lines: %v\n%s", found, stdout)
			}
			if verbose, _, _ := unwindd(t, append(args, "-v")...); path != "" && c.says != "" && strings.Count(verbose, path) != 1 {
				t.Errorf("with -v it is said %d times:\n%s", strings.Count(verbose, path), verbose)
			}
			m := stackJSON(t, args[1:]...).Modules[0]
			if m.DebugInfo != c.info || strings.Contains(m.Problem, said) != (c.says != "") {
				t.Errorf("debug_info %q, problem %q", m.DebugInfo, m.Problem)
			}

			// symbolize says it on standard error.
			stdout, stderr, status = unwindd(t, "symbolize", "--obj", s.exe, "--debug-dir", dir, "0x401100")
			if status != 0 || strings.Contains(stdout, "server.c:") != (c.info == "found") ||
				strings.Count(stderr, said) != strings.Count(said[:min(len(c.says), 1)], "d") {
				t.Errorf("symbolize: status %d\n%s%s", status, stdout, stderr)
			}
		})
	}
}

// TestDebugFilesThatMayNotBeOpened are unreadable, and why is said. A superuser may open
// any file: one without that right is taken.
func TestDebugFilesThatMayNotBeOpened(t *testing.T) {
	s, dir := strip(t), t.TempDir()
	path := put(t, dir, s.byID, s.debug)
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	args := []string{"stack", "--in-process", s.core, "--exe", s.exe, "--debug-dir", dir, "--format", "json"}
	cmd := command(args...)
	if os.Getuid() == 0 {
		const rights = "-dac_override,-dac_read_search"
		cmd.Args = append([]string{"setpriv", "--bounding-set=" + rights, "--inh-caps=" + rights, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = oracle.Tool(t, "setpriv")
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	validateStack(t, args, bytes.NewBuffer(out))
	var r report.Report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	if m := r.Modules[0]; m.DebugInfo != "unreadable" || !strings.Contains(m.Problem, path+" was not used: ") || !strings.Contains(m.Problem, "permission denied") {
		t.Errorf("debug_info %q, problem %q", m.DebugInfo, m.Problem)
	}
}

// TestFilesOfModulesThatCannotBeUsed: without the file of a module there is no debug
// information, and its status says why it was not taken.
func TestFilesOfModulesThatCannotBeUsed(t *testing.T) {
	s := strip(t)
	exe, err := os.ReadFile(s.exe)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		info string
		data []byte
	}{{"mismatch", readFile(t, os.Args[0])}, {"unreadable", exe[:40]}, {"none", nil}} {
		root := t.TempDir()
		core := put(t, root, "core", readFile(t, s.core))
		if c.data != nil {
			put(t, root, filepath.Base(s.exe), c.data)
		}
		for _, m := range stackJSON(t, "--in-process", core, "--sysroot", t.TempDir()).Modules {
			if filepath.Base(m.Path) == filepath.Base(s.exe) && m.DebugInfo != c.info {
				t.Errorf("%s: debug_info %q, problem %q", c.info, m.DebugInfo, m.Problem)
			}
		}
	}
}

// TestDebugLinksWithAnotherChecksum: an executable without a build ID knows its
// debug file by the checksum alone.
func TestDebugLinksWithAnotherChecksum(t *testing.T) {
	s := strip(t)
	exe := filepath.Join(t.TempDir(), "server")
	objcopy(t, "--remove-section=.note.gnu.build-id", s.exe, exe)
	dir := t.TempDir()
	debug := put(t, dir, "server.debug", s.debug)
	stdout, stderr, status := unwindd(t, "symbolize", "--obj", exe, "--debug-dir", dir, "0x401100")
	if status != 0 || !strings.Contains(stdout, "server.c:") || stderr != "" {
		t.Errorf("as it was linked: status %d\n%s%s", status, stdout, stderr)
	}
	// A debug file with a build ID of its own is still checked by its sum.
	put(t, dir, "server.debug", append(s.debug, 0))
	stdout, stderr, status = unwindd(t, "symbolize", "--obj", exe, "--debug-dir", dir, "0x401100")
	if status != 0 || strings.Contains(stdout, "server.c:") {
		t.Errorf("changed: status %d\n%s", status, stdout)
	}
	mustSay(t, stderr, "debug file "+debug+" was not used: CRC-32 is ")
}

// TestProfilesSayWhichDebugFilesCannotBeUsed on standard error.
func TestProfilesSayWhichDebugFilesCannotBeUsed(t *testing.T) {
	words, root := "../../examples/profile/words", t.TempDir()
	o, err := object.Open(words)
	if err != nil {
		t.Fatal(err)
	}
	id := hex.EncodeToString(o.BuildID())
	o.Close()
	var p struct {
		Modules []struct {
			Path      string `json:"path"`
			DebugInfo string `json:"debug_info"`
		} `json:"modules"`
	}
	recording := "../../examples/profile/perf.data"
	read := func(want string, args ...string) (path, stderr string) {
		t.Helper()
		stdout, stderr, status := unwindd(t, append([]string{"profile", "--in-process", recording, "--format", "json"}, args...)...)
		if err := json.Unmarshal([]byte(stdout), &p); err != nil || status != 0 {
			t.Fatalf("status %d, %v\n%s", status, err, stderr)
		}
		for _, m := range p.Modules {
			if filepath.Base(m.Path) == "words" {
				if m.DebugInfo != want {
					t.Errorf("debug_info %q, expected %q", m.DebugInfo, want)
				}
				return m.Path, stderr
			}
		}
		t.Fatalf("no module words: %+v", p.Modules)
		return "", ""
	}
	path, stderr := read("found")
	if strings.Contains(stderr, "was not used") {
		t.Error(stderr)
	}
	objcopy(t, "--strip-all", words, put(t, root, path, nil))
	dir := t.TempDir()
	debug := put(t, dir, filepath.Join(".build-id", id[:2], id[2:]+".debug"), []byte("\x7fELF"))
	_, stderr = read("unreadable", "--sysroot", root, "--debug-dir", dir)
	mustSay(t, stderr, "problem: "+path+": debug file "+debug+" was not used: ")

	// --exe stands for the module that has its build ID, and is said to be of no
	// use where there is none.
	_, stderr = read("found", "--sysroot", t.TempDir(), "--exe", words)
	if strings.Contains(stderr, "was not used") {
		t.Error(stderr)
	}
	_, stderr = read("found", "--exe", filepath.Join(crashDir, "server"))
	mustSay(t, stderr, filepath.Join(crashDir, "server")+" was not used: no file that was mapped has its name or build ID")
}

// TestPlacesThatAreNotThere: what the user names is there, or it is an error
// that names it.
func TestPlacesThatAreNotThere(t *testing.T) {
	core, recording := filepath.Join(crashDir, "server.core"), "../../examples/profile/perf.data"
	taken := filepath.Join(t.TempDir(), "taken.snapshot")
	file, dir := filepath.Join(crashDir, "server"), t.TempDir()
	for _, command := range [][]string{
		{"stack", core}, {"snapshot", core, "-o", taken}, {"profile", recording}, {"symbolize", "--obj", file, "0x401100"},
	} {
		for _, c := range []struct{ flag, value, says string }{
			{"--debug-dir", "/none/here", "no such file"},
			{"--debug-dir", file, "not a directory"},
			{"--sysroot", "/none/here", "no such file"},
			{"--sysroot", file, "not a directory"},
			{"--exe", "/none/here", "no such file"},
			{"--exe", dir, "not a regular file"},
		} {
			if command[0] == "symbolize" && c.flag != "--debug-dir" {
				continue
			}
			stdout, stderr, status := unwindd(t, append(command, c.flag, c.value)...)
			if status != exitInput || stdout != "" {
				t.Errorf("%v %s %s: status %d\n%s", command, c.flag, c.value, status, stdout)
			}
			mustSay(t, stderr, c.flag, c.value, c.says)
		}
	}
	if _, err := os.Stat(taken); err == nil {
		t.Error("a snapshot was written")
	}
}

// TestExecutablesThatNothingAsksFor: --exe that stands for nothing is said.
func TestExecutablesThatNothingAsksFor(t *testing.T) {
	core := gpuCore(t, true)
	exe := filepath.Join(crashDir, "server")
	stdout, _, _ := unwindd(t, "stack", core, "--exe", exe)
	mustSay(t, stdout, exe+" was not used: nothing in the core is known to be of the executable")
	var r report.Report
	stdout, _, _ = unwindd(t, "stack", core, "--exe", exe, "--format", "json")
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	mustSay(t, strings.Join(r.Target.Problems, "\n"), exe+" was not used: nothing in the core is known to be of the executable")
}
