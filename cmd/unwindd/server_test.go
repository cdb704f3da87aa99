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

	"github.com/unwindd/unwindd/internal/oracle"
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

// TestServerEqualsLocal asks a server in every form of output, about targets that are there
// and one that is not.
func TestServerEqualsLocal(t *testing.T) {
	s := serve(t)
	s.compareWithLocal(t, serverCore, "--locals", "--registers")
	s.compareWithLocal(t, mixed, "--format", "json", "--locals", "--raw", "--depth", "9", "--code", "3")
	s.compareWithLocal(t, serverCore, "--format", "html", "--sysroot", "/nowhere")
	s.compareWithLocal(t, mixed, "--thread", "nobody")
	s.compareWithLocal(t, serverCore, mixed)
	s.compareWithLocal(t, filepath.Dir(serverCore), "--format", "json")
	s.compareWithLocal(t, "/nowhere", "--signature", serverCore, mixed)
	s.compareWithLocal(t, "/nowhere")
	s.compareWithLocal(t, "--crashed", "--thread", "1", serverCore)
}

// TestServerOfOtherTargets asks about targets that are made: with separate debug files, from
// standard input, and of a process that lives.
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

// TestServerSaysWhatWasSent has -v tell how many bytes went to a server, of a core a part.
func TestServerSaysWhatWasSent(t *testing.T) {
	s := serve(t)
	_, said, status := unwindd(t, append(s.flags(), "-v", serverCore)...)
	sent := 0
	if _, rest, ok := strings.Cut(said, serverCore+": "); !ok || status != exitDone {
		t.Fatalf("status %d: %s", status, said)
	} else if _, err := fmt.Sscanf(rest, "%d bytes were sent", &sent); err != nil || sent == 0 {
		t.Errorf("%q: %v", said, err)
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
		{[]string{"dump", "rows", "--server", "unix:/nowhere", "x"}, "expected one of the commands stack, profile", exitUsage},
		{[]string{"stack", "--server", "unix:/nowhere", serverCore}, "no server answers at unix:/nowhere (no such file or directory)", exitInput},
		{[]string{"stack", "--server", "unix:/nowhere", "/nowhere.core"}, "/nowhere.core: no such file", exitInput},
	} {
		out, said, status := unwindd(t, c.args...)
		if status != c.status || !strings.Contains(said, c.words) || out != "" {
			t.Errorf("%v: status %d, %q, expected %d, %q", c.args, status, said, c.status, c.words)
		}
	}
	t.Setenv("UNWINDD_SERVER", "unix:/nowhere")
	if _, said, status := unwindd(t, "stack", serverCore); status != exitInput || !strings.Contains(said, "no server answers at unix:/nowhere (no such file or directory)") {
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
