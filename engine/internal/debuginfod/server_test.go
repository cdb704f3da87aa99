// SPDX-License-Identifier: Apache-2.0

package debuginfod

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// A realServer is elfutils' server of one directory of files.
type realServer struct {
	at      string
	process *os.Process
	id      []byte            // of a program that it has
	has     map[string][]byte // what it has of that, by kind, and by the path of a source file
}

// startServer starts elfutils' server, and waits until it has the program.
func startServer(t *testing.T, junk int) *realServer {
	t.Helper()
	oracle.Tools(t, "gcc", "objcopy")
	dir := t.TempDir()
	s := &realServer{has: map[string][]byte{}}
	source := filepath.Join(dir, "src", "a #b%c++.c")
	write(t, source, []byte("int main(void) { return 0; }\n"))
	write(t, filepath.Join(dir, "junk"), bytes.Repeat([]byte("junk"), junk/4))
	served := filepath.Join(dir, "served")
	oracle.With{Dir: dir}.Run(t, "gcc", "-g", "-o", "whole", source)
	write(t, filepath.Join(served, "mark"), nil)
	oracle.With{Dir: dir}.Run(t, "objcopy", "--only-keep-debug", "--add-section=.junk=junk", "whole", "served/p.debug")
	oracle.With{Dir: dir}.Run(t, "objcopy", "--strip-all", "whole", "served/p")
	for kind, file := range map[string]string{"executable": "served/p", "debuginfo": "served/p.debug", source: source} {
		b, err := os.ReadFile(filepath.Join(dir, strings.TrimPrefix(file, dir)))
		if err != nil {
			t.Fatal(err)
		}
		s.has[kind] = b
	}
	o, err := object.Open(filepath.Join(served, "p"))
	if err != nil {
		t.Fatal(err)
	}
	s.id = o.BuildID()
	o.Close()
	var paths []string
	for _, of := range s.files() {
		paths = append(paths, strings.TrimPrefix(fileURL(mustParse(t, "http://host"), of).String(), "http://host/"))
	}
	d := oracle.StartDebuginfod(t, served, paths...)
	s.at, s.process = d.URL, d.Process
	return s
}

func (s *realServer) kill() { _ = s.process.Kill() }

// files are what it has.
func (s *realServer) files() (list []object.RemoteFile) {
	for kind := range s.has {
		of := object.RemoteFile{Kind: object.RemoteKind(kind), BuildID: s.id}
		if strings.HasPrefix(kind, "/") {
			of.Kind, of.Source = object.RemoteSource, kind
		}
		list = append(list, of)
	}
	return list
}

func (s *realServer) bytes(of object.RemoteFile) []byte {
	if of.Source != "" {
		return s.has[of.Source]
	}
	return s.has[string(of.Kind)]
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// find runs debuginfod-find with a cache, and returns the path that it prints.
func find(t *testing.T, cache, server string, of object.RemoteFile) (path string, err error) {
	t.Helper()
	args := []string{string(of.Kind), fmt.Sprintf("%x", of.BuildID)}
	if of.Source != "" {
		args = append(args, of.Source)
	}
	cmd := exec.Command(oracle.Tool(t, "debuginfod-find"), args...)
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS="+server, "DEBUGINFOD_CACHE_PATH="+cache, "DEBUGINFOD_TIMEOUT=5", "DEBUGINFOD_RETRY_LIMIT=0")
	out, err := cmd.Output()
	return strings.TrimSuffix(string(out), "\n"), err
}

// TestTheCacheIsSharedWithElfutils both ways: what one client has got, or found that
// nobody has, the other one does not ask for.
func TestTheCacheIsSharedWithElfutils(t *testing.T) {
	s := startServer(t, 0)
	missing := []object.RemoteFile{
		{Kind: object.RemoteDebuginfo, BuildID: []byte{1, 2, 3, 4, 5, 6, 7, 8}},
		{Kind: object.RemoteExecutable, BuildID: []byte{1, 2, 3, 4, 5, 6, 7, 8}},
		{Kind: object.RemoteSource, BuildID: s.id, Source: "/none/#.c"},
	}
	ours, theirs := newClient(t, nil, s.at), newClient(t, nil, s.at)
	for _, of := range s.files() {
		ours.gets(of, s.bytes(of))
		path, err := find(t, theirs.cache, s.at, of)
		if b, _ := os.ReadFile(path); err != nil || !bytes.Equal(b, s.bytes(of)) {
			t.Errorf("debuginfod-find gets %d bytes of %v: %v", len(b), of, err)
		}
	}
	for _, of := range missing {
		ours.refuses(of, object.Absent, "does not have it")
		if path, err := find(t, theirs.cache, s.at, of); err == nil {
			t.Errorf("debuginfod-find gets %s", path)
		}
	}
	requests := func() string {
		r, err := http.Get(s.at + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		http.DefaultClient.CloseIdleConnections()
		var of []string
		for line := range strings.SplitSeq(string(b), "\n") {
			if strings.HasPrefix(line, "http_requests_total") && !strings.Contains(line, "metrics") {
				of = append(of, line)
			}
		}
		return strings.Join(of, "\n")
	}
	before := requests()
	for _, of := range s.files() {
		theirs.gets(of, s.bytes(of)) // from their cache
		mine, _ := ours.Fetch(of)
		path, err := find(t, ours.cache, s.at, of)
		if err != nil || path != mine {
			t.Errorf("debuginfod-find has %q, %v, expected %q", path, err, mine)
		}
	}
	for _, of := range missing {
		theirs.refuses(of, object.Absent, "a short time ago")
		if path, err := find(t, ours.cache, s.at, of); err == nil {
			t.Errorf("debuginfod-find gets %s", path)
		}
	}
	if after := requests(); after != before || before == "" {
		t.Errorf("the server was asked:\n%s\nbefore:\n%s", after, before)
	}
	// Without the server, too.
	s.kill()
	for _, of := range s.files() {
		theirs.gets(of, s.bytes(of))
	}
}

// TestWhatElfutilsKeptAndIsWrong: debuginfod-find keeps any answer. What it kept is not
// used, and is replaced where another server has the right file.
func TestWhatElfutilsKeptAndIsWrong(t *testing.T) {
	s := startServer(t, 0)
	of := object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: s.id}
	wrong, _ := serve(t, says([]byte("<html>Sign in</html>")))
	f := newClient(t, nil, s.at)
	path, err := find(t, f.cache, wrong, of)
	if b, _ := os.ReadFile(path); err != nil || string(b) != "<html>Sign in</html>" {
		t.Errorf("debuginfod-find does not take it: %q %v", b, err)
	}
	f.gets(of, s.bytes(of))
	if path, err = find(t, f.cache, wrong, of); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); !bytes.Equal(b, s.bytes(of)) {
		t.Errorf("debuginfod-find has %d bytes", len(b))
	}
	// It takes any error for an answer, too.
	broken, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	of.Kind = object.RemoteExecutable
	if _, err := find(t, f.cache, broken, of); err == nil {
		t.Error("debuginfod-find takes it")
	}
	f.holds("debuginfo", "executable (none)")
}

// TestARealServerThatIsKilled in the middle of an answer: what came of it is not kept.
func TestARealServerThatIsKilled(t *testing.T) {
	s := startServer(t, 64<<20)
	of := object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: s.id}
	killed := false
	f := newClient(t, func(o *Options) {
		o.Progress = func(t Transfer) {
			if t.Bytes > 0 && !killed {
				s.kill()
				killed = true
			}
		}
	}, s.at)
	f.refuses(of, object.Unreadable, "the answer was cut after")
	f.holds()
	if !killed {
		t.Error("nothing came")
	}
}

// TestARealServerThatIsStopped accepts connections and says nothing.
func TestARealServerThatIsStopped(t *testing.T) {
	s := startServer(t, 0)
	if err := s.process.Signal(oracle.Stop); err != nil {
		t.Fatal(err)
	}
	second := startServer(t, 0)
	f := newClient(t, func(o *Options) { o.Timeout = 500 * time.Millisecond }, s.at, second.at)
	f.refuses(object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: []byte{1, 2, 3, 4}}, object.Absent, "does not have it")
	f.holds() // since the first one might have it
	for _, of := range second.files() {
		f.gets(of, second.bytes(of))
	}
	f.holds("executable", "debuginfo", filepath.Base(mustName(t, second)[0]), mustName(t, second)[1])
}

func mustName(t *testing.T, s *realServer) []string {
	t.Helper()
	for _, of := range s.files() {
		if of.Source != "" {
			n, err := cacheName(of)
			if err != nil {
				t.Fatal(err)
			}
			return n.Names
		}
	}
	return nil
}

// TestAKilledClientLeavesNothing: this test's executable as a process of its own, killed
// in the middle of an answer.
func TestAKilledClientLeavesNothing(t *testing.T) {
	if at := os.Getenv("TEST_DEBUGINFOD_AT"); at != "" {
		_, id := program(t)
		New(Options{URLs: []*url.URL{mustParse(t, at)}, Cache: os.Getenv("TEST_DEBUGINFOD_CACHE")}).Fetch(object.RemoteFile{Kind: object.RemoteDebuginfo, BuildID: id})
		t.Fatal("the answer came")
	}
	data, _ := program(t)
	part, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	at, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(data[:len(data)/2])
		w.(http.Flusher).Flush()
		part <- struct{}{}
		<-end
	})
	f := newClient(t, nil, at)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestAKilledClientLeavesNothing$")
	cmd.Env = append(os.Environ(), "TEST_DEBUGINFOD_AT="+at, "TEST_DEBUGINFOD_CACHE="+f.cache)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-part
	time.Sleep(50 * time.Millisecond)
	_ = cmd.Process.Kill()
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Errorf("it was not killed: %v", err)
	}
	f.holds()
}
