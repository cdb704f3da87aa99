// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/oracle"
)

// A served is a server that runs as a command does.
type served struct {
	command *exec.Cmd
	client  *http.Client
	dir     string // with its socket, its state and what is under way
	stderr  bytes.Buffer
	ended   chan error
}

// serve starts a server in a folder of its own, at the socket unwindd.sock in it.
func serve(t *testing.T, flags ...string) *served {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "serve-") // of a short path: those of sockets are bounded
	if err != nil {
		t.Fatal(err)
	}
	s := &served{dir: dir, ended: make(chan error, 1)}
	socket := filepath.Join(dir, "unwindd.sock")
	s.command = exec.Command(self, append([]string{"serve", "--listen", "unix:" + socket}, flags...)...) //nolint:gosec // this executable
	s.command.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "XDG_STATE_HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "DEBUGINFOD_URLS=")
	s.command.Stderr = &s.stderr
	out, err := s.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	go func() { s.ended <- s.command.Wait() }()
	t.Cleanup(func() {
		_ = s.command.Process.Kill()
		<-s.ended
		if t.Failed() {
			t.Log(s.stderr.String())
		}
		_ = os.RemoveAll(dir)
	})
	if err != nil || line != "listening unix:"+socket+"\n" {
		t.Fatalf("it says %q: %v", line, err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	s.client = &http.Client{Transport: transport}
	return s
}

// end ends the server by a signal, and returns its exit status.
func (s *served) end(t *testing.T, sig syscall.Signal) int {
	t.Helper()
	if err := s.command.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-s.ended:
		s.ended <- err
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	return s.command.ProcessState.ExitCode()
}

// post posts a file to the server.
func (s *served) post(t *testing.T, path, file string) string {
	t.Helper()
	text, err := s.tryPost(path, file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (s *served) tryPost(path, file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	answer, err := s.client.Post("http://localhost"+path, "", bytes.NewReader(b)) //nolint:noctx // the test has a limit
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return string(text), err
}

// TestServe has a server print what the command prints, by plugins that are processes, and
// leave nothing when it ends.
func TestServe(t *testing.T) {
	s := serve(t)
	want, _, _ := unwindd(t, "stack", "--lanes", mixed)
	got := s.post(t, "/v1/stack?format=text&lanes&name=mixed.snapshot", mixed)
	if first, rest, _ := strings.Cut(want, "\n"); first != "snapshot "+mixed+": signal 11 (SIGSEGV)" || got != "snapshot mixed.snapshot: signal 11 (SIGSEGV)\n"+rest {
		t.Errorf("%s\nexpected\n%s", got, want)
	}
	if status := s.end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	for _, left := range []string{"unwindd.sock", "unwindd/w/*", "unwindd/spool/*"} {
		if list, _ := filepath.Glob(filepath.Join(s.dir, left)); len(list) > 0 {
			t.Errorf("it leaves %v", list)
		}
	}
}

// TestServeRefuses has command lines that mean no server.
func TestServeRefuses(t *testing.T) {
	for _, c := range []struct {
		args  []string
		words string
	}{
		{[]string{"--listen", "0.0.0.0:0"}, "others reach this address: expected --tls-cert and --tls-key, and --tokens or --client-ca"},
		{[]string{"--listen", "nowhere"}, "expected unix:PATH or HOST:PORT"},
		{[]string{"--tls-cert", "x"}, "expected both"},
		{[]string{"--client-ca", "x"}, "expected --tls-cert and --tls-key too"},
		{[]string{"--workers", "0"}, "--workers"},
		{[]string{"--sysroot", "/nowhere"}, "--sysroot: /nowhere: no such file"},
		{[]string{"--tokens", "/dev/null"}, "no tokens"},
		{[]string{"--queue-creds", "x"}, "expected --queue too"},
		{[]string{"--queue", "nats://127.0.0.1:1", "--queue-key", "x"}, "expected both"},
		{[]string{"--queue", "nats://127.0.0.1:1", "--max-handed-over", "0"}, "--max-handed-over 0: expected 1 or more"},
		{[]string{"extra"}, "serve: expected no arguments, found extra"},
	} {
		_, stderr, status := unwindd(t, append([]string{"serve"}, c.args...)...)
		if status == 0 || !strings.Contains(stderr, c.words) {
			t.Errorf("serve %v: status %d, %q, expected %q", c.args, status, stderr, c.words)
		}
	}
}

// consoleBlocks are the ```console blocks of a document.
var consoleBlocks = regexp.MustCompile("(?s)```console\n(.*?)```")

// TestDocumentedServer runs the commands of docs/serve.md, in their order, with one server.
// What they print is compared with what the document shows; "..." stands for anything.
func TestDocumentedServer(t *testing.T) {
	oracle.Tools(t, "curl", "grpcurl", "jq")
	text, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t)
	dir := t.TempDir()
	for name, source := range map[string]string{"core": serverCore, "server": filepath.Join(filepath.Dir(serverCore), "server"), "examples/mixed/mixed.snapshot": mixed, "perf.data": wordsRecording, "words": filepath.Join(filepath.Dir(wordsRecording), "words")} {
		b, err := os.ReadFile(source)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const begin = "ask() { curl -sS --unix-socket \"$SOCKET\" \"$@\"; }\nunwindd() { if [ \"$1\" = --server ]; then shift; UNWINDD_SERVER=$1; export UNWINDD_SERVER; shift; fi; \"$SELF\" \"$@\"; }\n"
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(filepath.Join(s.dir, "unwindd.sock"), filepath.Join(dir, "unwindd.sock"))
	}
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, block := range consoleBlocks.FindAllStringSubmatch(string(text), -1) {
		for _, step := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			command, want, _ := strings.Cut(step, "\n")
			if strings.HasPrefix(command, "unwindd serve ") || strings.HasPrefix(command, "alias ") {
				continue // the server is started already
			}
			commands++
			got := oracle.With{Dir: dir, Env: append(os.Environ(), "SELF="+self, "SOCKET="+filepath.Join(s.dir, "unwindd.sock"))}.Run(t, "sh", "-c", begin+command)
			if !pattern(want).MatchString(strings.TrimSuffix(got, "\n")) {
				t.Errorf("$ %s\n%s\nthe document shows\n%s", command, got, want)
			}
		}
	}
	if commands < 15 {
		t.Errorf("%d commands, expected 15 or more", commands)
	}
}
