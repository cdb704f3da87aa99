// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// onlyFiles fails unless a folder has just these files.
func onlyFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("files %v, expected %v", got, names)
	}
}

func TestOutputReplacesAWholeFile(t *testing.T) {
	for name, args := range commandLines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, link, hard := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
			if err := os.WriteFile(file, []byte("old"), 0o640); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("a", link); err != nil {
				t.Fatal(err)
			}
			if err := os.Link(file, hard); err != nil {
				t.Fatal(err)
			}
			_, stderr, status := unwindd(t, append(args, "-o", link)...)
			if status != 0 {
				t.Fatalf("status %d: %s", status, stderr)
			}
			onlyFiles(t, dir, "a", "b", "c")
			info, err := os.Lstat(link)
			if err != nil || info.Mode().Type() != os.ModeSymlink {
				t.Errorf("the link is %v, %v", info.Mode(), err)
			}
			b, _ := os.ReadFile(file)
			if info, _ = os.Stat(file); len(b) == 0 || string(b) == "old" {
				t.Errorf("wrote %.20q", b)
			}
			want := os.FileMode(0o640)
			if name == "snapshot" {
				want = 0o600
			}
			if info.Mode() != want {
				t.Errorf("mode %v, expected %v", info.Mode(), want)
			}
			if b, _ := os.ReadFile(hard); string(b) != "old" {
				t.Errorf("what had the file open would read %.20q", b)
			}
		})
	}
}

// TestOutputThatIsNoFile: standard output, a pipe and a device are written to.
func TestOutputThatIsNoFile(t *testing.T) {
	args := []string{"dump", "notes", filepath.Join(crashDir, "server")}
	want, _, _ := unwindd(t, args...)
	for _, name := range []string{"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"} {
		if out, stderr, status := unwindd(t, append(args, "-o", name)...); status != 0 || out != want {
			t.Errorf("-o %s: status %d, %s\n%s", name, status, stderr, out)
		}
	}
	if _, stderr, status := unwindd(t, append(args, "-o", "/dev/null")...); status != 0 {
		t.Errorf("/dev/null: status %d, %s", status, stderr)
	}
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode().Type() != os.ModeDevice|os.ModeCharDevice {
		t.Fatalf("/dev/null is %v, %v", info.Mode(), err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := oracle.Mkfifo(fifo); err != nil {
		t.Fatal(err)
	}
	cmd := command(append(args, "-o", fifo)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != want {
		t.Errorf("through a pipe: %v, %q", err, b)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	onlyFiles(t, filepath.Dir(fifo), "fifo")

	// What standard output has already stays, by whatever name it is written to.
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte("before\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/dev/stdout", file} {
		log, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		cmd := command(append(args, "-o", name)...)
		cmd.Stdout = log
		if err := cmd.Run(); err != nil {
			t.Error(err)
		}
		log.Close()
	}
	if b, _ := os.ReadFile(file); string(b) != "before\n"+want+want {
		t.Errorf("the log is %q", b)
	}
}

// TestFailureLeavesTheOldFile: what a command that fails would have replaced is
// as it was.
func TestFailureLeavesTheOldFile(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("no such format"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, args := range commandLines() {
		switch name {
		case "eval":
			args = []string{"eval", "--arch", "x86_64", "--expr", "deref"}
		case "dump hex":
			args = []string{"dump", "expr", "--arch", "x86_64", "--hex", "no hex"}
		case "plugin list":
			args = []string{"plugin", "list", "--plugin-dir", bad}
		case "plugin info":
			args = []string{"plugin", "info", "none"}
		default:
			args = append([]string(nil), args...)
			for i, a := range args {
				if strings.Contains(a, "/") {
					args[i] = bad
				}
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			old := filepath.Join(dir, "old")
			if err := os.WriteFile(old, []byte("old"), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, stderr, status := unwindd(t, append(args, "-o", old)...); status == 0 {
				t.Fatalf("%q: status 0: %s", args, stderr)
			}
			onlyFiles(t, dir, "old")
			if b, _ := os.ReadFile(old); string(b) != "old" {
				t.Errorf("the old file is %q", b)
			}
		})
	}
}

// TestOutputOverItsInput: what a command reads is not written over, by whatever
// name.
func TestOutputOverItsInput(t *testing.T) {
	for name, args := range commandLines() {
		input := -1
		for i, a := range args {
			if strings.Contains(a, "/") {
				input = i
			}
		}
		if input < 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(args[input])
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			file, link, hard := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
			for _, err := range []error{os.WriteFile(file, b, 0o644), os.Symlink("a", link), os.Link(file, hard)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			args := append([]string(nil), args...)
			args[input] = file
			for _, output := range []string{file, link, hard, dir + "/./a"} {
				_, stderr, status := unwindd(t, append(args, "-o", output)...)
				if status != exitUsage {
					t.Errorf("-o %s: status %d: %s", output, status, stderr)
				}
				mustSay(t, stderr, "-o "+output, file)
			}
			if now, _ := os.ReadFile(file); string(now) != string(b) {
				t.Error("the input changed")
			}
			onlyFiles(t, dir, "a", "b", "c")
		})
	}
}

// TestOutputOverAFileThatIsFound: what the input leads to is an input too.
func TestOutputOverAFileThatIsFound(t *testing.T) {
	dir := t.TempDir()
	server := filepath.Join(dir, "server")
	copyFile(t, "server", server, nil)
	copyFile(t, "server.core", filepath.Join(dir, "server.core"), nil)
	want, err := os.ReadFile(server)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"stack"}, {"snapshot"}, {"stack", "--format", "json"}} {
		_, stderr, status := unwindd(t, append(args, filepath.Join(dir, "server.core"), "-o", server)...)
		if status != exitUsage {
			t.Errorf("%q: status %d", args, status)
		}
		mustSay(t, stderr, "-o "+server)
	}
	// So is what a session is asked about.
	cmd := command("symbolize", "-o", server)
	cmd.Stdin = strings.NewReader(server + " 0x401100\n")
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != exitUsage {
		t.Errorf("symbolize: %v\n%s", err, out)
	}
	if b, _ := os.ReadFile(server); string(b) != string(want) {
		t.Error("the executable changed")
	}
	onlyFiles(t, dir, "server", "server.core")

	questions := filepath.Join(dir, "questions")
	if err := os.WriteFile(questions, []byte("0x401100\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	stdin, err := os.Open(questions)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	cmd = command("symbolize", "--obj", server, "-o", questions)
	cmd.Stdin = stdin
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != exitUsage {
		t.Errorf("status %d", cmd.ProcessState.ExitCode())
	}
	mustSay(t, string(out), "standard input")
}

// TestOutputInPlaces: where a file cannot be made beside the output, what is whole
// is written over it; and a file that may not be written is not replaced.
func TestOutputInPlaces(t *testing.T) {
	args := []string{"dump", "notes", filepath.Join(crashDir, "server")}
	want, _, _ := unwindd(t, args...)
	dir := t.TempDir()

	// A link to nothing makes the file.
	if err := os.Symlink("made", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	old := oracle.Umask(0o027)
	_, stderr, status := unwindd(t, append(args, "-o", filepath.Join(dir, "link"))...)
	oracle.Umask(old)
	info, err := os.Lstat(filepath.Join(dir, "made"))
	if status != 0 || err != nil {
		t.Fatalf("status %d, %v: %s", status, err, stderr)
	}
	if info.Mode() != 0o640 {
		t.Errorf("mode %v, expected what the umask leaves", info.Mode())
	}
	// Its own name may be as long as a name can be.
	long := filepath.Join(dir, strings.Repeat("n", 255))
	if _, stderr, status := unwindd(t, append(args, "-o", long)...); status != 0 {
		t.Errorf("status %d: %s", status, stderr)
	}
	if _, stderr, status := unwindd(t, append(args, "-o", dir)...); status != exitInput || !strings.Contains(stderr, "directory") {
		t.Errorf("a directory: status %d: %s", status, stderr)
	}

	f, err := createOutput(filepath.Join(dir, "made"), false)
	if err != nil {
		t.Fatal(err)
	}
	f.isInPlace = true // as in a folder that cannot be written
	if _, err := io.WriteString(f, "short"); err != nil {
		t.Fatal(err)
	}
	if err := f.finish(nil); err != nil {
		t.Error(err)
	}
	now, err := os.Stat(filepath.Join(dir, "made"))
	if b, _ := os.ReadFile(filepath.Join(dir, "made")); err != nil || string(b) != "short" || !os.SameFile(info, now) {
		t.Errorf("%v, %q, expected the same file with another text than %q", err, b, want)
	}
}

// TestOutputWhereFilesNeedAName: a file gets its name where nothing can be without one, and
// where a file without one cannot be linked, as without /proc.
func TestOutputWhereFilesNeedAName(t *testing.T) {
	for name, replace := range map[string]func(o *outputFile) error{
		"it has one": func(o *outputFile) (err error) {
			o.File, err = unfinished.create(filepath.Dir(o.path), 0o640)
			o.temporary = o.Name()
			return err
		},
		"it cannot be linked": func(o *outputFile) error {
			var err error
			o.File, err = oracle.Memory(o.path)
			o.temporary = ""
			return errors.Join(err, o.Chmod(0o640))
		},
	} {
		for _, before := range [][]string{nil, {"out"}} {
			dir := t.TempDir()
			path := filepath.Join(dir, "out")
			for range before {
				if err := os.WriteFile(path, []byte("old"), 0o604); err != nil {
					t.Fatal(err)
				}
			}
			for _, failure := range []error{errors.New("as a command fails"), nil} {
				o, err := createOutput(path, false)
				if err != nil {
					t.Fatal(err)
				}
				o.Close()
				if err := replace(o); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(o, "new"); err != nil {
					t.Fatal(err)
				}
				if err := o.finish(failure); !errors.Is(err, failure) {
					t.Errorf("%s: %v, expected %v", name, err, failure)
				}
				if failure != nil {
					onlyFiles(t, dir, before...)
				}
			}
			onlyFiles(t, dir, "out")
			want := os.FileMode(0o640)
			if len(before) > 0 {
				want = 0o604
			}
			info, err := os.Stat(path)
			if b, _ := os.ReadFile(path); err != nil || string(b) != "new" || info.Mode() != want {
				t.Errorf("%s: %q with mode %v, %v, expected mode %v", name, b, info.Mode(), err, want)
			}
		}
	}
}

// TestFoldedFilesAreWrittenTogether: either all files of a profile are there or
// none.
func TestFoldedFilesAreWrittenTogether(t *testing.T) {
	dir := t.TempDir()
	prefix := filepath.Join(dir, "p")
	args := []string{"profile", "--in-process", "--format", "folded", wordsRecording, "-o", prefix}
	if _, stderr, status := unwindd(t, args...); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	files, _ := os.ReadDir(dir)
	if len(files) < 2 {
		t.Fatalf("%v, expected a file for each event", files)
	}
	last := ""
	for _, f := range files {
		last = f.Name()
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, last), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, stderr, status := unwindd(t, args...); status != exitInput {
		t.Errorf("status %d: %s", status, stderr)
	}
	onlyFiles(t, dir, last)
}
