// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/internal/subject"
)

// flags are the flags that ask a server.
func (s *served) flags() []string {
	return []string{"stack", "--server", "unix:" + filepath.Join(s.dir, "unwindd.sock")}
}

// compareWithLocal has a server and this process do the same: what is printed, what is said
// and the exit status are equal.
func (s *served) compareWithLocal(t *testing.T, args ...string) {
	t.Helper()
	want, wantSaid, wantStatus := unwindd(t, append([]string{"stack"}, args...)...)
	got, said, status := unwindd(t, append(s.flags(), args...)...)
	if got != want || said != wantSaid || status != wantStatus {
		t.Errorf("stack %v: status %d, %q, expected %d, %q; %s", args, status, said, wantStatus, wantSaid, firstDifference(got, want))
	}
}

// firstDifference is the first line in which two texts differ.
func firstDifference(got, want string) string {
	theirs := strings.Split(want, "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(theirs) || line != theirs[i] {
			return fmt.Sprintf("line %d is %q, expected %q", i+1, line, strings.Join(theirs[min(i, len(theirs)):min(i+1, len(theirs))], ""))
		}
	}
	return fmt.Sprintf("%d lines, expected %d", strings.Count(got, "\n"), strings.Count(want, "\n"))
}

// TestServerEqualsLocal asks a server about targets of every form, in every form of output.
func TestServerEqualsLocal(t *testing.T) {
	long(t)
	s := serve(t)
	examples := filepath.Join("..", "..", "examples")
	targets := []string{
		serverCore, filepath.Join(examples, "crash", "server.dmp"), mixed, filepath.Join(examples, "gen", "gen.snapshot"),
		filepath.Join(examples, "rocm-core", "crash.core"),
	}
	for i, target := range targets {
		for j, flags := range [][]string{
			{}, {"--locals", "--registers"}, {"--format", "json", "--locals", "--registers", "--code", "3"}, {"--format", "json", "--locals", "--raw", "--depth", "9"},
			{"--lanes", "--no-fold", "--locals"}, {"--lane", "1"}, {"--format", "html", "--locals", "--code", "5"}, {"--format", "breakpad"},
			{"--signature"}, {"--signature", "--format", "json"}, {"--crashed", "--top", "2"}, {"--thread", "w1"}, {"--max-frames", "3"}, {"--no-inlines"},
			{"--goroutines"}, {"--globals", "total"}, {"--thread", "nobody"}, {"--sysroot", "/nowhere"},
		} {
			t.Run(filepath.Base(target)+strings.Join(flags, ""), func(t *testing.T) {
				if (i+j)%3 != 0 {
					proof.Only(t)
				}
				s.compareWithLocal(t, append([]string{target}, flags...)...)
			})
		}
	}
	t.Run("several", func(t *testing.T) {
		s.compareWithLocal(t, targets...)
		s.compareWithLocal(t, filepath.Dir(serverCore), "--format", "json")
		s.compareWithLocal(t, append([]string{"/nowhere", "--signature"}, targets...)...)
		s.compareWithLocal(t, "/nowhere")
		s.compareWithLocal(t, "--crashed", "--thread", "1", serverCore)
	})
}

// TestServerOfOtherTargets asks about targets that are made: with separate debug files, from
// standard input, of goroutines, and of a process that lives.
func TestServerOfOtherTargets(t *testing.T) {
	s := serve(t)
	t.Run("debug file", func(t *testing.T) {
		made := strip(t)
		debug := put(t, t.TempDir(), "server.debug", made.debug)
		for range 2 { // the second one is of what is kept
			s.compareWithLocal(t, made.core, made.exe, "--debug-dir", filepath.Dir(debug), "--format", "json", "--locals")
			s.compareWithLocal(t, made.core, "--debug-dir", filepath.Dir(debug))
		}
		// What is not here any more is at the server.
		want, _, _ := unwindd(t, "stack", made.core, "--debug-dir", filepath.Dir(debug))
		got, _, _ := unwindd(t, append(s.flags(), made.core)...)
		if without, _, _ := unwindd(t, "stack", made.core); got != want || got == without {
			t.Errorf("without the debug file, which the server keeps: %s", firstDifference(got, want))
		}
	})
	t.Run("standard input", func(t *testing.T) {
		b, err := os.ReadFile(serverCore)
		if err != nil {
			t.Fatal(err)
		}
		var out [2]string
		for i, args := range [][]string{{"stack"}, s.flags()} {
			cmd := command(append(args, "-", "--locals", "--exe", filepath.Join(filepath.Dir(serverCore), "server"))...)
			cmd.Stdin = bytes.NewReader(b)
			text, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			out[i] = string(text)
		}
		if out[0] != out[1] {
			t.Error(firstDifference(out[1], out[0]))
		}
	})
	t.Run("goroutines", func(t *testing.T) {
		core, _ := subject.Crash(t, subject.BuildGoroutines(t, "goroutines", "local"), "panic", "10")
		s.compareWithLocal(t, core, "--goroutines", "--format", "json")
		s.compareWithLocal(t, core, "--goroutines", "--locals")
	})
	t.Run("process", func(t *testing.T) {
		cmd := exec.Command("sleep", "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		got, said, status := unwindd(t, append(s.flags(), strconv.Itoa(cmd.Process.Pid))...)
		if status != exitDone || !strings.Contains(got, "sleep") {
			t.Errorf("status %d: %s%s", status, got, said)
		}
	})
}

// TestServerIsSentFilesOnce counts the bytes that go to a server: those of files only the
// first time, and of a core a part.
func TestServerIsSentFilesOnce(t *testing.T) {
	s := serve(t)
	sent := func() (n int) {
		t.Helper()
		_, said, status := unwindd(t, append(s.flags(), "-v", serverCore)...)
		if _, rest, ok := strings.Cut(said, serverCore+": "); !ok || status != exitDone {
			t.Fatalf("status %d: %s", status, said)
		} else if _, err := fmt.Sscanf(rest, "%d bytes were sent", &n); err != nil {
			t.Fatalf("%q: %v", said, err)
		}
		return n
	}
	first := sent()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // until the server keeps the file
		if list, _ := filepath.Glob(filepath.Join(s.dir, "unwindd", "objects", "01", "*", "executable")); len(list) == 1 {
			break
		}
		if time.Now().After(limit) {
			t.Fatal("the server does not keep the file")
		}
	}
	second := sent()
	exe, err := os.Stat(filepath.Join(filepath.Dir(serverCore), "server"))
	if err != nil {
		t.Fatal(err)
	}
	core, err := os.Stat(serverCore)
	if err != nil {
		t.Fatal(err)
	}
	if int64(first-second) < exe.Size() || int64(second) > core.Size()/4 {
		t.Errorf("%d and then %d bytes were sent, of a core of %d and a file of %d", first, second, core.Size(), exe.Size())
	}
}

// TestServerRefuses has command lines that mean nothing, and servers that are not there.
func TestServerRefuses(t *testing.T) {
	for _, c := range []struct {
		args   []string
		words  string
		status int
	}{
		{[]string{"stack", "--server", "nowhere", serverCore}, `--server: "nowhere": expected unix:PATH, HOST:PORT or https://HOST:PORT`, exitUsage},
		{[]string{"stack", "--server", "ftp://x:1", serverCore}, "expected unix:PATH", exitUsage},
		{[]string{"stack", "--server", "https://user@x:1/", serverCore}, "expected unix:PATH", exitUsage},
		{[]string{"stack", "--server", "unix:/nowhere", "--code", "3", "--disassembler", "/bin/true", serverCore}, "has its own", exitUsage},
		{[]string{"profile", "--server", "unix:/nowhere", "x"}, "expected the command stack", exitUsage},
		{[]string{"stack", "--server", "unix:/nowhere", serverCore}, "server unix:/nowhere: ", exitInput},
		{[]string{"stack", "--server", "unix:/nowhere", "/nowhere.core"}, "/nowhere.core: no such file", exitInput},
	} {
		out, said, status := unwindd(t, c.args...)
		if status != c.status || !strings.Contains(said, c.words) || out != "" {
			t.Errorf("%v: status %d, %q, expected %d, %q", c.args, status, said, c.status, c.words)
		}
	}
	t.Setenv("UNWINDD_SERVER", "unix:/nowhere")
	if _, said, status := unwindd(t, "stack", serverCore); status != exitInput || !strings.Contains(said, "server unix:/nowhere: ") {
		t.Errorf("UNWINDD_SERVER: status %d, %q", status, said)
	}
	if _, said, status := unwindd(t, "stack", "--server", "", serverCore); status != exitDone {
		t.Errorf("--server '': status %d, %q", status, said)
	}
	t.Setenv("UNWINDD_TOKEN", "0123456789abcdef")
	if _, said, status := unwindd(t, "stack", "--server", "203.0.113.1:80", serverCore); status != exitUsage || !strings.Contains(said, "without TLS") {
		t.Errorf("a token without TLS: status %d, %q", status, said)
	}
}

// freePort is a port of this machine that nobody listens at.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestServerWithTokens shows a token to a server over TLS, whose certificate is of an
// authority of its own.
func TestServerWithTokens(t *testing.T) {
	dir := t.TempDir()
	oracle.Tool(t, "openssl")
	cert, key, tokens := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "tokens")
	oracle.Run(t, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
		"-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert, "-days", "2")
	if err := os.WriteFile(tokens, []byte("me 0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	serve(t, "--listen", "localhost:"+port, "--tls-cert", cert, "--tls-key", key, "--tokens", tokens)
	want, _, _ := unwindd(t, "stack", serverCore)
	t.Setenv("SSL_CERT_FILE", cert)
	if _, said, status := unwindd(t, "stack", "--server", "https://localhost:"+port, serverCore); status != exitInput || !strings.Contains(said, "Bearer TOKEN") {
		t.Errorf("without a token: status %d, %q", status, said)
	}
	t.Setenv("UNWINDD_TOKEN", "0123456789abcdef")
	if got, said, status := unwindd(t, "stack", "--server", "https://localhost:"+port, serverCore); got != want || status != exitDone {
		t.Errorf("status %d, %q; %s", status, said, firstDifference(got, want))
	}
	t.Setenv("SSL_CERT_FILE", "/dev/null")
	if _, said, status := unwindd(t, "stack", "--server", "https://localhost:"+port, serverCore); status != exitInput || !strings.Contains(said, "certificate") {
		t.Errorf("of an unknown authority: status %d, %q", status, said)
	}
}
