// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
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

const unitsDir = "../../internal/dist/systemd/"

// TestUnits has systemd read the units of the package, and judge what the service may do.
func TestUnits(t *testing.T) {
	oracle.Tools(t, "systemd-analyze")
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, name := range []string{"unwindd.socket", "unwindd.service", "unwindd-worker.service"} {
		b, err := os.ReadFile(unitsDir + name)
		if err != nil {
			t.Fatal(err)
		}
		// Neither the executable nor its manual pages are installed here.
		text := strings.ReplaceAll(string(b), "/usr/bin/unwindd", self)
		text = documentation.ReplaceAllString(text, "")
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	said, err := exec.Command("systemd-analyze", append([]string{"verify"}, paths...)...).CombinedOutput() //nolint:gosec,noctx // a tool
	if err != nil || len(said) > 0 {
		t.Errorf("%v: %s", err, said)
	}
	for _, service := range paths[1:] {
		said, err = exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=20", service).CombinedOutput() //nolint:gosec,noctx // a tool
		if err != nil {
			t.Errorf("%v: %s", err, said)
		}
	}
}

// documentation names manual pages.
var documentation = regexp.MustCompile(`(?m)^Documentation=.*\n`)

// TestBothServicesMayDoTheSame compares what the services of the package are confined by.
func TestBothServicesMayDoTheSame(t *testing.T) {
	var lines []string
	for _, name := range []string{"unwindd.service", "unwindd-worker.service"} {
		b, err := os.ReadFile(unitsDir + name)
		if err != nil {
			t.Fatal(err)
		}
		_, confined, ok := strings.Cut(string(b), "NoNewPrivileges=")
		if !ok {
			t.Fatalf("%s is not confined", name)
		}
		confined, _, _ = strings.Cut(confined, "[Install]")
		lines = append(lines, confined)
	}
	if lines[0] != lines[1] {
		t.Errorf("the services are confined by\n%s\nand by\n%s", lines[0], lines[1])
	}
}

// filterGroup are the system calls of a group of systemd's.
func filterGroup(t *testing.T, group string) (calls []string) {
	t.Helper()
	said := oracle.Run(t, "systemd-analyze", "syscall-filter", group)
	for i, line := range strings.Split(said, "\n") {
		switch line = strings.TrimSpace(line); {
		case i == 0 || line == "" || line[0] == '#':
		case line[0] == '@':
			calls = append(calls, filterGroup(t, line)...)
		default:
			calls = append(calls, line)
		}
	}
	return calls
}

// allowed are the system calls that the filter of the service lets through, as
// systemd.exec(5) reads its lines.
func allowed(t *testing.T) map[string]bool {
	t.Helper()
	b, err := os.ReadFile(unitsDir + "unwindd.service")
	if err != nil {
		t.Fatal(err)
	}
	is := map[string]bool{}
	for _, name := range filterGroup(t, "@default") {
		is[name] = true
	}
	for line := range strings.Lines(string(b)) {
		list, ok := strings.CutPrefix(strings.TrimSpace(line), "SystemCallFilter=")
		if !ok {
			continue
		}
		list, isDenied := strings.CutPrefix(list, "~")
		for _, name := range strings.Fields(list) {
			calls := []string{name}
			if name[0] == '@' {
				calls = filterGroup(t, name)
			}
			for _, call := range calls {
				is[call] = !isDenied
			}
		}
	}
	return is
}

// TestUnitsLetServeDoWhatItDoes has a server, its workers and plugins walk and keep things,
// and holds their system calls against the filter of the service.
func TestUnitsLetServeDoWhatItDoes(t *testing.T) {
	oracle.Tools(t, "strace", "systemd-analyze")
	dir := shortDir(t)
	d := &daemon{dir: dir, socket: filepath.Join(dir, "unwindd.sock"), log: &lines{}, ended: make(chan struct{})}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(dir, "trace")
	d.command = exec.Command("strace", "-f", "-qq", "-o", trace, self, "serve", "--log-level", "debug") //nolint:gosec,noctx // a tool
	d.command.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "XDG_STATE_HOME="+dir, "XDG_CACHE_HOME="+dir, "DEBUGINFOD_URLS=", "NOTIFY_SOCKET="+filepath.Join(dir, "nobody"))
	d.command.Stderr = d.log
	d.run(t)
	await(t, "the socket", d.listens)
	d.walk(t)
	exe, err := os.ReadFile(filepath.Join(crashDir, "server"))
	if err != nil {
		t.Fatal(err)
	}
	if answer, text := d.request(t, http.MethodPut, "/v1/objects/01092ed6fbfc989c60cdda4dd2cc30a56e23db6d", bytes.NewReader(exe)); answer.StatusCode != http.StatusCreated {
		t.Errorf("%s: %s", answer.Status, text)
	}
	d.walk(t)
	for _, pid := range descendants(d.command.Process.Pid)[:1] {
		_ = oracle.Kill(pid, syscall.SIGTERM)
	}
	d.wait(t)
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	is, used := allowed(t), map[string]bool{}
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if call, _, ok := strings.Cut(fields[1], "("); ok && call != "" && call[0] >= 'a' && call[0] <= 'z' && !used[call] {
			used[call] = true
			if !is[call] {
				t.Errorf("the filter forbids %s: %s", call, line)
			}
		}
	}
	if len(used) < 50 || !used["landlock_restrict_self"] && !strings.Contains(d.log.String(), "landlock") {
		t.Errorf("%d system calls were seen, expected those of the whole", len(used))
	}
}

// TestServeBySocketActivation has systemd's own tool open the socket, and tells what the
// server says to who started it.
func TestServeBySocketActivation(t *testing.T) {
	activate := oracle.Tool(t, "systemd-socket-activate")
	dir := shortDir(t)
	d := &daemon{dir: dir, socket: filepath.Join(dir, "a.sock"), log: &lines{}, ended: make(chan struct{})}
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	said := make(chan string, 10)
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := manager.Read(b)
			if err != nil {
				return
			}
			said <- string(b[:n])
		}
	}()
	args := []string{"-l", d.socket}
	for name, value := range map[string]string{
		"NOTIFY_SOCKET": filepath.Join(dir, "notify"), "STATE_DIRECTORY": filepath.Join(dir, "lib"), "CACHE_DIRECTORY": filepath.Join(dir, "cache"),
		"RUNTIME_DIRECTORY": filepath.Join(dir, "run"), "HOME": "/", "DEBUGINFOD_URLS": "",
	} {
		args = append(args, "-E", name+"="+value)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d.command = exec.Command(activate, append(args, self, "serve")...) //nolint:gosec,noctx // a tool
	d.command.Stderr = d.log
	d.run(t)
	await(t, "the socket", d.listens)
	d.walk(t)
	want := func(prefix string) {
		t.Helper()
		select {
		case got := <-said:
			if !strings.HasPrefix(got, prefix) {
				t.Errorf("it says %q, expected %q", got, prefix)
			}
		case <-time.After(patience):
			t.Fatalf("it does not say %q", prefix)
		}
	}
	want("READY=1")
	d.signal(t, syscall.SIGHUP)
	want("RELOADING=1\nMONOTONIC_USEC=")
	want("READY=1")
	for _, path := range []string{"lib/objects", "cache/run"} {
		if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
			t.Errorf("it does not heed the folders of systemd: %v", err)
		}
	}
	d.signal(t, syscall.SIGTERM)
	want("STOPPING=1")
	if status := d.wait(t); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if _, err := os.Stat(d.socket); err != nil {
		t.Errorf("the socket is systemd's: %v", err)
	}
}

// containerDir has the Containerfile.
const containerDir = "../../examples/container/"

// TestServeInAContainer makes the folder that the Containerfile makes, and runs it as a
// container is run: of it alone, read-only, with the devices that every container has (OCI
// runtime specification, "Default Devices"), by a user without privileges.
func TestServeInAContainer(t *testing.T) {
	oracle.Tools(t, "unshare", "chroot", "mount", "go")
	root := filepath.Join(shortDir(t), "r")
	exe := filepath.Join(t.TempDir(), "unwindd")
	oracle.With{Env: []string{"CGO_ENABLED=0"}}.Run(t, "go", "build", "-trimpath", "-o", exe, ".")
	b, err := os.ReadFile(containerDir + "Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	var env []string
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 4 && fields[0] == "COPY":
			from := containerDir + fields[2]
			if fields[2] == "unwindd" {
				from = exe
			}
			to := filepath.Join(root, fields[3])
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(from)
			if err == nil {
				err = os.WriteFile(to, content, 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
		case len(fields) > 1 && fields[0] == "ENV":
			env = append(env, fields[1:]...)
		}
	}
	shared := shortDir(t)                           // is /run, so that this test reaches the socket
	if err := os.Chmod(shared, 0o777); err != nil { //nolint:gosec // for the container's user
		t.Fatal(err)
	}
	for _, dir := range []string{"run", "state", "proc", "dev"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	unshare, user := []string{"--mount", "--pid", "--fork", "--net", "--kill-child"}, "--userspec=65532:65532"
	if os.Getuid() != 0 {
		unshare, user = append(unshare, "--user", "--map-root-user"), "--userspec=0:0"
	}
	script := fmt.Sprintf(`set -e
mount --bind %[1]s %[1]s
mount --bind %[2]s %[1]s/run
mount -t tmpfs -o mode=1777 tmpfs %[1]s/state
mount -t proc proc %[1]s/proc
mount -t tmpfs tmpfs %[1]s/dev
for d in null zero full random urandom; do : >%[1]s/dev/$d; mount --bind /dev/$d %[1]s/dev/$d; done
mount -o remount,bind,ro %[1]s
in="env -i %[3]s $(command -v chroot) %[4]s %[1]s /unwindd serve --config /etc/unwindd/config.toml"
$in & server=$!
i=0; until $in --check 2>/dev/null; do i=$((i+1)); [ $i -lt 3000 ]; sleep 0.1; done
echo healthy; read line || true
kill -TERM $server; wait $server; echo ended $?`, root, shared, strings.Join(env, " "), user)
	d := &daemon{socket: filepath.Join(shared, "unwindd/unwindd.sock"), log: &lines{}, ended: make(chan struct{})}
	out := &lines{}
	d.command = exec.Command("unshare", append(unshare, "sh", "-c", script)...) //nolint:gosec,noctx // a tool
	d.command.Stdout, d.command.Stderr = out, d.log
	in, err := d.command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.run(t)
	await(t, "healthy", func() bool { return strings.Contains(out.String(), "healthy") || isEnded(d) })
	d.walk(t)
	_ = in.Close()
	d.wait(t)
	if !strings.Contains(out.String(), "ended 0\n") {
		t.Errorf("%s", out.String())
	}
	here := startDaemon(t, shortDir(t), nil, "--log-json")
	here.walk(t)
	if got, want := missing(d), missing(here); got != want {
		t.Errorf("workers of a container lack %s\noutside they lack %s", got, want)
	}
}

// missing is what a server says, in JSON, that its workers are not confined by.
func missing(d *daemon) string {
	var list []string
	for line := range strings.Lines(d.log.String()) {
		if _, what, ok := strings.Cut(line, `"missing":`); ok {
			list = append(list, what)
		}
	}
	return strings.Join(list, "")
}

func isEnded(d *daemon) bool {
	select {
	case <-d.ended:
		return true
	default:
		return false
	}
}
