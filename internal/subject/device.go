// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"cmp"
	"debug/elf"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// deviceBuild is a code object of AMDGPU that clang compiles.
type deviceBuild struct {
	source, processor, flags string
	// cfi is set where call frame information is written into the assembly,
	// since clang writes entries without any rule.
	cfi bool
}

// name returns the name of the object's file.
func (b deviceBuild) name() string {
	name := strings.TrimSuffix(filepath.Base(b.source), filepath.Ext(b.source)) + "." + b.processor + strings.ReplaceAll(b.flags, " ", "")
	if b.cfi {
		name += ".cfi"
	}
	return strings.ReplaceAll(name, ":", ",") + ".co"
}

// deviceBuilds returns kernels of OpenCL C and HIP for four processors, optimized
// and not, and some for others, in other formats. The folder has the sources of
// kernels.
func deviceBuilds(folder, shapes string) (list []deviceBuild) {
	sources := []string{filepath.Join(folder, "amd_k.cl"), filepath.Join(folder, "amd_h.hip"), shapes}
	for _, processor := range []string{"gfx90a", "gfx942", "gfx1030", "gfx1100"} {
		for _, source := range sources {
			for _, flags := range []string{"-O0", "-O2"} {
				list = append(list, deviceBuild{source: source, processor: processor, flags: flags})
			}
		}
		list = append(list, deviceBuild{shapes, processor, "-O2", true})
	}
	return append(list,
		deviceBuild{source: shapes, processor: "gfx90a:sramecc-:xnack+", flags: "-O1 -gdwarf-4"},
		deviceBuild{source: shapes, processor: "gfx906", flags: "-O2 -mcode-object-version=4"},
		deviceBuild{source: shapes, processor: "gfx1030", flags: "-O2 -mcode-object-version=5 -mwavefrontsize64"},
		deviceBuild{source: shapes, processor: "gfx1201", flags: "-O2 -gz=zlib"},
		deviceBuild{source: shapes, processor: "gfx11-generic", flags: "-O3 -gline-tables-only"},
	)
}

// commands returns the commands that compile the object in another folder
// than the source's.
func (b deviceBuild) commands(inject string) [][]string {
	compile := []string{"clang-22", "-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", "--offload-arch=" + b.processor, "-nogpuinc"}
	if filepath.Ext(b.source) == ".cl" {
		compile = []string{"clang-22", "-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", "-mcpu=" + b.processor}
	}
	compile = append(append(compile, "-nogpulib", "-g", b.source), strings.Fields(b.flags)...)
	if !b.cfi {
		return [][]string{append(compile, "-o", b.name())}
	}
	lanes := "64"
	if strings.HasPrefix(b.processor, "gfx1") {
		lanes = "32"
	}
	return [][]string{
		append(compile, "-S", "-o", "plain.s"),
		{"python3", inject, "plain.s", "cfi.s", lanes},
		{"clang-22", "-target", "amdgcn-amd-amdhsa", "-mcpu=" + b.processor, "-x", "assembler", "-o", b.name(), "cfi.s"},
	}
}

// shapes returns the source of device code of many shapes, with its host
// program.
func shapes(t testing.TB) string {
	t.Helper()
	return Source(t, filepath.Join("hip", "shapes.hip"))
}

// deviceFolder has code objects of AMDGPU, and their sources.
const deviceFolder = "plugins/amdgpu/testdata"

// CodeObjects returns the code objects of AMDGPU in the tree, the ones compiled here, and
// the corpus's, where it lies beside the checkout. With -short nothing is compiled.
func CodeObjects(t testing.TB) []string {
	t.Helper()
	folder := oracle.Checkout(t, deviceFolder)
	files, _ := filepath.Glob(filepath.Join(folder, "*.co"))
	if len(files) < 3 {
		t.Fatalf("%d code objects in %s", len(files), folder)
	}
	if !testing.Short() {
		files = append(files, compiledCodeObjects(t, folder)...)
	}
	for dir := folder; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		list, _ := filepath.Glob(filepath.Join(dir, "shared", "corpus", "amdgpu", "*", "*.co"))
		files = append(files, list...)
	}
	return files
}

// compiledCodeObjects compiles the objects of deviceBuilds.
func compiledCodeObjects(t testing.TB, folder string) (files []string) {
	t.Helper()
	oracle.Tools(t, "ld.lld-22")
	builds := deviceBuilds(folder, shapes(t))
	build := oracle.Build{Sources: []string{folder, filepath.Dir(shapes(t))}}
	for _, b := range builds {
		build.Commands = append(build.Commands, b.commands(filepath.Join(folder, "inject_cfi.py"))...)
	}
	dir := build.Make(t)
	for _, b := range builds {
		files = append(files, filepath.Join(dir, b.name()))
	}
	return files
}

// BuildHIP compiles a program with device code for two processors inside, gfx90a and
// gfx1100, in a folder of its own.
func BuildHIP(t testing.TB, flags ...string) string {
	t.Helper()
	oracle.Tools(t, "clang-22", "ld.lld-22", "clang-offload-bundler-22", "clang-linker-wrapper-22")
	dir := t.TempDir()
	args := append([]string{"-x", "hip", "--offload-arch=gfx90a", "--offload-arch=gfx1100", "-nogpuinc", "-nogpulib", "-no-hip-rt", "-g", "-O2", "-o", "program"}, flags...)
	oracle.With{Dir: dir}.Run(t, "clang-22", append(args, shapes(t))...)
	return filepath.Join(dir, "program")
}

// DeviceFunctions returns the functions in the symbol table of a file, by address,
// and the kernels among them, which have a descriptor, NAME.kd.
func DeviceFunctions(t testing.TB, path string) (list []elf.Symbol, kernels map[string]bool) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	kernels = map[string]bool{}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0 {
			list = append(list, s)
		}
		if name, ok := strings.CutSuffix(s.Name, ".kd"); ok {
			kernels[name] = true
		}
	}
	slices.SortFunc(list, func(a, b elf.Symbol) int { return cmp.Compare(a.Value, b.Value) })
	if len(list) < 3 || len(kernels) == 0 {
		t.Fatalf("%s has %d functions, %d kernels", path, len(list), len(kernels))
	}
	return list, kernels
}
