// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/enginetest"
)

// appleSample is the text of sample about the program of examples/apple, with a name that the dSYM has otherwise and
// one in a library without a file.
const appleSample = `Analysis of sampling Notes (pid 812) every 1 millisecond
Process:         Notes [812]
Path:            /Applications/Notes.app/Contents/MacOS/Notes
Load Address:    0x102f48000
Code Type:       ARM64
OS Version:      macOS 13.1 (22C65)
----

Call graph:
    25 Thread_9001   DispatchQueue_1: com.apple.main-thread  (serial)
      25 start  (in dyld) + 2360  [0x18a0f5e5c]
        25 main  (in Notes) + 44  [0x102f483d8]
          25 ???  (in Notes)  load address 0x102f48000 + 0x398  [0x102f48398]
            20 wrong  (in Notes) + 40  [0x102f48358]
            5 outside  (in Notes) + 1  [0x102f4bff0]

Total number in stack (recursive counted multiple, when >=5):

Binary Images:
       0x102f48000 -        0x102f4bfff +com.example.notes (1.2) <UUID> /Applications/Notes.app/Contents/MacOS/Notes
       0x18a0f0000 -        0x18a17cfff  dyld (1042) <487CFDEB-9B07-39BF-BFB9-970B61AEA2D1> /usr/lib/dyld
`

// appleSpindump is such a text of spindump, of two processes.
const appleSpindump = `Date/Time:        2024-05-06 07:08:09 +0200
OS Version:       macOS 13.1 (Build 22C65)
Architecture:     arm64e
Data Source:      Stackshots
Steps:            25 (10ms sampling interval)

Process:          other [9]
Num samples:      25

  Thread 0x1    25 samples (1-25)
  25  other + 7 (other + 1000) [0x102f483e8] 1-25

  Binary Images:
           0x102f48000 -                ???  other (0)  <5C2C9F2C-3B52-3A75-9E58-00A1C1B0D7F2>  /usr/bin/other

Process:          Notes [812]
Num samples:      25

  Thread 0x2    DispatchQueue "com.apple.main-thread"(1)    25 samples (1-25)
  25  start + 2360 (dyld + 24156) [0x18a0f5e5c] 1-25
    25  main + 44 (Notes + 984) [0x102f483d8] 1-25
      25  ??? (Notes + 920) [0x102f48398] 1-25
        20  wrong + 40 (Notes + 856) [0x102f48358] 1-20
        5   outside + 1 (Notes + 16368) [0x102f4bff0] 21-25

  Binary Images:
           0x102f48000 -                ???  com.example.notes 1.2 (7)  <UUID>  /Applications/Notes.app/Contents/MacOS/Notes
           0x18a0f0000 -        0x18a17cfff  dyld (1042)                <487CFDEB-9B07-39BF-BFB9-970B61AEA2D1>  /usr/lib/dyld
`

// Frames of call trees have the names that frames of stacks have: the ones of the dSYM of their image, and else those
// of the text.
func TestCallTreesHaveTheNamesOfTheirDSYM(t *testing.T) {
	const uuid, dsym = "4C4C4476-5555-3144-A123-B5959D72FBAD", "../examples/apple/Notes.app.dSYM"
	profile := func(text, uuid string) string {
		path := appleFile(t, "tree.txt", strings.ReplaceAll(text, "UUID", uuid))
		e := enginetest.Engine(t, engine.Options{DebugDirs: []string{dsym}, Sysroot: t.TempDir()})
		p, err := e.Profile(t.Context(), path, trace.ProfileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for i := range p.Samples {
			line := fmt.Sprint(p.Samples[i].Weight)
			for s := p.Samples[i].Stack; s != 0; s = p.Stacks[s].Caller {
				f := &p.Frames[p.Stacks[s].Frame]
				for _, symbol := range f.Symbols {
					line += fmt.Sprintf(" %s:%d", symbol.Function, symbol.Line)
				}
				if len(f.Symbols) == 0 {
					line += " ?"
				}
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "\n")
	}
	const named = "20 words:15 count:25 summary:31 main:38 start:0\n5 outside:0 summary:31 main:38 start:0"
	const unnamed = "20 wrong:0 ? main:0 start:0\n5 outside:0 ? main:0 start:0"
	for _, c := range []struct{ name, text, uuid, want string }{
		{"sample", appleSample, uuid, named},
		{"sample of another build", appleSample, "0" + uuid[1:], unnamed},
		{"spindump", appleSpindump, uuid, "25 other:0\n" + named},
		{"spindump of another build", appleSpindump, "0" + uuid[1:], "25 other:0\n" + unnamed},
	} {
		if got := profile(c.text, c.uuid); got != c.want {
			t.Errorf("%s:\n%s\nexpected\n%s", c.name, got, c.want)
		}
	}
}
