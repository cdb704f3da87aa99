// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/elf"
	"debug/pe"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kind is files that say the same sort of thing, and the commands that read them. In a
// command FILE stands for the damaged file, ROOT for the repository, MADE for the folder of
// what make.sh makes, EMPTY for a folder with nothing in it, and RUN for the folder that the
// damaged file is in, by its own name. CODE: and a file stands for addresses of its code before
// the damage. COPY and a file before a command has that file beside it; with TREE it is there by
// its whole path. The underscore is a blank within an argument.
type kind struct {
	name     string
	often    int // how often it is taken, beside the others
	patterns []string
	commands []string
}

// What stacks, profiles and code objects are asked for. What takes long stands once.
var (
	stackCommands = []string{
		"stack FILE", "stack --format json FILE", "stack --format html --locals FILE", "stack --signature FILE", "stack --locals --raw --depth 9 FILE",
		"stack --registers --lanes --no-fold FILE", "stack --format breakpad FILE", "stack --goroutines --crashed --top 3 FILE", "snapshot FILE -o RUN/out",
	}
	profileCommands = []string{
		"profile FILE", "profile --format json FILE", "profile --format pprof -o RUN/out FILE", "profile --format otlp -o RUN/out FILE", "profile --format folded FILE",
		"profile --format speedscope FILE", "profile --format firefox FILE", "profile --format html FILE", "profile --annotate main FILE", "profile --symbols=false --format json FILE",
	}
	objectCommands = []string{
		"dump cfi FILE", "dump rows FILE", "dump expr FILE", "dump notes FILE", "dump rows --format json FILE", "symbols FILE",
		"symbolize --obj FILE CODE:FILE 0x40", "symbolize --obj FILE CODE:FILE --output-style json", "symbolize --obj FILE FRAME_0x401020 DATA_0x402000",
		"eval --arch x86_64 --unit FILE:0xc --expr fbreg_-24 --reg rip=0x401010 --reg rbp=0x7ffc0000",
	}
)

// kinds are all that the command reads. Paths that begin with MADE are made; the others are
// below the repository, and below the folder shared beside it, if there is one.
var kinds = []kind{
	{"core of x86-64", 2, []string{"examples/crash/server.core"}, append([]string{"dump notes FILE", "stack FILE --exe ROOT/examples/crash/server --sysroot EMPTY"}, stackCommands...)},
	{"core of aarch64, riscv64", 4, []string{"MADE/cores/aarch64.core", "MADE/cores/riscv64.core", "MADE/cores/aarch64_be.core"}, append([]string{"stack FILE --exe MADE/cores/aarch64"}, stackCommands...)},
	{"core of other machines", 4, []string{"MADE/cores/[!argi]*.core", "MADE/cores/arm*.core", "MADE/cores/i386.core"}, stackCommands},
	{"core of Go", 1, []string{"MADE/cores/go.core"}, []string{"stack --goroutines FILE", "stack --locals FILE", "stack --signature FILE"}},
	{"core of ROCm", 3, []string{"examples/rocm-core/crash.core"}, append([]string{"stack --lanes --locals FILE", "stack --lane 5 FILE"}, stackCommands...)},
	{"waves beside a core", 2, []string{"examples/rocm-core/crash.core"}, []string{"stack ROOT/examples/crash/server.core --sysroot EMPTY --gpu-core FILE"}},
	{"minidump", 4, []string{"MADE/dumps/*.dmp"}, append([]string{"dump notes FILE", "dump notes --format json FILE"}, stackCommands...)},
	{"minidump with symbols", 2, []string{"MADE/dumps/breakpad.dmp"}, []string{"stack --symbols MADE/store FILE", "stack --symbols MADE/store --format breakpad FILE"}},
	{"symbol file", 4, []string{"MADE/symbols/server.sym"}, []string{"stack ROOT/examples/crash/server.dmp --sysroot EMPTY --symbols FILE", "stack --signature ROOT/examples/crash/server.dmp --sysroot EMPTY --symbols FILE"}},
	{"snapshot", 12, []string{"MADE/snapshots/*.snapshot"}, append([]string{"eval --arch x86_64 --snapshot FILE --frame 1 --var batch", "eval --arch x86_64 --snapshot FILE --frame 0 --trace --expr call_frame_cfa", "stack --lane 3 --code 3 FILE", "snapshot --files FILE -o RUN/out"}, stackCommands...)},
	{"recording", 4, []string{"MADE/perf/*.data"}, profileCommands},
	{"samples of accelerators", 4, []string{"MADE/gpu/*"}, []string{
		"profile --gpu FILE", "profile --gpu FILE --format json", "profile ROOT/examples/gpu-profile/cpu.data --gpu FILE", "profile ROOT/examples/gpu-profile/cpu.data --gpu FILE --format folded",
		"profile --gpu FILE --annotate grade --objects ROOT/examples/gpu-profile/grade.co",
	}},
	{"recording beside them", 2, []string{"MADE/perf/plain.data", "MADE/perf/pipe.data"}, []string{"profile FILE --gpu ROOT/examples/gpu-profile/gpu.jsonl", "profile FILE --gpu ROOT/examples/gpu-profile/gpu_results.json --format pprof -o RUN/out"}},
	{"jitdump", 3, []string{"MADE/jit/*.dump"}, []string{"TREE profile MADE/jit/jit.data --sysroot RUN", "TREE profile MADE/jit/jit.data --sysroot RUN --format json"}},
	{"kernel's symbols", 2, []string{"MADE/kallsyms/*"}, []string{"profile MADE/jit/kernel.data --kallsyms FILE", "profile MADE/jit/kernel.data --kallsyms FILE --format json"}},
	{"SPIR-V", 5, []string{"MADE/spirv/*.spv", "../shared/corpus/spirv/*.spv", "../shared/found/spirv/*.spv"}, []string{"dump spirv FILE", "dump spirv --format json FILE", "symbolize --obj FILE 0x100 kern+3", "symbolize --obj FILE %20"}},
	{"LLVM IR", 5, []string{"MADE/llvmir/*.ll", "../shared/corpus/llvmir/*.ll", "../shared/found/llvmir/*.ll"}, []string{"dump llvmir FILE", "dump llvmir --format json FILE", "symbolize --obj FILE foo+3 20"}},
	{"LLVM bitcode", 1, []string{"MADE/llvmir/*.bc"}, []string{"dump llvmir FILE", "symbolize --obj FILE foo+3", "dump notes FILE"}},
	{"vISA streams", 3, []string{"plugins/visa/stream/testdata/*.dbg"}, []string{"dump visa FILE", "dump visa --format json FILE"}},
	{"zebin", 3, []string{"MADE/visa/*"}, append([]string{"dump visa FILE"}, objectCommands...)},
	{"AMDGPU code", 4, []string{"plugins/amdgpu/testdata/*.co", "examples/gpu-profile/grade.co"}, objectCommands},
	{"bundles", 3, []string{"engine/object/testdata/bundles/*.hipfb"}, []string{"dump notes FILE", "dump cfi FILE", "symbolize --obj FILE CODE:FILE 0x1700", "profile --gpu ROOT/examples/gpu-profile/gpu.jsonl --objects FILE"}},
	{"PE", 4, []string{"MADE/pe/*.exe", "MADE/pe/*.obj"}, objectCommands},
	{"Mach-O", 8, []string{"MADE/macos/*"}, objectCommands},
	{"core of macOS", 4, []string{"MADE/macoscores/*.core"}, stackCommands},
	{"report of macOS", 4, []string{"examples/apple/*.ips", "engine/internal/target/applereport/testdata/*"}, append([]string{"stack FILE --debug-dir ROOT/examples/apple", "profile FILE", "profile --format json FILE"}, stackCommands...)},
	{"ELF and DWARF", 16, []string{"MADE/debug/*", "engine/internal/symbol/dwarf/testdata/small?", "engine/internal/symbol/dwarf/testdata/split5", "engine/report/testdata/relocatable/*.o"}, objectCommands},
	{"debug file", 2, []string{"MADE/apart/linked.debug"}, []string{
		"COPY MADE/apart/linked symbolize --obj RUN/linked CODE:MADE/apart/linked", "COPY MADE/apart/linked dump rows RUN/linked", "COPY MADE/apart/linked symbols RUN/linked",
	}},
	{"supplementary file", 1, []string{"MADE/apart/common"}, []string{"COPY MADE/apart/one symbolize --obj RUN/one CODE:MADE/apart/one", "COPY MADE/apart/one symbols RUN/one", "COPY MADE/apart/one dump expr RUN/one"}},
	{"package of units", 2, []string{"MADE/debug/split.dwp"}, []string{"symbolize --obj MADE/debug/split CODE:MADE/debug/split --dwp FILE", "symbols MADE/debug/split --dwp FILE"}},
	{"split unit", 2, []string{"MADE/debug/split-small.dwo"}, []string{"TREE symbols MADE/debug/split --sysroot RUN", "dump expr FILE", "dump notes FILE"}},
	{"Go's tables", 1, []string{"MADE/go/*"}, []string{"symbolize --obj FILE CODE:FILE", "dump notes FILE"}},
	{"packed", 5, []string{"MADE/packed/*"}, []string{"stack FILE", "stack --format json --max-unpacked 64M FILE"}},
	{"settings", 1, []string{"MADE/config/*"}, []string{"--config FILE stack ROOT/examples/mixed/mixed.snapshot", "--config FILE dump notes MADE/debug/gcc5"}},
}

// input is a file's content with the commands that read it.
type input struct {
	path     string
	content  []byte
	commands []string
}

// places are the folders that commands and patterns name.
type places struct{ root, generated, empty string }

func (p places) path(pattern string) string {
	if rest, isMade := strings.CutPrefix(pattern, "MADE/"); isMade {
		return filepath.Join(p.generated, rest)
	}
	return filepath.Join(p.root, pattern)
}

// words returns a command's arguments; the damaged file, made from original, is in the
// folder run as file.
func (p places) words(command, run, file string, original *input) (list []string) {
	for _, word := range strings.Fields(command) {
		of, isCode := strings.CutPrefix(word, "CODE:")
		switch {
		case !isCode:
			list = append(list, word)
		case of == "FILE":
			list = append(list, codeOf(original.path)...)
		default:
			list = append(list, codeOf(p.path(of))...)
		}
	}
	replacer := strings.NewReplacer("FILE", file, "ROOT", p.root, "MADE", p.generated, "EMPTY", p.empty, "RUN", run)
	for i, word := range list {
		if strings.HasPrefix(word, "FRAME_") || strings.HasPrefix(word, "DATA_") || strings.HasPrefix(word, "fbreg_") {
			word = strings.Replace(word, "_", " ", 1)
		}
		list[i] = replacer.Replace(word)
	}
	return list
}

// codeOf are some addresses of the code of a file of ELF or PE; of another file, some that may
// be.
func codeOf(path string) []string {
	start, size := uint64(0x1000), uint64(0x40)
	if f, err := elf.Open(path); err == nil {
		if text := f.Section(".text"); text != nil {
			start, size = text.Addr, text.Size
		}
		_ = f.Close()
	} else if f, err := pe.Open(path); err == nil {
		if text := f.Section(".text"); text != nil {
			start, size = uint64(text.VirtualAddress), uint64(text.VirtualSize)
		}
		if h, isWide := f.OptionalHeader.(*pe.OptionalHeader64); isWide {
			start += h.ImageBase
		}
		_ = f.Close()
	}
	var list []string
	for i := range uint64(5) {
		list = append(list, fmt.Sprintf("%#x", start+i*size/5))
	}
	return list
}

// readInputs reads the files of a kind.
func readInputs(p places, k kind) (inputs []input, err error) {
	for _, pattern := range k.patterns {
		paths, err := filepath.Glob(p.path(pattern))
		if strings.HasPrefix(pattern, "../shared/") && len(paths) == 0 {
			continue // it is not beside every repository
		}
		if err != nil || len(paths) == 0 {
			return nil, fmt.Errorf("%s: no such files (%v)", p.path(pattern), err)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			if len(content) > 0 {
				inputs = append(inputs, input{path, content, k.commands})
			}
		}
	}
	return inputs, nil
}
