// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/oracle"
)

// A daemon is a server that is operated: its log, its signals, what it leaves.
type daemon struct {
	command *exec.Cmd
	client  *http.Client
	dir     string
	socket  string
	log     *lines
	ended   chan struct{}
}

// lines keep what a process writes.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// patience bounds how long something may take on a machine that is busy.
const patience = 5 * time.Minute

// await waits until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: it does not come", what)
		}
	}
}

// shortDir is a folder whose path is short: those of sockets are bounded.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ops-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// startDaemon starts a server in a folder, and waits until it listens.
func startDaemon(t *testing.T, dir string, env []string, flags ...string) *daemon {
	t.Helper()
	d := &daemon{dir: dir, socket: filepath.Join(dir, "unwindd.sock"), log: &lines{}, ended: make(chan struct{})}
	d.command = command(append([]string{"serve", "--log-level", "debug"}, flags...)...)
	d.command.Env = append(append(d.command.Env, "XDG_RUNTIME_DIR="+dir, "XDG_STATE_HOME="+filepath.Join(dir, "state"), "DEBUGINFOD_URLS="), env...)
	d.command.Stderr = d.log
	out := &lines{}
	d.command.Stdout = out
	d.run(t)
	await(t, "listening: "+d.log.String(), func() bool { return strings.HasPrefix(out.String(), "listening ") })
	return d
}

// run starts the command, and makes a client of its socket.
func (d *daemon) run(t *testing.T) {
	t.Helper()
	d.command.WaitDelay = 10 * time.Second // for who else has its standard error
	if err := d.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = d.command.Wait()
		close(d.ended)
	}()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", d.socket)
	}}
	d.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		for _, pid := range descendants(d.command.Process.Pid) { // a tracer that is killed leaves the server
			_ = oracle.Kill(pid, syscall.SIGKILL)
		}
		_ = d.command.Process.Kill()
		<-d.ended
		if t.Failed() {
			t.Log(d.log.String())
		}
	})
}

// listens says that the socket takes connections. Its file is there a moment before that.
func (d *daemon) listens() bool {
	c, err := net.Dial("unix", d.socket)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

// request makes a request.
func (d *daemon) request(t *testing.T, method, path string, body io.Reader, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := d.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

// core is the example's core.
func core(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(serverCore)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// walk has the example walked.
func (d *daemon) walk(t *testing.T, headers ...string) *http.Response {
	t.Helper()
	answer, text := d.request(t, http.MethodPost, "/v1/stack", bytes.NewReader(core(t)), headers...)
	if answer.StatusCode != http.StatusOK || !strings.Contains(text, "null pointer") {
		t.Fatalf("%s: %s", answer.Status, text)
	}
	return answer
}

// signal sends a signal, and wait waits for the end and returns the exit status.
func (d *daemon) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := d.command.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

func (d *daemon) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-d.ended:
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	return d.command.ProcessState.ExitCode()
}

// descendants are the processes that a process has started, and those that they have.
func descendants(pid int) (all []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	parents := map[int][]int{}
	for _, path := range stats {
		b, _ := os.ReadFile(path) // it may be gone
		_, rest, _ := strings.Cut(string(b), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[0] != "Z" {
			parent, _ := strconv.Atoi(fields[1])
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			parents[parent] = append(parents[parent], child)
		}
	}
	for todo := []int{pid}; len(todo) > 0; todo = todo[1:] {
		all = append(all, parents[todo[0]]...)
		todo = append(todo, parents[todo[0]]...)
	}
	return all
}

// living are those processes of a list that are there.
func living(list []int) (left []int) {
	for _, pid := range list {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if _, rest, _ := strings.Cut(string(b), ") "); err == nil && !strings.HasPrefix(rest, "Z") {
			left = append(left, pid)
		}
	}
	return left
}

// left are the files of a daemon's folder that an end should not leave.
func (d *daemon) left() (list []string) {
	for _, pattern := range []string{"unwindd.sock", "unwindd/s-*", "state/unwindd/spool/*", "state/unwindd/objects/part-*"} {
		found, _ := filepath.Glob(filepath.Join(d.dir, pattern))
		list = append(list, found...)
	}
	return list
}

// slowly sends a body whose end comes when it is told to.
func (d *daemon) slowly(t *testing.T, method, path string) (finish func(), answer chan *http.Response) {
	t.Helper()
	reads, writes := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, reads)
	if err != nil {
		t.Fatal(err)
	}
	answer = make(chan *http.Response, 1)
	go func() {
		a, err := d.client.Do(r)
		if err != nil {
			a = nil
		}
		answer <- a
	}()
	all := core(t)
	if _, err := writes.Write(all[:len(all)/2]); err != nil {
		t.Fatal(err)
	}
	return func() {
		_, _ = writes.Write(all[len(all)/2:])
		_ = writes.Close()
	}, answer
}

// TestServeDrains ends a server while a request is under way, which is answered.
func TestServeDrains(t *testing.T) {
	d := startDaemon(t, shortDir(t), nil)
	d.walk(t)
	open, err := net.Dial("unix", d.socket) //nolint:noctx // the test has a limit
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	answers := bufio.NewReader(open)
	ask := func(path string) *http.Response {
		t.Helper()
		if _, err := fmt.Fprintf(open, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
			t.Fatal(err)
		}
		a, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, a.Body)
		_ = a.Body.Close()
		return a
	}
	if a := ask("/healthz"); a.StatusCode != http.StatusOK {
		t.Fatal(a.Status)
	}
	finish, answer := d.slowly(t, http.MethodPost, "/v1/stack?format=text")
	started := descendants(d.command.Process.Pid)
	if len(started) < 2 {
		t.Fatalf("processes %v, expected a worker and a plugin", started)
	}
	d.signal(t, syscall.SIGTERM)
	await(t, "draining", func() bool { return strings.Contains(d.log.String(), "draining") })
	await(t, "the listener closed", func() bool { _, err := os.Stat(d.socket); return os.IsNotExist(err) })
	for _, path := range []string{"/healthz", "/v1/objects/0102030405060708"} {
		if a := ask(path); a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s while it drains: %s, Retry-After %q", path, a.Status, a.Header.Get("Retry-After"))
		}
	}
	finish()
	a := <-answer
	if a == nil {
		t.Fatal("what was under way is not answered")
	}
	text, err := io.ReadAll(a.Body)
	_ = a.Body.Close()
	if err != nil || a.StatusCode != http.StatusOK || !bytes.Contains(text, []byte("null pointer")) || a.Trailer.Get("Unwindd-Status") != "ok" {
		t.Errorf("%s: %v: %s", a.Status, err, text)
	}
	if status := d.wait(t); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if list := d.left(); len(list) > 0 {
		t.Errorf("it leaves %v", list)
	}
	// Plugins end a moment after the process that they work for.
	await(t, "all processes ended", func() bool { return len(living(started)) == 0 })
}

// TestServeEndsAtOnce sends a second SIGTERM while a request is under way.
func TestServeEndsAtOnce(t *testing.T) {
	d := startDaemon(t, shortDir(t), nil)
	d.walk(t)
	finish, answer := d.slowly(t, http.MethodPut, "/v1/objects/0102030405060708")
	await(t, "a part", func() bool { return len(d.left()) > 2 })
	started := descendants(d.command.Process.Pid)
	d.signal(t, syscall.SIGTERM)
	await(t, "draining", func() bool { return strings.Contains(d.log.String(), "draining") })
	d.signal(t, syscall.SIGTERM)
	if status := d.wait(t); status != exitSignal+int(syscall.SIGTERM) {
		t.Errorf("exit status %d", status)
	}
	go finish() // the client waits for the body, not for the answer alone
	if a := <-answer; a != nil {
		t.Errorf("%s", a.Status)
		_ = a.Body.Close()
	}
	await(t, "the end of its processes", func() bool { return len(living(started)) == 0 })
	for _, path := range d.left() {
		if !strings.Contains(path, "/part-") { // the next start removes it
			t.Errorf("it leaves %s", path)
		}
	}
}

// TestServeIsKilled kills a server. Its processes end with it, and the next one removes what
// it left, but not what a living one has.
func TestServeIsKilled(t *testing.T) {
	dir := shortDir(t)
	d := startDaemon(t, dir, nil)
	d.walk(t)
	d.slowly(t, http.MethodPut, "/v1/objects/0102030405060708")
	await(t, "a part", func() bool {
		return slices.ContainsFunc(d.left(), func(s string) bool { return strings.Contains(s, "/part-") })
	})
	started := descendants(d.command.Process.Pid)
	if len(started) < 2 {
		t.Fatalf("processes %v, expected a worker and a plugin", started)
	}
	d.signal(t, syscall.SIGKILL)
	d.wait(t)
	killed := time.Now()
	await(t, "the end of its processes", func() bool { return len(living(started)) == 0 })
	t.Logf("its processes ended %v after it", time.Since(killed))
	before := d.left()
	if len(before) < 3 {
		t.Errorf("it leaves %v, expected a socket, a folder and a part", before)
	}
	next := startDaemon(t, dir, nil)
	for _, path := range before {
		if _, err := os.Stat(path); err == nil && path != next.socket {
			t.Errorf("the next server does not remove %s", path)
		}
	}
	next.walk(t)
	other := startDaemon(t, dir, nil, "--listen", "unix:"+filepath.Join(dir, "other.sock"))
	next.walk(t) // its worker's folder is there
	other.signal(t, syscall.SIGTERM)
	next.signal(t, syscall.SIGTERM)
	if a, b := other.wait(t), next.wait(t); a != 0 || b != 0 {
		t.Errorf("exit statuses %d and %d", a, b)
	}
	if list := next.left(); len(list) > 0 {
		t.Errorf("they leave %v", list)
	}
}

// TestServeSettings has a server do what its configuration file says, and again what it says
// later.
func TestServeSettings(t *testing.T) {
	dir := shortDir(t)
	path := filepath.Join(dir, "c.toml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	status := func(d *daemon) int {
		answer, _ := d.request(t, http.MethodPost, "/v1/stack", bytes.NewReader(core(t)))
		return answer.StatusCode
	}
	write("[serve]\nmax-body = \"1000\"\nworkers = 1\nlog-json = true\nmax-idle = \"90s\"\n")
	d := startDaemon(t, dir, nil, "--config", path)
	if got := status(d); got != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, expected 413 by max-body of the file", got)
	}
	reload := func(text, said string) {
		t.Helper()
		write(text)
		n := strings.Count(d.log.String(), said)
		d.signal(t, syscall.SIGHUP)
		await(t, said, func() bool { return strings.Count(d.log.String(), said) > n })
	}
	reload("[serve]\nworkers = 2\nlog-json = true\nmax-idle = \"90s\"\n", `"@message":"reloaded"`)
	if !strings.Contains(d.log.String(), `"setting":"workers"`) {
		t.Error("it does not say that workers take a restart")
	}
	if got := status(d); got != http.StatusOK {
		t.Errorf("status %d, expected 200 by the default of max-body", got)
	}
	reload("[serve]\nmax-body = \"1000\"\nmax-bodies = 3\n", "not reloaded")
	reload("[serve]\nmax-body = \"1000\"\ntokens = \"/nowhere\"\n", "not reloaded")
	if got := status(d); got != http.StatusOK {
		t.Errorf("status %d: a file that is wrong changes something", got)
	}
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("somebody 0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	reload("[serve]\nlog-json = true\ntokens = \""+tokens+"\"\n", `"@message":"reloaded"`)
	if got := status(d); got != http.StatusUnauthorized {
		t.Errorf("status %d, expected 401 by the tokens", got)
	}
	d.walk(t, "Authorization", "Bearer 0123456789abcdef")
	for line := range strings.Lines(d.log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("%q is not JSON", line)
		}
	}
	write("[serve]\nmax-body = \"1000\"\n")
	given := startDaemon(t, dir, nil, "--config", path, "--max-body", "1G", "--listen", "unix:"+filepath.Join(dir, "given.sock"))
	given.socket = filepath.Join(dir, "given.sock")
	given.walk(t)
	given.signal(t, syscall.SIGHUP)
	await(t, "reloaded", func() bool { return strings.Contains(given.log.String(), "reloaded") })
	given.walk(t) // the flag counts
}

// TestWrongServeSettings names the line.
func TestWrongServeSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.toml")
	for _, c := range []struct{ text, want string }{
		{"[serve]\nmax-bodies = 3\n", `:2: there is no setting "serve.max-bodies", expected client-ca, debug-dir,`},
		{"[serve]\n\nlisten = \"x\"\n", ":3: serve.listen: expected a list of strings"},
		{"[serve]\nworkers = \"x\"\n", ":2: serve.workers: expected a number"},
		{"[serve]\nmax-body = true\n", `:2: serve.max-body: expected a string with bytes, as "500M" or "4G"`},
		{"serve.workers = 1\nserve.max-body = '-1'\n", ":2: serve.max-body: expected bytes"},
		{"[serve]\ndrain = 3\n", `:2: serve.drain: expected a string with a duration, as "90s" or "2m"`},
		{"[serve]\nmax-body = \"many\"\n", ":2: serve.max-body: expected bytes, as 500M or 200G"},
		{"[serve]\ndrain = \"soon\"\n", ":2: serve.drain: expected a duration, as 90s or 2m"},
		{"[serve]\nlog-json = 1\n", ":2: serve.log-json: expected true or false"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := (&globals{config: path}).settings(); err == nil || !strings.HasPrefix(err.Error(), path+c.want) {
			t.Errorf("%q: %v\nexpected %s", c.text, err, c.want)
		}
	}
	flags := newServe(&globals{}).Flags()
	for _, f := range serveFields {
		if name := f.Tag.Get("toml"); flags.Lookup(name) == nil && name != "in-process" {
			t.Errorf("there is a setting %s, and no flag", name)
		}
	}
}

// TestServeCheck asks a server whether it takes requests.
func TestServeCheck(t *testing.T) {
	dir := shortDir(t)
	check := func() error {
		c := command("serve", "--check")
		c.Env = append(c.Env, "XDG_RUNTIME_DIR="+dir)
		return c.Run()
	}
	if check() == nil {
		t.Error("there is no server, but the check says so")
	}
	startDaemon(t, dir, nil)
	if err := check(); err != nil {
		t.Errorf("the server takes requests: %v", err)
	}
}
