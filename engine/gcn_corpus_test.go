// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/sdk"
)

var gcnLevels = []string{"-O0", "-O1", "-O2", "-O3", "-Os"}

// corpusSources are the sources of the corpus that make AMDGPU kernels.
func corpusSources(t testing.TB) []string {
	t.Helper()
	return oracle.Beside(t, "corpus/src/*.cl", "corpus/src/*.hip")
}

// gcnTable gathers counts by processor and level, of tests side by side.
type gcnTable struct {
	mutex  sync.Mutex
	counts map[string]*gcnCounts
}

func (table *gcnTable) add(t testing.TB, p gcnProcessor, level string, j *gcnJudge) {
	t.Helper()
	for _, problem := range j.problems {
		t.Error(problem)
	}
	table.mutex.Lock()
	defer table.mutex.Unlock()
	if table.counts == nil {
		table.counts = map[string]*gcnCounts{}
	}
	for _, key := range []string{p.name + " " + level, "all"} {
		if table.counts[key] == nil {
			table.counts[key] = &gcnCounts{}
		}
		table.counts[key].add(&j.gcnCounts)
	}
}

// judge prints the table, and why what is not known is not, and fails where more
// than 1% of return addresses or 5% of frames' registers are not.
func (table *gcnTable) judge(t testing.TB) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(table.counts)) {
		t.Logf("%-12s %s", key, table.counts[key])
	}
	all := table.counts["all"]
	if all == nil {
		return // no test was chosen
	}
	for _, cause := range slices.Sorted(maps.Keys(all.causes)) {
		t.Logf("%9d × %s", all.causes[cause], cause)
	}
	if all.unknown*100 > all.frames {
		t.Errorf("%d of %d return addresses are not known, expected at most 1%%", all.unknown, all.frames)
	}
	if all.unknownPairs*20 > all.pairs {
		t.Errorf("registers of %d of %d frames are not known, expected at most 5%%", all.unknownPairs, all.pairs)
	}
}

// gcnSteps is how many instructions of a kernel are executed.
const gcnSteps = 400_000

// needGCN skips without the tools, and where the race detector looks: a wave
// executes and is walked in one goroutine. It lets garbage of locations of lanes, of
// which each walk makes many, lie, up to 6 GiB.
func needGCN(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("nothing is concurrent here")
	}
	oracle.Tools(t, "clang-22", "ld.lld-22", "llvm-objdump-22", "llvm-readelf-22")
	percent, limit := debug.SetGCPercent(800), debug.SetMemoryLimit(6<<30)
	t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) })
}

// gcnCases are the processors and levels that a program is compiled for: all of
// them, or as a sample so many, others for each program.
func gcnCases(program, sample int, do func(p gcnProcessor, level string)) {
	for i, p := range gcnProcessors {
		for k, level := range gcnLevels {
			at := i*len(gcnLevels) + k
			total := len(gcnProcessors) * len(gcnLevels)
			if proof.IsAsked() || (at+7*program)%total < sample {
				do(p, level)
			}
		}
	}
}

// gcnLaunches are launches of all kernels of an object.
func gcnLaunches(o *gcnObject, seed uint64, items int) (all []func() (*gcnState, error)) {
	for _, k := range o.kernels {
		all = append(all, func() (*gcnState, error) { return o.launch(k, rand.New(rand.NewPCG(seed, 2)), items) })
	}
	return all
}

// executeAll executes all kernels of an object, and walks them. after is called
// at the end of each.
func (j *gcnJudge) executeAll(seed uint64, items int, after func() error) error {
	for i, launch := range gcnLaunches(j.object, seed, items) {
		if err := j.execute(j.object.kernels[i], launch, gcnSteps); err != nil {
			return err
		}
		if err := after(); err != nil {
			return err
		}
	}
	return nil
}

// gcnCorpusObject compiles a source of the corpus.
func gcnCorpusObject(t testing.TB, p gcnProcessor, source, library, level string) *gcnObject {
	t.Helper()
	out := filepath.Join(t.TempDir(), "k.co")
	sources := []string{source}
	if filepath.Ext(source) == ".cl" {
		sources = append(sources, library)
	}
	gcnCompile(t, p, out, sources, level, "-g")
	return openGCN(t, p, out)
}

// TestFramesOfExecutingCorpus walks the kernels of the corpus at every instruction
// that they execute: without call frame information, by what the code says.
func TestFramesOfExecutingCorpus(t *testing.T) {
	needGCN(t)
	library := gcnLibraryFile(t)
	var table gcnTable
	t.Cleanup(func() { table.judge(t) })
	for i, source := range corpusSources(t) {
		gcnCases(i, 1, func(p gcnProcessor, level string) {
			t.Run(filepath.Base(source)+" "+p.name+" "+level, func(t *testing.T) {
				t.Parallel()
				j := newGCNJudge(t, gcnCorpusObject(t, p, source, library, level), amdgpu.New())
				if err := j.executeAll(1, p.lanes-27, func() error { return nil }); err != nil {
					t.Error(err)
				}
				table.add(t, p, level, j)
			})
		})
	}
}

// gcnPressure are attributes by which compilers have fewer registers than usual.
var gcnPressure = []string{``, `"amdgpu-num-sgpr"="44"`, `"amdgpu-waves-per-eu"="8,8"`, `"amdgpu-num-vgpr"="44"`, ``}

// gcnProgram writes the program of a seed, for the device and the host. One that
// cannot be compiled with few registers has as many as usual.
func gcnProgram(t testing.TB, p gcnProcessor, seed uint64, level string) (device, host string) {
	t.Helper()
	dir := t.TempDir()
	host = filepath.Join(dir, "k.c")
	if err := os.WriteFile(host, []byte(generateGCN(seed, p.acc)), 0o600); err != nil {
		t.Fatal(err)
	}
	pressure := gcnPressure[seed%uint64(len(gcnPressure))]
	if pressure == "" {
		return host, host
	}
	device = filepath.Join(dir, "k.ll")
	gcnCompile(t, p, device, []string{host}, level, "-g", "-S", "-emit-llvm")
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
	if err := tryGCNCompile(p, filepath.Join(dir, "k.co"), []string{device}, level); err != nil {
		if text := err.Error(); strings.Contains(text, "ran out of registers") || strings.Contains(text, "cannot find enough VGPRs") {
			return host, host // so few are too few
		}
		t.Fatal(err)
	}
	return device, host
}

// gcnHosts are the programs for the host, which do not differ by level.
type gcnHosts struct {
	dir   string
	mutex sync.Mutex
	built map[string]string
}

func (h *gcnHosts) build(t testing.TB, source, name string) string {
	t.Helper()
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if path := h.built[name]; path != "" {
		return path
	}
	path := filepath.Join(h.dir, name)
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

// sameAsHost holds what a kernel wrote against what the same functions write on
// the host.
func sameAsHost(o *gcnObject, host string, s *gcnState, items int) error {
	word := func(a uint64) uint64 {
		v, err := loadBytes(func(a uint64) (*byte, error) { return s.at(0, a) }, a, 4)
		if err != nil {
			panic(err)
		}
		return v
	}
	k := o.kernels[0]
	args := []string{fmt.Sprint(items), fmt.Sprint(word(gcnArguments + k.arguments[2].offset))}
	const second = gcnBuffers + 2*gcnBuffer
	for i := range uint64(64) {
		args = append(args, fmt.Sprint(word(second+4*i)))
	}
	want, err := exec.Command(host, args...).Output()
	if err != nil {
		return err
	}
	var got bytes.Buffer
	for i := range items {
		fmt.Fprintln(&got, word(gcnBuffers+4*uint64(i))) //nolint:gosec // not negative
	}
	if got.String() != string(want) {
		return fmt.Errorf("%s wrote\n%s, the host\n%s", o.path, strings.ReplaceAll(got.String(), "\n", " "), strings.ReplaceAll(string(want), "\n", " "))
	}
	return nil
}

// gcnSeeds are the programs that are generated.
func gcnSeeds() uint64 {
	if proof.IsAsked() {
		return 200
	}
	return 6
}

// TestFramesOfExecutingGeneratedKernels does the same with generated programs.
// They write what the same functions write on the host, so the code was executed
// as the hardware would.
func TestFramesOfExecutingGeneratedKernels(t *testing.T) {
	needGCN(t)
	var table gcnTable
	t.Cleanup(func() { table.judge(t) })
	hosts := gcnHosts{dir: t.TempDir()}
	for seed := range gcnSeeds() {
		gcnCases(int(seed), 1, func(p gcnProcessor, level string) { //nolint:gosec // small
			t.Run(fmt.Sprint(seed, " ", p.name, " ", level), func(t *testing.T) {
				t.Parallel()
				device, source := gcnProgram(t, p, seed, level)
				host := hosts.build(t, source, fmt.Sprint(seed, p.acc))
				out := filepath.Join(t.TempDir(), "k.co")
				gcnCompile(t, p, out, []string{device}, level)
				o := openGCN(t, p, out)
				j := newGCNJudge(t, o, amdgpu.New())
				items := p.lanes - 5 - int(seed%20) //nolint:gosec // small
				if err := j.executeAll(seed, items, func() error { return sameAsHost(o, host, j.state, items) }); err != nil {
					t.Error(err)
				}
				table.add(t, p, level, j)
			})
		})
	}
}

// exactCFI walks kernels by call frame information that is exact: where it is
// placed follows from executing the same code.
func exactCFI(t *testing.T, p gcnProcessor, level string, sources []string, seed uint64, items int) *gcnJudge {
	t.Helper()
	dir := t.TempDir()
	plain := filepath.Join(dir, "k.co")
	var assemblies []string
	for i, source := range sources {
		assemblies = append(assemblies, filepath.Join(dir, fmt.Sprintf("%d.s", i)))
		gcnCompile(t, p, assemblies[i], []string{source}, level, "-g", "-S")
	}
	gcnCompile(t, p, plain, assemblies)
	o := openGCN(t, p, plain)
	with := withCFI(t, o, newGCNJudge(t, o, amdgpu.New()), assemblies, gcnLaunches(o, seed, items))
	j := newGCNJudge(t, with, amdgpu.New())
	j.by = ByCFI
	if err := j.executeAll(seed, items, func() error { return nil }); err != nil {
		t.Error(err)
	}
	return j
}

// TestFramesOfExecutingKernelsByExactCFI shows that both ways agree: what frames
// are is known by executing, and is what the rules of the code say and what call
// frame information says.
func TestFramesOfExecutingKernelsByExactCFI(t *testing.T) {
	needGCN(t)
	var table gcnTable
	t.Cleanup(func() { table.judge(t) })
	programs := uint64(3)
	if proof.IsAsked() {
		programs = 50
	}
	for seed := range programs {
		gcnCases(int(seed)+1, 1, func(p gcnProcessor, level string) { //nolint:gosec // small
			t.Run(fmt.Sprint(seed, " ", p.name, " ", level), func(t *testing.T) {
				t.Parallel()
				device, _ := gcnProgram(t, p, seed, level)
				table.add(t, p, level, exactCFI(t, p, level, []string{device}, seed, p.lanes-9))
			})
		})
	}
	if proof.IsAsked() {
		library := gcnLibraryFile(t)
		for _, source := range corpusSources(t) {
			sources := []string{source}
			if filepath.Ext(source) == ".cl" {
				sources = append(sources, library)
			}
			gcnCases(0, 0, func(p gcnProcessor, level string) {
				t.Run(filepath.Base(source)+" "+p.name+" "+level, func(t *testing.T) {
					t.Parallel()
					table.add(t, p, level, exactCFI(t, p, level, sources, 1, p.lanes-9))
				})
			})
		}
	}
}

// brokenRules is AMDGPU with rows that are wrong by one save slot.
type brokenRules struct {
	sdk.Architecture
	broken *int
	change func(p gcnProcessor, rows []cfi.Row) int
	p      gcnProcessor
}

func (b brokenRules) FrameRules(ctx context.Context, e sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	a, err := b.Architecture.FrameRules(ctx, e, req)
	if err == nil {
		for i := range a.Functions {
			*b.broken += b.change(b.p, a.Functions[i].Rows)
		}
	}
	return a, err
}

// TestJudgeSeesRulesThatAreWrong breaks the rules that code was read to: the
// judge must find each of the breakages.
func TestJudgeSeesRulesThatAreWrong(t *testing.T) {
	needGCN(t)
	each := func(rows []cfi.Row, do func(rule *cfi.RegisterRule) bool) (n int) {
		for i := range rows {
			rows[i].Rules = slices.Clone(rows[i].Rules)
			for k := range rows[i].Rules {
				if do(&rows[i].Rules[k]) {
					n++
				}
			}
		}
		return n
	}
	for _, m := range []struct {
		name   string
		change func(p gcnProcessor, rows []cfi.Row) int
	}{
		{"nothing", func(gcnProcessor, []cfi.Row) int { return 0 }},
		{"a return address in the next lane", func(_ gcnProcessor, rows []cfi.Row) int {
			return each(rows, func(rule *cfi.RegisterRule) bool { return rule.Column == 16 && nextSlot(&rule.Rule, 4) })
		}},
		{"a scalar register in the next lane", func(_ gcnProcessor, rows []cfi.Row) int {
			return each(rows, func(rule *cfi.RegisterRule) bool {
				return rule.Column >= 65 && rule.Column < 96 && nextSlot(&rule.Rule, 4)
			})
		}},
		{"a vector register in the next slot", func(p gcnProcessor, rows []cfi.Row) int {
			return each(rows, func(rule *cfi.RegisterRule) bool {
				return rule.Column >= 1536 && nextSlot(&rule.Rule, 4*p.lanes)
			})
		}},
		{"a clobbered register kept", func(_ gcnProcessor, rows []cfi.Row) int {
			return each(rows, func(rule *cfi.RegisterRule) bool {
				if rule.Rule.Kind != cfi.Undefined || rule.Column < 32 {
					return false
				}
				rule.Rule = cfi.Rule{Kind: cfi.SameValue}
				return true
			})
		}},
	} {
		t.Run(m.name, func(t *testing.T) {
			p := gcnProcessors[0]
			device, _ := gcnProgram(t, p, 1, "-O2")
			out := filepath.Join(t.TempDir(), "k.co")
			gcnCompile(t, p, out, []string{device}, "-O2")
			broken := 0
			j := newGCNJudge(t, openGCN(t, p, out), brokenRules{amdgpu.New(), &broken, m.change, p})
			if err := j.executeAll(1, p.lanes-9, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
			t.Log(broken, "rules broken,", len(j.problems), "problems")
			if m.name == "nothing" {
				if len(j.problems) > 0 {
					t.Error(j.problems)
				}
				return
			}
			if broken == 0 || len(j.problems) == 0 {
				t.Errorf("%d rules were broken, and %d problems seen", broken, len(j.problems))
			}
		})
	}
}

// nextSlot adds to the first offset of a rule; false where it has none.
func nextSlot(rule *cfi.Rule, by int) bool {
	switch rule.Kind {
	case cfi.Offset:
		rule.Offset += int64(by)
		return true
	case cfi.Expression:
		at := bytes.Index(rule.Expr, []byte{llvmUser, llvmOffsetUconst})
		if at < 0 {
			return false
		}
		old, size := uint64(0), 0
		for i, b := range rule.Expr[at+2:] {
			old |= uint64(b&0x7f) << (7 * i)
			if size = i + 1; b < 0x80 {
				break
			}
		}
		rule.Expr = join(rule.Expr[:at+2], uleb(old+uint64(by)), rule.Expr[at+2+size:]) //nolint:gosec // positive
		return true
	}
	return false
}
