// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/schema"
)

const examples = "../../../../examples"

// newServer makes a server of folders.
func newServer(t testing.TB, folders ...string) *Server {
	t.Helper()
	s, err := New(Options{Engine: enginetest.Engine(t, engine.Options{}), Roots: folders})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// connect makes a client of a server.
func connect(t testing.TB, s *Server) *mcp.ClientSession {
	t.Helper()
	near, far := mcp.NewInMemoryTransports()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(t.Context(), far) }()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), near, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return c
}

// call calls a tool: its text, its JSON, and whether it failed.
func call(t testing.TB, c *mcp.ClientSession, name string, arguments any) (text string, value object, isError bool) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s %v: %v", name, arguments, err)
	}
	for _, part := range r.Content {
		if p, ok := part.(*mcp.TextContent); ok {
			text += p.Text
		}
	}
	value, _ = r.StructuredContent.(object)
	return text, value, r.IsError
}

// TestToolsOverTheExamples asks each tool, and checks the answers by the schemas that the tools
// have.
func TestToolsOverTheExamples(t *testing.T) {
	c := connect(t, newServer(t, examples))
	outputs := map[string]schema.Schema{}
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if a := tool.Annotations; a == nil || !a.ReadOnlyHint || *a.DestructiveHint || *a.OpenWorldHint {
			t.Errorf("%s is not said to read only", tool.Name)
		}
		output, _ := tool.OutputSchema.(object)
		outputs[tool.Name] = schema.Schema(output)
	}
	for _, x := range []struct {
		tool      string
		arguments object
		want      []string // in the text
	}{
		{"stack", object{"path": "crash/server.core"}, []string{
			"null pointer: reads 1 byte at 0x0 in content_length", "thread 5266", "#0", "server.c:40:9", "3 threads: 5267-5269", "source of frame 0", ">    40 ",
		}},
		{"stack", object{"path": "crash/server.core", "thread": "5268", "frames": 2}, []string{"thread 5268", "pthread_cond_wait"}},
		{"stack", object{"path": "crash/server.dmp", "threads": 1}, []string{"threads left out"}},
		{"stack", object{"path": "mixed/mixed.snapshot"}, []string{"thread"}},
		{"variables", object{"path": "crash/server.core", "frame": 8}, []string{`"name":"batch"`, `"function":"main"`}},
		{"eval", object{"path": "crash/server.core", "frame": 8, "expression": "batch[1]->headers"}, []string{`"variable":{`, `"name":"batch[1]->headers"`}},
		{"code", object{"path": "crash/server.core", "frame": 1, "lines": 5}, []string{`"current":true`, `"rip":`}},
		{"source", object{"path": "crash/server.core", "frame": 2}, []string{"server.c:59", ">    59 "}},
		{"source", object{"file": "crash/server.c", "line": 40, "lines": 3}, []string{">    40 "}},
		{"profile_top", object{"path": "profile/perf.data", "lines": 3, "event": "cpu-clock"}, []string{`"event":"cpu-clock"`, `"self":`}},
	} {
		text, value, isError := call(t, c, x.tool, x.arguments)
		if isError {
			t.Errorf("%s %v: %s", x.tool, x.arguments, text)
			continue
		}
		for _, want := range x.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s %v has no %q:\n%s", x.tool, x.arguments, want, text)
			}
		}
		for _, wrong := range outputs[x.tool].Check(x.tool, value) {
			t.Errorf("%s %v: %s", x.tool, x.arguments, wrong)
		}
		if b, _ := json.Marshal(value); len(b) > maxAnswer || len(text) > maxAnswer {
			t.Errorf("%s %v: %d bytes of JSON, %d of text", x.tool, x.arguments, len(b), len(text))
		}
	}
}

// TestPathsOutOfRootsAreRefused holds that no tool opens a file that is not beneath a root.
func TestPathsOutOfRootsAreRefused(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret.c")
	core, err := os.ReadFile(filepath.Join(examples, "crash/server.core"))
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{secret: []byte("password\n"), filepath.Join(dir, "core"): core, filepath.Join(filepath.Dir(secret), "core"): core} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link.c": secret, "out": filepath.Dir(secret), "loop": "loop", "up": "../../../../../../../..", "in": "core"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	c := connect(t, newServer(t, dir))
	for _, path := range []string{
		"..", "../secret.c", "../" + filepath.Base(filepath.Dir(secret)) + "/core", secret, "link.c", "out/core", "out/secret.c", "up/etc/passwd", "loop", "/proc/self/mem",
		"/proc/self/fd/0", "/dev/stdin", "/etc/passwd", "", ".", "core/..", "core/x", "\x00", "no-such", strings.Repeat("a/", 3000), dir + "/../" + filepath.Base(filepath.Dir(secret)) + "/core", "4711", "-", "https://example.org/core",
	} {
		for _, tool := range []string{"stack", "variables", "code", "source", "profile_top", "eval"} {
			arguments := object{"path": path}
			if tool == "eval" {
				arguments["expression"] = "x"
			}
			if text, _, isError := call(t, c, tool, arguments); !isError || strings.Contains(text, "password") {
				t.Errorf("%s of %q is answered: %s", tool, path, text)
			}
		}
		if text, _, isError := call(t, c, "source", object{"file": path}); path != "" && path != "core/.." && (!isError || strings.Contains(text, "password")) {
			t.Errorf("source of file %q is answered: %s", path, text)
		}
	}
	// A link within the root leads to a file in it.
	if text, _, isError := call(t, c, "stack", object{"path": "in"}); isError {
		t.Error(text)
	}
	if text, _, isError := call(t, c, "stack", object{"path": filepath.Join(dir, "core")}); isError {
		t.Error(text)
	}
}

// TestRootMayBeEverything holds that the views of the kernel are refused beneath the root "/" too.
func TestRootMayBeEverything(t *testing.T) {
	c := connect(t, newServer(t, "/"))
	for _, path := range []string{"/proc/self/mem", "/proc/self/environ", "proc/self/maps"} {
		if text, _, isError := call(t, c, "source", object{"file": path}); !isError {
			t.Errorf("%s is answered: %s", path, text)
		}
	}
}

// TestErrorsHaveANextStep holds that the error of a wrong argument names what is expected.
func TestErrorsHaveANextStep(t *testing.T) {
	c := connect(t, newServer(t, examples))
	for _, x := range []struct {
		tool      string
		arguments any
		want      string
	}{
		{"stack", object{}, "path is missing: give"},
		{"stack", object{"path": "crash/sever.core"}, "that folder has"},
		{"stack", object{"path": "/etc/passwd"}, "--root"},
		{"stack", object{"path": "crash"}, "give the path of a core"},
		{"stack", object{"path": "crash/server.c"}, "give the path of a core, a minidump or a snapshot"},
		{"stack", object{"path": "crash/server.core", "thread": "1"}, "its threads are 5266"},
		{"stack", object{"path": "crash/server.core", "frames": 1000}, "expected 1 to 200"},
		{"stack", object{"path": "crash/server.core", "pid": 1}, "input schema"},
		{"stack", object{"path": 1}, "input schema"},
		{"variables", object{"path": "crash/server.core", "frame": 100}, "stack lists its frames"},
		{"variables", object{"path": "crash/server.core", "frame": -1}, "0 being the innermost"},
		{"eval", object{"path": "crash/server.core", "frame": 8, "expression": "nothing"}, "variables lists"},
		{"eval", object{"path": "crash/server.core", "frame": 8, "expression": "f(1)"}, "variables lists"},
		{"eval", object{"path": "crash/server.core"}, "expression has 0 bytes"},
		{"code", object{"path": "crash/server.core", "frame": 0}, "was inlined"},
		{"source", object{"path": "crash/server.core", "frame": 6}, "has no line"},
		{"source", object{"path": "crash/server.core", "file": "x"}, "expected one of them"},
		{"source", object{"file": "crash/server.c", "line": 10_000}, "no line 10000"},
		{"source", object{"file": "crash/server.core", "line": 1}, "is no text"},
		{"profile_top", object{"path": "crash/server.core"}, "give the path of a recording of perf"},
		{"profile_top", object{"path": "profile/perf.data", "event": "x"}, "expected one of: cpu-clock"},
	} {
		if text, _, isError := call(t, c, x.tool, x.arguments); !isError || !strings.Contains(text, x.want) {
			t.Errorf("%s %v: %q, expected %q", x.tool, x.arguments, text, x.want)
		}
	}
}

// TestTargetsAreKeptOpen holds that the second call uses the open target, that a file that has
// changed is opened again, and that few are open.
func TestTargetsAreKeptOpen(t *testing.T) {
	dir := t.TempDir()
	core := filepath.Join(dir, "core")
	put := func(path, from string) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(examples, from))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(path+".new", b, 0o600), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	s := newServer(t, dir)
	c := connect(t, s)
	ask := func(want string) *target {
		t.Helper()
		if text, _, isError := call(t, c, "stack", object{"path": "core"}); isError || !strings.Contains(text, want) {
			t.Errorf("no %q: %s", want, text)
		}
		return s.targets.list[0]
	}
	put(core, "crash/server.core")
	first := ask("elf-core")
	if again := ask("elf-core"); again != first {
		t.Error("the target was opened again")
	}
	put(core, "mixed/mixed.snapshot")
	if now := ask("snapshot"); now == first {
		t.Error("a file that was replaced is still the old one")
	}
	for i := range maxOpen + 3 {
		path := string(rune('a' + i))
		put(filepath.Join(dir, path), "crash/server.core")
		if text, _, isError := call(t, c, "stack", object{"path": path}); isError {
			t.Error(text)
		}
	}
	if n := len(s.targets.list); n != maxOpen {
		t.Errorf("%d targets are open, expected %d", n, maxOpen)
	}
}

// TestCallsEnd holds that a call ends in time though its tool does not, and that others get its
// place when it has ended.
func TestCallsEnd(t *testing.T) {
	s := newServer(t, examples)
	s.time = 20 * time.Millisecond
	ended := make(chan struct{})
	slow := tool{name: "slow", answer: func(context.Context, *Server, json.RawMessage) (*answer, error) {
		<-ended
		return &answer{}, nil
	}}
	for range atOnce {
		if _, err := s.call(t.Context(), slow, nil); err == nil || !strings.Contains(err.Error(), "ask for less") {
			t.Errorf("%v", err)
		}
	}
	quick := tool{name: "quick", answer: func(context.Context, *Server, json.RawMessage) (*answer, error) { return &answer{text: "x"}, nil }}
	if _, err := s.call(t.Context(), quick, nil); err == nil {
		t.Error("there is a place for one more call")
	}
	close(ended)
	s.time = time.Minute
	if _, err := s.call(t.Context(), quick, nil); err != nil {
		t.Error(err)
	}
	broken := tool{name: "broken", answer: func(context.Context, *Server, json.RawMessage) (*answer, error) { panic("oh") }}
	if _, err := s.call(t.Context(), broken, nil); err == nil || !strings.Contains(err.Error(), "a defect of unwindd") {
		t.Errorf("a panic: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.call(ctx, tool{name: "late", answer: func(ctx context.Context, _ *Server, _ json.RawMessage) (*answer, error) {
		<-ctx.Done()
		return nil, nil
	}}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was cancelled: %v", err)
	}
}

// TestGarbageEndsTheServer holds that messages that are none, or too long, are an error.
func TestGarbageEndsTheServer(t *testing.T) {
	for _, garbage := range []string{"\x00\xff\x7fELF", "{", "[]\n", "{}\n", "null\n", "1\n", strings.Repeat("[", 100_000), `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("a", 2*maxMessage) + "\"}\n", "GET / HTTP/1.1\r\n\r\n"} {
		s := newServer(t, examples)
		var out bytes.Buffer
		err := s.Serve(t.Context(), &mcp.IOTransport{Reader: io.NopCloser(strings.NewReader(garbage)), Writer: nopCloser{&out}, MaxLineLength: maxMessage})
		if err == nil {
			t.Errorf("%.20q: no error; it wrote %q", garbage, &out)
		}
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

var update = flag.Bool("update", false, "write stack.schema.json.gz")

// TestPackedSchema holds that the packed schema is that of the documents.
func TestPackedSchema(t *testing.T) {
	want, err := os.ReadFile("../../../../docs/stack.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		_, _ = w.Write(want)
		if err := errors.Join(w.Close(), os.WriteFile("stack.schema.json.gz", b.Bytes(), 0o644)); err != nil { //nolint:gosec // a source file
			t.Fatal(err)
		}
		return
	}
	r, err := gzip.NewReader(bytes.NewReader(stackSchema))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
		t.Errorf("stack.schema.json.gz is not docs/stack.schema.json (%v): run go test ./cmd/unwindd/internal/mcp -run Packed -update", err)
	}
}

// FuzzArguments calls tools with any arguments: the answer is a result or an error, is bounded,
// and has nothing of a file that is not beneath the root.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		`{"path":"crash/server.core"}`, `{"path":"crash/server.core","thread":"5267","frame":3,"depth":8,"elements":1000}`, `{"path":"../../go.mod"}`,
		`{"path":"crash/server.core","frame":8,"expression":"batch[1]->headers"}`, `{"file":"/etc/passwd","line":1}`, `{"file":"crash/server.c","lines":200}`,
		`{"path":"profile/perf.data","event":"cpu-clock"}`, `{"path":"crash/server.core","frame":4,"lines":100}`, `null`, `[]`, `{"path":null}`, ``,
	} {
		for i := range tools() {
			f.Add(byte(i), seed)
		}
	}
	s := newServer(f, examples)
	outside, err := os.ReadFile("/etc/passwd")
	if err != nil {
		f.Fatal(err)
	}
	line, _, _ := strings.Cut(string(outside), "\n")
	f.Fuzz(func(t *testing.T, number byte, arguments string) {
		x := tools()[int(number)%len(tools())]
		a, err := s.call(t.Context(), x, json.RawMessage(arguments))
		if err != nil {
			if strings.Contains(err.Error(), "a defect of unwindd") {
				t.Error(err)
			}
			return
		}
		r, err := a.result()
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(r)
		if err != nil || len(b) > 4*maxAnswer {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		if slices.Contains([]string{"source", "stack"}, x.name) && strings.Contains(string(b), line) {
			t.Errorf("the answer has a line of another file: %s", b)
		}
	})
}
