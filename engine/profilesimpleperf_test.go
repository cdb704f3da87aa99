// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

// message is a message of Protocol Buffers: fields with a number or with bytes, by their numbers.
func message(fields ...any) (b []byte) {
	for i := 0; i < len(fields); i += 2 {
		number := uint64(fields[i].(int)) //nolint:gosec // small
		switch v := fields[i+1].(type) {
		case int:
			b = binary.AppendUvarint(binary.AppendUvarint(b, number<<3), uint64(v)) //nolint:gosec // not negative
		case string:
			b = append(binary.AppendUvarint(binary.AppendUvarint(b, number<<3|2), uint64(len(v))), v...)
		case []byte:
			b = append(binary.AppendUvarint(binary.AppendUvarint(b, number<<3|2), uint64(len(v))), v...)
		}
	}
	return b
}

// sized is bytes with their length before them.
func sized(parts ...[]byte) (b []byte) {
	for _, p := range parts {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(p))), p...) //nolint:gosec // short
	}
	return b
}

// simpleperfRecord adds a record of simpleperf, whose size has 32 bits.
func (b *perfStream) simpleperfRecord(kind uint32, body []byte) {
	size := uint32(8 + len(body)) //nolint:gosec // short
	b.put(kind, uint16(size>>16), uint16(size), body)
}

// A recording of Android's simpleperf has the symbols of the device's files and the kernel's names
// in it. Its callers are at their calls.
func TestRecordingsOfSimpleperf(t *testing.T) {
	const library, dex, jit = "/data/app/base.apk!/lib/arm64-v8a/libgame.so", "/data/app/base.vdex", "[JIT app cache]"
	b := newShape("aarch64", sampleBasics|sampleChain, 0, 0)
	feature := func(number uint64, data []byte) { b.record(80, 0, number, data) }
	feature(129, []byte("simpleperf_version\x001.build.7848450\x00android_version\x0014\x00event_type_info\x00raw-x,4,17\n\x00"))
	elf := message(1, library, 2, 2, 3, 0x2000, 4, message(1, 0x2100, 2, 0x40, 3, "_Z4drawi"), 4, message(1, 0x2140, 2, 0x40, 3, "frame"), 6, message(1, 0x1000))
	feature(132, sized(elf, message(1, dex, 2, 3, 4, message(1, 0x300, 2, 0x10, 3, "com.example.Main.run")),
		message(1, jit, 2, 4, 4, message(1, 0x7000000100, 2, 0x20, 3, "com.example.Hot.loop"))))
	kallsyms := "ffffffc000080000 T do_sys\nffffffc000080100 T vfs_read\nffffffc000080200 T end\n" + strings.Repeat("ffffffc000090000 t padding\n", 4000)
	b.simpleperfRecord(32769, sized([]byte(kallsyms)))
	b.simpleperfRecord(32776, make([]byte, 16)) // UNWINDING_RESULT
	b.mmap(7, 100, 0x6000000000, 0x1000, 0x1000, library)
	b.mmap(7, 100, 0x6000010000, 0x1000, 0, dex)
	b.mmap(7, 100, 0x7000000000, 0x1000, 0, jit)
	b.record(1, 1, ^uint32(0), uint32(0), uint64(0xffffffc000080000), uint64(0x100000), uint64(0xffffffc000080000), "[kernel.kallsyms]", uint32(0), uint32(0), uint64(0))
	b.sample(inKernel, 7, 1000, 0xffffffc000080110, counted(chainKernel, 0xffffffc000080110, 0xffffffc000080000,
		chainUser, 0x6000000104, 0x6000000140, 0x6000010300, 0x7000000110))
	p, err := gpuEngine(t, Options{}).Profile(t.Context(), b.write(t), trace.ProfileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0xffffffc000080110 [kernel.kallsyms] vfs_read; 0xffffffc000080000 [kernel.kallsyms] do_sys; 0x6000000104 " + library + " draw(int); 0x6000000140 " + library + " frame; 0x6000010300 " +
		dex + " com.example.Main.run; 0x7000000110 com.example.Hot.loop: end-of-stack"}
	if d := cmp.Diff(want, shapeStacks(p)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	all := strings.Join(p.Problems, "\n")
	for _, text := range []string{"4 places are named by the symbols that simpleperf found", "these records of simpleperf are not read: 1 UNWINDING_RESULT"} {
		if !strings.Contains(all, text) {
			t.Errorf("%q is not in the problems:\n%s", text, all)
		}
	}
	if strings.Contains(all, "--perf-map") {
		t.Errorf("a map is missing: %s", all)
	}
}
