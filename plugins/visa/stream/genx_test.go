// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
)

// genxText is a stream as GenX_IR -decodedbg prints it, which shows every field
// but the kind of a variable. A general register has so many bytes.
func (s *Stream) genxText(register int) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	intervals := func(list []Interval) {
		line("\tLive intervals: ")
		for _, i := range list {
			var place string
			switch l := i.Location; l.Storage {
			case Memory:
				base := map[bool]string{false: "off be_fp", true: "absolute offset"}[l.IsAbsolute]
				place = fmt.Sprintf("Spilled (offset = %d bytes) (%s)", l.Offset, base)
			case General:
				place = fmt.Sprintf("r%d.%d:ub", l.Register, l.Subregister)
			default:
				place = fmt.Sprintf("%.1s%d.%d", l.Storage, l.Register, l.Subregister)
			}
			line("(%d, %d) @ \t%s", i.Start, i.End, place)
		}
		line("")
	}
	maybe := func(list []Interval, there, absent string) {
		if list == nil {
			line("%s", absent)
			return
		}
		line("%s", there)
		intervals(list)
		line("")
	}
	saves := func(name string, list []Save) {
		line("%s save:", name)
		for _, save := range list {
			line("Gen ISA offset: %d", save.GenOffset)
			for _, e := range save.Registers {
				var place string
				switch l := e.Location; {
				case l.Storage == General:
					place = fmt.Sprintf("r%d.%d:ub", l.Register, l.Subregister)
				case !l.IsAbsolute:
					place = fmt.Sprintf("BE_FP + %d bytes", l.Offset)
				default:
					place = fmt.Sprintf("%d bytes", l.Offset)
				}
				line("\tr%d.%d:ub (%d bytes) -> %s", int(e.Offset)/register, int(e.Offset)%register, e.Bytes, place)
			}
		}
		line("")
	}
	line("=== Start of Debug Dump ===")
	line("Magic: 0xdeadd010")
	line("Number of compiled objects: %d\n", len(s.Objects))
	for i, o := range s.Objects {
		line("Current compiled object index: %d\nKernel name: %s", i, o.Name)
		if o.RelocOffset == 0 {
			line("(kernel)")
		} else {
			line("(function binary @ gen offset %d bytes)", o.RelocOffset)
		}
		for _, m := range []struct {
			name string
			list []Mapping
		}{{"byte offset", o.OffsetMap}, {"index", o.IndexMap}} {
			line("CISA %s -> Gen byte offset mapping", m.name)
			for _, x := range m.list {
				line("%d\t%d", x.VISA, x.Gen)
			}
			line("")
		}
		line("Virtual Register -> Physical Register mapping")
		for _, x := range o.Variables {
			b.WriteString(x.Name)
			intervals(x.Intervals)
		}
		line("\n\nNumber of subroutines: %d", len(o.Subroutines))
		for _, r := range o.Subroutines {
			line("Subroutine name: %s\nStart VISA: %d, end VISA: %d\nRetval: ", r.Name, r.Start, r.End)
			intervals(r.ReturnValue)
		}
		line("\nFrame size: %d bytes", o.Frame.Size)
		maybe(o.Frame.BEFP, "BE_FP: ", "BE_FP not found")
		maybe(o.Frame.CallerBEFP, "Caller BE_FP saved at:", "Caller BE_FP not saved")
		maybe(o.Frame.ReturnAddress, "Return addr saved at:", "Return addr not stored")
		saves("Callee", o.Frame.CalleeSaves)
		saves("Caller", o.Frame.CallerSaves)
	}
	line("=== End of Debug Dump ===")
	return b.String()
}

// platforms are the devices that streams are compiled for, by the names that
// GenX_IR has for them.
var platforms = map[string]string{"skl": "SKL", "icllp": "ICLLP", "tgllp": "TGLLP", "dg2-g10": "DG2", "pvc": "PVC"}

// compareToGenX holds a stream against the vendor's decoder.
func compareToGenX(t *testing.T, path, device string) *Stream {
	t.Helper()
	if device == "pvc" {
		return compareTo(t, path, platforms[device], 64)
	}
	return compareTo(t, path, platforms[device], 32)
}

// compareTo does so for a platform whose registers have so many bytes.
func compareTo(t *testing.T, path, platform string, register int) *Stream {
	t.Helper()
	out := oracle.Run(t, "GenX_IR", "-decodedbg", path, "-platform", platform) // of Debian's libigc-tools
	_, theirs, _ := strings.Cut(out, "\n")                                     // the command line
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := decode(t, b)
	if diff := cmp.Diff(strings.Split(theirs, "\n"), strings.Split(s.genxText(register), "\n")); diff != "" {
		t.Errorf("%s (-GenX_IR +got):\n%s", path, diff)
	}
	return s
}

func TestVISAStreamsAsGenXPrintsThem(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.dbg")
	if len(files) < 17 {
		t.Fatalf("%d streams in testdata, expected 17 or more", len(files))
	}
	for _, path := range files {
		device := regexp.MustCompile(`-(k|rec|multi)-`).Split(filepath.Base(path), 2)[0]
		compareToGenX(t, path, device)
	}
}

// TestRegistersOfPVCAsGenXPrintsThem: GenX_IR takes the size of a register from the
// platform that it is given, not from the stream. For PVC, whose registers have
// 64 bytes, it is right; given a platform of 32, it prints twice the number of
// each register that is saved, and nothing else differs.
func TestRegistersOfPVCAsGenXPrintsThem(t *testing.T) {
	const path = "testdata/pvc-rec-O0-1.dbg"
	compareTo(t, path, "PVC", 64)
	compareTo(t, path, "DG2", 32)
}

// TestVISAStreamsCompiledAfresh compares what the compiler at hand writes for
// each device with and without optimization, and holds corrected offsets of
// saves against its assembly.
func TestVISAStreamsCompiledAfresh(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles many streams: run without -short")
	}
	oracle.Tools(t, "ocloc")
	t.Parallel()
	seen := map[string]int{}
	for device := range platforms {
		for level, options := range map[string]string{"O0": "-g -cl-opt-disable", "O2": "-g"} {
			if isNewer := device == "dg2-g10" || device == "pvc"; !proof.IsRequested() && (level == "O2") != isNewer {
				continue // the newer ones are compiled with optimization, the others without
			}
			for _, source := range []string{"rec", "k", "spill"} {
				for _, path := range compileVISA(t, source, device, options) {
					s := compareToGenX(t, path, device)
					for _, o := range s.Objects {
						seen["variables"] += len(o.Variables)
						seen["subroutines"] += len(o.Subroutines)
						seen["callee saves"] += len(o.Frame.CalleeSaves)
						seen["caller saves"] += len(o.Frame.CallerSaves)
						if o.Frame.ReturnAddress != nil {
							seen["return addresses"]++
						}
						for _, x := range o.Variables {
							for _, i := range x.Intervals {
								seen[i.Location.Storage.String()]++
							}
						}
					}
					seen["streams"]++
					if s.Layout != LayoutA {
						t.Errorf("%s-%s-%s: layout %s", device, source, level, s.Layout)
					}
					seen["saves in the assembly"] += compareToAssembly(t, path)
				}
			}
		}
	}
	for _, what := range []string{"streams", "variables", "subroutines", "callee saves", "caller saves", "return addresses", "general", "flag", "address", "memory", "saves in the assembly"} {
		if seen[what] == 0 {
			t.Errorf("no %s in what was compiled", what)
		}
	}
	t.Log(seen)
}

// compileVISA compiles a source of the decoder's testdata, and gives the paths of
// its debug streams. Beside each is the assembly.
func compileVISA(t *testing.T, source, device, options string) []string {
	t.Helper()
	source, err := filepath.Abs("testdata/" + source + ".cl")
	if err != nil {
		t.Fatal(err)
	}
	dir := oracle.Build{Sources: []string{source}, Commands: [][]string{{"sh", "-c", `IGC_ShaderDumpEnable=1 IGC_DumpToCustomDir="$PWD/dump/" exec "$0" "$@"`,
		"ocloc", "compile", "-file", source, "-device", device, "-options", options}}}.Make(t)
	streams, _ := filepath.Glob(dir + "/dump/*.dbg")
	if len(streams) == 0 {
		t.Fatalf("ocloc wrote no stream of %s for %s", source, device)
	}
	return streams
}

// savedInAssembly is a message that saves registers to the frame: `[r126:1] r60:4
// ... spill to FP[2*32]`.
var savedInAssembly = regexp.MustCompile(`\] r(\d+):(\d+) .*spill to FP\[(\d+)\*(\d+)\]`)

// compareToAssembly holds where the corrected frames save registers against the
// messages that save them, and counts what it compared. The assembly names
// frame slots on DG2 and PVC only.
func compareToAssembly(t *testing.T, path string) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := decode(t, b)
	asm, err := os.ReadFile(strings.TrimSuffix(path, ".dbg") + ".asm")
	if err != nil {
		t.Fatal(err)
	}
	type save struct{ offset, register, bytes int }
	var stored []save
	for _, m := range savedInAssembly.FindAllStringSubmatch(string(asm), -1) {
		var first, count, slot, size int
		fmt.Sscan(strings.Join(m[1:], " "), &first, &count, &slot, &size)
		for i := range count {
			stored = append(stored, save{(slot + i) * size, (first + i) * size, size})
		}
	}
	if len(stored) == 0 {
		return 0
	}
	compared := 0
	frames, _ := s.Corrected()
	for i, f := range frames {
		for _, list := range [][]Save{f.CalleeSaves, f.CallerSaves} {
			for _, x := range list {
				for _, g := range x.Registers {
					compared++
					if !slices.Contains(stored, save{int(g.Location.Offset), int(g.Offset), int(g.Bytes)}) {
						t.Errorf("%s: %s: %+v is stored by no instruction", path, s.Objects[i].Name, g)
					}
				}
			}
		}
	}
	return compared
}
