// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/schema"
	"github.com/unwindd/unwindd/internal/subject"
)

// faraway is a core of a machine whose files only a debuginfod server has: the program,
// its debug information, half of which is in a supplementary file, and its source.
type faraway struct {
	core, source string
	program      string // on the other machine
	whole        string // it, with its debug information
	id           string
	shared       string // the build ID of the supplementary file
	root         string // an empty --sysroot
	server       *oracle.Debuginfod
}

func newFaraway(t *testing.T) *faraway {
	t.Helper()
	oracle.Tools(t, "gcc", "objcopy", "dwz", "debuginfod")
	there := t.TempDir()
	f := &faraway{root: t.TempDir(), source: filepath.Join(there, "src", "faraway.c"), program: filepath.Join(there, "served", "p"), whole: filepath.Join(there, "whole")}
	text, err := os.ReadFile(subject.Source(t, "faraway.c"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, there, "src/faraway.c", text)
	put(t, there, "served/mark", nil)
	run := func(name string, args ...string) { oracle.With{Dir: there}.Run(t, name, args...) }
	run("gcc", "-O1", "-g", "-static", "-no-pie", "-o", "whole", f.source)
	run("gcc", "-O1", "-g", "-static", "-no-pie", "-DOTHER", "-Wl,--build-id=0xabcdef0123456789", "-o", "second", f.source)
	for from, to := range map[string]string{"whole": "served/p", "second": "served/q"} {
		run("objcopy", "--only-keep-debug", from, to+".debug")
		run("objcopy", "--strip-all", from, to)
	}
	run("dwz", "-m", "served/common.debug", "served/p.debug", "served/q.debug")
	f.core = subject.Core(t, f.program)
	f.shared = idOf(t, filepath.Join(there, "served/common.debug"))
	paths := []string{"buildid/" + f.shared + "/debuginfo"}
	f.id = idOf(t, f.program)
	for _, what := range []string{"executable", "debuginfo", "source" + f.source} {
		paths = append(paths, "buildid/"+f.id+"/"+what)
	}
	f.server = oracle.StartDebuginfod(t, filepath.Join(there, "served"), paths...)
	return f
}

func idOf(t *testing.T, path string) string {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	return hex.EncodeToString(o.BuildID())
}

// with runs a command with a cache of its own, and environment variables.
func (f *faraway) with(t *testing.T, cache string, env []string, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := command(args...)
	cmd.Env = append(append(cmd.Env, "DEBUGINFOD_CACHE_PATH="+cache, "DEBUGINFOD_TIMEOUT=10", "NO_COLOR=1"), env...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, errs.String())
	}
	return out.String(), errs.String()
}

// TestACoreOfAnotherMachine needs nothing but its server's name.
func TestACoreOfAnotherMachine(t *testing.T) {
	f := newFaraway(t)
	stack := []string{"stack", "--in-process", f.core, "--sysroot", f.root}
	asks := append(slices.Clone(stack), "--debuginfod", f.server.URL)
	named := []string{"DEBUGINFOD_URLS=" + f.server.URL}

	t.Run("nobody is asked who is not named", func(t *testing.T) {
		for _, c := range []struct{ env, args []string }{
			{nil, stack},
			{named, append(slices.Clone(stack), "--debuginfod", "")},
		} {
			cache := filepath.Join(t.TempDir(), "cache")
			out, _ := f.with(t, cache, c.env, c.args...)
			mustSay(t, out, "no file with build ID "+f.id)
			if strings.Contains(out, "faraway.c") || strings.Contains(out, "http") {
				t.Errorf("somebody was asked:\n%s", out)
			}
			if _, err := os.Stat(cache); err == nil {
				t.Error("there is a cache")
			}
		}
	})
	t.Run("stack", func(t *testing.T) {
		for _, c := range []struct{ env, args []string }{{nil, asks}, {named, stack}} {
			cache := t.TempDir()
			out, _ := f.with(t, cache, c.env, c.args...)
			mustSay(t, out, "area+0x", f.source+":13:", "add+0x", f.source+":18:", "main+0x", f.source+":25:")
			if strings.Contains(out, "problem") {
				t.Errorf("problems:\n%s", out)
			}
			for _, name := range []string{f.id + "/executable", f.id + "/debuginfo", f.shared + "/debuginfo"} {
				if info, err := os.Stat(filepath.Join(cache, name)); err != nil || info.Size() == 0 {
					t.Errorf("%s was not got: %v", name, err)
				}
			}
			// Now it is here. Nobody is asked who does not know it.
			out, said := f.with(t, cache, nil, append(slices.Clone(stack), "--debuginfod", "http://localhost:1", "-v")...)
			mustSay(t, out, f.source+":13:")
			if strings.Contains(said, f.id) {
				t.Errorf("asked again:\n%s", said)
			}
		}
	})
	t.Run("no source where none is requested", func(t *testing.T) {
		if out, _ := f.with(t, t.TempDir(), nil, asks...); strings.Contains(out, "return b->height") {
			t.Errorf("a server was asked for a source file:\n%s", out)
		}
	})
	t.Run("source", func(t *testing.T) {
		out, _ := f.with(t, t.TempDir(), nil, append(slices.Clone(asks), "--source", "3")...)
		mustSay(t, out, "/src/faraway.c:13:10\n"+
			"        12  {\n      > 13          return b->height;       /* crashes here */\n        14  }\n")
		out, _ = f.with(t, t.TempDir(), nil, append(slices.Clone(asks), "--source", "4", "--format", "json")...)
		var r report.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		var plain any
		_ = json.Unmarshal([]byte(out), &plain)
		stacks := schema.Docs(t, "stack.schema.json")
		for _, wrong := range stacks.Check("stack", plain) {
			t.Error(wrong)
		}
		text, _ := os.ReadFile(subject.Source(t, "faraway.c"))
		lines := strings.Split(string(text), "\n")
		shown := 0
		for _, frame := range r.Threads[0].Frames {
			if frame.File != f.source {
				continue
			}
			if s := frame.Source; s == nil || len(s.Lines) != 4 || s.First > frame.Line || s.First+3 < frame.Line || !slices.Equal(s.Lines, lines[s.First-1:s.First+3]) {
				t.Errorf("%s: %+v", frame.Function, s)
			}
			shown++
		}
		if shown != 3 {
			t.Errorf("%d frames with source, expected 3", shown)
		}
	})
	t.Run("source of the sysroot", func(t *testing.T) {
		put(t, f.root, f.source, []byte(strings.Repeat("another\n", 30)))
		put(t, f.root, f.program, nil)
		b, err := os.ReadFile(f.program)
		if err != nil {
			t.Fatal(err)
		}
		here := put(t, f.root, f.program, b)
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(here, old, old); err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(filepath.Join(f.root, filepath.Dir(f.program)))
		defer os.Remove(filepath.Join(f.root, f.source))
		out, _ := f.with(t, t.TempDir(), nil, append(slices.Clone(asks), "--source", "1")...)
		warning := "warning: " + f.source + " is newer than " + f.program
		mustSay(t, out, "      > 13  another\n", warning)
		if strings.Count(out, "warning") != 1 {
			t.Errorf("it is not said once:\n%s", out)
		}
	})
	t.Run("symbolize", func(t *testing.T) {
		address := oracle.Run(t, "sh", "-c", `nm "$0" | sed -n 's/ T main$//p'`, f.whole)
		address = "0x" + strings.TrimSpace(address)
		out, _ := f.with(t, t.TempDir(), nil, "symbolize", "--obj", f.program, "--debuginfod", f.server.URL, "-p", address)
		mustSay(t, out, "main at "+f.source+":22")
		tool := filepath.Join(t.TempDir(), "llvm-symbolizer")
		self, _ := os.Executable()
		if err := os.Symlink(self, tool); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ flag, want string }{{"--debuginfod", f.source + ":22:"}, {"--no-debuginfod", "??:0:0"}} {
			cmd := exec.Command(tool, c.flag, "--build-id="+f.id, address)
			cmd.Env = append(os.Environ(), "DEBUGINFOD_CACHE_PATH="+t.TempDir(), named[0])
			b, _ := cmd.CombinedOutput()
			mustSay(t, string(b), c.want)
		}
	})
	t.Run("snapshot", func(t *testing.T) {
		cache, to := t.TempDir(), filepath.Join(t.TempDir(), "s")
		f.with(t, cache, nil, "snapshot", "--in-process", f.core, "--sysroot", f.root, "--debuginfod", f.server.URL, "--files", "-o", to)
		out, _ := f.with(t, cache, nil, "stack", "--in-process", to, "--sysroot", f.root, "--debuginfod", f.server.URL)
		mustSay(t, out, f.source+":13:", f.source+":25:")
	})
	t.Run("eval", func(t *testing.T) {
		out, _ := f.with(t, t.TempDir(), nil, "eval", "--in-process", "--snapshot", f.core, "--sysroot", f.root, "--debuginfod", f.server.URL, "--frame", "2", "--var", "one.height")
		mustSay(t, out, "one.height = 2")
	})
	t.Run("a server that is gone", func(t *testing.T) {
		_ = f.server.Process.Kill()
		out, _ := f.with(t, t.TempDir(), []string{"DEBUGINFOD_RETRY_LIMIT=0"}, asks...)
		mustSay(t, out, "no file with build ID "+f.id, f.server.URL+"/buildid/"+f.id+"/executable (")
	})
}

// TestProfilesAskForFiles of which the recording has the build IDs.
func TestProfilesAskForFiles(t *testing.T) {
	oracle.Tools(t, "debuginfod")
	here, there := t.TempDir(), t.TempDir()
	for name, to := range map[string]string{"perf.data": here, "words": there} {
		b, err := os.ReadFile(filepath.Join("../../examples/profile", name))
		if err != nil {
			t.Fatal(err)
		}
		put(t, to, name, b)
	}
	id := idOf(t, filepath.Join(there, "words"))
	s := oracle.StartDebuginfod(t, there, "buildid/"+id+"/executable")
	f := &faraway{}
	for _, c := range []struct {
		server string
		want   bool
	}{{"", false}, {s.URL, true}} {
		out, _ := f.with(t, t.TempDir(), nil, "profile", "--in-process", filepath.Join(here, "perf.data"), "--debuginfod", c.server)
		if got := strings.Contains(out, "words.cc:35"); got != c.want {
			t.Errorf("server %q: lines: %v\n%s", c.server, got, out)
		}
	}
}

// TestWrongAnswersAreSaid: in the output, not only with -v.
func TestWrongAnswersAreSaid(t *testing.T) {
	s := strip(t)
	answer := otherID(t, s)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/debuginfo") {
			_, _ = w.Write(answer)
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	f := &faraway{}
	cache := t.TempDir()
	args := []string{"stack", "--in-process", s.core, "--exe", s.exe, "--debuginfod", server.URL}
	out, _ := f.with(t, cache, nil, args...)
	mustSay(t, out, "debug file "+server.URL+"/buildid/", "/debuginfo was not used: build ID is ")
	answer = s.debug
	out, _ = f.with(t, cache, nil, args...)
	if strings.Contains(out, "was not used") || !strings.Contains(out, "server.c:") {
		t.Errorf("the right one:\n%s", out)
	}
}

// TestProgressOfDownloads is shown of those that take long.
func TestProgressOfDownloads(t *testing.T) {
	s := strip(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/debuginfo") {
			http.NotFound(w, r)
			return
		}
		for part := range slices.Chunk(s.debug, 1+len(s.debug)/20) {
			_, _ = w.Write(part)
			w.(http.Flusher).Flush()
			time.Sleep(40 * time.Millisecond)
		}
	}))
	defer server.Close()
	f := &faraway{}
	args := []string{"stack", "--in-process", s.core, "--exe", s.exe, "--debuginfod", server.URL}
	_, said := f.with(t, t.TempDir(), []string{"DEBUGINFOD_PROGRESS=1"}, args...)
	mustSay(t, said, strings.TrimPrefix(server.URL, "http://")+": debuginfo of ", "kB")
	if _, said = f.with(t, t.TempDir(), nil, args...); said != "" {
		t.Errorf("without a terminal: %q", said)
	}
}

func TestWrongServers(t *testing.T) {
	for _, url := range []string{"ftp://a", "http://", "file://host/x", "http://[", "file:///"} {
		out, said, status := unwindd(t, "stack", "--debuginfod", url, "--in-process", filepath.Join(crashDir, "server.core"))
		if want := url != "file:///"; want != (status == exitUsage) || want && !strings.Contains(said, "--debuginfod: ") {
			t.Errorf("%s: status %d\n%s%s", url, status, said, out)
		}
	}
	for _, lines := range []string{"-1", "1001"} {
		if _, said, status := unwindd(t, "stack", "--source", lines, filepath.Join(crashDir, "server.core")); status != exitUsage || !strings.Contains(said, "--source "+lines+": expected 0 to 1000") {
			t.Errorf("--source %s: status %d\n%s", lines, status, said)
		}
	}
	// What the environment names wrongly is said, and stops nobody.
	cmd := command("stack", "--in-process", filepath.Join(crashDir, "server.core"))
	cmd.Env = append(cmd.Env, "DEBUGINFOD_URLS=gopher://a")
	said, _ := cmd.StderrPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(said)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	mustSay(t, string(b), "DEBUGINFOD_URLS: gopher://a: expected http://HOST")
}

// TestSourceInDebugInformation: clang puts it, or its sum, into the line table.
func TestSourceInDebugInformation(t *testing.T) {
	oracle.Tools(t, "clang-22")
	text, err := os.ReadFile(subject.Source(t, "faraway.c"))
	if err != nil {
		t.Fatal(err)
	}
	// What a terminal would obey, in a file and in its name.
	text = append(text, []byte("/* "+poison+" */\n")...)
	for _, c := range []struct {
		name    string
		flags   []string
		replace string // the file, afterwards; "": it is gone
		says    string
	}{
		{"embedded", []string{"-gdwarf-5", "-gembed-source"}, "", "      > 13          return b->height;"},
		{"embedded, with another file there", []string{"-gdwarf-5", "-gembed-source"}, "other\n", "      > 13          return b->height;"},
		{"a sum, and the file", []string{"-gdwarf-5"}, string(text), "      > 13          return b->height;"},
		{"a sum, and another file", []string{"-gdwarf-5"}, string(text) + "\n", "is not the file that was compiled: its MD5 is "},
		{"no sum, and no such line", []string{"-gdwarf-4"}, "other\n", "line 13 is not among its 1 lines"},
		{"no file", []string{"-gdwarf-5"}, "", "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			source := put(t, dir, "faraway.c", text)
			exe := filepath.Join(dir, "faraway")
			oracle.Run(t, "clang-22", append([]string{"-O1", "-fno-inline", "-o", exe, source}, c.flags...)...)
			core := subject.Core(t, exe)
			os.Remove(source)
			if c.replace != "" {
				put(t, dir, "faraway.c", []byte(c.replace))
			}
			out, said, status := unwindd(t, "stack", "--in-process", core, "--source", "3")
			if status != 0 {
				t.Fatal(said)
			}
			mustSay(t, out, c.says)
			if n := strings.Count(out, "is not the file"); n > 1 {
				t.Errorf("it is said %d times", n)
			}
			out, _, _ = unwindd(t, "stack", "--in-process", core, "--source", "1000")
			mustBePlain(t, c.name, out)
		})
	}
}
