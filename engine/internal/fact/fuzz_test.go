// SPDX-License-Identifier: Apache-2.0

package fact_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzWhatHappened has dumps with any exception, instruction, register and memory. Whatever
// they are, the line is one, is short and comes at once.
func FuzzWhatHappened(f *testing.F) {
	for _, c := range madeCrashes {
		f.Add(c.platform, c.code, c.flags, c.address, uint64(1), uint64(madeStack), c.text, c.rax, "some memory")
	}
	e := engineOf(f)
	f.Fuzz(func(t *testing.T, platform, code, flags uint32, address, first, second uint64, text string, rax uint64, memory string) {
		const (
			maxMemory = 1 << 12
			maxLine   = 1 << 14
			maxTime   = 5 * time.Second
		)
		c := madeCrash{
			platform: platform, code: code, flags: flags, address: address, parameters: []uint64{first, second, madeData + 0x10, madeData},
			text: text[:min(len(text), 16)], rax: rax,
		}
		path := filepath.Join(t.TempDir(), "made.dmp")
		if err := os.WriteFile(path, c.dump(memory[:min(len(memory), maxMemory)]), 0o600); err != nil {
			t.Fatal(err)
		}
		target, err := e.Open(path)
		if err != nil {
			return
		}
		defer target.Close()
		begin := time.Now()
		line := target.Fact(context.Background())
		target.Analysis(context.Background())
		if took := time.Since(begin); took > maxTime {
			t.Errorf("it took %v", took)
		}
		if len(line) > maxLine || !utf8.ValidString(line) {
			t.Errorf("a line of %d bytes: %.100q", len(line), line)
		}
	})
}
