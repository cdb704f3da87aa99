// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/.ci/peers/stacks"
)

// patience is how long a program has to end, and gdb to say its stacks.
const patience = "25"

// built makes the program of a build once.
func (w *work) built(b *build) (exe string, err error) {
	once, _ := w.builds.LoadOrStore(b.key(), sync.OnceValues(func() (string, error) {
		dir := filepath.Join(w.dir, strings.NewReplacer(" ", "-", ",", "").Replace(b.key()))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
		env, command := w.command(b, dir)
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Env = append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
		}
		exe := filepath.Join(dir, "program")
		return exe, w.hideDebug(b, exe)
	}))
	return once.(func() (string, error))()
}

// mostFrames bounds gdb's stacks, which do not end where it takes a jump to 0 for a function
// that has a frame. The deepest stacks of the programs have about 1,300.
const mostFrames = "3000"

// hiddenDebug is the folder with what gdb alone is shown of an executable.
func hiddenDebug(exe string) string { return filepath.Join(filepath.Dir(exe), "debug") }

// hideDebug takes the debug information, and with it the only call frame information, out of
// an executable, into a file that gdb finds by its build ID: so gdb says the truth of code that unwindd
// has to read. For Go it is that of an executable with the same code.
func (w *work) hideDebug(b *build, exe string) error {
	from := exe
	switch {
	case b.language == "Go" && (slices.Contains(b.flags, "-s") || slices.Contains(b.flags, "-w")):
		plain, err := w.built(&build{machine: b.machine, language: "Go", name: "plain"})
		if err != nil {
			return err
		}
		if err := haveEqualCode(plain, exe); err != nil {
			return err
		}
		from = plain
	case !b.hasNoCFI():
		return nil
	}
	id, err := cost.BuildID(exe)
	if err != nil {
		return err
	}
	file := filepath.Join(hiddenDebug(exe), ".build-id", fmt.Sprintf("%x", id[:1]), fmt.Sprintf("%x.debug", id[1:]))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	objcopy := b.machine.name + "-linux-gnu-objcopy"
	if err := cost.Run(".", objcopy, "--only-keep-debug", from, file); err != nil || from != exe {
		return err
	}
	return cost.Run(".", objcopy, "--strip-debug", exe)
}

// haveEqualCode says how the code of two executables differs.
func haveEqualCode(a, b string) error {
	var text [2][]byte
	for i, path := range []string{a, b} {
		f, err := elf.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		s := f.Section(".text")
		if s == nil {
			return fmt.Errorf("%s: it has no .text", path)
		}
		if text[i], err = s.Data(); err != nil {
			return err
		}
		text[i] = binary.LittleEndian.AppendUint64(text[i], s.Addr)
	}
	if !bytes.Equal(text[0], text[1]) {
		return fmt.Errorf("%s and %s have different code", a, b)
	}
	return nil
}

// end is a process that ended: its core, and what gdb saw before.
type end struct {
	core, snapshot, output string
	chains                 string // a file with them
	gdb                    map[string]*stacks.Stack
}

// limits let qemu write the core of the program, and have the kernel write next to nothing of
// qemu's own.
const limits = `ulimit -c unlimited; echo 0 >/proc/self/coredump_filter; exec timeout -s KILL ` + patience + ` "$@"`

// process is a program under qemu.
func (w *work) process(p *program, dir, cpu string, qemu ...string) (cmd *exec.Cmd, output *bytes.Buffer) {
	args := append([]string{"-c", limits, "sh", "qemu-" + p.machine.name, "-cpu", cpu, "-s", "262144", "-L", w.rootOf(p.build)}, qemu...)
	cmd = exec.Command("sh", append(args, "./program", p.variant)...)
	output = &bytes.Buffer{}
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, output, output
	cmd.Env = append(os.Environ(), "GOTRACEBACK=crash", "RUST_BACKTRACE=full", "GOMAXPROCS=2")
	return cmd, output
}

// coreOf is the one that qemu left in a folder.
func coreOf(dir string, output *bytes.Buffer) (string, error) {
	cores, _ := filepath.Glob(filepath.Join(dir, "qemu_*.core"))
	if len(cores) != 1 {
		return "", fmt.Errorf("%d cores of qemu in %s: %s", len(cores), dir, clip(output.String()))
	}
	return cores[0], nil
}

// clip is the end of what a program said.
func clip(text string) string { return text[max(len(text)-800, 0):] }

// runAlone runs a program until qemu writes its core.
func (w *work) runAlone(p *program, dir, cpu string) (*end, error) {
	cmd, output := w.process(p, dir, cpu)
	_ = cmd.Run() // it crashes
	core, err := coreOf(dir, output)
	return &end{core: core, output: output.String()}, err
}

// runUnderGDB has gdb say the stacks of a program, and write a snapshot of it, when the signal
// comes that ends it, which is then let through.
func (w *work) runUnderGDB(p *program, dir string) (e *end, err error) {
	for range tries {
		if e, err = w.tryUnderGDB(p, dir); !errors.Is(err, errNoStacks) {
			return e, err
		}
		w.again.Add(1)
	}
	return e, err
}

// tries is how often a program is run where gdb sees no stacks: now and then qemu and gdb wait for each
// other when threads start, or a program of Go ends while gdb looks at it.
const tries = 3

var errNoStacks = errors.New("gdb saw no stacks")

func (w *work) tryUnderGDB(p *program, dir string) (*end, error) {
	exe, err := w.built(p.build)
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "gdb")
	cmd, output := w.process(p, dir, p.machine.cpu, "-g", socket)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	defer func() {
		_ = cmd.Process.Kill()
		<-done //nolint:errcheck // the process was killed
		_ = os.Remove(socket)
	}()
	for range 600 {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	e := &end{snapshot: filepath.Join(dir, "gdb.snapshot"), chains: filepath.Join(dir, "chains"), gdb: map[string]*stacks.Stack{}}
	gdb := exec.Command("timeout", w.gdbArguments(p, dir, exe, socket, e.snapshot)...)
	gdb.Env = append(os.Environ(), "CHAINS="+e.chains)
	out, err := gdb.CombinedOutput()
	readStacks(string(out), e.gdb)
	if len(e.gdb) == 0 {
		err = errors.Join(errNoStacks, err)
		return nil, fmt.Errorf("gdb: %w\n%s%s", err, clip(string(out)), clip(output.String()))
	}
	select {
	case err := <-done:
		done <- err
	case <-time.After(20 * time.Second):
	}
	e.output = output.String()
	if !p.machine.hasCores {
		return e, nil
	}
	e.core, err = coreOf(dir, output)
	return e, err
}

// gdbArguments returns the arguments of timeout for a gdb that runs the program to its
// end, and then prints its stacks and writes a snapshot.
func (w *work) gdbArguments(p *program, dir, exe, socket, snapshot string) []string {
	passed, end := "SIGUSR1 SIGURG SIGQUIT", "continue"
	if strings.HasPrefix(p.variant, "fault") || p.language == "Go" {
		passed += " SIGSEGV"
	}
	if p.variant == "trap" {
		end = "signal SIGTRAP" // which gdb keeps for itself otherwise
	}
	first := []string{"-ex", "continue"}
	if p.language == "Go" {
		first = append(first, first...) // its handler takes the first signal that is to end it
	}
	ends := slices.Repeat([]string{"-ex", end}, 8) // handlers raise more of them
	script := filepath.Join("..", "..", "examples", "snapshot-gdb", "unwindd_snapshot.py")
	return slices.Concat([]string{"-s", "KILL", patience, "gdb-multiarch", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off",
		"-iex", "set sysroot " + w.rootOf(p.build), "-iex", "set debug-file-directory " + hiddenDebug(exe), "-iex", "set backtrace limit " + mostFrames,
		"-ex", "handle " + passed + " nostop noprint pass", "-ex", "file " + filepath.Join(dir, "program"), "-ex", "target remote " + socket}, first, []string{
		"-ex", "source " + script, "-ex", "unwindd-snapshot " + snapshot, "-ex", "source " + filepath.Join("machines", "testdata", "pcs.py")}, ends)
}

// readStacks reads the stacks that gdb printed, by the names of threads.
func readStacks(output string, list map[string]*stacks.Stack) {
	for line := range strings.Lines(output) {
		if f := strings.SplitN(strings.TrimSpace(line), " ", 4); len(f) == 4 && f[0] == "PCS" {
			s := &stacks.Stack{Stopped: f[3]}
			for _, word := range strings.Split(f[2], ",") {
				pc, _ := strconv.ParseUint(word, 0, 64)
				s.PCs = append(s.PCs, pc)
			}
			list[f[1]] = s
		}
	}
}

// stacksOf are unwindd's.
func (w *work) stacksOf(p *program, target string, args ...string) (map[string]*stacks.Stack, error) {
	out, err := w.run(p, target, append(args, "--format", "json")...)
	if err != nil {
		return nil, err
	}
	list, _, err := stacks.Unwindd(out)
	for id, s := range list {
		list[id] = s.WithoutTailCalls()
	}
	return list, err
}

// run prints the stacks of a target of a program.
func (w *work) run(p *program, target string, args ...string) ([]byte, error) {
	args = append([]string{"stack", target, "--max-frames", "0"}, args...)
	if p.machine.plugin {
		args = append(args, "--plugin-dir", w.plugins)
	}
	cmd := exec.Command(w.unwindd, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", cmd, err, &stderr)
	}
	return out, nil
}
