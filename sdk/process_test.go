// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/unwindd/unwindd/internal/oracle"
)

// processArch is served by this test's own executable.
type processArch struct{ Base }

func (*processArch) Describe(context.Context) (*Description, error) { return testDescription(), nil }

func (*processArch) FrameRules(ctx context.Context, e Engine, _ *FrameRulesRequest) (*FrameRulesAnswer, error) {
	buf := make([]byte, 4)
	if _, err := e.ReadMemory(ctx, MemoryRange{}, buf); err != nil {
		return nil, err
	}
	return &FrameRulesAnswer{Functions: []FrameRules{{Reason: string(buf) + " " + fmt.Sprint(os.Getpid())}}}, nil
}

// A served is a process of this test's executable that is a plugin.
type served struct {
	client *Client
	pid    int
	path   string        // where it listens
	its    *testIdentity // nil: it has none
	stderr *bytes.Buffer // complete when it has ended
	wait   func() error
}

// start starts this test's executable as a plugin, as the engine does, and connects to
// it; by TLS where it is given an identity and has it of its own.
func start(t testing.TB, serve string, own *testIdentity) *served {
	t.Helper()
	s := &served{stderr: &bytes.Buffer{}}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SDK_TEST_SERVE="+serve, Cookie+"="+CookieValue, SocketDirectory+"="+shortDir(t))
	if own != nil {
		s.its = newTestIdentity(t)
		cmd.Env = append(cmd.Env, EngineCertificate+"="+own.certificate, PluginIdentity+"="+s.its.certificate+s.its.key)
	}
	cmd.Stderr = s.stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.pid, s.wait = cmd.Process.Pid, sync.OnceValue(cmd.Wait)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = s.wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	parts := strings.Split(strings.TrimSuffix(line, "\n"), "|")
	if err != nil || len(parts) != 5 || parts[0] != "1" || parts[1] != "2" || parts[2] != "unix" || parts[4] != "grpc" {
		_ = cmd.Process.Kill()
		_ = s.wait()
		t.Fatalf("%q, %v, expected 1|2|unix|PATH|grpc: %s", line, err, s.stderr)
	}
	s.path = parts[3]
	s.client = s.dial(t, own)
	return s
}

// dial connects to the process, by TLS where it is given an identity.
func (s *served) dial(t testing.TB, own *testIdentity) *Client {
	t.Helper()
	secure := insecure.NewCredentials()
	if own != nil {
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM([]byte(s.its.certificate))
		secure = credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{own.pair(t)}, RootCAs: trusted, ServerName: "localhost"})
	}
	conn, err := grpc.NewClient("unix:"+s.path, grpc.WithTransportCredentials(secure))
	if err != nil {
		t.Fatal(err)
	}
	gone, end := context.WithCancel(context.Background())
	t.Cleanup(func() {
		end()
		conn.Close()
	})
	return NewClient(gone, conn, time.Minute)
}

// shortDir is a directory whose path leaves room for the name of a socket.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "sdk-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// A testIdentity is a certificate and its key, PEM.
type testIdentity struct{ certificate, key string }

func newTestIdentity(t testing.TB) *testIdentity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return &testIdentity{text("CERTIFICATE", der), text("EC PRIVATE KEY", keyDER)}
}

func (i *testIdentity) pair(t testing.TB) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(i.certificate), []byte(i.key))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func TestServedProcessAnswersAndReadsBack(t *testing.T) {
	for name, own := range map[string]*testIdentity{"TLS": newTestIdentity(t), "no TLS": nil} {
		t.Run(name, func(t *testing.T) {
			s := start(t, "reads", own)
			a, err := s.client.FrameRules(context.Background(), &testEngine{memory: []byte("word")}, &FrameRulesRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprint("word ", s.pid); a.Functions[0].Reason != want {
				t.Errorf("%q, want %q", a.Functions[0].Reason, want)
			}
		})
	}
}

// TestNobodyElseIsAnswered: a plugin that was given a certificate of the engine answers
// only who has it.
func TestNobodyElseIsAnswered(t *testing.T) {
	own := newTestIdentity(t)
	s := start(t, "reads", own)
	for name, c := range map[string]*Client{"another certificate": s.dial(t, newTestIdentity(t)), "no TLS": s.dial(t, nil)} {
		if d, err := c.Describe(t.Context()); err == nil {
			t.Errorf("%s: %v", name, d)
		}
	}
	if _, err := s.client.Describe(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestServeSaysWhatIsMissing: a process that an engine started wrongly says so and ends.
func TestServeSaysWhatIsMissing(t *testing.T) {
	for want, env := range map[string][]string{
		SocketDirectory + " is not set": {},
		"one of them is not set":        {SocketDirectory + "=" + shortDir(t), EngineCertificate + "=x"},
		PluginIdentity + ": ":           {SocketDirectory + "=" + shortDir(t), EngineCertificate + "=x", PluginIdentity + "=x"},
		"no such file or directory":     {SocketDirectory + "=/nowhere"},
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(append(os.Environ(), "SDK_TEST_SERVE=reads", Cookie+"="+CookieValue), env...)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, %s, expected status 1 and %q", env, err, out, want)
		}
	}
}

// TestOutputIsShown: what a plugin writes to standard output once it is ready comes out
// at standard error, and a panic is a line of hclog's JSON there.
func TestOutputIsShown(t *testing.T) {
	s := start(t, "talks", nil)
	var remote *RemoteError
	if _, err := s.client.FrameRules(t.Context(), nil, &FrameRulesRequest{}); !errors.As(err, &remote) || !remote.Panicked ||
		!strings.Contains(remote.Place, "talkingArch).FrameRules (process_test.go:") {
		t.Fatalf("%v", err)
	}
	_ = oracle.Kill(s.pid, syscall.SIGKILL)
	_ = s.wait()
	text, entry, _ := strings.Cut(s.stderr.String(), "\n")
	var e map[string]any
	if err := json.Unmarshal([]byte(entry), &e); err != nil || text != "said" {
		t.Fatalf("%v: %s", err, s.stderr)
	}
	for member, want := range map[string]string{"@level": "error", "@message": "panicked", "call": "FrameRules", "panic": "boom", "stack": "talkingArch", "@timestamp": "T"} {
		if got, _ := e[member].(string); !strings.Contains(got, want) {
			t.Errorf("%s is %q, expected %q", member, got, want)
		}
	}
}

// talkingArch says something and panics.
type talkingArch struct{ processArch }

func (*talkingArch) FrameRules(context.Context, Engine, *FrameRulesRequest) (*FrameRulesAnswer, error) {
	fmt.Println("said")
	panic("boom")
}

func TestDeadProcessIsNotARemoteError(t *testing.T) {
	s := start(t, "reads", newTestIdentity(t))
	c := s.client
	if err := oracle.Kill(s.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, err := range []error{
		func() error { _, err := c.Describe(ctx); return err }(),
		func() error { _, err := c.FrameRules(ctx, &testEngine{}, &FrameRulesRequest{}); return err }(),
	} {
		var remote *RemoteError
		if err == nil || errors.As(err, &remote) || ctx.Err() != nil {
			t.Errorf("%v", err)
		}
	}
}

func TestProcessStartedByHandSaysWhatItIs(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SDK_TEST_SERVE=reads")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("exit: %v", err)
	}
	if !strings.Contains(string(out), "this is a plugin of unwindd") {
		t.Errorf("%s", out)
	}
}

// TestNameInADebugger: an executable that is not called as plugins are, as debuggers call
// what they build, is known by the name of its architecture.
func TestNameInADebugger(t *testing.T) {
	for arg0, want := range map[string]string{"/src/__debug_bin123": testDescription().Name, "./unwindd-arch-mychip": "mychip"} {
		cmd := exec.Command(os.Args[0])
		cmd.Args[0] = arg0
		cmd.Env = append(os.Environ(), "SDK_TEST_SERVE=reads", Debug+"=1", "TMPDIR="+shortDir(t)+"/it's")
		if err := os.Mkdir(cmd.Env[len(cmd.Env)-1][len("TMPDIR="):], 0o700); err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err != nil || cmd.Wait() != nil {
			t.Fatalf("%q, %v, %v", line, err, cmd.ProcessState)
		}
		value, err := exec.Command("/bin/sh", "-c", line+`printf %s "$`+Reattach+`"`).Output()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var all map[string]Reattachment
		if err := json.Unmarshal(value, &all); err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		r := all[want]
		if r.Protocol != "grpc" || r.ProtocolVersion != ProtocolVersion || r.Pid != cmd.Process.Pid || r.Addr.Network != "unix" || !strings.Contains(r.Addr.String, "it's/unwindd-debug") {
			t.Errorf("%s: %s", arg0, value)
		}
	}
}

// TestProcessEndsWithItsEngine kills an engine as the kernel's memory killer
// would, without a word to the plugin.
func TestProcessEndsWithItsEngine(t *testing.T) {
	if os.Getenv("SDK_TEST_ENGINE") != "" {
		s := start(t, "reads", newTestIdentity(t))
		if _, err := s.client.Describe(context.Background()); err != nil {
			t.Fatal(err)
		}
		fmt.Println("plugin", s.pid)
		select {}
	}
	engine := exec.Command(os.Args[0], "-test.run=^TestProcessEndsWithItsEngine$")
	engine.Env = append(os.Environ(), "SDK_TEST_ENGINE=1")
	out, err := engine.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		fmt.Sscanf(lines.Text(), "plugin %d", &pid)
	}
	if err := engine.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = engine.Wait()
	if pid == 0 {
		t.Fatal("the plugin was not started")
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if gone(pid) {
			return
		}
		if time.Now().After(deadline) {
			_ = oracle.Kill(pid, syscall.SIGKILL)
			t.Fatalf("process %d outlived its engine", pid)
		}
	}
}

// gone says whether a process has ended; one that nobody waits for has too.
func gone(pid int) bool {
	if err := oracle.Kill(pid, 0); err != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}
