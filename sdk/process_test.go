// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
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

// start starts this test's executable as a plugin.
func start(t testing.TB, serve string, configure func(*plugin.ClientConfig)) (*plugin.Client, *Client) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SDK_TEST_SERVE="+serve)
	config := &plugin.ClientConfig{
		HandshakeConfig:  Handshake(),
		VersionedPlugins: ClientPlugins(),
		Cmd:              cmd,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Logger:           hclog.NewNullLogger(),
		AutoMTLS:         true,
	}
	if configure != nil {
		configure(config)
	}
	p := plugin.NewClient(config)
	t.Cleanup(p.Kill)
	protocol, err := p.Client()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := protocol.Dispense(PluginName)
	if err != nil {
		t.Fatal(err)
	}
	return p, raw.(*Client)
}

func TestServedProcessAnswersAndReadsBack(t *testing.T) {
	for name, configure := range map[string]func(*plugin.ClientConfig){
		"TLS":    nil,
		"no TLS": func(c *plugin.ClientConfig) { c.AutoMTLS = false },
	} {
		t.Run(name, func(t *testing.T) {
			p, c := start(t, "reads", configure)
			if v := p.NegotiatedVersion(); v != ProtocolVersion {
				t.Errorf("protocol version %d", v)
			}
			a, err := c.FrameRules(context.Background(), &testEngine{memory: []byte("word")}, &FrameRulesRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if want := "word " + p.ID(); a.Functions[0].Reason != want {
				t.Errorf("%q, want %q", a.Functions[0].Reason, want)
			}
		})
	}
}

func TestDeadProcessIsNotARemoteError(t *testing.T) {
	p, c := start(t, "reads", nil)
	pid, err := strconv.Atoi(p.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
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
	if !strings.Contains(string(out), "architecture plugin of unwindd") {
		t.Errorf("%s", out)
	}
}

// TestProcessEndsWithItsEngine kills an engine as the kernel's memory killer
// would, without a word to the plugin.
func TestProcessEndsWithItsEngine(t *testing.T) {
	if os.Getenv("SDK_TEST_ENGINE") != "" {
		p, c := start(t, "reads", nil)
		if _, err := c.Describe(context.Background()); err != nil {
			t.Fatal(err)
		}
		fmt.Println("plugin", p.ID())
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
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("process %d outlived its engine", pid)
		}
	}
}

// gone says whether a process has ended; one that nobody waits for has too.
func gone(pid int) bool {
	if err := syscall.Kill(pid, 0); err != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}
