// SPDX-License-Identifier: Apache-2.0

package macho_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/internal/macho/machotest"
)

// TestEncryptedBytesAreNotRead: neither sections nor addresses have them, and what lies beside is there.
func TestEncryptedBytesAreNotRead(t *testing.T) {
	plain, err := os.ReadFile("testdata/unwind-arm64")
	if err != nil {
		t.Fatal(err)
	}
	const text, textSize, info, base = 0x4b0, 0x2cc, 0x788, 0x100000000
	for _, x := range []struct {
		what                         string
		offset, size, system         uint32
		hasCode, hasRows, hasProblem bool
	}{
		{what: "the code", offset: text, size: textSize, system: 1, hasRows: true, hasProblem: true},
		{what: "all behind the load commands", offset: text, size: 0x4000 - text, system: 1, hasProblem: true},
		{what: "unwind information", offset: info, size: 16, system: 2, hasCode: true, hasProblem: true},
		{what: "nothing yet", offset: text, size: 0x4000 - text, hasCode: true, hasRows: true},
		{what: "nothing at all", offset: text, system: 1, hasCode: true, hasRows: true},
	} {
		f, err := macho.New("app", machotest.Encrypted(t, plain, x.offset, x.size, x.system))
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Data(f.Section("__TEXT", "__text"))
		if x.hasCode != (err == nil) || err != nil && !errors.Is(err, macho.ErrEncrypted) {
			t.Errorf("%s: code: %v", x.what, err)
		}
		_, err = f.Bytes(base+text, 4)
		if x.hasCode != (err == nil) || err != nil && !errors.Is(err, macho.ErrEncrypted) {
			t.Errorf("%s: bytes of code: %v", x.what, err)
		}
		_, err = f.UnwindInfo()
		if x.hasRows != (err == nil) || err != nil && !errors.Is(err, macho.ErrEncrypted) {
			t.Errorf("%s: unwind information: %v", x.what, err)
		}
		if b, err := f.Bytes(base, text); err != nil || len(b) != text {
			t.Errorf("%s: the load commands: %v", x.what, err)
		}
		list := strings.Join(f.Problems(), "\n")
		if is := strings.Contains(list, "app: ") && strings.Contains(list, "are encrypted (cryptid"); is != x.hasProblem {
			t.Errorf("%s: problems %q", x.what, list)
		}
	}
}

// TestHeadersOfMemoryAreNotEncrypted: in memory the system has decrypted what the header says is encrypted.
func TestHeadersOfMemoryAreNotEncrypted(t *testing.T) {
	plain, err := os.ReadFile("testdata/unwind-arm64")
	if err != nil {
		t.Fatal(err)
	}
	b := machotest.Encrypted(t, plain, 0x4b0, 0x100, 1)
	macho.PutPlain(b)
	f, err := macho.New("app", b)
	if err != nil {
		t.Fatal(err)
	}
	if offset, size := f.Encrypted(); size != 0 || len(f.Problems()) > 0 {
		t.Errorf("%#x bytes at %#x are encrypted; problems %q", size, offset, f.Problems())
	}
	macho.PutPlain(b[:20])
	macho.PutPlain(b[:40])
}
