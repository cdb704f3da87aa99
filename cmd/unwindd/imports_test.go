// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

const module = "github.com/unwindd/unwindd/"

// floors are the rooms of the house, the highest first. A package may import
// packages of lower floors, and, of its own floor, only the folder above it.
var floors = []string{
	"cmd",
	"cmd/unwindd/internal/verify", // a vendor's plugin as it will be used
	"cmd/unwindd/internal/mcp",    // tools for language models
	"internal/enginetest",         // what tests of whole stacks need
	"internal/bundled",            // the architectures and runtimes that executables have compiled in
	"engine/service",
	"engine/service/internal/page",     // what people see of it
	"engine/service/internal/reports",  // what is kept for them
	"engine/service/fleet",             // what other machines do
	"engine/service/internal/objects",  // what is kept of code
	"engine/service/internal/buildids", // what folders have
	"engine/service/internal/worker",   // processes that do it
	"engine/service/job",               // what is asked of an engine in one go
	"engine/service/internal/remote",   // targets of other machines
	"engine/service/internal/objects",  // files that were put
	"engine/service/internal/bounded",  // how folders of files are bounded
	"engine/service/servicepb",         // what goes over the wire
	"engine/report",
	"engine/internal/stackpage",     // stacks as a page
	"engine/internal/flamepage",     // profiles as one
	"engine/internal/comparepage",   // comparisons as one
	"engine/internal/look/looktest", // what tests of pages share
	"engine/internal/look",          // how they look
	"engine/symbolize",
	"engine/internal/profilenames", // names in the bytes of profiles
	"engine/internal/listing",      // what files have, as it is written
	"engine",
	"engine/internal/collector",      // what a snapshot has
	"engine/internal/label",          // which rank of a job a process is
	"engine/internal/flightrecorder", // which operations ranks wait in
	"engine/internal/procmaps",       // what Linux says of a process's code
	"engine/internal/packaging",      // what was written beside a packed core
	"engine/internal/beside",         // the files of one process in a folder
	"engine/internal/profile",
	"engine/internal/managed",   // what language runtimes add to stacks
	"engine/internal/compared",  // what is compared of one target
	"engine/internal/fact",      // what a crash was, in one line
	"engine/internal/lock",      // what threads wait for
	"engine/internal/signature", // by what crashes are grouped
	"engine/internal/funcname",  // how names are shortened
	"internal/wavecheck",        // what tests need: walks of executing waves
	"engine/walk",
	"engine/internal/code",
	"engine/internal/value",
	"engine/internal/disassembler",
	"engine/plugin",
	"internal/confine", // what a plugin's process gives up, before it serves
	"plugins",
	"internal/fixture/power", // architectures that tests use, and the part that they share
	"internal/fixture/s390x",
	"internal/fixture",
	"plugins/x86code",                 // what code does, for the plugins of x86
	"plugins/visa/stream",             // what compilers write, for the plugin and for dump
	"plugins/amdgpu/isa",              // what code does, for the plugin
	"plugins/amdgpu/rocm",             // what cores hold, for the plugin
	"plugins/nvidia/cudacore",         // likewise
	"engine/internal/source",          // the text of source files
	"engine/internal/typelayout",      // where types have their members
	"engine/internal/symbolstore",     // symbol files of other machines
	"engine/internal/symbol/resolve",  // joins its neighbours below into one source
	"engine/internal/symbol/debugmap", // DWARF of the object files of a program of macOS
	"engine/internal/symbol/pdbtypes", // variables of PDB files in the terms of DWARF
	"engine/internal/symbol/pdb",
	"engine/internal/symbol/framerules", // rows of the frame data of 32-bit x86
	"engine/internal/symbol",
	"engine/internal/symbol/postfix",   // expressions of its neighbours
	"engine/internal/symbol/msvcname",  // how names of Microsoft's compilers read
	"engine/internal/symbol/dname",     // how names of D read
	"engine/internal/symbol/swiftname", // how names of Swift read, in part
	"engine/internal/target/process",   // copies a process as its neighbour below reads cores
	"engine/internal/target",           // formats of state
	"engine/target",
	"engine/internal/filekind",         // which command reads a file
	"engine/internal/unpack",           // what its files come packed in
	"engine/internal/target/jsontext",  // how its neighbours above read JSON
	"engine/internal/target/linetext",  // how they read lines
	"engine/internal/target/stacktree", // what its neighbours above make of stacks
	"engine/internal/target/sqlite",    // databases, for its neighbours above
	"engine/internal/target/wine",      // what Wine keeps in memory, likewise
	"engine/internal/target/mach",      // exceptions of macOS, likewise
	"engine/internal/selection",        // what is shown of profiles
	"engine/internal/comparison",       // what many targets have in common
	"engine/trace",                     // what walks and profiles yield
	"internal/damage/managed",          // what tests of runtimes need
	"sdk",
	"engine/internal/debuginfod",      // files of other machines
	"engine/internal/download",        // how they come from servers
	"engine/internal/otlpexport",      // sends profiles to collectors
	"engine/internal/otlpjson",        // reads their JSON
	"engine/internal/symbol/codeview", // types of PDB files
	"engine/object",
	"engine/internal/ranges",  // makes ranges disjoint
	"engine/internal/cabinet", // what files of stores come packed in
	"engine/internal/pe",      // headers and unwind codes of PE files, for its objects
	"engine/internal/macho",   // load commands and unwind information of Mach-O files, likewise
	"engine/internal/macho/machotest",
	"engine/internal/symbol/msf", // containers of PDB files, likewise
	"engine/internal/symbol/msf/msftest",
	"cfi",
	"locexpr",
	"sdk/reloc", // relocation types, for what describes them and what applies them
	"internal/escape",
	"internal/gcn",        // what tests need
	"internal/recorded",   // likewise
	"internal/valuecheck", // likewise
	"internal/otlpcheck",  // likewise
	"internal/damage",     // likewise
	"internal/subject",    // likewise
	"internal/schema",     // likewise
	"internal/oracle",     // likewise
	"internal/proof",      // likewise
	"internal/dw",
	"internal/ehpe",
	"internal/inflate",
	"internal/leb128",
	"internal/problems",
	"internal/panics",
	"internal/garbage",
	"internal/host", // what each system does in its own way
	"internal/trie",
	"internal/manual",   // pages of the commands
	"internal/version",  // of the build
	"internal/dist",     // makes what is released
	"internal/house",    // tests of names and comments
	"internal/ondemand", // values that are made when they are used
}

// only lists rooms that may import nothing of the project but these.
var only = map[string][]string{
	"sdk":                        {"cfi", "locexpr", "internal/panics", "sdk"},
	"sdk/reloc":                  {},
	"engine/internal/value":      {"engine/internal/symbol/dwarf", "engine/trace", "internal/dw", "locexpr"},
	"engine/trace":               {"sdk", "locexpr"},
	"plugins":                    {"sdk", "cfi", "internal/dw", "locexpr", "plugins"},
	"engine/internal/otlpexport": {"internal/escape"},
	"engine/internal/ranges":     {},
	"internal/confine":           {"sdk", "internal/version", "internal/oracle"},
	"plugins/visa/stream":        {},
	"internal/fixture":           {"sdk", "cfi"},
	"internal/fixture/power":     {"internal/fixture", "sdk", "cfi", "locexpr"},
	"internal/fixture/s390x":     {"internal/fixture", "sdk", "cfi", "locexpr"},
	"plugins/amdgpu/isa":         {},
	"plugins/amdgpu/rocm":        {"sdk", "locexpr"},
	"plugins/nvidia/cudacore":    {"sdk", "locexpr"},
	"internal/escape":            {},
	"internal/gcn":               {"internal/dw", "internal/leb128", "internal/oracle", "internal/proof"},
	"internal/oracle":            {},
	"internal/recorded":          {"internal/oracle", "internal/proof"},
	"internal/subject":           {"internal/oracle"},
	"internal/schema":            {"internal/oracle"},
	"internal/proof":             {},
	"internal/valuecheck":        {},
	"internal/otlpcheck":         {},
	"internal/damage":            {},
	"internal/dw":                {},
	"internal/ehpe":              {},
	"internal/inflate":           {},
	"internal/leb128":            {},
	"internal/ondemand":          {},
	"internal/problems":          {},
	"internal/panics":            {},
	"internal/garbage":           {},
	"internal/trie":              {},
	"internal/manual":            {"internal/ondemand"},
	"internal/version":           {},
	"internal/dist":              {},
	"internal/house":             {},
}

// testKits are rooms that tests alone import, and other kits.
var testKits = []string{
	"engine/internal/macho/machotest", "engine/internal/symbol/msf/msftest", "internal/confine/confinetest", "internal/damage", "internal/damage/managed", "internal/enginetest", "internal/fixture", "internal/fixture/power",
	"internal/fixture/power/unwindd-arch-ppc64", "internal/fixture/power/unwindd-arch-ppc64le", "internal/fixture/s390x",
	"internal/fixture/s390x/unwindd-arch-s390x", "internal/gcn", "internal/oracle", "internal/otlpcheck",
	"internal/proof", "internal/recorded", "internal/schema", "internal/subject", "internal/valuecheck", "internal/wavecheck",
}

// floor is the index of the room that a package is in: the longest that fits.
func floor(pkg string) int {
	best := -1
	for i, room := range floors {
		if (pkg == room || strings.HasPrefix(pkg, room+"/")) && (best < 0 || len(room) > len(floors[best])) {
			best = i
		}
	}
	return best
}

func TestImportsGoDownward(t *testing.T) {
	out := oracle.Run(t, "go", "list", "-json=ImportPath,Imports", module+"...")
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkg := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(pkg, "examples/") || strings.HasPrefix(pkg, "engine/internal/examplemake/") || strings.Contains(pkg, "testdata") {
			continue
		}
		from := floor(pkg)
		if from < 0 {
			t.Errorf("%s is in no room of the house", pkg)
			continue
		}
		for _, imported := range p.Imports {
			if !strings.HasPrefix(imported, module) {
				continue
			}
			if problem := checkImport(pkg, from, strings.TrimPrefix(imported, module)); problem != "" {
				t.Error(problem)
			}
		}
	}
}

// sixOfEngine are the packages of engine, beside engine itself, that the command imports.
var sixOfEngine = []string{"engine/plugin", "engine/report", "engine/service", "engine/service/fleet", "engine/service/job", "engine/symbolize"}

// promised are the packages of which programs of others know that they stay as they are.
var promised = []string{"engine", "engine/trace", "sdk", "sdk/archtest", "sdk/codeflow", "cfi", "locexpr"}

// outside lists the programs outside of engine, and the packages that they may import beside
// promised ones. A name that ends in a slash stands for all packages beneath.
var outside = []struct {
	dir, pattern, tags string
	tests              bool // what their tests import counts, too
	may                []string
}{
	{"../..", "./cmd/...", "", false, slices.Concat(sixOfEngine, []string{"internal/", "plugins/", "cmd/unwindd/internal/"})},
	// nats-server is linked where the tag says so.
	{"../..", "./cmd/...", "fleet", false, slices.Concat(sixOfEngine, []string{"internal/", "plugins/", "cmd/unwindd/internal/", "engine/service/fleet/queueserver"})},
	// Its tests damage the memory of targets.
	{"../..", "./internal/bundled", "", true, []string{"internal/", "plugins/", "engine/target"}},
	// Callers of a server have its messages. A program that is single-stepped is a target, of
	// samples with code of their own. Cubins inside files are compared one by one.
	{"../../.ci/peers", "./...", "", true, slices.Concat(sixOfEngine, []string{"internal/", "plugins/", ".ci/peers/", "engine/service/servicepb", "engine/object", "engine/target", "engine/walk"})},
	{"../../examples", "./...", "", true, []string{"engine/plugin", "plugins/", "examples/", "internal/oracle"}},
}

// TestImportsOfPrograms keeps programs from leaning on the rooms behind the engine's doors.
func TestImportsOfPrograms(t *testing.T) {
	for _, o := range outside {
		out := oracle.With{Dir: o.dir}.Run(t, "go", "list", "-tags", o.tags, "-json=ImportPath,Imports,TestImports,XTestImports", o.pattern)
		for d := json.NewDecoder(strings.NewReader(out)); ; {
			var p struct {
				ImportPath                         string
				Imports, TestImports, XTestImports []string
			}
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			imports := p.Imports
			if o.tests {
				imports = slices.Concat(imports, p.TestImports, p.XTestImports)
			}
			for _, path := range imports {
				imported, isOwn := strings.CutPrefix(path, module)
				if isOwn && !mayImport(imported, o.may) {
					t.Errorf("%s imports %s, expected only %s", p.ImportPath, imported, strings.Join(slices.Concat(promised, o.may), ", "))
				}
			}
		}
	}
}

// mayImport reports whether a program that may import the packages of a list, beside promised
// ones, may import one.
func mayImport(imported string, list []string) bool {
	return slices.Contains(promised, imported) || slices.ContainsFunc(list, func(one string) bool {
		return imported == one || strings.HasSuffix(one, "/") && strings.HasPrefix(imported, one)
	})
}

func TestProgramsThatLeanOnRooms(t *testing.T) {
	for imported, want := range map[string]bool{
		"engine": true, "engine/report": true, "engine/object": false, "engine/service/fleet": true, "engine/service/internal/worker": false,
		"internal/confine": true, "plugins/visa/stream": true, "sdk/archtest": true, "sdk/archpb": false, "cfi": true,
	} {
		if got := mayImport(imported, outside[0].may); got != want {
			t.Errorf("the command may import %s: %v", imported, got)
		}
	}
}

func checkImport(pkg string, from int, imported string) string {
	to := floor(imported)
	switch {
	case to < from:
		return pkg + " imports " + imported + ", which is above it"
	case to == from && !strings.HasPrefix(pkg, imported+"/") && !strings.HasPrefix(imported, "sdk/"):
		return pkg + " imports " + imported + ", which is beside it"
	case slices.Contains(testKits, imported) && !slices.Contains(testKits, pkg):
		return pkg + " imports " + imported + ", which is for tests"
	}
	if rooms, ok := only[floors[from]]; ok {
		for _, room := range rooms {
			if imported == room || strings.HasPrefix(imported, room+"/") {
				return ""
			}
		}
		return pkg + " imports " + imported + ", expected only " + strings.Join(rooms, ", ")
	}
	return ""
}

func TestImportsThatAreRefused(t *testing.T) {
	for _, c := range []struct{ pkg, imported, want string }{
		{"cfi", "engine", "above"},
		{"sdk", "engine/target", "above"},
		{"sdk", "engine/object", "only"},
		{"sdk", "sdk/reloc", ""},
		{"engine/object", "sdk/reloc", ""},
		{"engine/object", "sdk", "above"},
		{"engine/internal/target/elfcore", "engine/internal/target/minidump", "beside"},
		{"engine/internal/symbol/dwarf", "engine/internal/symbol/symtab", "beside"},
		{"plugins/x86_64", "engine/object", "only"},
		{"plugins/x86_64", "plugins/visa", "beside"},
		{"plugins/visa/stream", "sdk", "only"},
		{"plugins/visa", "plugins/visa/stream", ""},
		{"plugins/amdgpu", "plugins/amdgpu/isa", ""},
		{"plugins/amdgpu/isa", "cfi", "only"},
		{"plugins/amdgpu", "internal/dw", ""},
		{"plugins/amdgpu", "internal/gcn", "for tests"},
		{"engine/internal/code", "internal/wavecheck", "above"},
		{"engine", "internal/wavecheck", "for tests"},
		{"internal/wavecheck", "internal/gcn", ""},
		{"engine/internal/target/elfcore", "engine/target", ""},
		{"engine/internal/symbol/resolve", "engine/internal/symbol/dwarf", ""},
		{"engine", "engine/plugin", ""},
		{"engine/internal/code", "engine/walk", "above"},
		{"engine/walk", "engine/internal/profile", "above"},
		{"engine/internal/profile", "engine", "above"},
		{"engine/walk", "engine/internal/code", ""},
		{"engine/walk", "engine/internal/target/elfcore", ""},
		{"engine", "engine/symbolize", "above"},
		{"engine/symbolize", "engine", ""},
		{"engine/symbolize", "engine/report", "above"},
		{"plugins/x86_64/unwindd-arch-x86_64", "plugins/x86_64", ""},
	} {
		got := checkImport(c.pkg, floor(c.pkg), c.imported)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s imports %s: %q, expected %q", c.pkg, c.imported, got, c.want)
		}
	}
}
