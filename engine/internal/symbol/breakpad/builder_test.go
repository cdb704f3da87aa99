// SPDX-License-Identifier: Apache-2.0

package breakpad

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// randomFile writes a file of functions, some of which overlap, with lines with
// gaps, trees of inlined calls of both forms, publics and records out of order.
func randomFile(t *testing.T, seed uint64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), fmt.Sprintf("random%d.sym", seed))
	if err := os.WriteFile(path, []byte(randomText(seed)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func randomText(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var s strings.Builder
	end := "\n"
	if seed%2 == 1 {
		end = "\r\n"
	}
	line := func(format string, args ...any) { s.WriteString(fmt.Sprintf(format, args...) + end) }
	line("MODULE Linux x86_64 000000000000000000000000000000000 random")
	for i := range 40 {
		if i%7 != 3 {
			line("FILE %d dir/file %d.c", i, r.IntN(20))
		}
	}
	for i := range 30 {
		if seed%3 == 0 {
			line("INLINE_ORIGIN %d %d old%d(int, char)", i, i%40-1, i)
		} else {
			line("INLINE_ORIGIN %d new%d<a b>", i, i)
		}
	}
	at := uint64(0x1000)
	for i := range 60 {
		size := uint64(r.IntN(0x200))
		line("FUNC %s%x %x 0 function %d", []string{"", "m "}[r.IntN(2)], at, size, i)
		randomInlines(r, line, at, size, 0, seed%3 == 0)
		for a := at; a < at+size; {
			n := uint64(r.IntN(40) + 1)
			if r.IntN(5) > 0 {
				line("%x %x %d %d", a, n, r.IntN(1000), r.IntN(40))
			}
			a += n
			if r.IntN(20) == 0 {
				line("FILE %d late.c", 100+i)
				line("INFO something")
			}
		}
		if r.IntN(4) == 0 {
			line("PUBLIC %x 0 public %d", r.Uint64N(0x8000), i)
		}
		switch r.IntN(6) {
		case 0:
			at = 0x1000 + r.Uint64N(0x6000)
		case 1:
			at += size / 2
		default:
			at += size + uint64(r.IntN(0x20))
		}
	}
	return s.String()
}

// randomInlines writes a tree of calls. Some ranges of siblings overlap, and some
// depths have nothing above them; not in the older form, in which the file of a call is
// that of the one around it.
func randomInlines(r *rand.Rand, line func(string, ...any), start, size uint64, depth int, old bool) {
	if depth > 5 || size < 4 {
		return
	}
	for range r.IntN(3) {
		from := start + r.Uint64N(size)
		length := r.Uint64N(start + size - from)
		ranges := fmt.Sprintf("%x %x", from, length)
		if !old && r.IntN(3) == 0 {
			ranges += fmt.Sprintf(" %x %x", start+r.Uint64N(size), r.Uint64N(8))
		}
		shown := depth
		if !old && r.IntN(15) == 0 {
			shown += 2
		}
		if old {
			line("INLINE %d %d %d %s", shown, r.IntN(500), r.IntN(33), ranges)
		} else {
			line("INLINE %d %d %d %d %s", shown, r.IntN(500), r.IntN(42)-1, r.IntN(33), ranges)
		}
		randomInlines(r, line, from, length, depth+1, old)
		if old {
			start, size = from+length, start+size-from-length
		}
		if size == 0 {
			return
		}
	}
}
