// SPDX-License-Identifier: Apache-2.0

package gcn

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
)

// Levels are the levels of optimization for which programs are compiled.
var Levels = []string{"-O0", "-O1", "-O2", "-O3", "-Os"}

// CorpusSources returns the sources of AMDGPU kernels in the corpus.
func CorpusSources(t testing.TB) []string {
	t.Helper()
	return oracle.Beside(t, "corpus/src/*.cl", "corpus/src/*.hip")
}

// MaxSteps bounds the executed instructions of a kernel.
const MaxSteps = 400_000

// Need skips without the tools, and under the race detector: a wave executes and is
// walked in one goroutine. It lets garbage pile up to 6 GiB, because each walk
// leaves many locations of lanes.
func Need(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("nothing is concurrent here")
	}
	oracle.Tools(t, "clang-22", "ld.lld-22", "llvm-objdump-22", "llvm-readelf-22")
	percent, limit := debug.SetGCPercent(800), debug.SetMemoryLimit(6<<30)
	t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) })
}

// Cases calls do for the processors and levels that a program is compiled
// for: all of them, or a sample, which differs by program.
func Cases(program, sample int, do func(p Processor, level string)) {
	for i, p := range Processors {
		for k, level := range Levels {
			position := i*len(Levels) + k
			total := len(Processors) * len(Levels)
			if proof.IsRequested() || (position+7*program)%total < sample {
				do(p, level)
			}
		}
	}
}

// Launches returns launches of all kernels of an object.
func Launches(o *Object, seed uint64, items int) (all []func() (*State, error)) {
	for _, k := range o.Kernels {
		all = append(all, func() (*State, error) { return o.Launch(k, rand.New(rand.NewPCG(seed, 2)), items) })
	}
	return all
}

// CorpusObject compiles a source of the corpus.
func CorpusObject(t testing.TB, p Processor, source, library, level string) *Object {
	t.Helper()
	out := filepath.Join(t.TempDir(), "k.co")
	sources := []string{source}
	if filepath.Ext(source) == ".cl" {
		sources = append(sources, library)
	}
	Compile(t, p, out, sources, level, "-g")
	return Open(t, p, out)
}

// pressures are attributes by which compilers have fewer registers than usual.
var pressures = []string{``, `"amdgpu-num-sgpr"="44"`, `"amdgpu-waves-per-eu"="8,8"`, `"amdgpu-num-vgpr"="44"`, ``}

// Program writes the program of a seed, for the device and the host. One that
// cannot be compiled with few registers has as many as usual.
func Program(t testing.TB, p Processor, seed uint64, level string) (device, host string) {
	t.Helper()
	dir := t.TempDir()
	host = filepath.Join(dir, "k.c")
	if err := os.WriteFile(host, []byte(generate(seed, p.Acc)), 0o600); err != nil {
		t.Fatal(err)
	}
	pressure := pressures[seed%uint64(len(pressures))]
	if pressure == "" {
		return host, host
	}
	device = filepath.Join(dir, "k.ll")
	Compile(t, p, device, []string{host}, level, "-g", "-S", "-emit-llvm")
	text, err := os.ReadFile(device)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "attributes #") {
			line = strings.Replace(line, "{", "{ "+pressure, 1)
		}
		out.WriteString(line)
	}
	if err := os.WriteFile(device, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := tryCompile(p, filepath.Join(dir, "k.co"), []string{device}, level); err != nil {
		if text := err.Error(); strings.Contains(text, "ran out of registers") || strings.Contains(text, "cannot find enough VGPRs") {
			return host, host // too few registers
		}
		t.Fatal(err)
	}
	return device, host
}

// Hosts has the programs for the host, which do not differ by level.
type Hosts struct {
	Dir   string
	mutex sync.Mutex
	built map[string]string
}

// Build compiles a program for the host, once for each name, and returns its path.
func (h *Hosts) Build(t testing.TB, source, name string) string {
	t.Helper()
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if path := h.built[name]; path != "" {
		return path
	}
	path := filepath.Join(h.Dir, name)
	cmd := exec.Command("clang-22", "-DHOST", "-w", "-O1", "-o", path, source)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, text)
	}
	if h.built == nil {
		h.built = map[string]string{}
	}
	h.built[name] = path
	return path
}

// SameAsHost compares a kernel's output with the output of the same functions
// on the host.
func SameAsHost(o *Object, host string, s *State, items int) error {
	word := func(a uint64) uint64 {
		v, err := loadBytes(func(a uint64) (*byte, error) { return s.flatByte(0, a) }, a, 4)
		if err != nil {
			panic(err)
		}
		return v
	}
	k := o.Kernels[0]
	args := []string{fmt.Sprint(items), fmt.Sprint(word(ArgumentsAddress + k.arguments[2].offset))}
	const second = buffersAddress + 2*bufferSize
	for i := range uint64(64) {
		args = append(args, fmt.Sprint(word(second+4*i)))
	}
	want, err := exec.Command(host, args...).Output()
	if err != nil {
		return err
	}
	var got bytes.Buffer
	for i := range items {
		fmt.Fprintln(&got, word(buffersAddress+4*uint64(i))) //nolint:gosec // not negative
	}
	if got.String() != string(want) {
		return fmt.Errorf("%s wrote\n%s, the host\n%s", o.Path, strings.ReplaceAll(got.String(), "\n", " "), strings.ReplaceAll(string(want), "\n", " "))
	}
	return nil
}

// ProcessorOf returns the processor that the name of an object of the corpus has in it.
func ProcessorOf(t testing.TB, name string) Processor {
	t.Helper()
	i := slices.IndexFunc(Processors, func(p Processor) bool { return strings.Contains(name, "."+p.Name+".") })
	if i < 0 {
		t.Fatalf("%s is for no processor that is known", name)
	}
	return Processors[i]
}
