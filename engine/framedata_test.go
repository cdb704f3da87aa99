// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/internal/enginetest"
)

// TestFramesOf32BitX86AreFoundByFrameData walks the thread that crashed of a dump that has no code, by
// STACK WIN records. The stack pointer is 0x12fe84; CrashFunction's return address is at 0x12fe8c,
// right above the saved ebp, and main's at 0x12ff74. A frame that is, or rests on, a guess is marked.
func TestFramesOf32BitX86AreFoundByFrameData(t *testing.T) {
	const (
		head    = "MODULE windows x86 5A9832E5287241C1838ED98914E9B7FF1 test_app.pdb\nFUNC 41b0 86 8 main\nFUNC 4290 18 0 CrashFunction\nFUNC 528d 1b6 0 __tmainCRTStartup\n"
		base    = " 1 $T0 $ebp = $eip $T0 4 + ^ = $ebp $T0 ^ = $esp $T0 8 + =\n"
		search  = " 1 $T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + = $ebp $T0 4 - ^ =\n"
		startup = "STACK WIN 4 528d 1b6 c 0 0 c 2c 0" + base
	)
	for name, c := range map[string]struct{ records, want string }{
		"frames at ebp": {
			"STACK WIN 4 41b0 86 13 0 8 0 e0 0" + base + "STACK WIN 4 4290 18 4 0 0 0 4 0" + base + startup,
			"40429e context, 404200 frame-data, 4053ec frame-data, 7c816fd7 frame-data",
		},
		"a return address where its search begins": {
			"STACK WIN 4 41b0 86 13 0 8 0 e0 0" + base + "STACK WIN 4 4290 18 4 0 0 4 4 0" + search + startup,
			"40429e context, 404200 frame-data, 4053ec frame-data, 7c816fd7 frame-data",
		},
		"a return address that is above": {
			"STACK WIN 4 41b0 86 13 0 8 0 e0 0" + base + "STACK WIN 4 4290 18 4 0 0 4 0 0" + search + startup,
			"40429e context, 404200 scan, 4053ec frame-data?, 7c816fd7 frame-data?",
		},
		"parameters of a called function": {
			"STACK WIN 4 41b0 86 13 0 8 4 d8 0" + search + "STACK WIN 4 4290 18 4 0 8 0 4 0" + base + startup,
			"40429e context, 404200 frame-data, 4053ec frame-data, 7c816fd7 frame-data",
		},
		"parameters of a called function that were counted as its caller's own": {
			"STACK WIN 4 41b0 86 13 0 8 4 e0 0" + search + "STACK WIN 4 4290 18 4 0 8 0 4 0" + base + startup,
			"40429e context, 404200 frame-data, 4053ec scan, 7c816fd7 frame-data?",
		},
		"parameters that are not known": {
			"STACK WIN 4 41b0 86 13 0 8 4 e0 0" + search + startup,
			"40429e context, 404200 frame-pointer, 4053ec scan?, 7c816fd7 frame-data?",
		},
	} {
		dir := filepath.Join(t.TempDir(), "test_app.pdb", "5A9832E5287241C1838ED98914E9B7FF1")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "test_app.sym"), []byte(head+c.records), 0o600); err != nil {
			t.Fatal(err)
		}
		e := enginetest.Engine(t, engine.Options{Symbols: storesOf(t, filepath.Dir(filepath.Dir(dir)))})
		target, err := e.Open("internal/target/minidump/testdata/minidump2.dmp")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for s := range target.Stacks(context.Background()) {
			for i := range s.Frames {
				mark := ""
				if s.Frames[i].RestsOnGuess {
					mark = "?"
				}
				got = append(got, fmt.Sprintf("%x %s%s", s.Frames[i].PC, s.Frames[i].FoundBy, mark))
			}
			break // the thread that crashed is the first
		}
		target.Close()
		if !strings.HasPrefix(strings.Join(got, ", "), c.want) {
			t.Errorf("%s: %s\nexpected %s", name, strings.Join(got, ", "), c.want)
		}
	}
}
