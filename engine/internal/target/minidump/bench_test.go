// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"encoding/binary"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/target/minidump/minidumptest"
)

// BenchmarkOpen opens a dump of 50,000 ranges of memory, of which the program says
// nothing else.
func BenchmarkOpen(b *testing.B) {
	m := minidumptest.New(binary.LittleEndian)
	const count = 50_000
	var list []byte
	for i := range uint64(count) {
		list = append(list, m.Pack(0x10000+i*0x1000, uint64(16))...)
	}
	memory := m.Put(make([]byte, 16*count))
	m.Stream(uint32(StreamMemory64List), uint64(count), uint64(memory), list)
	data := m.Bytes()
	b.ReportAllocs()
	for b.Loop() {
		d, err := Read("bench.dmp", data)
		if err != nil || len(d.memory) != count {
			b.Fatal(err, len(d.memory))
		}
	}
}
