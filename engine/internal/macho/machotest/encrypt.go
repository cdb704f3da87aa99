// SPDX-License-Identifier: Apache-2.0

package machotest

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// Encrypted returns a file with a load command that says that a range of it is encrypted by a system (LC_ENCRYPTION_INFO_64).
// Without a system the range is as it was.
func Encrypted(t testing.TB, file []byte, offset, size, system uint32) []byte {
	t.Helper()
	const header, command, kind = 32, 24, 0x2c
	le := binary.LittleEndian
	b := bytes.Clone(file)
	end := header + le.Uint32(b[20:])
	if !bytes.Equal(b[end:end+command], make([]byte, command)) {
		t.Fatal("there is no room for another load command")
	}
	le.PutUint32(b[16:], le.Uint32(b[16:])+1)
	le.PutUint32(b[20:], le.Uint32(b[20:])+command)
	for i, v := range []uint32{kind, command, offset, size, system, 0} {
		le.PutUint32(b[end+4*uint32(i):], v) //nolint:gosec // few
	}
	for i := offset; i < offset+size && system != 0; i++ {
		b[i] ^= 0xa5
	}
	return b
}
