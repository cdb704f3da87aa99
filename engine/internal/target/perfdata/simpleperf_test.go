// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"testing"
)

// simpleperfFile is the recording of simpleperf with a feature in each form.
func simpleperfFile() *builder {
	b := newBuilder(false, Attr{Type: 4, Config: 17, SampleType: SampleIP | SampleTID | SampleTime, Flags: FlagSampleIDAll | FlagMmap2, SamplePeriod: 1})
	b.feature[featureMeta] = []byte("simpleperf_version\x001\x00event_type_info\x00raw-x,4,17\n\x00")
	file := b.pack([]byte("/lib/a.so\x00"), uint32(ELFFile), uint64(0x1000), uint32(2), uint64(0x1100), uint32(16), []byte("second\x00"), uint64(0x1010), uint32(16), []byte("first\x00"), uint64(0x800))
	b.feature[featureFile] = append(b.pack(uint32(len(file))), file...)
	message := []byte{1<<3 | 2, 2, '/', 'b', 2 << 3, 3, 4<<3 | 2, 9, 1 << 3, 0x20, 2 << 3, 4, 3<<3 | 2, 3, 'r', 'u', 'n', 6<<3 | 2, 0}
	b.feature[featureFile2] = append(b.pack(uint32(len(message))), message...)
	b.feature[featureUnwindLog] = make([]byte, 5)
	b.feature[featureInitMap] = b.record(recordMmap2, uint16(ModeUser), uint32(7), uint32(7), uint64(0x4000), uint64(0x1000), uint64(0), make([]byte, 24), uint32(5), uint32(2),
		"/lib/a.so", uint32(7), uint32(7), uint64(0))
	b.add(recordSample, uint16(ModeUser), uint64(0x4010), uint32(7), uint32(7), uint64(100))
	return b
}

func TestFeaturesOfSimpleperf(t *testing.T) {
	f, err := Open(writeFile(t, simpleperfFile().bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !f.IsSimpleperf() || f.Attrs()[0].Name != "raw-x" {
		t.Errorf("meta %v, event %q", f.features.Meta, f.Attrs()[0].Name)
	}
	if len(f.features.Files) != 2 {
		t.Fatalf("files %+v, expected 2", f.features.Files)
	}
	elf, dex := &f.features.Files[0], &f.features.Files[1]
	for address, want := range map[uint64]string{0x100f: "", 0x1010: "first", 0x101f: "first", 0x1020: "", 0x1100: "second", 0x1110: ""} {
		if name, _, _ := elf.Find(address); name != want {
			t.Errorf("%#x is %q, expected %q", address, name, want)
		}
	}
	if got := elf.Address(0x900, 0x7000, 0x7900); got != 0x1100 {
		t.Errorf("the offset 0x900 is %#x, expected 0x1100", got)
	}
	if name, start, ok := dex.Find(dex.Address(0x22, 0, 0)); name != "run" || start != 0x20 || !ok {
		t.Errorf("%q from %#x on", name, start)
	}
	batch, err := f.Reader().Next()
	if err != nil || len(batch.Samples) != 1 {
		t.Fatalf("%+v, %v", batch, err)
	}
	if m := batch.Samples[0].Space.Find(0x4010); m == nil || m.Path != "/lib/a.so" {
		t.Errorf("the mapping of the sample is %+v", m)
	}
	if p := f.Problems(); len(p) != 1 {
		t.Errorf("problems %q, expected one about debug_unwind", p)
	}
}

// FuzzSimpleperf reads any bytes as what simpleperf writes.
func FuzzSimpleperf(f *testing.F) {
	b := simpleperfFile()
	f.Add(b.feature[featureFile], b.feature[featureFile2], b.feature[featureMeta])
	f.Fuzz(func(t *testing.T, file, file2, meta []byte) {
		r := &File{}
		_ = r.readSimpleperf(featureFile, file)
		_ = r.readSimpleperf(featureFile2, file2)
		_ = r.readSimpleperf(featureMeta, meta)
		r.simpleperfProblems()
		for i := range r.features.Files {
			s := &r.features.Files[i]
			for _, k := range s.symbols {
				if _, start, ok := s.Find(k.start); ok && start != k.start {
					t.Errorf("%#x is in the function from %#x on", k.start, start)
				}
			}
		}
	})
}
