// SPDX-License-Identifier: Apache-2.0

package valuecheck

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed values.py
var script []byte

// Core runs the program of a subject, which is in folder, until it fails, or waits
// and gcore copies it. It returns its core, which is in dir, and its executable.
func (s *Subject) Core(folder, dir string) (exe, core string, err error) {
	command := append([]string{filepath.Join(folder, "program")}, s.Args...)
	if s.Run != nil {
		command = s.Run
	}
	if exe, err = filepath.EvalSymlinks(command[0]); err != nil {
		return "", "", err
	}
	// Few arenas and small stacks keep the core small.
	limits := `ulimit -c unlimited -s 1024; export MALLOC_ARENA_MAX=1; exec "$0" "$@"`
	cmd := exec.Command("bash", append([]string{"-c", limits}, command...)...)
	cmd.Dir = dir
	if s.Wait == "" {
		out, err := cmd.CombinedOutput()
		found, _ := filepath.Glob(filepath.Join(dir, "core*"))
		if len(found) == 0 {
			err = cmp.Or(err, errors.New("it did not fail"))
			return "", "", fmt.Errorf("no core (is /proc/sys/kernel/core_pattern `core`?): %w\n%s", err, out)
		}
		return exe, found[0], nil
	}
	core, err = s.copied(cmd)
	return exe, core, err
}

// copied takes the core of a waiting process.
func (s *Subject) copied(cmd *exec.Cmd) (core string, err error) {
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	pause := 200 * time.Millisecond
	if seconds, err := strconv.ParseFloat(s.Wait, 64); err == nil {
		pause = time.Duration(seconds * float64(time.Second))
	} else if line, err := bufio.NewReader(stdout).ReadString('\n'); !strings.HasPrefix(line, s.Wait) {
		err = cmp.Or(err, errors.New("another line"))
		return "", fmt.Errorf("it printed %q, expected %s: %w", line, s.Wait, err)
	}
	time.Sleep(pause)
	pid := strconv.Itoa(cmd.Process.Pid)
	core = filepath.Join(cmd.Dir, "core."+pid)
	if out, err := exec.Command("gcore", "-o", filepath.Join(cmd.Dir, "core"), pid).CombinedOutput(); err != nil {
		return "", fmt.Errorf("gcore: %w\n%s", err, out)
	}
	return core, nil
}

// GDB asks gdb for the values of a core; pretty uses its pretty printers.
func (s *Subject) GDB(exe, core string, pretty bool) (*Peer, error) {
	dir, err := os.MkdirTemp("", "values-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	source, out := filepath.Join(dir, "values.py"), filepath.Join(dir, "values.json")
	if err := os.WriteFile(source, script, 0o600); err != nil {
		return nil, err
	}
	args := append([]string{"-nx", "-batch", "-iex", "set debuginfod enabled off"}, printers()...)
	// A pretty printer may loop in a destroyed map.
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "gdb", append(args, "-ex", "source "+source, exe, core)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "VALUES="+out, "GLOBALS="+strings.Join(s.Globals, " "))
	for name, set := range map[string]bool{"PRETTY": pretty, "LIBRARIES": s.Libraries} {
		if set {
			cmd.Env = append(cmd.Env, name+"=1")
		}
	}
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("gdb: %w\n%s", err, text)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		return nil, errors.Join(err, errors.New(string(text)))
	}
	p := &Peer{}
	return p, json.Unmarshal(data, p)
}

// printers returns gdb's options for the pretty printers of Rust.
func printers() []string {
	out, err := exec.Command("rustc", "--print", "sysroot").Output()
	if err != nil {
		return nil
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "lib", "rustlib", "etc")
	return []string{"-iex", "add-auto-load-safe-path " + dir, "-iex", "python import sys; sys.path.insert(0, '" + dir + "')", "-iex", "directory " + dir}
}

// Arguments returns the arguments of `unwindd` for the same values.
func (s *Subject) Arguments(core string, pretty bool) []string {
	args := []string{"stack", core, "--locals", "--format", "json", "--depth", "16", "--elements", "200", "--max-frames", "100000"}
	if !pretty {
		args = append(args, "--raw")
	}
	for _, name := range s.Globals {
		args = append(args, "--globals", name)
	}
	return args
}
