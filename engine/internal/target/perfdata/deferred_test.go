// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Chains that the kernel wrote when threads were in user mode again (record 22, with bit
// 38 of perf_event_attr), as no kernel here writes them.
func TestDeferredChains(t *testing.T) {
	const (
		kernel   = ^uint64(0) - 127 // -128
		user     = ^uint64(0) - 511
		deferred = ^uint64(0) - 639
	)
	base := SampleIP | SampleTID | SampleTime | SampleCallchain
	sampleOf := func(b *builder, tid uint32, time uint64, chain ...uint64) *builder {
		return b.add(recordSample, 2, uint64(1), uint32(1), tid, time, uint64(len(chain)), chain)
	}
	chainOf := func(b *builder, tid uint32, time, cookie, n uint64, chain ...uint64) *builder {
		return b.add(recordDeferred, 0, cookie, n, chain, uint32(1), tid, time)
	}
	for _, c := range []struct {
		name    string
		write   func(b *builder)
		want    []string
		problem string
	}{
		{"one record for the samples before it", func(b *builder) {
			sampleOf(b, 7, 10, kernel, 0xffff0001, deferred, 1)
			sampleOf(b, 7, 20, kernel, 0xffff0002, deferred, 1)
			chainOf(b, 7, 30, 1, 3, user, 0x1000, 0x2000)
			sampleOf(b, 7, 40, user, 0x3000)
		}, []string{"7@10 2:ffff0001 3:1000 3:2000", "7@20 2:ffff0002 3:1000 3:2000", "7@40 3:3000"}, ""},
		{"without the marker of the user's context", func(b *builder) {
			sampleOf(b, 7, 10, deferred, 1)
			chainOf(b, 7, 30, 1, 2, 0x1000, 0x2000)
		}, []string{"7@10 3:1000 3:2000"}, ""},
		{"two threads with one cookie, records not in the order of time", func(b *builder) {
			chainOf(b, 8, 50, 1, 2, user, 0x8000)
			chainOf(b, 7, 30, 1, 2, user, 0x7000)
			sampleOf(b, 8, 20, kernel, 0xffff0008, deferred, 1)
			sampleOf(b, 7, 10, kernel, 0xffff0007, deferred, 1)
		}, []string{"7@10 2:ffff0007 3:7000", "8@20 2:ffff0008 3:8000"}, ""},
		{"a cookie that is used again", func(b *builder) {
			sampleOf(b, 7, 10, deferred, 1)
			chainOf(b, 7, 20, 1, 2, user, 0x1000)
			sampleOf(b, 7, 30, deferred, 1)
			chainOf(b, 7, 40, 1, 2, user, 0x2000)
		}, []string{"7@10 3:1000", "7@30 3:2000"}, ""},
		{"records that are missing, and one that is too early", func(b *builder) {
			chainOf(b, 7, 5, 1, 2, user, 0x1000)
			sampleOf(b, 7, 10, kernel, 0xffff0001, deferred, 1)
			sampleOf(b, 7, 20, kernel, 0xffff0002, deferred, 2)
			sampleOf(b, 9, 21, kernel, 0xffff0003, deferred)
		}, []string{"7@10 2:ffff0001 7:1", "7@20 2:ffff0002 7:2", "9@21 2:ffff0003"}, ""},
		{"more words than the record has", func(b *builder) {
			sampleOf(b, 7, 10, kernel, 0xffff0001, deferred, 1)
			chainOf(b, 7, 20, 1, 1<<60, user, 0x1000)
			chainOf(b, 7, 30, 1, 5, user, 0x1000)
		}, []string{"7@10 2:ffff0001 7:1"}, "CALLCHAIN_DEFERRED: 1152921504606846976 words, which go beyond its record of 56 bytes"},
		{"no words", func(b *builder) {
			sampleOf(b, 7, 10, kernel, 0xffff0001, deferred, 1)
			chainOf(b, 7, 20, 1, 0)
		}, []string{"7@10 2:ffff0001"}, ""},
	} {
		for _, big := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, big endian %v", c.name, big), func(t *testing.T) {
				b := newBuilder(big, Attr{SampleType: base, Flags: FlagSampleIDAll | 3<<38})
				c.write(b)
				path := filepath.Join(t.TempDir(), "perf.data")
				if err := os.WriteFile(path, b.bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
				f, err := Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				var got []string
				for r := f.Reader(); ; {
					batch, err := r.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					for _, s := range batch.Samples {
						text := fmt.Sprintf("%d@%d", s.TID, s.Time)
						for context, address := range s.Chain.All() {
							text += fmt.Sprintf(" %d:%x", context, address)
						}
						got = append(got, text)
					}
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				problems := strings.Join(f.Problems(), "\n")
				if (c.problem == "") != (problems == "") || !strings.Contains(problems, c.problem) {
					t.Errorf("problems %q, want %q", problems, c.problem)
				}
			})
		}
	}
}
