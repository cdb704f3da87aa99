// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/unwindd/unwindd/internal/oracle"
)

// mcpClient is a client of `unwindd mcp` in a process of its own.
type mcpClient struct {
	*mcp.ClientSession
	transcript strings.Builder
}

// newMCPClient starts the command with flags.
func newMCPClient(t *testing.T, flags ...string) *mcpClient {
	t.Helper()
	cmd := command(append([]string{"mcp"}, flags...)...)
	cmd.Stderr = os.Stderr
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	})
	return &mcpClient{ClientSession: session}
}

// ask calls a tool, and returns its text. The JSON of the answer goes to value, unless that is nil.
func (c *mcpClient) ask(t *testing.T, tool string, arguments map[string]any, value any) string {
	t.Helper()
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, part := range r.Content {
		if p, ok := part.(*mcp.TextContent); ok {
			text += p.Text
		}
	}
	asked, _ := json.Marshal(arguments)
	fmt.Fprintf(&c.transcript, ">>> %s %s\n%s\n\n", tool, asked, strings.TrimSuffix(text, "\n"))
	if value != nil && !r.IsError {
		b, err := json.Marshal(r.StructuredContent)
		if err := errors.Join(err, json.Unmarshal(b, value)); err != nil {
			t.Fatal(err)
		}
	}
	return text
}

// TestMCPIsACommand asks a server in a process of its own, whose plugins are processes too.
func TestMCPIsACommand(t *testing.T) {
	c := newMCPClient(t, "--root", crashDir)
	if text := c.ask(t, "stack", map[string]any{"path": "server.core"}, nil); !strings.Contains(text, "null pointer: reads 1 byte at 0x0 in content_length") {
		t.Error(text)
	}
	if text := c.ask(t, "profile_top", map[string]any{"path": "../profile/perf.data"}, nil); !strings.Contains(text, "leads out of") {
		t.Error(text)
	}
}

// TestMCPReadsMessagesOnly holds that what is no message ends the command with an error and its
// status, and that a client that goes ends it without.
func TestMCPReadsMessagesOnly(t *testing.T) {
	for _, c := range []struct {
		input, stderr string
		status        int
		args          []string
	}{
		{"", "", exitDone, nil},
		{"\x7fELF\x02\x01\x01", "the client's messages", exitInput, nil},
		{"{\"jsonrpc\"", "the client's messages", exitInput, nil},
		{"", "core", exitUsage, []string{"core"}},
		{"", "--root /nowhere", exitUsage, []string{"--root", "/nowhere"}},
		{"", "the protocol has its own form", exitUsage, []string{"--format", "json"}},
	} {
		cmd := command(append([]string{"mcp"}, c.args...)...)
		var errs bytes.Buffer
		cmd.Stdin, cmd.Stderr = strings.NewReader(c.input), &errs
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if status := cmd.ProcessState.ExitCode(); status != c.status || !strings.Contains(errs.String(), c.stderr) || strings.Contains(errs.String(), "goroutine ") {
			t.Errorf("%q %v: status %d, expected %d: %s", c.input, c.args, status, c.status, &errs)
		}
	}
}

// crashes are the programs of testdata/mcp, how they are built and run in a folder that has them,
// and the cause that a client is to find.
var crashes = []struct {
	name, build, run string
	want             []string
}{
	{"orders", "g++ -O2 -g orders.cpp -o orders", "./orders", []string{"null pointer: reads 8 bytes at 0x0", "total", "orders.cpp:26", "p.price->cents"}},
	{"ledger", "rustc -g -C panic=abort ledger.rs -o ledger", "./ledger", []string{"ledger.rs:11", "Ledger::apply", "get_mut(to).unwrap()"}},
	{"visits", "cp visits.go.txt visits.go && go build -o visits visits.go", "GOTRACEBACK=crash ./visits", []string{"assignment to entry in nil map", "visit", "visits.go:14", "c.visits[p]++"}},
	{
		"scores", "cc -g -O1 -shared -fPIC $(python3-config --includes) scores.c -o scores.so", "python3 game.py",
		[]string{"null pointer", "scores.c:22", "add", "found->points += points"},
	},
	{"bank", "g++ -g -O1 -pthread bank.cpp -o bank", "./bank & sleep 1; kill -ABRT $!; wait $!", []string{"deadlock: thread", "held by", "transfer", "bank.cpp:11"}},
}

// TestMCPClientFindsCauses crashes five programs, and has a client that knows only the tools look
// for the causes: the stack, then the variables and the source of the first frame that is the
// program's own. Its transcript is in the log.
func TestMCPClientFindsCauses(t *testing.T) {
	oracle.All(t)
	oracle.Tools(t, "g++", "rustc", "go", "cc", "python3", "python3-config", "sh")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/mcp")); err != nil {
		t.Fatal(err)
	}
	c := newMCPClient(t, "--root", dir)
	for _, x := range crashes {
		t.Run(x.name, func(t *testing.T) {
			core := crash(t, dir, x.name, x.build, x.run)
			c.transcript.Reset()
			c.explain(t, core)
			for _, want := range x.want {
				if !strings.Contains(c.transcript.String(), want) {
					t.Errorf("the client has got no %q", want)
				}
			}
			t.Logf("\n%s", c.transcript.String())
		})
	}
}

// explain asks for the stack of a crash, and for what is in its first own frame.
func (c *mcpClient) explain(t *testing.T, core string) {
	t.Helper()
	var found struct {
		Target struct {
			Deadlocks [][]string `json:"deadlocks"`
		} `json:"target"`
		Threads []struct {
			ID    string `json:"id"`
			First *int   `json:"first_own_frame"`
		} `json:"threads"`
	}
	c.ask(t, "stack", map[string]any{"path": core}, &found)
	for _, ids := range found.Target.Deadlocks {
		for _, id := range ids {
			c.ask(t, "stack", map[string]any{"path": core, "thread": id, "frames": 8}, nil)
		}
	}
	for _, th := range found.Threads {
		if th.First == nil {
			continue
		}
		at := map[string]any{"path": core, "thread": th.ID, "frame": *th.First}
		c.ask(t, "source", at, nil)
		c.ask(t, "variables", at, nil)
		return
	}
}

// crash builds and runs a program in a folder, and returns the name of its core there.
func crash(t *testing.T, dir, name, build, run string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", build+` && ulimit -c unlimited && { `+run+`; } >/dev/null 2>&1`) //nolint:gosec // of this file
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	cores, _ := filepath.Glob(filepath.Join(dir, "core*"))
	if len(cores) != 1 {
		oracle.Missing(t, "a core of %s (core_pattern, ulimit -c): %s", name, out)
	}
	core := name + ".core"
	if err := os.Rename(cores[0], filepath.Join(dir, core)); err != nil {
		t.Fatal(err)
	}
	return core
}
