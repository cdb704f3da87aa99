// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// timeLimit is how long a run may take.
const timeLimit = 40 * time.Second

// bench runs commands in empty folders, and checks what they leave there.
type bench struct {
	dir      string // material, and the folders of a run
	self     string // this program
	random   *rand.Rand
	kept     *os.Root // for answers that are wrong; nil: they are not kept
	commands []*command
	subject  *exec.Cmd // the process whose stacks are taken
	total    row
	rows     []*row
}

// folders are those that a run may write to.
var folders = []string{"tmp", "cache", "home", "out", "run"}

// temporary are the folders that every program may write to.
var temporary = []string{"/tmp", "/var/tmp", "/dev/shm"}

func newBench(dir string) (b *bench, err error) {
	b = &bench{dir: dir, self: filepath.Join(dir, "faults"), random: rand.New(rand.NewPCG(*seed, 0)), commands: newCommands()} //nolint:gosec // no secret
	b.subject = exec.Command("sleep", "10000")
	b.subject.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := b.subject.Start(); err != nil {
		return nil, err
	}
	time.Sleep(50 * time.Millisecond) // until it sleeps
	if *isSmall {
		b.commands = slices.DeleteFunc(b.commands, func(c *command) bool { return !c.isSampled })
	}
	for _, c := range b.commands {
		if c.whole, err = b.run(c, &fault{name: "none"}); err != nil {
			return nil, err
		}
		if err := c.whole.check(); err != nil {
			return nil, fmt.Errorf("%s, without a fault: %w", c.name, err)
		}
	}
	return b, nil
}

func (b *bench) close() {
	_ = b.subject.Process.Kill()
	_ = b.subject.Wait()
}

func (b *bench) unwindd() string           { return filepath.Join(b.dir, "unwindd") }
func (b *bench) material() string          { return filepath.Join(b.dir, "material") }
func (b *bench) folder(name string) string { return filepath.Join(b.dir, "r", name) }

// result is the exit, the output and the cost of a run.
type result struct {
	status  int // of the exit; that of a shell where a signal ended it
	signal  syscall.Signal
	isHung  bool
	stdout  []byte
	stderr  string
	answer  []byte   // what it printed, or wrote, or answered, as JSON
	refused string   // what the server said instead of answering
	hungUp  bool     // it broke off instead
	left    []string // processes and files
	took    time.Duration
}

// isOfPlugin matches the sentences of answers about plugins that failed.
var isOfPlugin = regexp.MustCompile(`could not be started|given up after|was killed by|no answer within`)

// check says why a result cannot be what others are compared with.
func (r *result) check() error {
	if r.status != 0 || len(r.left) > 0 || len(r.answer) == 0 || isOfPlugin.Match(r.answer) {
		return fmt.Errorf("exit status %d, left %q, and it says %q\n%s", r.status, r.left, isOfPlugin.FindAll(r.answer, -1), r.stderr)
	}
	return nil
}

// run runs a command under a fault.
func (b *bench) run(c *command, f *fault) (r *result, err error) {
	if err := b.makeFolders(); err != nil {
		return nil, err
	}
	if f.prepare != nil {
		undo, err := f.prepare(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		defer func() { err = errors.Join(err, undo()) }()
	}
	cmd, stdout, stderr, err := b.start(c, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	r = &result{}
	began := time.Now()
	timer := time.AfterFunc(timeLimit, func() { r.isHung = true; _ = cmd.Process.Kill() })
	if f.during != nil {
		f.during(b, cmd.Process.Pid)
	}
	if c.isServer {
		b.ask(cmd, r)
	}
	_ = cmd.Wait() // its state says how it ended
	timer.Stop()
	r.took = time.Since(began)
	r.status, r.stdout, r.stderr = cmd.ProcessState.ExitCode(), stdout.Bytes(), stderr.String()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.signal, r.status = ws.Signal(), 128+int(ws.Signal())
	}
	if r.status == notEntered {
		return nil, fmt.Errorf("%s: %s", f.name, r.stderr)
	}
	b.look(c, f, r)
	return r, nil
}

// start starts a command. It is this program that is started, which enters the fault.
func (b *bench) start(c *command, f *fault) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer, err error) {
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd = exec.Command(b.self, append([]string{b.unwindd()}, c.arguments(b)...)...)
	cmd.Dir = b.dir
	in := f.enter
	if in.NoTmp {
		in.Root = withoutTemporary(b.dir)
	}
	cmd.Env = append(b.environment(f), enterVariable+"="+in.text())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: in.namespaces()}
	if cmd.SysProcAttr.Cloneflags&syscall.CLONE_NEWUSER != 0 {
		root := []syscall.SysProcIDMap{{Size: 1}}
		cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings = root, root
	}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = stdout, stderr, time.Second
	if c.stdin != "" {
		file, err := os.Open(filepath.Join(b.material(), c.stdin))
		if err != nil {
			return nil, nil, nil, err
		}
		defer file.Close()
		data, err := io.ReadAll(file)
		if err != nil {
			return nil, nil, nil, err
		}
		cmd.Stdin = bytes.NewReader(data)
	}
	if f.redirect != nil {
		end, err := f.redirect(cmd)
		if err != nil {
			return nil, nil, nil, err
		}
		defer end()
	}
	return cmd, stdout, stderr, cmd.Start()
}

// environment are the variables of a run.
func (b *bench) environment(f *fault) (list []string) {
	vars := map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": b.folder("home"), "TMPDIR": b.folder("tmp"), "XDG_CACHE_HOME": b.folder("cache"),
		"XDG_RUNTIME_DIR": b.folder("run"), "NO_COLOR": "1",
	}
	for name, value := range f.variables {
		vars[name] = strings.ReplaceAll(value, "DIR", b.folder(""))
	}
	for name, value := range vars {
		if value != "" {
			list = append(list, name+"="+value)
		}
	}
	return list
}

func (b *bench) makeFolders() error {
	paths := []string{b.folder("")}
	for _, base := range temporary {
		list, err := os.ReadDir(base)
		if err != nil {
			return err
		}
		for _, one := range list {
			if path := filepath.Join(base, one.Name()); path != b.dir {
				paths = append(paths, path)
			}
		}
	}
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	for _, name := range folders {
		if err := os.MkdirAll(b.folder(name), 0o777); err != nil {
			return err
		}
		if err := os.Chmod(b.folder(name), 0o777); err != nil { //nolint:gosec // other users write there, too
			return err
		}
	}
	return nil
}

// look reads the output of a run, and records the files that it left.
func (b *bench) look(c *command, f *fault, r *result) {
	if !c.isServer {
		r.answer = r.stdout
	}
	isKilled := r.signal != 0 || r.status > 128 || brokenDown.MatchString(r.stderr) || f.leavesFolders
	r.left = append(r.left, b.processesLeft()...)
	for _, base := range slices.Concat(temporary, []string{b.folder("tmp"), b.folder("out"), b.folder("run"), b.folder("home")}) {
		r.left = append(r.left, b.filesLeft(base, c, isKilled)...)
	}
	if c.output == "" || r.status != 0 {
		return
	}
	// Output is read without a fault.
	out, err := exec.Command(b.unwindd(), "stack", "--format", "json", filepath.Join(b.folder("out"), c.output)).Output()
	if err != nil {
		r.left = append(r.left, fmt.Sprintf("a snapshot that cannot be read: %v", err))
	}
	r.answer = out
}

// filesLeft are files that a run should not have left. Folders of plugins' sockets that a
// process left which a signal ended are removed by the next one; so is the socket of a server.
func (b *bench) filesLeft(base string, c *command, isKilled bool) (list []string) {
	_ = filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		isOwn := strings.HasPrefix(filepath.Base(path), ".unwindd-") || strings.HasPrefix(filepath.Base(path), "unwindd-p")
		switch {
		case err != nil || path == base:
			return nil
		case path == b.dir:
			return fs.SkipDir
		case c.output != "" && d.Name() == c.output, c.isServer && strings.Contains(path, "/state"), d.IsDir() && !isOwn:
			return nil
		}
		if !isKilled || !strings.Contains(path, "unwindd-p") && d.Name() != "socket" {
			list = append(list, path)
		}
		return nil
	})
	return list
}

// grace is how long processes may take to end after their parent has.
const grace = 2 * time.Second

// processesLeft are processes that have outlived a run. They are ended.
func (b *bench) processesLeft() (list []string) {
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		rest := b.children()
		if len(rest) == 0 {
			return nil
		}
		if time.Since(begun) < grace {
			continue
		}
		for _, pid := range rest {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			list = append(list, fmt.Sprintf("process %d %q", pid, strings.ReplaceAll(string(line), "\x00", " ")))
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_, _ = syscall.Wait4(pid, nil, 0, nil)
		}
		return list
	}
}

// children are processes that came to this one, and live.
func (b *bench) children() (list []int) {
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, path := range tasks {
		data, _ := os.ReadFile(path)
		for _, word := range strings.Fields(string(data)) {
			pid, err := strconv.Atoi(word)
			if err != nil || pid == b.subject.Process.Pid {
				continue
			}
			if done, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); err == nil && done == 0 {
				list = append(list, pid)
			}
		}
	}
	return list
}
