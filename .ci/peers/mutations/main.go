// SPDX-License-Identifier: Apache-2.0

// Command mutations runs unwindd on damaged files: bytes changed, cut, moved and
// repeated. Whatever a file says, the command ends by itself, in bounded time and
// memory, with an exit status of its own.
//
//	go run ./mutations [-runs N] [-seed N] [-seconds N] [-megabytes N]
//
// It prints how the runs ended, the longest and the largest, and keeps the files of
// those that failed in the folder that it names.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/unwindd/unwindd/internal/damage"
)

var (
	runs      = flag.Int("runs", 20000, "how many files are damaged")
	seed      = flag.Uint64("seed", 1, "of the damage")
	seconds   = flag.Int("seconds", 20, "that a run may take")
	megabytes = flag.Int64("megabytes", 1024, "of memory that a run may take")
)

// A kind is the files that a command reads; FILE stands for the damaged one.
type kind struct {
	patterns []string
	commands []string
}

// The paths are below the repository, and below the folder shared beside it.
var kinds = []kind{
	{[]string{"examples/crash/server.core"}, []string{"stack FILE", "stack FILE --format json", "dump notes FILE", "snapshot FILE -o /dev/null"}},
	{[]string{"examples/*/*.snapshot"}, []string{"stack --lanes FILE", "stack --registers --format json FILE"}},
	{[]string{"examples/profile/perf.data", "examples/gpu-profile/cpu.data"}, []string{"profile FILE", "profile --format json FILE"}},
	{[]string{"examples/crash/server", "examples/profile/words", "../shared/corpus/amdgpu/*/*.co", "../shared/corpus/visa/*/*.elf", "../shared/corpus/visa/zebin/*"},
		[]string{"dump cfi FILE", "dump rows FILE", "dump expr FILE", "dump notes FILE", "symbolize --obj FILE 0x401100 0x1700 0x40"}},
	{[]string{"../shared/corpus/visa/*/*.dbg"}, []string{"dump visa FILE"}},
	{[]string{"../shared/corpus/spirv/*.spv"}, []string{"dump spirv FILE", "symbolize --obj FILE %20 0x100"}},
	{[]string{"../shared/corpus/llvmir/*.ll", "../shared/found/llvmir/*.ll"}, []string{"dump llvmir FILE", "symbolize --obj FILE foo+3"}},
}

// An input is a file's content with the commands that read it.
type input struct {
	path     string
	content  []byte
	commands []string
}

// A result is how one run ended.
type result struct {
	name, problem string
	status        int
	took          time.Duration
	memory        int64 // bytes
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutations:", err)
		os.Exit(1)
	}
}

func run() error {
	root := filepath.Join("..", "..")
	dir, err := os.MkdirTemp("", "mutations-")
	if err != nil {
		return err
	}
	unwindd := filepath.Join(dir, "unwindd")
	if out, err := exec.Command("go", "build", "-C", root, "-o", unwindd, "./cmd/unwindd").CombinedOutput(); err != nil {
		return fmt.Errorf("building unwindd: %w\n%s", err, out)
	}
	inputs, err := readInputs(root)
	if err != nil {
		return err
	}
	numbers := make(chan int)
	results := make(chan result)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for n := range numbers {
				results <- once(unwindd, dir, inputs, n)
			}
		})
	}
	go func() {
		for n := range *runs {
			numbers <- n
		}
		close(numbers)
		workers.Wait()
		close(results)
	}()
	failed := summarize(results)
	if failed == 0 {
		return os.RemoveAll(dir)
	}
	return fmt.Errorf("%d runs failed, their files are in %s", failed, dir)
}

func readInputs(root string) (inputs []input, err error) {
	for _, k := range kinds {
		for _, pattern := range k.patterns {
			paths, err := filepath.Glob(filepath.Join(root, pattern))
			if err != nil || len(paths) == 0 {
				return nil, fmt.Errorf("%s: no such files (%v)", pattern, err)
			}
			for _, path := range paths {
				content, err := os.ReadFile(path)
				if err != nil {
					return nil, err
				}
				inputs = append(inputs, input{path, content, k.commands})
			}
		}
	}
	return inputs, nil
}

// summarize prints what the results are, and returns how many are failures.
func summarize(results <-chan result) (failed int) {
	statuses := map[int]int{}
	var slowest, largest result
	for r := range results {
		statuses[r.status]++
		if r.took > slowest.took {
			slowest = r
		}
		if r.memory > largest.memory {
			largest = r
		}
		if r.problem != "" {
			failed++
			fmt.Printf("%s: %s\n", r.name, r.problem)
		}
	}
	fmt.Printf("exit statuses %v, %d failures\nslowest: %.2f s, %s\nlargest: %d MB, %s\n",
		statuses, failed, slowest.took.Seconds(), slowest.name, largest.memory>>20, largest.name)
	return failed
}

// once runs the command on one damaged file.
func once(unwindd, dir string, inputs []input, n int) result {
	random := rand.New(rand.NewPCG(*seed, uint64(n)))
	in := &inputs[random.IntN(len(inputs))]
	command := in.commands[random.IntN(len(in.commands))]
	path := filepath.Join(dir, fmt.Sprintf("%d-%s", n, filepath.Base(in.path)))
	r := result{name: fmt.Sprintf("run %d, %s, %s", n, in.path, command)}
	if err := os.WriteFile(path, damage.Of(random, in.content), 0o600); err != nil {
		r.problem = err.Error()
		return r
	}
	args := append([]string{"--in-process"}, strings.Fields(strings.ReplaceAll(command, "FILE", path))...)
	cmd := exec.Command(unwindd, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		r.problem = err.Error()
		return r
	}
	timer := time.AfterFunc(time.Duration(*seconds)*time.Second, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	r.took = time.Since(begin)
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.memory = usage.Maxrss << 10
	}
	r.status = cmd.ProcessState.ExitCode()
	var exit *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &exit):
		r.problem = err.Error()
	case r.status < 0 || r.status > 3:
		r.problem = fmt.Sprintf("exit status %d: %v\n%.2000s", r.status, err, stderr.String())
	case strings.Contains(stderr.String(), "goroutine "):
		r.problem = fmt.Sprintf("it panicked\n%.2000s", stderr.String())
	case r.status != 0 && stderr.Len() == 0:
		r.problem = fmt.Sprintf("exit status %d without a word", r.status)
	case r.memory > *megabytes<<20:
		r.problem = fmt.Sprintf("it took %d MB", r.memory>>20)
	}
	if r.problem == "" {
		_ = os.Remove(path)
	}
	return r
}
