// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/internal/damage"
)

// runner runs the command on damaged files.
type runner struct {
	unwindd, dir string
	places       places
	kinds        []loaded // each as often as it is taken
}

// loaded kind has its files.
type loaded struct {
	name   string
	inputs []input
}

// result is how one run ended.
type result struct {
	kind, name, problem string
	status              int
	took                time.Duration // of processors
	memory              int64         // bytes
}

// trace matches the stack trace that Go prints for a panic, a caught one too.
var trace = regexp.MustCompile(`(?m)^goroutine \d+ (gp=\S+ m=\S+ (mp=\S+ )?)?\[[^]]*\]:|^panic: |^fatal error: |runtime error: |panicked: `)

// watch keeps the end of the output until it has looked for a trace in it.
type watch struct {
	last  []byte
	found string
	size  int64
}

func (w *watch) Write(b []byte) (int, error) {
	w.size += int64(len(b))
	w.last = append(w.last, b...)
	if at := trace.FindIndex(w.last); at != nil && w.found == "" {
		w.found = string(w.last[at[0]:min(len(w.last), at[0]+2000)])
	}
	w.last = append(w.last[:0], w.last[max(0, len(w.last)-200):]...)
	return len(b), nil
}

// damaged is the damaged file of a run, and the command that reads it.
func (r *runner) damaged(n int) (k *loaded, i *input, command string, content []byte) {
	random := rand.New(rand.NewPCG(*seed, uint64(n)))
	k = &r.kinds[random.IntN(len(r.kinds))]
	i = &k.inputs[random.IntN(len(k.inputs))]
	other := &k.inputs[random.IntN(len(k.inputs))]
	command = i.commands[random.IntN(len(i.commands))]
	return k, i, command, damage.With(random, i.content, other.content)
}

// arrange puts the files of a run into a folder, and returns the arguments of the command.
func (r *runner) arrange(run, command string, i *input, content []byte) ([]string, error) {
	file := filepath.Join(run, filepath.Base(i.path))
	if rest, isTree := strings.CutPrefix(command, "TREE "); isTree {
		command, file = rest, filepath.Join(run, i.path)
	}
	words := r.places.words(command, run, file, i)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	if words[0] == "COPY" {
		b, err := os.ReadFile(words[1])
		if err == nil {
			err = os.WriteFile(filepath.Join(run, filepath.Base(words[1])), b, 0o600)
		}
		if err != nil {
			return nil, err
		}
		words = words[2:]
	}
	return append([]string{"--in-process"}, words...), os.WriteFile(file, content, 0o600)
}

// once runs the command on one damaged file.
func (r *runner) once(n int) result {
	k, in, command, content := r.damaged(n)
	run := filepath.Join(r.dir, fmt.Sprintf("%d-%d", *seed, n))
	one := result{kind: k.name, name: fmt.Sprintf("-seed %d -first %d, %s, %s", *seed, n, in.path, command)}
	args, err := r.arrange(run, command, in, content)
	if err != nil {
		one.problem = err.Error()
		return one
	}
	cmd := exec.Command(r.unwindd, args...)
	var stdout watch
	var stderr struct {
		watch
		bytes.Buffer
	}
	cmd.Stdout = &stdout
	cmd.Stderr = writer(func(b []byte) (int, error) {
		if stderr.Len() < 1<<16 {
			stderr.Buffer.Write(b)
		}
		return stderr.watch.Write(b)
	})
	err = bounded(cmd)
	one.status = cmd.ProcessState.ExitCode()
	one.took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		one.memory = usage.Maxrss << 10
	}
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		one.problem = err.Error()
	case stdout.found+stderr.found != "":
		one.problem = "it panicked\n" + stdout.found + stderr.found
	case one.status < 0 || one.status > 3:
		one.problem = fmt.Sprintf("exit status %d: %v after %v\n%.2000s", one.status, err, one.took, stderr.String())
	case one.status == 2:
		one.problem = fmt.Sprintf("exit status 2 is for wrong usage\n%.2000s", stderr.String())
	case one.status != 0 && stderr.Len() == 0:
		one.problem = fmt.Sprintf("exit status %d without a word", one.status)
	case one.took > time.Duration(*seconds)*time.Second:
		one.problem = fmt.Sprintf("it took %v", one.took)
	case one.memory > *megabytes<<20:
		one.problem = fmt.Sprintf("it took %d MB", one.memory>>20)
	}
	if one.problem == "" {
		_ = os.RemoveAll(run)
	}
	return one
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// bounded runs a command that the system ends when it takes too much of a processor, or four
// times the memory; one that waits is ended after twenty times the seconds, for the machine may
// be busy.
func bounded(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	timer := time.AfterFunc(20*time.Duration(*seconds)*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	processor := unix.Rlimit{Cur: *seconds + 1, Max: *seconds + 2}
	memory := unix.Rlimit{Cur: uint64(*megabytes) << 22, Max: uint64(*megabytes) << 22}
	err := errors.Join(unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_CPU, &processor, nil), unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_DATA, &memory, nil))
	if err != nil && !errors.Is(err, unix.ESRCH) {
		_ = cmd.Process.Kill()
		return errors.Join(err, cmd.Wait())
	}
	return cmd.Wait()
}
